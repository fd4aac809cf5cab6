//! Asks hooks and tells them: the hot path. No rule is here; the machines of `domain` hold them all.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use futures_util::future::join_all;
use pintle_domain::account::HandlerAnswer;
use pintle_domain::chain::{Chain, HookMachine, Note};
use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::checkpoint::{AgentInfo, Checkpoint, CheckpointKind, Notice, ObservedEvent, Reply, RuntimeEvent};
use pintle_domain::execution::{Execution, masked};
use pintle_domain::fault::Fault;
use pintle_domain::hook::HookState;
use pintle_domain::id::{EventId, HookName};
use pintle_domain::identity::Identity;
use pintle_domain::record::{EventRecord, EventRuling, HookOutcome as Ran, NotRun, Record, RecordLines};
use pintle_domain::ruling::Ruling;
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_domain::verdict::{ParsedVerdict, Verdict, VerdictKind};
use tokio_util::sync::CancellationToken;

use crate::approvals::Approvals;
use crate::evidence::Evidence;
use crate::handler::{HookCall, NoticeViews, WireCache};
use crate::hook_set::HookSet;
use crate::live_rules::CurrentSet;

mod clear;
mod handle;
mod run;

pub use clear::{Clearance, NOT_RECORDED};
pub use handle::AsNamed;
pub use run::{Stopped, WITHHELD};

/// The hooks of one turn: who acts, what is known of them, and the rules and the record of their tenant, in one handle,
/// so that they cannot disagree.
#[derive(Clone)]
pub struct Dispatcher {
    current: Arc<CurrentSet>,
    evidence: Arc<Evidence>,
    who: Identity,
    cancel: CancellationToken,
    known: Arc<dyn AgentInfo>,
    approvals: Option<Arc<Approvals>>,
    /// Whether persons are asked about what a call is, whatever its turn and id.
    asks_by_content: bool,
    files: Option<Arc<dyn FileSink>>,
}

/// Takes over the files of a result, before anything else sees them.
#[async_trait]
pub trait FileSink: Send + Sync {
    /// `output` with references in the place of what the hook `by` wrote in its `media`.
    async fn take(&self, output: ToolOutput, by: &HookName) -> ToolOutput;
}

impl Dispatcher {
    /// The hooks in force now, in running order. Configured ones are those that the turn began with.
    pub fn set(&self) -> Arc<HookSet> {
        self.current.set()
    }

    /// Asks every hook of the checkpoint `C` about `subject`, and waits.
    pub async fn check<C: Checkpoint>(&self, subject: C) -> (C, Ruling<C>) {
        if self.current.is_quiet(C::KIND) {
            return (subject, Ruling::Proceed);
        }
        // In a box, so that a checkpoint without hooks moves nothing around but its subject.
        let (subject, ruling, _) = Box::pin(self.ask_hooks(self.current.set(), subject)).await;
        (subject, ruling)
    }

    /// Asks the hooks about `subject`, and also returns the notes that hooks want the model to read besides.
    pub async fn consult<C: Checkpoint>(&self, subject: C) -> (C, Ruling<C>, Vec<Note>) {
        if self.current.is_quiet(C::KIND) {
            return (subject, Ruling::Proceed, Vec::new());
        }
        Box::pin(self.ask_hooks(self.current.set(), subject)).await
    }

    async fn ask_hooks<C: Checkpoint>(&self, set: Arc<HookSet>, subject: C) -> (C, Ruling<C>, Vec<Note>) {
        let mut ids = Ids::default();
        let tool = subject.facts().tool.map(|(tool, _)| tool.to_owned());
        let began = self.evidence.moment();
        let mut chain = Chain::new(set.roster().clone(), self.event_context(), subject);
        self.drive(&set, &mut ids, &mut chain).await;
        let mut concluded = chain.conclude();
        if C::KIND == CheckpointKind::UserPromptSubmit && matches!(concluded.ruling, Ruling::Deny(_)) {
            // A refused message is kept nowhere, and neither is what an earlier gate made of it.
            concluded.records.whole_mut().for_each(|record| record.change = None);
        }
        let ruled = EventRuling {
            text: match &concluded.ruling {
                Ruling::Deny(denied) => Some(denied.text()),
                Ruling::Abort(aborted) => Some(aborted.text_with_hook()),
                Ruling::Proceed | Ruling::Respond { .. } | Ruling::Ask { .. } => None,
            },
            ..EventRuling::word(concluded.ruling.word(concluded.changed))
        };
        self.tell_faults(&concluded.records);
        self.current.live.count(&self.who, &set, &concluded.records);
        let event = self.blank(ids.of(C::KIND), C::KIND);
        let is_kept = has_stored(&concluded.records) || ruled.stops();
        let input = concluded.subject.facts().input.filter(|_| is_kept).cloned().map(Arc::new);
        let events = vec![EventRecord { tool, input, ruling: ruled, hooks: concluded.records, ..event }];
        self.evidence.concluded(began, &events);
        self.evidence.keep(events).await;
        (concluded.subject, concluded.ruling, concluded.notes)
    }

