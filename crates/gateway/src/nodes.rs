//! The other nodes: this one says that it is there, hears of them, and knows which turns it may take.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::id::TurnId;
use pintle_domain::node::{NodeState, SeenNode, differs};
use pintle_domain::session::JournalEntry;
use pintle_domain::store::{Letter, SessionKey};
use pintle_domain::turn::Fact;
use pintle_host::Host;
use pintle_host::node_config::digests;
use tokio::sync::Notify;

use crate::error::{ApiError, ErrorCode};
use crate::session_name::SessionName;

/// What this node knows of itself and of the others.
#[derive(Default)]
pub(crate) struct Nodes {
    me: Mutex<NodeState>,
    seen: Mutex<Vec<SeenNode>>,
    /// Letters that a turn here was not ready to take.
    pub(crate) letters: Mutex<Vec<Letter>>,
    /// What others are to hear.
    pub(crate) news: Mutex<Vec<String>>,
    /// The numbers of what was heard of others.
    pub(crate) heard: Mutex<BTreeSet<i64>>,
    /// Turns of others that nobody works, and since when that is known here.
    pub(crate) left: Mutex<BTreeMap<SessionKey, Instant>>,
    /// Rung when another node said something, or this one has something to say.
    pub(crate) bell: Notify,
    /// The agents whose sessions stay on the node that began them.
    bound: Mutex<BTreeSet<String>>,
    name: OnceLock<String>,
}

impl Nodes {
    /// Takes in what `host` has now. `id` names this run of the node.
    pub(crate) fn describe(&self, host: &Host, id: String, addresses: Option<Vec<String>>) {
        let config = &host.loaded.config;
        let (whole, agents) = digests(config);
        let bound = config.agents.values().filter(|agent| !pintle_host::node_config::goes_anywhere(config, agent));
        *lock(&self.bound) = bound.map(|agent| agent.name.clone()).collect();
        let name = self.name.get_or_init(|| {
            config.gateway.node.clone().unwrap_or_else(|| format!("{}:{}", machine(), config.home.display()))
        });
        let mut me = lock(&self.me);
        *me = NodeState {
            id,
            name: name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            level: pintle_store::schema_level(),
            addresses: addresses.unwrap_or_else(|| std::mem::take(&mut me.addresses)),
            turns: me.turns,
            config: whole,
            agents,
            keys: Some(host.store.key_ids()),
        };
    }

    /// What this node says of itself, with `turns` at work.
    pub(crate) fn me(&self, turns: usize) -> NodeState {
        NodeState { turns: turns as u64, ..lock(&self.me).clone() }
    }

    /// Others say that they are there.
    pub(crate) fn saw(&self, seen: Vec<SeenNode>) {
        *lock(&self.seen) = seen;
    }

    /// The nodes that are there or were lately, this one among them where there are others.
    pub(crate) fn seen(&self) -> Vec<SeenNode> {
        let (mut seen, me) = (lock(&self.seen).clone(), lock(&self.me).clone());
        // What this one says of itself is newer than what the store has of it.
        if let Some(own) = seen.iter_mut().find(|node| node.state.id == me.id) {
            (own.state, own.silent_ms) = (me, 0);
        }
        seen
    }

    /// What this node is called.
    pub(crate) fn name(&self) -> &str {
        self.name.get().map_or("", String::as_str)
    }

    /// Whether nobody else is there.
    pub(crate) fn is_alone(&self) -> bool {
        self.count() == NonZeroU32::MIN
    }

    /// How many nodes are there, this one among them.
    pub(crate) fn count(&self) -> NonZeroU32 {
        let there = lock(&self.seen).iter().filter(|node| node.is_there()).count();
        u32::try_from(there).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
    }

    /// Lets turns of `agent` pass, unless most nodes have another configuration of it.
    pub(crate) fn takes(&self, agent: &str) -> Result<(), ApiError> {
        let (seen, me) = (self.seen(), lock(&self.me).clone());
        let Some((own, counts)) = differs(&seen, &me, agent) else { return Ok(()) };
        let short = |digest: &str| digest.chars().take(8).collect::<String>();
        let error = ApiError::new(
            ErrorCode::Unavailable,
            format!(
                "this node has another configuration of the agent {agent} than the others ({} in the place of {}): ask \
                 another node, or give all of them the same",
                short(own),
                short(counts)
            ),
        );
        Err(ApiError { retry_after_ms: Some(1000), ..error })
    }

