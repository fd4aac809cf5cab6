//! One turn as a waterfall: its rounds, model calls, calls of tools and checkpoints, from what is kept of them. Pure.
//!
//! Records say what hooks did and when; the journal of the conversation says when the model answered, and when a tool
//! ran. Where the conversation is gone, there are records alone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use pintle_agent::tools::{DELEGATE, SPAWN};
use pintle_domain::execution::{Execution, masked};
use pintle_domain::fault::FaultKind;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::llm::Usage;
use pintle_domain::message::{CallPart, Message};
use pintle_domain::session::JournalEntry;
use pintle_domain::store::{StoredEvent, StoredRecord};
use pintle_domain::turn::Fact;

use super::layout::{Placed, millis, moment, place};
use super::span::{Span, SpanKind, after};
use crate::model_doors::{ModelPrices, usd};

/// How much of a text is shown, in characters: a screen.
const MAX_TEXT_CHARS: usize = 4000;

/// What is kept of one turn.
pub(crate) struct Kept<'a> {
    /// Its records, oldest first.
    pub(crate) events: &'a [StoredEvent],
    /// Its part of the journal.
    pub(crate) journal: &'a [(Timestamp, JournalEntry)],
    /// The executions of rules in it.
    pub(crate) executions: &'a [Execution],
    /// What models cost.
    pub(crate) prices: &'a ModelPrices,
    /// Whether it is shown to those who run the host: they read what programs wrote to their standard error.
    pub(crate) whole: bool,
}

/// The bars of a turn, parents first, and how long it took in milliseconds.
pub(crate) fn waterfall(kept: &Kept<'_>) -> (Vec<Value>, f64) {
    let placed = place(kept.events);
    let mut spans = Spans::default();
    spans.checkpoints(kept, &placed);
    spans.told_by_journal(kept);
    let spans = spans.finish();
    let starts = spans.iter().map(|span| span.start);
    let origin = starts.fold(f64::INFINITY, f64::min);
    let end = spans.iter().map(|span| span.end.unwrap_or(span.start)).fold(origin, f64::max);
    let shown = spans.into_iter().map(|span| span.shown(origin)).collect();
    (shown, if origin.is_finite() { after(end, origin) } else { 0.0 })
}

/// What the model calls of a turn cost together, in dollars; nothing where no price is known of any.
pub(crate) fn spent(kept: &Kept<'_>) -> Option<String> {
    let told = kept.journal.iter().filter_map(|(_, entry)| {
        let JournalEntry::Turn(fact) = entry else { return None };
        let (Fact::Replied { message, usage, .. } | Fact::Planned { message, usage, .. }) = fact else { return None };
        kept.prices.cost(&message.message.model_name, (*usage)?)
    });
    told.reduce(u64::saturating_add).map(usd)
}

/// The call in `events`, those of the turn above, that a sub-agent works for whose turn began at `began`.
pub(crate) fn parent_of(events: &[StoredEvent], began: &str) -> Option<String> {
    let asked = events.iter().filter(|event| event.event == "subagent_start" && moment(&event.at) <= moment(began));
    asked.filter_map(call_span).next_back()
}

/// The calls in `journal`, that of the turn above, that began a sub-agent, each with when. They are known without any hook.
pub(crate) fn handed_over(journal: &[(Timestamp, JournalEntry)]) -> Vec<(f64, String)> {
    let (mut round, mut calls) = (0, Vec::new());
    let mut found = Vec::new();
    for (at, entry) in journal {
        let JournalEntry::Turn(fact) = entry else { continue };
        if let Fact::Replied { iteration, message, .. } = fact {
            (round, calls) = (*iteration, message.message.tool_calls.clone());
        }
        if let Fact::Used { place, tool, .. } = fact
            && [DELEGATE, SPAWN].contains(&tool.as_str())
            && let Some(call) = calls.get(*place)
        {
            found.push((millis(*at), call_id(round, &call.id)));
        }
    }
    found
}

/// Which of the calls in `handed` a sub-agent works for whose turn began at `began`: the first before it that nobody
/// else works for.
pub(crate) fn handed_to(handed: &[(f64, String)], began: &str, taken: &BTreeSet<String>) -> Option<String> {
    let before = handed.iter().filter(|(at, id)| *at <= moment(began) && !taken.contains(id));
    before.map(|(_, id)| id.clone()).next()
}

fn call_span(event: &StoredEvent) -> Option<String> {
    event.tool_call_id.as_deref().map(|call| call_id(event.iteration, call))
}

fn call_id(round: u32, call: &str) -> String {
    format!("call:{round}:{call}")
}

fn cut(text: &str) -> String {
    let masked = masked(text);
    match masked.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => format!("{}…", &masked[..end]),
        None => masked.into_owned(),
    }
}

/// The bars as they come to be known.
#[derive(Default)]
struct Spans {
    checkpoints: Vec<Span>,
    /// By id.
    calls: BTreeMap<String, Span>,
    /// The order in which calls became known.
    order: Vec<String>,
    others: Vec<Span>,
}

