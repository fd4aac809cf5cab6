//! What a dead process left of its sub-agents: they go on with their session, or their turns are ended, and the session
//! learns what they brought.

use std::collections::BTreeSet;
use std::time::Duration;

use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::checkpoint::subagent_start::MAX_SUBAGENT_DEPTH;
use pintle_domain::checkpoint::{ObservedEvent, SubagentStart};
use pintle_domain::id::{AgentId, SessionId, TurnId};
use pintle_domain::message::{Message, Role};
use pintle_domain::session::{JournalEntry, Session};
use pintle_domain::store::{SessionKey, SessionRow, SessionStore, StoreError};
use pintle_domain::turn::{Fact, MessageSender, WaitingMessage};
use pintle_engine::Dispatcher;

use super::messages::now;
use super::runner::Runner;
use super::subturns::{LeftSubagent, TakenUp, result_message, tell_stop};
use super::turn_env::TurnEnv;
use crate::conversation::Conversation;
use crate::tools::SPAWN;

/// What observers hear of a sub-agent whose process died.
const DIED: &str = "its process ended";

/// What a dead process left of the sub-agents of one session.
struct OrphanedWork {
    /// The last turn of the session: the one that died with it, or whose sub-agents worked on.
    turn_id: TurnId,
    /// Those that are not as they should be, or have somebody below them who is not.
    children: Vec<OrphanedChild>,
    /// What others brought that the session has not heard of.
    unheard: Vec<WaitingMessage>,
}

struct OrphanedChild {
    row: SessionRow,
    /// What is left of those who worked for it, if anybody did.
    left: Option<OrphanedWork>,
}

impl OrphanedWork {
    fn is_empty(&self) -> bool {
        self.children.is_empty() && self.unheard.is_empty()
    }
}

impl Runner {
    /// Ends the turns of sub-agents whose process died with this session's, however far down, and lets it know of those
    /// that worked in the background.
    pub(super) async fn recover_children(&self, conversation: &mut Conversation, turn_env: &TurnEnv) {
        let Some((heard, left)) = left_by_the_dead(conversation).await else { return };
        self.end_children(conversation, (heard, left), turn_env).await;
    }

    /// The same where somebody goes on with the session: those who worked for it are taken up, each in its own turn; only
    /// the turns of whom nobody can go on with are ended.
    pub(super) async fn take_up_children(
        &self,
        conversation: &mut Conversation,
        turn_env: &TurnEnv,
    ) -> Option<TakenUp> {
        let (heard, mut left) = left_by_the_dead(conversation).await?;
        let hooks = self.hooks(conversation, left.turn_id.clone(), turn_env);
        let (mut subagents, mut others) = (Vec::new(), Vec::new());
        for child in std::mem::take(&mut left.children) {
            match self.take_up(conversation, &child.row).await {
                Some(subagent) => subagents.push(subagent),
                None => others.push(child),
            }
        }
        left.children = others;
        self.end_children(conversation, (heard, left), turn_env).await;
        Some(TakenUp { hooks, subagents })
    }

    /// The sub-agent of this session that `row` is about, if its turn is open and somebody can go on with it.
    async fn take_up(&self, conversation: &Conversation, row: &SessionRow) -> Option<LeftSubagent> {
        row.open_turn.as_ref()?;
        let (registry, agent) = (self.registry.upgrade()?, AgentId::from(row.agent_id.as_str()));
        registry.runner(agent.as_str())?;
        let slot = registry.slot()?;
        let opened = open_below(conversation, row).await?;
        opened.open_turn()?;
        Some(LeftSubagent { agent, background: in_background(&row.session_id), conversation: opened, slot })
    }

    /// Lets the sub-agents that were at work when their process died come to their end, where the turn that they worked
    /// for is over: what they bring waits in the session.
    pub(super) async fn finish_children(&self, conversation: &mut Conversation, turn_env: &TurnEnv) {
        let Some(TakenUp { hooks, subagents }) = self.take_up_children(conversation, turn_env).await else { return };
        if subagents.is_empty() {
            return;
        }
        self.open(conversation, &hooks);
        for waiting in self.finished(conversation, TakenUp { hooks, subagents }, turn_env).await {
            self.queue(conversation, waiting);
        }
    }

    async fn end_children(
        &self,
        conversation: &mut Conversation,
        (heard, left): (BTreeSet<TurnId>, OrphanedWork),
        turn_env: &TurnEnv,
    ) {
        for waiting in self.recover_below(conversation, left, turn_env).await {
            let news = match &waiting.from {
                MessageSender::Subturn { turn_id, .. } => !heard.contains(turn_id),
                MessageSender::Person => false,
            };
            if news {
                self.queue(conversation, waiting);
            }
        }
    }