    /// Tells observers of something; never waits. The end of a turn is recorded even if no hook hears of it, so that
    /// the newest turn is always known, and so is why it failed if no hook stopped it.
    pub fn tell(&self, what: impl Into<ObservedEvent>) {
        let records = self.tell_apart(what);
        if !records.is_empty() {
            self.evidence.keep_now(records);
        }
    }

    /// Waits until there is room to tell the hooks at `kind`, but not for long. Before [`Dispatcher::tell`], where
    /// somebody can wait.
    pub async fn room(&self, kind: CheckpointKind) {
        let set = self.current.set();
        let row = set.roster().at(kind);
        if row.is_empty() {
            return;
        }
        // For all at once: however many wait for the same place, the turn waits no longer than for one.
        let told = row.iter().filter(|number| set.roster().hook(**number).state == HookState::Armed);
        join_all(told.map(|number| set.handler(*number).room(&self.who.tenant_id))).await;
        self.evidence.room().await;
    }

    /// Tells observers of `what`, for a host that keeps the record by itself: together with what it is about.
    #[must_use = "what is not kept leaves no evidence"]
    pub fn tell_apart(&self, what: impl Into<ObservedEvent>) -> Vec<EventRecord> {
        let what = what.into();
        let kind = what.checkpoint();
        let set = self.current.set();
        let row = set.roster().at(kind);
        let failure = failure(&what);
        let ends = matches!(what, ObservedEvent::Runtime(RuntimeEvent::TurnEnd { .. }));
        let recorded = !row.is_empty() || ends || failure.is_some();
        if !recorded && !self.evidence.is_watched() {
            return Vec::new();
        }
        let notice =
            Arc::new(Notice { event_id: EventId::fresh(), at: jiff::Timestamp::now(), who: self.who.clone(), what });
        self.evidence.noticed(&notice);
        if !recorded {
            return Vec::new();
        }
        let views = NoticeViews::default();
        let hooks: RecordLines = row.iter().map(|number| tell_one(&set, *number, (&notice, &views))).collect();
        let facts = notice.what.facts();
        let events = vec![EventRecord {
            at: notice.at,
            kind: matches!(notice.what, ObservedEvent::Runtime(_)).then(|| notice.what.name()),
            tool: facts.tool.map(|(tool, _)| tool.to_owned()),
            // The row of a hook that was not told has the same hash as those of hooks that were.
            input: facts.input.filter(|_| has_stored(&hooks)).cloned().map(Arc::new),
            hooks,
            ruling: EventRuling { text: failure, ..EventRuling::word(VerdictKind::Continue) },
            ..self.blank(notice.event_id.clone(), kind)
        }];
        self.evidence.told(&events);
        events
    }

    /// Keeps the records of [`Dispatcher::tell_apart`].
    pub fn keep(&self, records: Vec<EventRecord>) {
        if !records.is_empty() {
            self.evidence.keep_now(records);
        }
    }

    /// Shows watchers the records of [`Dispatcher::tell_apart`], which the host keeps by itself.
    pub fn show(&self, records: &[EventRecord]) {
        self.evidence.show(records);
    }

    /// Keeps that a rule of the host's own, not a hook, refused something at `kind`: `text` says what.
    pub fn refused(&self, kind: CheckpointKind, text: &str) {
        let ruling = EventRuling { text: Some(text.to_owned()), ..EventRuling::word(VerdictKind::Deny) };
        self.evidence.keep_now(vec![EventRecord { ruling, ..self.blank(EventId::fresh(), kind) }]);
    }

    /// The same of `call`, which the record shows.
    pub fn refused_call(&self, kind: CheckpointKind, call: &ToolCall, text: &str) {
        let ruling = EventRuling { text: Some(text.to_owned()), ..EventRuling::word(VerdictKind::Deny) };
        let (tool, input) = (Some(call.tool.clone()), Some(Arc::new(call.arguments.clone())));
        self.evidence.keep_now(vec![EventRecord { tool, input, ruling, ..self.blank(EventId::fresh(), kind) }]);
    }

    /// Keeps that the host went on at `kind` without something that a hook wanted: `text` says what. Nothing was refused.
    pub fn noted(&self, kind: CheckpointKind, text: &str) {
        let ruling = EventRuling { text: Some(text.to_owned()), ..EventRuling::word(VerdictKind::Continue) };
        self.evidence.keep_now(vec![EventRecord { ruling, ..self.blank(EventId::fresh(), kind) }]);
    }