impl Spans {
    fn checkpoints(&mut self, kept: &Kept<'_>, placed: &[Placed]) {
        for (number, (event, placed)) in kept.events.iter().zip(placed).enumerate() {
            let mut span = Span::new(
                SpanKind::Checkpoint,
                format!("{}:{number}", event.event_id),
                event.event.as_str(),
                event.iteration,
                placed.start,
            );
            span.end = Some(placed.end);
            span.parent = call_span(event);
            if let Some(call) = &event.tool_call_id {
                self.call(event.iteration, call, event.tool.as_deref(), placed.start);
            }
            span.put("eventId", Some(event.event_id.as_str()));
            span.put("at", Some(event.at.as_str()));
            span.put("tool", event.tool.as_deref());
            span.put("toolCallId", event.tool_call_id.as_deref());
            span.put("ruling", Some(event.ruling.as_str()));
            span.put("answeredByHook", event.substituted.then_some(true));
            span.put("text", event.text.as_deref().map(cut));
            span.put("call", event.call.as_ref().map(|call| json!(call)));
            span.put("permit", event.permit.as_deref());
            span.hooks = event
                .hooks
                .iter()
                .zip(&placed.hooks)
                .map(|(hook, start)| (*start, shown_hook((event, hook), kept.executions, kept.whole)))
                .collect();
            self.checkpoints.push(span);
        }
    }

    /// The bar of a call, which is known from `start` on at the latest.
    fn call(&mut self, round: u32, call: &str, tool: Option<&str>, start: f64) -> &mut Span {
        let id = call_id(round, call);
        if !self.calls.contains_key(&id) {
            self.order.push(id.clone());
        }
        let span = self.calls.entry(id.clone()).or_insert_with(|| {
            let mut span = Span::new(SpanKind::Call, id, tool.unwrap_or_default(), round, start);
            span.put("tool", tool);
            span.put("toolCallId", Some(call));
            span
        });
        span.start = span.start.min(start);
        span
    }

    fn told_by_journal(&mut self, kept: &Kept<'_>) {
        let mut now = Journal { prices: kept.prices, round: 0, calls: Vec::new(), last: 0.0 };
        for (at, entry) in kept.journal {
            let JournalEntry::Turn(fact) = entry else { continue };
            self.fact(&mut now, millis(*at), fact);
        }
    }

    fn fact(&mut self, now: &mut Journal<'_>, at: f64, fact: &Fact) {
        match fact {
            Fact::Replied { iteration, message, .. } | Fact::Stopped { iteration, message } => {
                self.model(now, (*iteration, at), &message.message);
                if let Fact::Replied { usage, .. } = fact {
                    self.cost(now, &message.message, *usage);
                }
                (now.round, now.calls) = (*iteration, message.message.tool_calls.clone());
            }
            Fact::Planned { message, usage, .. } => {
                self.model(now, (0, at), &message.message);
                self.cost(now, &message.message, *usage);
            }
            Fact::Used { place, tool, digest, .. } => {
                if let Some(call) = now.calls.get(*place) {
                    let id = call.id.to_string();
                    let span = self.call(now.round, &id, Some(tool), at);
                    span.put("digest", Some(digest.as_str()));
                    let mut run =
                        Span::new(SpanKind::Tool, format!("tool:{}:{id}", now.round), tool.as_str(), now.round, at);
                    run.parent = Some(call_id(now.round, &id));
                    self.others.push(run);
                }
            }
            Fact::Answered { place, answer } => {
                if let Some(call) = now.calls.get(*place) {
                    let id = call.id.to_string();
                    let tool = call.function.name.clone();
                    let span = self.call(now.round, &id, Some(&tool), at);
                    span.end = Some(at);
                    span.put("result", Some(cut(&answer.text)));
                    span.put("isError", answer.execution.as_ref().map(|execution| !execution.success));
                    let run = format!("tool:{}:{id}", now.round);
                    self.others.iter_mut().filter(|span| span.id == run).for_each(|run| run.end = Some(at));
                }
                now.last = at;
            }
            Fact::Begun { .. } => now.last = at,
            Fact::Recalled(_)
            | Fact::Equipped { .. }
            | Fact::Announced { .. }
            | Fact::Queued(_)
            | Fact::Injected { .. }
            | Fact::Interrupted
            | Fact::TakenBack
            | Fact::Rewritten { .. }
            | Fact::Compacted { .. }
            | Fact::Trimmed { .. }
            | Fact::Ended { .. } => {}
        }
    }

    /// The bar of the model call that ended with `message`: from the last hook before it to the first behind it.
    fn model(&mut self, now: &mut Journal<'_>, (round, at): (u32, f64), message: &Message) {
        let of_round = |name: &str| {
            let found = self.checkpoints.iter().rev().filter(|span| span.round == round && span.name == name);
            found.map(|span| (span.start, span.end.unwrap_or(span.start))).next()
        };
        let start = of_round("before_llm").map_or(now.last, |(_, end)| end);
        let end = of_round("after_llm").map_or(at, |(start, _)| start.min(at));
        let mut span = Span::new(SpanKind::Model, format!("model:{round}"), "model", round, start.min(end));
        span.end = Some(end);
        let model = message.model_name.to_string();
        if !model.is_empty() {
            span.name.clone_from(&model);
            span.put("model", Some(model));
        }
        span.put("content", Some(cut(&message.content)).filter(|text| !text.is_empty()));
        self.others.push(span);
        now.last = at;
    }

