//! What is open in the traces of this process: turns and tool calls that have begun and are not over.
//!
//! A span is told when it is over. One whose end never comes is told at the end of the process, or when too many are
//! open, so no hook's span is without its parent.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::{AttributeValue, Span, SpanKey, SpanStatus, SpanSubject, TraceKey, between, earlier, identity, of_hook};
use crate::checkpoint::runtime::TurnStatus;
use crate::checkpoint::{CheckpointKind, Notice, ObservedEvent, RuntimeEvent};
use crate::execution::redacted;
use crate::id::{CallId, TenantId, TurnId};
use crate::identity::Identity;
use crate::record::EventRecord;
use crate::verdict::VerdictKind;

/// The most turns that are kept open: far more than one host works at a time. Beyond, the oldest is told as it is.
pub const MAX_OPEN_TURNS: usize = 1024;

/// The most tool calls of one turn that are kept open: more than one answer of a model has.
pub const MAX_OPEN_CALLS: usize = 256;

/// The status of a span whose end nobody saw.
const UNFINISHED: SpanStatus = SpanStatus::Open("unfinished");

/// The status of a turn whose message was refused.
const BLOCKED: SpanStatus = SpanStatus::Open("blocked");

/// The status of a call that did not run.
const SKIPPED: SpanStatus = SpanStatus::Open("skipped");

/// The open spans of this process.
#[derive(Debug, Default)]
pub struct OpenSpans {
    turns: BTreeMap<Whose, Turn>,
    /// The calls for which sub-agents work that have not begun their turn yet.
    below: BTreeMap<Whose, SpanKey>,
}

type Whose = (TenantId, TurnId);

#[derive(Debug)]
struct Turn {
    who: Identity,
    start: Timestamp,
    parent: Option<SpanKey>,
    /// Whether somebody told that it began; then somebody tells that it ends.
    is_told: bool,
    calls: BTreeMap<(u32, CallId), Call>,
}

#[derive(Debug)]
struct Call {
    who: Identity,
    tool: String,
    start: Timestamp,
}

/// The end of something that was open.
struct End<'a> {
    at: Timestamp,
    status: SpanStatus,
    more: &'a [(&'static str, AttributeValue)],
}

impl Turn {
    fn begun(who: &Identity, start: Timestamp, parent: Option<SpanKey>) -> Self {
        let who = Identity { tool_call_id: None, iteration: 0, ..who.clone() };
        Self { who, start, parent, is_told: false, calls: BTreeMap::new() }
    }

    /// The calls that are open, then the turn itself.
    fn over(mut self, end: &End<'_>) -> Vec<Span> {
        let unfinished = End { at: end.at, status: UNFINISHED, more: &[] };
        let calls = std::mem::take(&mut self.calls).into_values();
        let mut spans: Vec<Span> = calls.filter_map(|call| call.over(&unfinished)).collect();
        let (who, took) = (&self.who, between(self.start, end.at));
        let mut attributes = identity(who, &end.status, took);
        attributes.push(("channel", who.channel.as_str().into()));
        attributes.push(("depth", u64::from(who.depth).into()));
        attributes.extend(end.more.iter().cloned());
        spans.push(Span {
            trace: TraceKey::of(who),
            key: SpanKey::of_turn(&who.tenant_id, &who.turn_id),
            parent: self.parent,
            name: "turn".to_owned(),
            start: self.start,
            end: end.at.max(self.start),
            status: end.status.clone(),
            about: SpanSubject::Turn,
            attributes,
        });
        spans
    }
}

impl Call {
    fn over(self, end: &End<'_>) -> Option<Span> {
        let Self { who, tool, start } = self;
        let id = who.tool_call_id.as_ref()?;
        let mut attributes = identity(&who, &end.status, between(start, end.at));
        attributes.push(("tool_name", tool.into()));
        attributes.push(("tool_call_id", id.as_str().into()));
        attributes.extend(end.more.iter().cloned());
        Some(Span {
            trace: TraceKey::of(&who),
            key: SpanKey::of_call(&who, id),
            parent: Some(SpanKey::of_turn(&who.tenant_id, &who.turn_id)),
            name: "tool_call".to_owned(),
            start,
            end: end.at.max(start),
            status: end.status.clone(),
            about: SpanSubject::Call,
            attributes,
        })
    }
}

