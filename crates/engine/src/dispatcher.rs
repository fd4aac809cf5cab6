//! Asks hooks and tells them: the hot path. No rule is here; the machines of `domain` hold them all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::chain::{Asks, Chain};
use domain::checkpoint::{Checkpoint, CheckpointKind, Duty, Known, Notice, Observed, Reply, RuntimeEvent};
use domain::clearing::{CLEARING, Clearing, Outcome};
use domain::fault::Fault;
use domain::hook::{Hook, State};
use domain::id::{EventId, HookName};
use domain::identity::Identity;
use domain::record::{EventRecord, NotRun, Outcome as Ran, Record, Ruled};
use domain::ruling::{Aborted, Ruling};
use domain::tool::{Digest, ToolCall, ToolOutput};
use domain::verdict::Word;
use tokio_util::sync::CancellationToken;

use crate::evidence::Evidence;
use crate::handler::{Call, WireCache};
use crate::permit::Permit;
use crate::set::Set;

/// What all gates of one event may take together. Source: agent hooks' chain budget.
pub const GATE_BUDGET: Duration = Duration::from_secs(10);

/// The refusal of a call whose clearing could not be written down.
pub const NOT_RECORDED: &str = "audit record could not be written";

/// The hooks in force for one turn.
#[derive(Clone)]
pub struct Dispatcher {
    set: Arc<Set>,
    evidence: Arc<Evidence>,
}

/// What every question of one turn has in common.
#[derive(Clone)]
pub struct TurnCx {
    /// Whose turn.
    pub who: Identity,
    /// Set when the turn is ending.
    pub cancel: CancellationToken,
    /// What is known of the agent: its tools, models and who owns which injected tool.
    pub known: Arc<dyn Known>,
}

impl TurnCx {
    /// A turn of a host that resolves tools and models by itself: every name is taken as it is.
    pub fn new(who: Identity) -> Self {
        Self { who, cancel: CancellationToken::new(), known: Arc::new(AsNamed) }
    }
}

/// Takes every name of a tool or model as it is; no hook owns a tool.
struct AsNamed;

impl Known for AsNamed {
    fn tool(&self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    fn model(&self, _model: &str) -> bool {
        true
    }

    fn owner(&self, _name: &str) -> Option<HookName> {
        None
    }
}

/// The outcome for one tool call.
#[derive(Debug)]
#[must_use = "a clearance nobody reads is a gate nobody closes"]
pub enum Clearance {
    /// It may run.
    Run(Permit),
    /// A hook answered in the tool's place.
    Substituted {
        /// The call that the result belongs to.
        call: ToolCall,
        /// The result.
        output: ToolOutput,
        /// The hook that answered.
        by: HookName,
        /// How long it took.
        took: Duration,
    },
    /// It does not run.
    Refused {
        /// The call as it stood.
        call: ToolCall,
        /// Why, as the model and the user read it.
        text: String,
        /// The hook that refused; none when the record could not be written.
        by: Option<HookName>,
    },
    /// The turn, or more, stops.
    Abort(Aborted),
}

impl Dispatcher {
    pub(crate) fn new(set: Arc<Set>, evidence: Arc<Evidence>) -> Self {
        Self { set, evidence }
    }

    /// The hooks, in running order.
    pub fn set(&self) -> &Set {
        &self.set
    }

    /// Asks every hook of the checkpoint `C` about `subject`, and waits.
    pub async fn check<C: Checkpoint>(&self, cx: &TurnCx, subject: C) -> (C, Ruling<C>) {
        if self.set.roster().at(C::KIND).is_empty() {
            return (subject, Ruling::Proceed);
        }
        // In a box, so that a checkpoint without hooks moves nothing around but its subject.
        Box::pin(self.check_with_hooks(cx, subject)).await
    }

    async fn check_with_hooks<C: Checkpoint>(&self, cx: &TurnCx, subject: C) -> (C, Ruling<C>) {
        let mut ids = Ids::default();
        let tool = subject.facts().tool.map(|(tool, _)| tool.to_owned());
        let mut chain = Chain::new(self.set.roster().clone(), cx.known.clone(), subject);
        self.drive(cx, &mut ids, &mut chain).await;
        let concluded = chain.conclude();
        let ruled = Ruled {
            text: match &concluded.ruling {
                Ruling::Deny(denied) => Some(denied.text()),
                Ruling::Abort(aborted) => Some(aborted.text()),
                Ruling::Proceed | Ruling::Respond { .. } | Ruling::Ask { .. } => None,
            },
            ..Ruled::word(concluded.ruling.word(concluded.changed))
        };
        self.tell_faults(cx, &concluded.records);
        let event = blank(ids.of(C::KIND), C::KIND, &cx.who);
        self.evidence.keep(vec![EventRecord { tool, ruling: ruled, hooks: concluded.records, ..event }]);
        (concluded.subject, concluded.ruling)
    }

