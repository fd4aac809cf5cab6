//! A turn in a few lines: what was refused, what was left to a person, what was changed and what failed. Everything that
//! went as it always goes is a number.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::nearest::nearest;
use domain::store::{StoredEvent, StoredRecord};
use domain::verdict::VerdictKind;

use super::detail::{BAD, BOLD, CHANGE, DIM, NOBODY_ASKED, fault_text, head, indented, is_of_the_host, is_text};
use crate::clean::clean;
use crate::text::{clip, counted, time};

/// The most lines of one kind; the rest is a number.
const MAX_LINES: usize = 5;

/// The most refusals that are shown with their arguments and reasons.
const MAX_REFUSALS: usize = 10;

/// The turns that `events` belong to, one after another. Of those after the first only what there is to explain.
pub(super) fn turns(events: &[StoredEvent]) -> String {
    let mut text = String::new();
    for (number, turn) in events.chunk_by(|one, next| one.turn_id == next.turn_id).enumerate() {
        let summary = Summary::of(turn);
        if number > 0 && summary.is_quiet() {
            continue;
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        text += gap;
        text += &turn.last().map(head).unwrap_or_default();
        text += &summary.shown();
    }
    text
}

/// What else can be asked.
pub(super) fn more() -> String {
    format!("\n{DIM}-v shows every hook at every event; `pintle why EVENT_ID` one event{DIM:#}\n")
}

/// The place of each call in its turn, from 1, in the order in which hooks were asked about them.
pub(super) fn call_numbers(events: &[StoredEvent]) -> BTreeMap<&str, usize> {
    let mut numbers = BTreeMap::new();
    for call in events.iter().filter_map(|event| event.tool_call_id.as_deref()) {
        let next = numbers.len() + 1;
        numbers.entry(call).or_insert(next);
    }
    numbers
}

/// Something that was refused, or left to a person.
pub(super) fn refusal(event: &StoredEvent, number: Option<usize>) -> String {
    let asks = event.ruling == VerdictKind::Ask.as_str();
    let mark = if asks { "?" } else { "✗" };
    let what = match (&event.tool, &event.call) {
        (Some(tool), Some(call)) => format!("{BOLD}{}{BOLD:#} {}", clean(tool), clean(&call.shown())),
        (Some(tool), None) => format!("{BOLD}{}{BOLD:#}", clean(tool)),
        (None, _) => format!("{BOLD}{}{BOLD:#}", event.event),
    };
    let number = number.map(|number| format!("{DIM}call {number}{DIM:#} ")).unwrap_or_default();
    let text = event.text.as_deref().map(|text| format!("\n  {}", indented(text))).unwrap_or_default();
    format!("{BAD}{mark}{BAD:#} {number}{what}{text}\n  {DIM}{}, event {}{DIM:#}", event.checkpoint, event.event_id)
}

/// The hooks that ran.
#[derive(Default)]
struct HooksRan<'a> {
    /// Those that were asked for a verdict.
    asked: BTreeSet<&'a str>,
    /// How often they were.
    times: usize,
    /// How long all of them took.
    took: Duration,
}