    /// The same for the sub-agents of one session: what they brought comes back.
    async fn recover_below(
        &self,
        conversation: &Conversation,
        left: OrphanedWork,
        turn_env: &TurnEnv,
    ) -> Vec<WaitingMessage> {
        let hooks = self.hooks(conversation, left.turn_id, turn_env);
        let mut brought = left.unheard;
        for child in left.children {
            // Somebody else works on it: then it is not dead.
            let Some(mut opened) = open_below(conversation, &child.row).await else { continue };
            brought.extend(self.recover_child(&mut opened, child, &hooks, turn_env).await);
        }
        brought
    }

    async fn recover_child(
        &self,
        conversation: &mut Conversation,
        child: OrphanedChild,
        hooks: &Dispatcher,
        turn_env: &TurnEnv,
    ) -> Vec<WaitingMessage> {
        let agent = AgentId::from(child.row.agent_id.as_str());
        let registry = self.registry.upgrade();
        let runner = registry.as_ref().and_then(|registry| registry.runner(agent.as_str())).unwrap_or(self);
        let below = TurnEnv { parent: Some(hooks.clone()), ..turn_env.clone() };
        let mut brought = Vec::new();
        if let Some(left) = child.left {
            brought = Box::pin(runner.recover_below(conversation, left, &below)).await;
        }
        let open = conversation.open_turn().map(|open| (open.turn_id.clone(), open.prompt.clone()));
        if conversation.was_left_by_the_dead() {
            // Notes how it was left; its own end follows when it is dropped.
            let turn_id = open.as_ref().map_or_else(TurnId::fresh, |(turn_id, _)| turn_id.clone());
            let hooks = runner.hooks(conversation, turn_id, &below);
            runner.open(conversation, &hooks);
        }
        let Some((turn_id, task)) = open else { return brought };
        Box::pin(runner.recover_turn(conversation, &below)).await;
        let queue = conversation.session.queue().iter();
        brought.extend(queue.filter(|waiting| waiting.from != MessageSender::Person).cloned());
        if in_background(conversation.key.as_str()) {
            let text = format!("[The agent \"{agent}\", started as {turn_id}, ended with the process that it ran in]");
            let message = Message { created_at: Some(now()), ..Message::text(Role::User, text) };
            let from = MessageSender::Subturn { agent: agent.clone(), turn_id };
            brought.push(WaitingMessage { message: message.into(), from, notes: Vec::new() });
        }
        let status = TurnStatus::Aborted;
        let stop = ObservedEvent::SubagentStop {
            start: Box::new(SubagentStart::new(agent.clone(), task, hooks.who().depth + 1, None)),
            session_id: conversation.key.clone(),
            status,
            timed_out: false,
            outcome: DIED.into(),
            denials: Vec::new(),
            duration: Duration::ZERO,
        };
        tell_stop(hooks, &agent, status, stop);
        brought
    }

    fn queue(&self, conversation: &mut Conversation, waiting: WaitingMessage) {
        let queued = JournalEntry::Turn(Fact::Queued(waiting));
        drop(conversation.journal.write(&self.settings.id, vec![queued.clone()]));
        conversation.session.apply(queued);
    }
}

/// What a dead process left below the session, and whose results it has heard of. A process that left in order took its
/// sub-agents with it.
async fn left_by_the_dead(conversation: &Conversation) -> Option<(BTreeSet<TurnId>, OrphanedWork)> {
    if !conversation.was_left_by_the_dead() {
        return None;
    }
    let (store, key) = (conversation.journal.store()?.clone(), conversation.journal.key().clone());
    let left = tokio::task::spawn_blocking(move || left_of(&*store, &key)).await;
    let Ok(Ok((heard, Some(left)))) = left else { return None };
    Some((heard, left))
}

/// The session of a sub-agent, unless somebody else works on it.
async fn open_below(conversation: &Conversation, row: &SessionRow) -> Option<Conversation> {
    let store = conversation.journal.store()?.clone();
    let session = SessionId::from(row.session_id.as_str());
    let below = SessionKey { tenant: conversation.tenant().clone(), session };
    let parent = Some(conversation.key.clone());
    let opened = tokio::task::spawn_blocking(move || Conversation::open_child(store, below, parent)).await;
    let opened = opened.ok()?.ok()?;
    Some(opened.on(conversation.channel.clone(), conversation.chat_id.clone()))
}

fn in_background(session: &str) -> bool {
    session.rsplit('/').next().is_some_and(|last| last.starts_with(&format!("{SPAWN}:")))
}