    /// Clears one tool call: `before_tool`, the gates, the approvers. The record of a call that may run is
    /// committed before this returns.
    pub async fn clear(&self, cx: &TurnCx, call: ToolCall) -> Clearance {
        let mut ids = Ids::default();
        let asked = call.clone();
        let mut clearing = Clearing::new(self.set.roster().clone(), cx.known.clone(), call);
        self.drive(cx, &mut ids, &mut clearing).await;
        let Some((outcome, records)) = clearing.conclude() else {
            // `drive` asks until nobody is left to ask; if that were ever untrue, nothing runs.
            return Clearance::Refused { call: asked, text: "the call was not cleared".into(), by: None };
        };
        self.tell_faults(cx, &records);
        let took = time_of_substitute(&records);
        let digest = match &outcome {
            Outcome::Run(call) => Some(Digest::of(&cx.who, call)),
            Outcome::Substituted { .. } | Outcome::Ask { .. } | Outcome::Refused { .. } | Outcome::Abort(_) => None,
        };
        let events = clearing_records(&mut ids, cx, (&asked, &outcome), digest, records);
        match (outcome, digest) {
            (Outcome::Run(call), Some(digest)) => match self.evidence.commit(events, NOT_RECORDED).await {
                Ok(()) => Clearance::Run(Permit::grant(call, digest)),
                Err(error) => {
                    // Only the log has the detail: it may name a path of the user's.
                    tracing::error!("{NOT_RECORDED}: {error}");
                    Clearance::Refused { call, text: NOT_RECORDED.into(), by: None }
                }
            },
            (outcome, _) => {
                self.evidence.keep(events);
                settled(outcome, took)
            }
        }
    }

    /// Tells observers of something; never waits. The end of a turn is recorded even if no hook hears of it, so that
    /// the newest turn is always known.
    pub fn tell(&self, who: &Identity, what: impl Into<Observed>) {
        let what = what.into();
        let kind = what.checkpoint();
        let row = self.set.roster().at(kind);
        let recorded = !row.is_empty() || matches!(what, Observed::Runtime(RuntimeEvent::TurnEnd { .. }));
        if !recorded && !self.evidence.is_watched() {
            return;
        }
        let notice =
            Arc::new(Notice { event_id: EventId::fresh(), at: jiff::Timestamp::now(), who: who.clone(), what });
        self.evidence.noticed(&notice);
        if !recorded {
            return;
        }
        let hooks = row.iter().map(|number| self.tell_one(*number, &notice)).collect();
        let tool = notice.what.facts().tool.map(|(tool, _)| tool.to_owned());
        let event = EventRecord {
            at: notice.at,
            kind: matches!(notice.what, Observed::Runtime(_)).then(|| notice.what.name()),
            tool,
            hooks,
            ..blank(notice.event_id.clone(), kind, who)
        };
        self.evidence.keep(vec![event]);
    }

    fn tell_one(&self, number: usize, notice: &Arc<Notice>) -> Record {
        let hook = self.set.roster().hook(number);
        let outcome = match out_of_reach(hook, notice) {
            Some(why) => Ran::NotRun(why),
            None if self.set.handler(number).tell(notice) => Ran::Told,
            None => Ran::NotRun(NotRun::Dropped),
        };
        Record {
            hook: hook.name.clone(),
            family: hook.family,
            checkpoint: notice.what.checkpoint(),
            outcome,
            warnings: Vec::new(),
            change: None,
            again: false,
        }
    }

    /// Asks until nobody is left to ask.
    async fn drive(&self, cx: &TurnCx, ids: &mut Ids, asks: &mut (impl Asks + Send)) {
        let mut wire = WireCache::default();
        let mut rendered = None;
        let mut gates_end: Option<Instant> = None;
        while let Some(need) = asks.next() {
            let kind = need.subject.kind();
            // One rendering serves the hooks of a chain until one of them changes the subject.
            if rendered.replace((kind, need.version)) != Some((kind, need.version)) {
                wire = WireCache::default();
            }
            let asked_at = Instant::now();
            let timeout = match kind.duty() {
                Duty::Gate => {
                    let end = *gates_end.get_or_insert(asked_at + GATE_BUDGET);
                    need.timeout.min(end.saturating_duration_since(asked_at))
                }
                Duty::Observer | Duty::Rewriter | Duty::Approver => {
                    gates_end = None;
                    need.timeout
                }
            };
            let heard = if timeout.is_zero() {
                Err(Fault::TimedOut { after: GATE_BUDGET })
            } else {
                let call = Call {
                    event_id: ids.get(kind),
                    who: &cx.who,
                    subject: need.subject,
                    timeout,
                    cancel: &cx.cancel,
                    wire: &wire,
                };
                self.set.handler(need.hook).ask(call).await
            };
            asks.settle(heard, asked_at.elapsed());
        }
    }

