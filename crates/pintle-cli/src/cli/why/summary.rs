//! A turn in a few lines: what was refused, what was left to a person, what was changed and what failed. Everything that
//! went as it always goes is a number.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pintle_domain::fault::FaultKind;
use pintle_domain::nearest::nearest;
use pintle_domain::store::{StoredEvent, StoredRecord};
use pintle_domain::verdict::VerdictKind;

use super::cut::CutOff;
use super::detail::{
    BAD, BOLD, CHANGE, DIM, GOOD, NOBODY_ASKED, NOTE, fault_text, head, indented, is_failure, is_of_the_host,
    last_words,
};
use super::questions::Questions;
use super::stopped::{LastWord, Stopped};
use super::words::{in_short, is_text};
use crate::clean::clean;
use crate::cli::command_line::complete;
use crate::table::folded;
use crate::text::{counted, time_said, whole};

/// How far in the rest of a line stands that does not fit.
const HANG: usize = 4;

/// The most lines of one kind; the rest is a number.
const MAX_LINES: usize = 5;

/// The most refusals that are shown with their arguments and reasons.
const MAX_REFUSALS: usize = 10;

/// The turns that `events` belong to, one after another. Of those after the first only what there is to explain.
pub(super) fn turns(events: &[StoredEvent], (questions, cut): (&Questions, &CutOff), columns: usize) -> String {
    let mut text = String::new();
    for (number, turn) in events.chunk_by(|one, next| one.turn_id == next.turn_id).enumerate() {
        let summary = Summary::of(turn, questions);
        let cut = turn.last().map(|event| cut.lines(&event.turn_id)).unwrap_or_default();
        if number > 0 && summary.is_quiet() && cut.is_empty() {
            continue;
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        text += gap;
        text += &turn.last().map(|event| head(event, false)).unwrap_or_default();
        text.extend(cut.iter().map(|line| format!("{BAD}✗ {line}{BAD:#}\n")));
        text += &summary.shown();
    }
    folded(&text, columns, HANG)
}

/// Why a turn failed, as far as no hook stopped it.
fn failure(event: &StoredEvent) -> String {
    format!("{BAD}✗ the turn failed:{BAD:#} {}", indented(event.text.as_deref().unwrap_or_default()))
}

/// What else can be asked.
pub(super) fn more() -> String {
    let more = complete("-v shows every hook at every event, with the ids for `pintle why EVENT_ID`");
    format!("\n{DIM}{more}{DIM:#}\n")
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

/// Something that was blocked, or that waits for a person or did; with the `answer`, which is who approved it or what there
/// is to do, and with its ids if they are wanted.
pub(super) fn stopped_call(
    event: &StoredEvent,
    (word, number): (LastWord, Option<usize>),
    answer: Option<&str>,
    ids: bool,
) -> String {
    let (style, mark) = match word {
        LastWord::Waiting => (NOTE, "?"),
        LastWord::Lapsed => (DIM, "?"),
        LastWord::Blocked => (BAD, "✗"),
        LastWord::Approved => (GOOD, "✓"),
    };
    let what = match (&event.tool, &event.call) {
        (Some(tool), Some(call)) => format!("{BOLD}{}{BOLD:#} {}", clean(tool), clean(&call.shown())),
        (Some(tool), None) => format!("{BOLD}{}{BOLD:#}", clean(tool)),
        (None, _) => format!("{BOLD}{}{BOLD:#}", event.event),
    };
    let number = number.map(|number| format!("{DIM}call {number}{DIM:#} ")).unwrap_or_default();
    let text = match word {
        // The text that is kept names the approval, which nobody needs any more.
        LastWord::Approved => {
            format!("\n  approved by {}", answer.map_or_else(|| "a person".to_owned(), clean))
        }
        LastWord::Lapsed => "\n  a person was asked, and the question is over: it did not run".to_owned(),
        LastWord::Blocked | LastWord::Waiting => {
            let text = event.text.as_deref().map(|text| format!("\n  {}", indented(text))).unwrap_or_default();
            let to_do = answer.filter(|_| word == LastWord::Waiting).map(|to_do| format!("\n  {to_do}"));
            text + &to_do.unwrap_or_default()
        }
    };
    let id = if ids { format!(", event {}", event.event_id) } else { String::new() };
    format!("{style}{mark}{style:#} {number}{what}{text}\n  {DIM}{}{id}{DIM:#}", event.checkpoint)
}

/// What hooks at `checkpoint` act on.
fn subject(checkpoint: &str) -> &'static str {
    match checkpoint {
        "user_prompt_submit" => "the prompt",
        "before_llm" => "the request to the model",
        "after_llm" => "the model's answer",
        "after_tool" | "post_tool_use" => "the result",
        "subagent_start" => "the task",
        _ => "it",
    }
}

/// The hooks that ran.
#[derive(Default)]
struct HooksRan<'a> {
    /// Those that were asked for a verdict, or failed.
    asked: BTreeSet<&'a str>,
    /// How often they were.
    times: usize,
    /// How long all of them took.
    took: Duration,
}