    /// Lets the session `name`, which `node` worked last, pass, unless its files are there and not here.
    pub(crate) fn may_have(&self, name: &SessionName, node: Option<&str>) -> Result<(), ApiError> {
        let own = self.name.get().map(String::as_str);
        match node {
            Some(there) if Some(there) != own && lock(&self.bound).contains(&name.agent) => {
                let is_there = lock(&self.seen).iter().any(|node| node.state.name == there && node.is_there());
                let what = match is_there {
                    true => "ask that one",
                    false => "it is not there now: start it again under that name (gateway.node)",
                };
                let error = ApiError::new(
                    ErrorCode::Unavailable,
                    format!(
                        "the files of this session are on the node {there}: {what}; or share them and set \
                         agents.{}.workspace_shared",
                        name.agent
                    ),
                );
                Err(ApiError { retry_after_ms: Some(1000), ..error })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Something that other nodes are to hear.
    pub(crate) fn say(&self, news: String) {
        lock(&self.news).push(news);
        self.bell.notify_one();
    }
}

/// How a turn ended, as its session has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    Completed(String),
    Failed {
        why: String,
        /// Whether a call ran before.
        effect: bool,
    },
    Cancelled {
        /// Whether a call ran before.
        effect: bool,
    },
}

impl Ended {
    /// How the turn `turn` ended, once `entries`, which are the journal of its session, say so.
    pub(crate) fn of(entries: Vec<JournalEntry>, turn: &TurnId) -> Option<Self> {
        let (mut ours, mut effect, mut ended) = (false, false, None);
        for entry in entries {
            match entry {
                JournalEntry::Turn(Fact::Begun { turn_id, .. }) => ours = turn_id == *turn,
                JournalEntry::Turn(Fact::Used { .. }) => effect |= ours,
                JournalEntry::Turn(Fact::Ended { status, error, reply, .. }) if ours => {
                    ended = Some(match (status, error) {
                        (TurnStatus::Completed, _) => Self::Completed(reply),
                        (TurnStatus::Error | TurnStatus::Aborted, Some((_, why))) => Self::Failed { why, effect },
                        (TurnStatus::Error | TurnStatus::Aborted, None) => Self::Cancelled { effect },
                    });
                }
                JournalEntry::Turn(_)
                | JournalEntry::Opened { .. }
                | JournalEntry::Closed { .. }
                | JournalEntry::Kept(_) => {}
            }
        }
        ended
    }
}

/// The name of the machine.
fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// What is guarded; every state in here is whole between two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(turn: &str) -> JournalEntry {
        JournalEntry::Turn(Fact::Begun {
            turn_id: TurnId::from(turn),
            prompts: Vec::new(),
            max_iterations: 9,
            key: None,
        })
    }

    fn used() -> JournalEntry {
        let (tool, digest) = ("exec".to_owned(), String::new());
        JournalEntry::Turn(Fact::Used { place: 0, read_only: false, tool, digest, rewritten: None })
    }

    fn ended(status: TurnStatus, why: Option<&str>) -> JournalEntry {
        let error = why.map(|why| ("llm".to_owned(), why.to_owned()));
        JournalEntry::Turn(Fact::Ended { status, roll_back: false, error, reply: "done".to_owned() })
    }

    #[test]
    fn what_another_node_did_in_a_turn_that_failed_is_known() {
        let failed = |effect| Some(Ended::Failed { why: "gone".to_owned(), effect });
        let (error, completed) = (TurnStatus::Error, TurnStatus::Completed);
        let turn = TurnId::from("mine");
        for (entries, expected) in [
            (vec![begun("mine"), ended(error, Some("gone"))], failed(false)),
            (vec![begun("mine"), used(), ended(error, Some("gone"))], failed(true)),
            // What was done in an earlier turn is not done again.
            (
                vec![begun("other"), used(), ended(completed, None), begun("mine"), ended(error, Some("gone"))],
                failed(false),
            ),
            (vec![begun("mine"), used(), ended(completed, None)], Some(Ended::Completed("done".to_owned()))),
            (vec![begun("mine"), used(), ended(TurnStatus::Aborted, None)], Some(Ended::Cancelled { effect: true })),
            (vec![begun("mine"), used()], None),
            (vec![begun("other"), ended(completed, None)], None),
        ] {
            assert_eq!(Ended::of(entries, &turn), expected);
        }
    }
}