    /// Asks until nobody is left to ask.
    async fn drive(&self, set: &HookSet, ids: &mut Ids, asks: &mut (impl HookMachine + Send)) {
        let mut wire = WireCache::default();
        let mut rendered = None;
        let mut asked_at = Instant::now();
        while let Some(need) = asks.next() {
            let kind = need.subject.kind();
            // One rendering serves the hooks of a chain until one of them changes the subject.
            if rendered.replace((kind, need.version)) != Some((kind, need.version)) {
                wire = WireCache::default();
            }
            let call = HookCall {
                event_id: ids.get(kind),
                who: &self.who,
                subject: need.subject,
                timeout: need.timeout,
                budget: need.budget,
                again: need.again,
                cancel: &self.cancel,
                known: &*self.known,
                wire: &wire,
            };
            let hook = need.hook;
            let answered = set.handler(hook).ask(call).await;
            // One look at the clock a hook: what lies between two of them is less than it costs to look.
            let answered_at = Instant::now();
            let took = answered_at - asked_at;
            asked_at = answered_at;
            // Most answers hand no files over, and answers are large: only those that may are moved once more.
            let HandlerAnswer { heard, account } = answered;
            let heard = match heard {
                Ok(Reply::AfterTool(_)) => {
                    Box::pin(with_files(self.files.as_ref(), &set.roster().hook(hook).name, heard)).await
                }
                heard => heard,
            };
            asks.settle(HandlerAnswer { heard, account }, took);
        }
    }

    /// Every fault of an asked hook is an event too, but for being cancelled: then the turn is ending anyway.
    fn tell_faults(&self, records: &RecordLines) {
        for record in records.whole() {
            if let Ran::Failed { fault, .. } = &record.outcome
                && *fault != Fault::Cancelled
            {
                let event = RuntimeEvent::Error {
                    stage: format!("hook.{}", record.checkpoint.name()),
                    message: format!("hook \"{}\" {}", record.hook, fault.phrase()),
                    hook: Some(record.hook.to_string()),
                };
                self.tell(event);
            }
        }
    }

    /// The record of an event that just happened, before anything came of it.
    fn blank(&self, event_id: EventId, checkpoint: CheckpointKind) -> EventRecord {
        EventRecord {
            event_id,
            at: jiff::Timestamp::now(),
            checkpoint,
            kind: None,
            who: self.who.clone(),
            tool: None,
            input: None,
            ruling: EventRuling::word(VerdictKind::Continue),
            hooks: RecordLines::default(),
        }
    }

    /// Puts one question to one hook, past matchers and order: for `doctor` and `hooks test`.
    ///
    /// # Errors
    /// The fault that came instead of an answer; [`Fault::Unavailable`] when no hook is called `name`.
    pub async fn probe(
        &self,
        name: &HookName,
        subject: pintle_domain::checkpoint::Subject<'_>,
    ) -> Result<Reply, Fault> {
        let set = self.current.set();
        let hooks = set.roster().hooks();
        let Some(number) = hooks.iter().position(|hook| hook.name == *name) else {
            return Err(Fault::Unavailable { cause: format!("no hook is called `{name}`").into() });
        };
        let hook = &hooks[number];
        match &hook.state {
            HookState::Armed => {}
            HookState::Broken(fault) => return Err(fault.clone()),
            HookState::Disabled => return Err(Fault::Unavailable { cause: "it is disabled".into() }),
            HookState::Untrusted => {
                return Err(Fault::Unavailable { cause: "its configuration has not been accepted".into() });
            }
            HookState::Tripped { since } => {
                return Err(Fault::Unavailable { cause: format!("its circuit breaker tripped at {since}").into() });
            }
        }
        let Some(stage) = hook.stages.get(subject.kind()) else {
            let detail = format!("it does not act at `{}`", subject.kind().name());
            return Err(Fault::Unavailable { cause: detail.into() });
        };
        let (event_id, wire) = (EventId::fresh(), WireCache::default());
        let call = HookCall {
            event_id: &event_id,
            who: &self.who,
            subject,
            timeout: stage.timeout,
            budget: stage.timeout,
            again: false,
            cancel: &self.cancel,
            known: &*self.known,
            wire: &wire,
        };
        set.handler(number).ask(call).await.heard
    }
}

/// Tells one hook of `notice`, if it is about it.
fn tell_one(set: &HookSet, number: usize, (notice, views): (&Arc<Notice>, &NoticeViews)) -> Record {
    let hook = set.roster().hook(number);
    let outcome = match notice.passes_over(hook) {
        Some(outcome) => outcome,
        None if set.handler(number).tell(notice, views) => Ran::Told,
        None => Ran::NotRun(NotRun::Dropped),
    };
    Record::of(hook, notice.what.checkpoint(), outcome)
}