    /// Every fault of an asked hook is an event too, but for being cancelled: then the turn is ending anyway.
    fn tell_faults(&self, cx: &TurnCx, records: &[Record]) {
        for record in records {
            if let Ran::Failed { fault, .. } = &record.outcome
                && *fault != Fault::Cancelled
            {
                let event = RuntimeEvent::Error {
                    stage: format!("hook.{}", record.checkpoint.name()),
                    message: format!("hook \"{}\" {fault}", record.hook),
                    hook: Some(record.hook.to_string()),
                };
                self.tell(&cx.who, event);
            }
        }
    }

    /// Puts one question to one hook, past matchers and order: for `doctor` and `hooks test`.
    ///
    /// # Errors
    /// The fault that came instead of an answer; [`Fault::Unavailable`] when no hook is called `name`.
    pub async fn probe(
        &self,
        cx: &TurnCx,
        name: &HookName,
        subject: domain::checkpoint::Subject<'_>,
    ) -> Result<Reply, Fault> {
        let hooks = self.set.roster().hooks();
        let Some(number) = hooks.iter().position(|hook| hook.name == *name) else {
            return Err(Fault::Unavailable { detail: format!("no hook is called `{name}`") });
        };
        let hook = &hooks[number];
        match &hook.state {
            State::Armed => {}
            State::Broken(fault) => return Err(fault.clone()),
            State::Disabled => return Err(Fault::Unavailable { detail: "it is disabled".into() }),
            State::Untrusted => return Err(Fault::Unavailable { detail: "nobody accepted its configuration".into() }),
        }
        let Some(stage) = hook.stages.get(subject.kind()) else {
            let detail = format!("it does not act at `{}`", subject.kind().name());
            return Err(Fault::Unavailable { detail });
        };
        let (event_id, wire) = (EventId::fresh(), WireCache::default());
        let call = Call {
            event_id: &event_id,
            who: &cx.who,
            subject,
            timeout: stage.timeout,
            cancel: &cx.cancel,
            wire: &wire,
        };
        self.set.handler(number).ask(call).await
    }
}

/// The ids of the events that one clearing is made of, each made when it is first needed.
#[derive(Default)]
struct Ids(Vec<(CheckpointKind, EventId)>);

impl Ids {
    fn get(&mut self, kind: CheckpointKind) -> &EventId {
        let at = self.0.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            self.0.push((kind, EventId::fresh()));
            self.0.len() - 1
        });
        &self.0[at].1
    }

    fn of(&mut self, kind: CheckpointKind) -> EventId {
        self.get(kind).clone()
    }
}

fn out_of_reach(hook: &Hook, notice: &Notice) -> Option<NotRun> {
    match hook.state {
        State::Disabled => return Some(NotRun::Disabled),
        State::Untrusted => return Some(NotRun::Untrusted),
        State::Broken(_) => return Some(NotRun::OutOfScope),
        State::Armed => {}
    }
    match &notice.what {
        Observed::Runtime(event) => {
            let wanted = hook.events.as_ref().is_none_or(|kinds| kinds.contains(&event.kind()));
            (!wanted).then_some(NotRun::OutOfScope)
        }
        Observed::SessionStart | Observed::PostToolUse { .. } | Observed::Stop { .. } => {
            let facts = notice.what.facts();
            (!hook.matches(&facts)).then(|| NotRun::Matcher {
                pattern: hook.matcher.as_ref().map(|m| m.pattern().to_owned()).unwrap_or_default(),
                value: facts.tool.map(|(tool, _)| tool.to_owned()).unwrap_or_default(),
            })
        }
    }
}

/// The record of an event that just happened, before anything came of it.
fn blank(event_id: EventId, checkpoint: CheckpointKind, who: &Identity) -> EventRecord {
    let ruling = Ruled::word(Word::Continue);
    let at = jiff::Timestamp::now();
    EventRecord { event_id, at, checkpoint, kind: None, who: who.clone(), tool: None, ruling, hooks: Vec::new() }
}