/// What is left below the session `key`, and whose results it has heard of.
fn left_of(store: &dyn SessionStore, key: &SessionKey) -> Result<(BTreeSet<TurnId>, Option<OrphanedWork>), StoreError> {
    let rows = store.sessions(&key.tenant)?;
    let journal = store.journal(key)?;
    let heard = journal.iter().cloned().filter_map(brought_by).collect();
    Ok((heard, left(store, &rows, (key, journal), 0)?))
}

fn left(
    store: &dyn SessionStore,
    rows: &[SessionRow],
    (key, journal): (&SessionKey, Vec<JournalEntry>),
    depth: u8,
) -> Result<Option<OrphanedWork>, StoreError> {
    let Some(turn_id) = journal.iter().rev().find_map(begun) else { return Ok(None) };
    let mut heard: BTreeSet<TurnId> = journal.iter().cloned().filter_map(brought_by).collect();
    let mut left = OrphanedWork { turn_id, children: Vec::new(), unheard: Vec::new() };
    if rows.iter().any(|row| row.session_id == key.session.as_str() && row.parent.is_some() && row.open_turn.is_none())
    {
        // Nobody will go on with what still waits in the session of a sub-agent.
        left.unheard =
            Session::fold(journal).queue().iter().filter(|it| it.from != MessageSender::Person).cloned().collect();
    }
    // Nobody was let begin below that: a store that says so is not to be followed for ever.
    let children =
        rows.iter().filter(|row| depth < MAX_SUBAGENT_DEPTH && row.parent.as_deref() == Some(key.session.as_str()));
    for row in children {
        let child = SessionKey { tenant: key.tenant.clone(), session: SessionId::from(row.session_id.as_str()) };
        let entries = store.journal(&child)?;
        let dead = row.open_turn.is_some() || is_held(&entries);
        if row.open_turn.is_none() && in_background(&row.session_id) {
            left.unheard.extend(result(&entries, &row.agent_id, &mut heard));
        }
        let below = self::left(store, rows, (&child, entries), depth + 1)?.filter(|below| !below.is_empty());
        if dead || below.is_some() {
            left.children.push(OrphanedChild { row: row.clone(), left: below });
        }
    }
    Ok(Some(left))
}

/// Whether a process opened the session and did not say that it left.
fn is_held(journal: &[JournalEntry]) -> bool {
    let visit = |entry: &JournalEntry| match entry {
        JournalEntry::Opened { .. } => Some(true),
        JournalEntry::Closed { .. } => Some(false),
        JournalEntry::Turn(_) | JournalEntry::Kept(_) => None,
    };
    journal.iter().rev().find_map(visit).unwrap_or(false)
}

fn begun(entry: &JournalEntry) -> Option<TurnId> {
    match entry {
        JournalEntry::Turn(Fact::Begun { turn_id, .. }) => Some(turn_id.clone()),
        JournalEntry::Turn(_) | JournalEntry::Opened { .. } | JournalEntry::Closed { .. } | JournalEntry::Kept(_) => {
            None
        }
    }
}

/// The sub-agent's turn that an entry brings the result of.
fn brought_by(entry: JournalEntry) -> Option<TurnId> {
    match entry {
        JournalEntry::Turn(Fact::Queued(WaitingMessage { from: MessageSender::Subturn { turn_id, .. }, .. })) => {
            Some(turn_id)
        }
        JournalEntry::Turn(_) | JournalEntry::Opened { .. } | JournalEntry::Closed { .. } | JournalEntry::Kept(_) => {
            None
        }
    }
}

/// What the sub-agent of this journal brought, unless it was heard.
fn result(journal: &[JournalEntry], agent: &str, heard: &mut BTreeSet<TurnId>) -> Option<WaitingMessage> {
    let mut begun = None;
    let mut text = None;
    for entry in journal {
        match entry {
            JournalEntry::Turn(Fact::Begun { turn_id, .. }) => begun = Some(turn_id.clone()),
            JournalEntry::Turn(Fact::Ended { status, reply, error, .. }) => {
                text = Some(match (status, error) {
                    (TurnStatus::Completed, _) => reply.clone(),
                    (_, Some((_, error))) => format!("The agent \"{agent}\" failed: {error}"),
                    (_, None) => format!("The agent \"{agent}\" failed: it was stopped"),
                });
            }
            JournalEntry::Turn(_)
            | JournalEntry::Opened { .. }
            | JournalEntry::Closed { .. }
            | JournalEntry::Kept(_) => {}
        }
    }
    let (turn_id, text) = (begun?, text?);
    heard.insert(turn_id.clone()).then(|| result_message(&AgentId::from(agent), &turn_id, &text))
}