impl<'a> HooksRan<'a> {
    fn count(&mut self, hook: &'a StoredRecord) {
        self.asked.insert(&hook.hook);
        self.times += 1;
    }

    /// How many ran how often, and how long all of it took.
    fn said(&self) -> String {
        if self.times == 0 {
            return "no hook ran".to_owned();
        }
        let hooks = counted(self.asked.len(), "hook");
        let times = if self.times == 1 { "once".to_owned() } else { counted(self.times, "time") };
        format!("{hooks} ran {times}, {}", time_said(self.took))
    }
}

/// The findings about one turn.
/// How a hook failed.
struct Failure {
    text: String,
    /// The last lines of its program.
    words: Vec<String>,
    times: usize,
}

#[derive(Default)]
struct Summary<'a> {
    calls: BTreeMap<&'a str, usize>,
    stopped: Stopped<'a>,
    /// Why the turn failed.
    failure: Option<&'a StoredEvent>,
    /// Changes, by who made them where.
    changed: BTreeMap<(&'a str, &'a str), Vec<&'a StoredEvent>>,
    /// Calls that a hook answered in the tool's place.
    answered: BTreeMap<&'a str, Vec<&'a StoredEvent>>,
    /// Faults and what stood for hooks that did not run, by hook and word.
    failed: BTreeMap<(&'a str, &'a str), Failure>,
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
    fn of(events: &'a [StoredEvent], questions: &Questions) -> Self {
        let stopped = Stopped::of(events, questions);
        let mut summary = Self { calls: call_numbers(events), stopped, ..Self::default() };
        for event in events {
            if is_failure(event) {
                summary.failure = Some(event);
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
                // What could not even be started did not run.
                if hook.ran && *fault != FaultKind::CannotStart.word() {
                    self.ran.count(hook);
                }
                let detail = fault_text(hook).unwrap_or_else(|| fault.clone());
                self.fail(hook, fault, format!("{} → {}", clean(&detail), hook.verdict.as_deref().unwrap_or("told")));
            }
            (None, false, verdict) => {
                let reason = hook.reason.as_deref().unwrap_or("unknown");
                if let Some(became) = verdict {
                    let value = hook.value.as_deref().map(|value| format!(" ({value})")).unwrap_or_default();
                    let reason_shown = clean(in_short(reason));
                    self.fail(hook, reason, format!("skipped: {reason_shown}{} → {became}", clean(&value)));
                } else {
                    *self.not_run.entry(reason).or_default() += 1;
                }
                self.look_near(event, hook);
            }
            (None, true, verdict) => {
                if let Some(verdict) = verdict {
                    self.ran.count(hook);
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
        let failure = || Failure { text, words: last_words(hook), times: 0 };
        self.failed.entry((&hook.hook, word)).or_insert_with(failure).times += 1;
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
        self.stopped.is_empty()
            && self.changed.is_empty()
            && self.answered.is_empty()
            && self.failed.is_empty()
            && self.failure.is_none()
            && self.host.is_empty()
    }

    fn shown(&self) -> String {
        let mut lines: Vec<String> = self.failure.into_iter().map(failure).chain([self.sentence()]).collect();
        let more = |lines: &mut Vec<String>, count: usize, max: usize| {
            if count > max {
                lines.push(format!("{DIM}… and {} more: -v{DIM:#}", count - max));
            }
        };
        for word in [LastWord::Blocked, LastWord::Waiting, LastWord::Lapsed, LastWord::Approved] {
            let found = self.stopped.with(word);
            // The newest are what somebody asks about.
            let earlier = found.len().saturating_sub(MAX_REFUSALS);
            if earlier > 0 {
                lines.push(format!("{DIM}… {earlier} earlier: -v{DIM:#}"));
            }
            for event in found.iter().skip(earlier) {
                let number = event.tool_call_id.as_deref().and_then(|call| self.calls.get(call)).copied();
                lines.push(stopped_call(event, (word, number), self.stopped.answer(event), false));
            }
        }
        for (hook, events) in self.answered.iter().take(MAX_LINES) {
            lines.push(format!("{CHANGE}={CHANGE:#} {} answered {}", clean(hook), self.about(events)));
        }
        more(&mut lines, self.answered.len(), MAX_LINES);
        for ((hook, place), events) in self.changed.iter().take(MAX_LINES) {
            lines.push(format!("{CHANGE}~{CHANGE:#} {} changed {} at {place}", clean(hook), self.about(events)));
        }
        more(&mut lines, self.changed.len(), MAX_LINES);
        for ((hook, _), Failure { text, words, times }) in self.failed.iter().take(MAX_LINES) {
            let times = if *times > 1 { format!(", {times} times") } else { String::new() };
            lines.push(format!("{BAD}!{BAD:#} {} {}{times}", clean(hook), whole(text)));
            lines.extend(words.iter().map(|line| format!("    {line}")));
        }
        more(&mut lines, self.failed.len(), MAX_LINES);
        for (event, texts) in self.host.iter().take(MAX_LINES) {
            let first = texts[0].text.as_deref().unwrap_or_default();
            let rest = if texts.len() > 1 { format!(" (and {} more)", texts.len() - 1) } else { String::new() };
            lines.push(format!("· {event}: {}{rest}", indented(first)));
        }
        for ((hook, what, words), _) in self.warnings.iter().take(MAX_LINES) {
            lines.push(format!("{BAD}!{BAD:#} {} {what}: {}", clean(hook), whole(words)));
        }
        more(&mut lines, self.warnings.len(), MAX_LINES);
        lines.extend(self.passed_over());
        for (hook, pattern, tool) in self.near.iter().take(MAX_LINES) {
            lines.push(format!(
                "{BAD}!{BAD:#} {}: /{}/ does not match `{}`; did you mean \"{}\"?",
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
        let what = events.first().map_or("it", |event| subject(&event.checkpoint));
        let number = |event: &&StoredEvent| event.tool_call_id.as_deref().and_then(|call| self.calls.get(call));
        let calls: BTreeSet<usize> = events.iter().filter_map(number).copied().collect();
        match (calls.first(), calls.len()) {
            (None, _) if events.len() == 1 => what.to_owned(),
            (None, _) => format!("{what} {} times", events.len()),
            (Some(only), 1) => {
                let tool = events[0].tool.as_deref().map(clean).unwrap_or_default();
                format!("call {only} ({tool})")
            }
            (Some(first), many) => format!("{many} calls, the first of them call {first}"),
        }
    }

    /// The whole turn in one sentence.
    fn sentence(&self) -> String {
        let stopped = |word| self.stopped.with(word).len();
        let changes = self.changed.values().map(Vec::len).sum();
        let failures = self.failed.values().map(|failure| failure.times).sum();
        let counts = [
            (stopped(LastWord::Blocked), "blocked"),
            (stopped(LastWord::Waiting), "waiting for a person"),
            (stopped(LastWord::Lapsed), "no longer waiting"),
            (stopped(LastWord::Approved), "approved by a person"),
            (self.answered.values().map(Vec::len).sum(), "answered by a hook"),
            (changes, if changes == 1 { "change by a hook" } else { "changes by hooks" }),
            (failures, if failures == 1 { "failure of a hook" } else { "failures of hooks" }),
        ];
        let counts: Vec<String> =
            counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
        let counts = if counts.is_empty() { "nothing blocked".to_owned() } else { counts.join(", ") };
        let texts = match self.texts {
            0 => String::new(),
            texts => format!("; {} of skills", counted(texts, "text")),
        };
        if self.ran.times == 0 && self.is_quiet() {
            return format!("{NOBODY_ASKED}{texts}");
        }
        format!("{}, {counts}{texts}; {}", counted(self.calls.len(), "call"), self.ran.said())
    }

    /// The hooks that did not run, on one line.
    fn passed_over(&self) -> Option<String> {
        let all: usize = self.not_run.values().sum();
        let reasons: Vec<String> =
            self.not_run.iter().map(|(reason, times)| format!("{times} {}", clean(in_short(reason)))).collect();
        (all > 0).then(|| format!("{DIM}skipped: {}{DIM:#}", reasons.join(", ")))
    }
}