/// One event for each checkpoint that has hooks, and for a call that may run always the decision at the last one.
fn clearing_records(
    ids: &mut Ids,
    cx: &TurnCx,
    (asked, outcome): (&ToolCall, &Outcome),
    permit: Option<Digest>,
    records: Vec<Record>,
) -> Vec<EventRecord> {
    let (call, text, decided_at) = match outcome {
        Outcome::Run(call) => (call, None, CheckpointKind::ApproveTool),
        Outcome::Substituted { call, .. } => (call, None, CheckpointKind::BeforeTool),
        Outcome::Ask { call, by, why } => (call, Some(nobody_to_ask(by, why.as_str())), CheckpointKind::PreToolUse),
        Outcome::Refused { call, denied } => (call, Some(denied.text()), denied.at),
        // An abort leaves no call; it is still about the one that was asked about.
        Outcome::Abort(aborted) => (asked, Some(aborted.text()), aborted.at),
    };
    let substituted = matches!(outcome, Outcome::Substituted { .. });
    let mut by_kind: Vec<(CheckpointKind, Vec<Record>)> = CLEARING.iter().map(|kind| (*kind, Vec::new())).collect();
    for record in records {
        if let Some((_, row)) = by_kind.iter_mut().find(|(kind, _)| *kind == record.checkpoint) {
            row.push(record);
        }
    }
    by_kind
        .into_iter()
        .filter(|(kind, row)| !row.is_empty() || (*kind == CheckpointKind::ApproveTool && permit.is_some()))
        .map(|(kind, row)| {
            let changed = row.iter().any(|record| record.change.is_some());
            let ruled = if kind < decided_at {
                Ruled::word(if changed { Word::Modify } else { Word::Continue })
            } else {
                let permit = permit.filter(|_| kind == CheckpointKind::ApproveTool);
                Ruled { word: outcome.word(), text: text.clone(), permit, substituted }
            };
            EventRecord {
                tool: Some(call.tool.clone()),
                ruling: ruled,
                hooks: row,
                ..blank(ids.of(kind), kind, &cx.who)
            }
        })
        .collect()
}

fn settled(outcome: Outcome, took: Duration) -> Clearance {
    match outcome {
        Outcome::Run(call) => Clearance::Refused { call, text: NOT_RECORDED.into(), by: None },
        Outcome::Substituted { call, by, result } => Clearance::Substituted { call, output: result, by, took },
        Outcome::Ask { call, by, why } => {
            let text = nobody_to_ask(&by, why.as_str());
            Clearance::Refused { call, text, by: Some(by) }
        }
        Outcome::Refused { call, denied } => Clearance::Refused { call, text: denied.text(), by: Some(denied.by) },
        Outcome::Abort(aborted) => Clearance::Abort(aborted),
    }
}

/// An ask is never weakened: where nobody can be asked, it refuses.
fn nobody_to_ask(by: &HookName, why: &str) -> String {
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    format!("Tool execution needs a person's approval, and nobody can be asked here{why} (hook \"{by}\")")
}

fn time_of_substitute(records: &[Record]) -> Duration {
    records
        .iter()
        .find_map(|record| match &record.outcome {
            Ran::Said { word: Word::Respond, took, .. } => Some(*took),
            Ran::Said { .. } | Ran::Failed { .. } | Ran::Told | Ran::NotRun(_) => None,
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Watcher};
    use domain::checkpoint::runtime::TurnStatus;
    use domain::id::TurnId;
    use std::sync::Mutex;

    /// Keeps the names of what was recorded.
    #[derive(Default)]
    struct Kept(Mutex<Vec<(&'static str, usize)>>);

    impl domain::store::RecordStore for Kept {
        fn keep(&self, records: Vec<EventRecord>, done: domain::store::Done) {
            let names = records.iter().map(|record| (record.kind.unwrap_or("none"), record.hooks.len()));
            self.0.lock().unwrap().extend(names);
            done(Ok(()));
        }

        fn find(
            &self,
            _query: &domain::store::RecordQuery,
        ) -> Result<Vec<domain::store::StoredEvent>, domain::store::StoreError> {
            Ok(Vec::new())
        }
    }

    struct Blind;

    impl Watcher for Blind {}

    fn end() -> RuntimeEvent {
        RuntimeEvent::TurnEnd {
            status: TurnStatus::Completed,
            iterations: 1,
            duration: Duration::ZERO,
            final_content_len: 0,
            user_message: String::new(),
            final_content: String::new(),
            tool_kinds: Vec::new(),
            tool_executions: Vec::new(),
        }
    }

    #[tokio::test]
    async fn the_end_of_a_turn_is_recorded_though_no_hook_hears_of_it() {
        for watchers in [Vec::new(), vec![Arc::new(Blind) as Arc<dyn Watcher>]] {
            let kept = Arc::new(Kept::default());
            let hooks = Engine::new(kept.clone(), watchers).dispatcher();
            let who = Identity::top("main", "s", TurnId::fresh());
            hooks.tell(&who, RuntimeEvent::LlmDelta { content_delta_len: 1, reasoning_delta_len: 0 });
            hooks.tell(&who, end());
            hooks.tell(&who, Observed::Stop { reply: String::new() });
            assert_eq!(*kept.0.lock().unwrap(), [("turn_end", 0)]);
        }
    }
}