    /// What the model call cost that was told of last, and that ended with `message`.
    fn cost(&mut self, now: &Journal<'_>, message: &Message, usage: Option<Usage>) {
        if let Some(model) = self.others.last_mut() {
            model.put("usage", usage.map(|usage| json!(usage)));
            let cost = usage.and_then(|usage| now.prices.cost(&message.model_name, usage));
            model.put("costUsd", cost.map(usd));
        }
    }

    /// All bars, those that hold others before these.
    fn finish(mut self) -> Vec<Span> {
        let mut all: Vec<Span> = self.order.iter().filter_map(|id| self.calls.remove(id)).collect();
        for call in &mut all {
            // Where nothing else says it, a call is over with its last checkpoint or run.
            let own = self.checkpoints.iter().chain(&self.others).filter(|span| span.parent.as_ref() == Some(&call.id));
            let last = own.filter_map(|span| span.end).fold(f64::NEG_INFINITY, f64::max);
            if last.is_finite() {
                call.end = Some(call.end.map_or(last, |end| end.max(last)));
            }
        }
        all.extend(self.others);
        all.extend(self.checkpoints);
        let mut rounds: BTreeMap<u32, Span> = BTreeMap::new();
        for span in all.iter_mut().filter(|span| span.round > 0) {
            let id = format!("round:{}", span.round);
            let round = rounds.entry(span.round).or_insert_with(|| {
                Span::new(SpanKind::Round, id.clone(), format!("round {}", span.round), span.round, span.start)
            });
            round.start = round.start.min(span.start);
            let end = span.end.unwrap_or(span.start);
            round.end = Some(round.end.map_or(end, |known| known.max(end)));
            if span.parent.is_none() {
                span.parent = Some(id);
            }
        }
        all.sort_by(|one, other| one.start.total_cmp(&other.start));
        rounds.into_values().chain(all).collect()
    }
}

/// How far the journal was read.
struct Journal<'a> {
    prices: &'a ModelPrices,
    round: u32,
    calls: Vec<CallPart>,
    /// When something last ended.
    last: f64,
}

/// A hook as it is shown, but for its beginning.
fn shown_hook((event, hook): (&StoredEvent, &StoredRecord), executions: &[Execution], whole: bool) -> Object {
    let mut own = executions
        .iter()
        .filter(|it| it.event_id == event.event_id && it.hook_name == hook.hook && it.event.name() == hook.checkpoint);
    // Of two hooks with one name nobody can say which it was.
    let execution = own.next().filter(|_| own.next().is_none() && hook.ran);
    let took = hook.duration_ms.or_else(|| execution.map(|it| it.duration_ms as f64));
    let mut members = Object::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            members.insert(name.to_owned(), value);
        }
    };
    put("name", json!(hook.hook));
    put("family", json!(hook.family));
    put("checkpoint", json!(hook.checkpoint));
    put("ran", json!(hook.ran));
    put("slotWaitMs", json!(hook.slot_wait_ms));
    put("verdict", json!(hook.verdict));
    put("reason", json!(hook.reason.as_deref().or_else(|| execution?.reason.as_deref()).map(cut)));
    put("by", json!(hook.by));
    put("value", json!(hook.value));
    put("compared", json!(hook.compared));
    put("fault", json!(hook.fault));
    put("faultDetail", json!(hook.fault_detail));
    let quotes = hook.fault.as_deref().and_then(FaultKind::named).is_some_and(FaultKind::may_quote_a_program);
    put("cause", json!(hook.cause.as_ref().filter(|_| whole || !quotes)));
    put("change", json!(hook.change));
    put("dropped", json!(Some(&hook.dropped).filter(|dropped| !dropped.is_empty())));
    put("warnings", json!(Some(&hook.warnings).filter(|warnings| !warnings.is_empty())));
    put("again", json!(hook.again.then_some(true)));
    put("execution", json!(execution.map(shown_execution)));
    members.insert("durationMs".to_owned(), json!(took));
    members
}

fn shown_execution(it: &Execution) -> Value {
    let mut members = Object::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            members.insert(name.to_owned(), value);
        }
    };
    let kept = |name: &str| it.metadata.get(name).cloned().unwrap_or_default();
    put("id", json!(it.id));
    put("version", json!(it.hook_version));
    put("handlerType", json!(it.handler_type.word()));
    put("decision", json!(it.decision.word()));
    put("effective", kept("effective"));
    put("error", json!(it.error));
    put("retry", json!(it.retry));
    put("httpStatus", kept("http_status"));
    put("stdoutBytes", kept("stdout_len"));
    put("stderrBytes", kept("stderr_len"));
    put("model", kept("prompt_model"));
    put("tokens", kept("prompt_tokens"));
    put("cached", kept("cached"));
    put("rewrite", kept("rewrite"));
    members.insert("hookId".to_owned(), json!(it.hook_id));
    Value::Object(members)
}