impl OpenSpans {
    /// The spans that are over now that observers were told of `notice`.
    pub fn noticed(&mut self, notice: &Notice) -> Vec<Span> {
        let (who, at) = (&notice.who, notice.at);
        if who.is_test {
            return Vec::new();
        }
        match &notice.what {
            ObservedEvent::Runtime(event) => self.happened(who, at, event),
            ObservedEvent::SessionStart
            | ObservedEvent::PostToolUse { .. }
            | ObservedEvent::SubagentStop { .. }
            | ObservedEvent::Stop { .. } => Vec::new(),
        }
    }

    fn happened(&mut self, who: &Identity, at: Timestamp, event: &RuntimeEvent) -> Vec<Span> {
        match event {
            RuntimeEvent::TurnStart { .. } => {
                let (turn, over) = self.open_turn(who, at);
                turn.is_told = true;
                over
            }
            RuntimeEvent::TurnEnd { status, iterations, duration, .. } => {
                let mut over = self.open_turn(who, earlier(at, *duration)).1;
                let status = match status {
                    TurnStatus::Completed => SpanStatus::Completed,
                    TurnStatus::Error => SpanStatus::Error(None),
                    TurnStatus::Aborted => SpanStatus::Open("aborted"),
                };
                let end = End { at, status, more: &[("iterations", u64::from(*iterations).into())] };
                over.extend(self.turns.remove(&whose(who)).into_iter().flat_map(|turn| turn.over(&end)));
                over
            }
            RuntimeEvent::ToolExecStart { tool, .. } => self.open_call(who, at, tool),
            RuntimeEvent::ToolExecEnd { tool, duration, is_error, hook, .. } => {
                let status = if *is_error { SpanStatus::Error(None) } else { SpanStatus::Completed };
                self.end_call(who, (tool, *duration), &End { at, status, more: &by(hook.as_deref()) })
            }
            RuntimeEvent::ToolExecSkipped { tool, reason, hook, .. } => {
                let mut more = by(hook.as_deref());
                more.push(("reason", redacted(reason).into()));
                self.end_call(who, (tool, Duration::ZERO), &End { at, status: SKIPPED, more: &more })
            }
            RuntimeEvent::SubturnSpawn { label, .. } => {
                let child = (who.tenant_id.clone(), TurnId::from(label.as_str()));
                if let Some(call) = &who.tool_call_id
                    && self.below.len() < MAX_OPEN_TURNS
                {
                    self.below.insert(child, SpanKey::of_call(who, call));
                }
                Vec::new()
            }
            RuntimeEvent::LlmRequest { .. }
            | RuntimeEvent::LlmDelta { .. }
            | RuntimeEvent::LlmResponse { .. }
            | RuntimeEvent::LlmRetry { .. }
            | RuntimeEvent::ContextCompress { .. }
            | RuntimeEvent::SessionSummarize { .. }
            | RuntimeEvent::SteeringInjected { .. }
            | RuntimeEvent::FollowUpQueued { .. }
            | RuntimeEvent::SubturnEnd { .. }
            | RuntimeEvent::SubturnResultDelivered { .. }
            | RuntimeEvent::SubturnOrphan { .. }
            | RuntimeEvent::InterruptReceived { .. }
            | RuntimeEvent::Error { .. } => Vec::new(),
        }
    }

    /// The spans that are over now that the hooks of `events` were asked, one after the other from `began`: their own
    /// spans, and what had to give way.
    pub fn concluded(&mut self, began: Timestamp, events: &[EventRecord]) -> Vec<Span> {
        let (mut spans, mut start) = (Vec::new(), began);
        for event in events.iter().filter(|event| !event.who.is_test) {
            let lines = event.hooks.whole();
            let before = spans.len();
            for record in lines {
                let Some(span) = of_hook(event, record, start) else { continue };
                start = span.end;
                spans.push(span);
            }
            // What comes later finds the call open, or over.
            if is_cleared_at(event.checkpoint) && event.who.tool_call_id.is_some() {
                spans.extend(self.open_call(&event.who, began, event.tool.as_deref().unwrap_or_default()));
            } else if spans.len() > before {
                // Its parent has to come, whoever tells of the turn.
                spans.extend(self.open_turn(&event.who, began).1);
            }
            if is_refused_at_the_door(event) {
                spans.extend(self.refused(&event.who, start));
            }
        }
        spans
    }