/// The result as the hook `by` made it, with its files taken over.
async fn with_files(
    files: Option<&Arc<dyn FileSink>>,
    by: &HookName,
    heard: Result<Reply, Fault>,
) -> Result<Reply, Fault> {
    match (heard, files) {
        (Ok(Reply::AfterTool(ParsedVerdict { verdict: Verdict::Modify(output), warnings, .. })), Some(files)) => {
            let output = files.take(output, by).await;
            Ok(Reply::AfterTool(ParsedVerdict { warnings, ..Verdict::Modify(output).into() }))
        }
        (heard, _) => heard,
    }
}

/// Whether a rule is among `records` that ran: then the record needs what it was asked about.
fn has_stored(records: &RecordLines) -> bool {
    records.whole().any(Execution::is_left_by)
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

/// Why a turn failed, if `what` says so and no hook stopped it, as the record may have it; of one that ended without an
/// answer, its status.
fn failure(what: &ObservedEvent) -> Option<String> {
    match what {
        ObservedEvent::Runtime(RuntimeEvent::Error { message, hook: None, .. }) => Some(masked(message).into_owned()),
        ObservedEvent::Runtime(RuntimeEvent::TurnEnd { status: TurnStatus::Aborted, .. }) => Some("aborted".to_owned()),
        ObservedEvent::Runtime(RuntimeEvent::TurnEnd { status: TurnStatus::Error, .. }) => Some("error".to_owned()),
        ObservedEvent::Runtime(_)
        | ObservedEvent::SessionStart
        | ObservedEvent::PostToolUse { .. }
        | ObservedEvent::SubagentStop { .. }
        | ObservedEvent::Stop { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::NativeHook;
    use crate::{Engine, Mount, Watcher};
    use futures_util::future::BoxFuture;
    use pintle_domain::hook::Family;
    use pintle_domain::id::TurnId;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    /// Keeps the names of what was recorded.
    #[derive(Default)]
    struct RecordedNames(Mutex<Vec<(&'static str, usize)>>);

    impl pintle_domain::store::RecordStore for RecordedNames {
        fn keep(&self, records: Vec<EventRecord>, done: pintle_domain::store::OnKept) {
            let names = records.iter().map(|record| (record.kind.unwrap_or("none"), record.hooks.len()));
            self.0.lock().unwrap().extend(names);
            done(Ok(()));
        }

        fn find(
            &self,
            _query: &pintle_domain::store::RecordQuery,
        ) -> Result<Vec<pintle_domain::store::StoredEvent>, pintle_domain::store::StoreError> {
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
            let kept = Arc::new(RecordedNames::default());
            let who = Identity::top("main", "s", TurnId::fresh());
            let hooks = Engine::new(kept.clone(), watchers).dispatcher(who);
            hooks.tell(RuntimeEvent::LlmDelta { content_delta_len: 1, reasoning_delta_len: 0 });
            hooks.tell(end());
            hooks.tell(ObservedEvent::SessionStart);
            assert_eq!(*kept.0.lock().unwrap(), [("turn_end", 0)]);
        }
    }

    /// Counts how often what it sends is rendered.
    struct Counting(Arc<AtomicUsize>);

    impl crate::handler::Handler for Counting {
        fn ask<'a>(&'a self, _call: HookCall<'a>) -> BoxFuture<'a, HandlerAnswer> {
            Box::pin(async { Err(Fault::Panicked).into() })
        }

        fn tell(&self, _notice: &Arc<Notice>, views: &NoticeViews) -> bool {
            let render = || {
                self.0.fetch_add(1, Ordering::SeqCst);
                b"view".to_vec()
            };
            views.view(Family::Process, 0, render) == "view"
        }

        fn close(&self) -> BoxFuture<'_, ()> {
            Box::pin(async {})
        }
    }

    struct AtTheStart;

    impl NativeHook for AtTheStart {
        fn stages(&self) -> Vec<CheckpointKind> {
            vec![CheckpointKind::SessionStart]
        }
    }

    #[tokio::test]
    async fn observers_of_one_form_share_one_rendering_of_each_event() {
        let (engine, rendered) = (Engine::new(Arc::new(crate::NullStore), Vec::new()), Arc::new(AtomicUsize::new(0)));
        let observers = (0..10).map(|number| Mount {
            handler: Arc::new(Counting(rendered.clone())),
            ..engine.native(&format!("h{number}"), number, Arc::new(AtTheStart))
        });
        engine.replace(observers.collect()).unwrap();
        let hooks = engine.dispatcher(Identity::top("main", "s", TurnId::fresh()));
        for events in 1..=3 {
            hooks.tell(ObservedEvent::SessionStart);
            assert_eq!(rendered.load(Ordering::SeqCst), events);
        }
    }
}