/// The findings about one turn.
#[derive(Default)]
struct Summary<'a> {
    calls: BTreeMap<&'a str, usize>,
    refused: Vec<&'a StoredEvent>,
    /// Changes, by who made them where.
    changed: BTreeMap<(&'a str, &'a str), Vec<&'a StoredEvent>>,
    /// Calls that a hook answered in the tool's place.
    answered: BTreeMap<&'a str, Vec<&'a StoredEvent>>,
    /// Faults and what stood for hooks that did not run, by hook and word: the words, and how often.
    failed: BTreeMap<(&'a str, &'a str), (String, usize)>,
    /// Likely mistakes in answers, and what of answers did not count: the hook, which of both, the words.
    warnings: BTreeMap<(&'a str, &'a str, &'a str), usize>,
    /// Texts of the host, by the event.
    host: BTreeMap<&'a str, Vec<&'a StoredEvent>>,
    texts: usize,
    ran: HooksRan<'a>,
    /// How often hooks did not run, by the reason.
    not_run: BTreeMap<&'a str, usize>,
    /// Patterns that nearly matched a tool.
    near: BTreeSet<(&'a str, &'a str, &'a str)>,
}

impl<'a> Summary<'a> {
    fn of(events: &'a [StoredEvent]) -> Self {
        let mut summary = Self { calls: call_numbers(events), ..Self::default() };
        let mut refused = BTreeSet::new();
        for event in events {
            let stops = super::stops(event);
            // The later checkpoints of a clearing carry its ruling, too.
            if stops && event.tool_call_id.as_deref().is_none_or(|call| refused.insert(call)) {
                summary.refused.push(event);
            }
            if is_of_the_host(event) && event.text.is_some() {
                summary.host.entry(&event.event).or_default().push(event);
            }
            for hook in &event.hooks {
                summary.take(event, hook);
            }
        }
        summary
    }

    fn take(&mut self, event: &'a StoredEvent, hook: &'a StoredRecord) {
        for warning in &hook.warnings {
            *self.warnings.entry((&hook.hook, "warning", warning)).or_default() += 1;
        }
        for what in &hook.dropped {
            *self.warnings.entry((&hook.hook, "dropped", what)).or_default() += 1;
        }
        if is_text(hook) {
            self.texts += usize::from(hook.ran);
            return;
        }
        match (&hook.fault, hook.ran, &hook.verdict) {
            (Some(fault), ..) => {
                let detail = fault_text(hook).unwrap_or_else(|| fault.clone());
                self.fail(hook, fault, format!("{} → {}", clean(&detail), hook.verdict.as_deref().unwrap_or("told")));
            }
            (None, false, verdict) => {
                let reason = hook.reason.as_deref().unwrap_or("unknown");
                *self.not_run.entry(reason).or_default() += 1;
                if let Some(became) = verdict {
                    let value = hook.value.as_deref().map(|value| format!(" ({value})")).unwrap_or_default();
                    self.fail(hook, reason, format!("did not run: {}{} → {became}", clean(reason), clean(&value)));
                }
                self.look_near(event, hook);
            }
            (None, true, verdict) => {
                if let Some(verdict) = verdict {
                    self.ran.asked.insert(&hook.hook);
                    self.ran.times += 1;
                    if verdict == VerdictKind::Respond.as_str() && event.substituted {
                        self.answered.entry(&hook.hook).or_default().push(event);
                    }
                }
                if hook.change.is_some() {
                    self.changed.entry((&hook.hook, &hook.checkpoint)).or_default().push(event);
                }
            }
        }
        if hook.ran {
            let millis = hook.duration_ms.unwrap_or_default() / 1000.0;
            self.ran.took = self.ran.took.saturating_add(Duration::try_from_secs_f64(millis).unwrap_or(Duration::MAX));
        }
    }

    fn fail(&mut self, hook: &'a StoredRecord, word: &'a str, text: String) {
        let entry = self.failed.entry((&hook.hook, word)).or_insert((text, 0));
        entry.1 += 1;
    }

    fn look_near(&mut self, event: &'a StoredEvent, hook: &'a StoredRecord) {
        if let (Some(compared), Some(tool)) = (&hook.compared, event.tool.as_deref())
            && nearest(&compared.pattern, [tool]).is_some()
        {
            self.near.insert((&hook.hook, &compared.pattern, tool));
        }
    }

    /// Whether there is nothing to explain.
    fn is_quiet(&self) -> bool {
        self.refused.is_empty()
            && self.changed.is_empty()
            && self.answered.is_empty()
            && self.failed.is_empty()
            && self.host.is_empty()
    }

    fn shown(&self) -> String {
        let mut lines = vec![self.sentence()];
        let more = |lines: &mut Vec<String>, count: usize, max: usize| {
            if count > max {
                lines.push(format!("{DIM}… and {} more: -v{DIM:#}", count - max));
            }
        };
        for event in self.refused.iter().take(MAX_REFUSALS) {
            let number = event.tool_call_id.as_deref().and_then(|call| self.calls.get(call)).copied();
            lines.push(refusal(event, number));
        }
        more(&mut lines, self.refused.len(), MAX_REFUSALS);
        for (hook, events) in self.answered.iter().take(MAX_LINES) {
            lines.push(format!("{CHANGE}={CHANGE:#} {} answered {}", clean(hook), self.about(events)));
        }
        more(&mut lines, self.answered.len(), MAX_LINES);
        for ((hook, place), events) in self.changed.iter().take(MAX_LINES) {
            lines.push(format!("{CHANGE}~{CHANGE:#} {} changed {} at {place}", clean(hook), self.about(events)));
        }
        more(&mut lines, self.changed.len(), MAX_LINES);
        for ((hook, _), (text, times)) in self.failed.iter().take(MAX_LINES) {
            let times = if *times > 1 { format!(", {times} times") } else { String::new() };
            lines.push(format!("{BAD}!{BAD:#} {} {}{times}", clean(hook), clip(text)));
        }
        more(&mut lines, self.failed.len(), MAX_LINES);
        for (event, texts) in self.host.iter().take(MAX_LINES) {
            let first = texts[0].text.as_deref().unwrap_or_default();
            let rest = if texts.len() > 1 { format!(" (and {} more)", texts.len() - 1) } else { String::new() };
            lines.push(format!("· {event}: {}{rest}", indented(first)));
        }
        for ((hook, what, words), _) in self.warnings.iter().take(MAX_LINES) {
            lines.push(format!("{BAD}!{BAD:#} {} {what}: {}", clean(hook), clip(words)));
        }
        more(&mut lines, self.warnings.len(), MAX_LINES);
        lines.extend(self.passed_over());
        for (hook, pattern, tool) in self.near.iter().take(MAX_LINES) {
            lines.push(format!(
                "{BAD}!{BAD:#} {}: /{}/ does not match `{}`; did the matcher mean \"{}\"?",
                clean(hook),
                clean(pattern),
                clean(tool),
                clean(tool)
            ));
        }
        lines.join("\n") + "\n"
    }

    /// What some events are about: calls by their numbers, everything else by how often.
    fn about(&self, events: &[&StoredEvent]) -> String {
        let number = |event: &&StoredEvent| event.tool_call_id.as_deref().and_then(|call| self.calls.get(call));
        let calls: BTreeSet<usize> = events.iter().filter_map(number).copied().collect();
        match (calls.first(), calls.len()) {
            (None, _) if events.len() == 1 => "it once".into(),
            (None, _) => format!("it {} times", events.len()),
            (Some(only), 1) => {
                let tool = events[0].tool.as_deref().map(clean).unwrap_or_default();
                format!("call {only} ({tool})")
            }
            (Some(first), many) => format!("{many} calls, the first of them call {first}"),
        }
    }

    /// The whole turn in one sentence.
    fn sentence(&self) -> String {
        let asked = self.refused.iter().filter(|event| event.ruling == VerdictKind::Ask.as_str()).count();
        let changes = self.changed.values().map(Vec::len).sum();
        let counts = [
            (self.refused.len() - asked, "refused"),
            (asked, "left to a person"),
            (self.answered.values().map(Vec::len).sum(), "answered by a hook"),
            (changes, "changed"),
            (self.failed.values().map(|(_, times)| times).sum(), "failed"),
        ];
        let counts: Vec<String> =
            counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
        let counts = if counts.is_empty() { "nothing refused".to_owned() } else { counts.join(", ") };
        let texts = match self.texts {
            0 => String::new(),
            texts => format!("; {} of skills", counted(texts, "text")),
        };
        if self.ran.times == 0 && self.is_quiet() {
            return format!("{NOBODY_ASKED}{texts}");
        }
        let hooks = counted(self.ran.asked.len(), "hook");
        let times = if self.ran.times == 1 { "once".to_owned() } else { counted(self.ran.times, "time") };
        format!(
            "{}, {counts}; {hooks} asked {times}, {}{texts}",
            counted(self.calls.len(), "call"),
            time(self.ran.took)
        )
    }

    /// The hooks that did not run, on one line.
    fn passed_over(&self) -> Option<String> {
        let all: usize = self.not_run.values().sum();
        let reasons: Vec<String> =
            self.not_run.iter().map(|(reason, times)| format!("{times} {}", clean(reason))).collect();
        (all > 0).then(|| format!("{DIM}did not run: {}{DIM:#}", reasons.join(", ")))
    }
}