    /// The turn of a message that was refused: it never began, and nobody tells its end.
    fn refused(&mut self, who: &Identity, at: Timestamp) -> Vec<Span> {
        let key = whose(who);
        if self.turns.get(&key).is_none_or(|turn| turn.is_told) {
            return Vec::new();
        }
        let turn = self.turns.remove(&key);
        turn.map(|turn| turn.over(&End { at, status: BLOCKED, more: &[] })).unwrap_or_default()
    }

    /// Everything that is still open, as it is at the end of the process.
    pub fn finish(&mut self, now: Timestamp) -> Vec<Span> {
        self.below.clear();
        let end = End { at: now, status: UNFINISHED, more: &[] };
        std::mem::take(&mut self.turns).into_values().flat_map(|turn| turn.over(&end)).collect()
    }

    /// The turn of `who`, begun at `start` if nothing was known of it, and what had to give way to it.
    fn open_turn(&mut self, who: &Identity, start: Timestamp) -> (&mut Turn, Vec<Span>) {
        let key = whose(who);
        let is_new = !self.turns.contains_key(&key);
        let over = if is_new && self.turns.len() >= MAX_OPEN_TURNS { self.give_way(start) } else { Vec::new() };
        let parent = if is_new { self.below.remove(&key) } else { None };
        let above = || who.parent_turn_id.as_ref().map(|turn| SpanKey::of_turn(&who.tenant_id, turn));
        let turn = self.turns.entry(key).or_insert_with(|| Turn::begun(who, start, parent.or_else(above)));
        (turn, over)
    }

    /// Tells the turn that began first as it is.
    fn give_way(&mut self, now: Timestamp) -> Vec<Span> {
        let oldest = self.turns.iter().min_by_key(|(_, turn)| turn.start).map(|(key, _)| key.clone());
        let turn = oldest.and_then(|key| self.turns.remove(&key));
        turn.map(|turn| turn.over(&End { at: now, status: UNFINISHED, more: &[] })).unwrap_or_default()
    }

    fn open_call(&mut self, who: &Identity, start: Timestamp, tool: &str) -> Vec<Span> {
        let (turn, mut over) = self.open_turn(who, start);
        let Some(id) = &who.tool_call_id else { return over };
        let key = (who.iteration, id.clone());
        if turn.calls.len() >= MAX_OPEN_CALLS && !turn.calls.contains_key(&key) {
            let oldest = turn.calls.iter().min_by_key(|(_, call)| call.start).map(|(key, _)| key.clone());
            let oldest = oldest.and_then(|key| turn.calls.remove(&key));
            over.extend(oldest.and_then(|call| call.over(&End { at: start, status: UNFINISHED, more: &[] })));
        }
        turn.calls.entry(key).or_insert_with(|| Call { who: who.clone(), tool: tool.to_owned(), start });
        over
    }

    fn end_call(&mut self, who: &Identity, (tool, ran): (&str, Duration), end: &End<'_>) -> Vec<Span> {
        let mut over = self.open_call(who, earlier(end.at, ran), tool);
        let Some(id) = &who.tool_call_id else { return over };
        let turn = self.turns.get_mut(&whose(who));
        let call = turn.and_then(|turn| turn.calls.remove(&(who.iteration, id.clone())));
        over.extend(call.and_then(|call| call.over(end)));
        over
    }
}

/// Whether hooks are asked at `kind` before a call may run: with the first of them it begins.
fn is_cleared_at(kind: CheckpointKind) -> bool {
    [CheckpointKind::BeforeTool, CheckpointKind::PreToolUse, CheckpointKind::ApproveTool].contains(&kind)
}

/// Whether the message that a turn was to begin with was refused. One that comes in later is of a round.
fn is_refused_at_the_door(event: &EventRecord) -> bool {
    let shuts = match event.ruling.word {
        VerdictKind::Deny | VerdictKind::AbortTurn | VerdictKind::HardAbort => true,
        VerdictKind::Inject | VerdictKind::Continue | VerdictKind::Modify | VerdictKind::Respond | VerdictKind::Ask => {
            false
        }
    };
    shuts && event.checkpoint == CheckpointKind::UserPromptSubmit && event.who.iteration == 0
}

fn whose(who: &Identity) -> Whose {
    (who.tenant_id.clone(), who.turn_id.clone())
}

/// Which hook answered or refused, where one did.
fn by(hook: Option<&str>) -> Vec<(&'static str, AttributeValue)> {
    hook.map(|hook| ("hook_name", hook.into())).into_iter().collect()
}
