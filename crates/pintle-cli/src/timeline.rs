//! What happens in a turn, line by line, while it happens.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use pintle_domain::checkpoint::runtime::{InterruptKind, TurnStatus};
use pintle_domain::checkpoint::{CheckpointKind, Notice, ObservedEvent, RuntimeEvent};
use pintle_domain::fault::{Cause, THREW};
use pintle_domain::hook::Family;
use pintle_domain::id::TurnId;
use pintle_domain::identity::Identity;
use pintle_domain::llm::Usage;
use pintle_domain::record::{EventRecord, HookOutcome, NotRun, Record};
use pintle_domain::store::StoredCall;
use pintle_domain::turn::SkipReason;
use pintle_domain::verdict::VerdictKind;
use pintle_engine::{ModelSwitch, Watcher};
use unicode_width::UnicodeWidthStr as _;

use crate::clean::{clean, styled};
use crate::table::{UNBOUNDED, fold};
use crate::text::{TIME_COLUMNS, clip, counted, time, time_column, time_column_of, time_said, whole};
use crate::turn_counts::TurnCounts;

/// How far in a sub-agent's lines stand: enough to see, and little of the line.
const INDENT: usize = 4;

/// From which depth on lines stand no further in: sub-agents go no deeper by themselves.
const MAX_INDENTED: u8 = 3;

/// Where in a line begins what there is to say, if the name in front of it is a short one.
const SAID_COLUMN: usize = 32;

/// The columns of a name, most of which are no longer, and of a verdict.
const NAME_COLUMNS: usize = 14;
const WORD_COLUMNS: usize = 10;

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();
const CHANGE: Style = AnsiColor::Cyan.on_default();

/// Writes a turn's checkpoints, hooks and events to a stream.
pub struct Timeline<W: std::io::Write + Send> {
    out: Mutex<W>,
    /// Whether hooks that did not run are shown too.
    everything: bool,
    /// The flags with which `pintle why` finds the turns; nothing where it cannot.
    why: Option<String>,
    /// How wide a line may be.
    columns: usize,
    /// Of the turns that are worked.
    counts: Mutex<BTreeMap<TurnId, TurnCounts>>,
}

impl<W: std::io::Write + Send> Timeline<W> {
    /// A timeline that writes to `out`.
    pub fn new(out: W, everything: bool) -> Self {
        Self { out: Mutex::new(out), everything, why: None, columns: UNBOUNDED, counts: Mutex::default() }
    }

    /// The same, whose lines fit so many columns.
    #[must_use]
    pub fn fitting(self, columns: usize) -> Self {
        Self { columns, ..self }
    }

    /// The same, whose turns `pintle why` finds with the flags `why`; without any, nothing leads there.
    #[must_use]
    pub fn explained_by(self, why: Option<String>) -> Self {
        Self { why, ..self }
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<TurnId, TurnCounts>> {
        // A panic elsewhere leaves counts that are low by one.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints the lines of an agent that works `depth` levels down.
    fn print(&self, depth: u8, text: &str) {
        let text = indented(depth, text, self.columns);
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // A closed terminal must not end the turn.
        if out.write_all(styled(&text).as_bytes()).and_then(|()| out.flush()).is_err() {
            tracing::debug!("the timeline's stream is closed");
        }
    }
}

impl<W: std::io::Write + Send> Watcher for Timeline<W> {
    fn noticed(&self, notice: &Notice) {
        let turn = &notice.who.turn_id;
        let mut repeated = false;
        if let ObservedEvent::Runtime(RuntimeEvent::LlmRetry { error, .. }) = &notice.what {
            repeated = self.counts().entry(turn.clone()).or_default().failed_alike(error);
        }
        let mut lines: Vec<String> = line_of(notice, repeated).into_iter().collect();
        if let ObservedEvent::Runtime(RuntimeEvent::ToolExecSkipped { reason, .. }) = &notice.what
            && reason == SkipReason::Limit.reason()
        {
            self.counts().entry(turn.clone()).or_default().came_late();
        }
        if let ObservedEvent::Runtime(RuntimeEvent::TurnEnd { .. }) = &notice.what {
            let counts = self.counts().remove(turn);
            lines.extend(
                counts.and_then(|counts| counts.line(turn, self.why.as_deref())).map(|line| format!("  {line}")),
            );
        }
        if !lines.is_empty() {
            self.print(notice.who.depth, &lines.join("\n"));
        }
    }

    fn recorded(&self, event: &EventRecord) {
        if event.checkpoint.duty() == pintle_domain::checkpoint::Duty::Observer {
            return;
        }
        let mut text = String::new();
        let refuses = self.counts().entry(event.who.turn_id.clone()).or_default().add(event);
        if let (true, Some(tool), Some(arguments)) = (refuses, &event.tool, &event.input) {
            // Nothing is decided yet of a call that a person is asked about.
            let (mark, style, word) =
                if event.ruling.word == VerdictKind::Ask { ("?", NOTE, "asks") } else { ("✗", BAD, "blocked") };
            let call = clip(&StoredCall::of(arguments).shown());
            let _infallible = writeln!(text, "{}", columns(mark, style, word, tool, &call));
        }
        if let (None, VerdictKind::Continue, Some(note)) = (event.kind, event.ruling.word, &event.ruling.text)
            && event.hooks.is_empty()
        {
            let _infallible = writeln!(text, "{}", columns("·", NOTE, event.checkpoint.name(), "", &whole(note)));
        }
        for record in &event.hooks {
            // That a text was told to nobody is news only to whoever looks for it.
            let ran = !matches!(record.outcome, HookOutcome::NotRun(_)) && event.kind != Some("hook_persisted");
            if ran || self.everything {
                let is_text = record.family == Family::Skill;
                text.push_str(&if is_text { text_line(event.kind, &record) } else { hook_line(&record) });
                text.push('\n');
            }
        }
        if event.checkpoint == CheckpointKind::ApproveTool
            && let Some(digest) = event.ruling.permit
        {
            let short: String = digest.to_string().chars().take(12).collect();
            let tool = event.tool.as_deref().unwrap_or_default();
            let line = columns("◇", DIM, "permit", tool, &format!("{DIM}sha256 {short}…{DIM:#}"));
            let _infallible = writeln!(text, "{line}");
        }
        if let Some(place) = event.kind.and_then(told) {
            let said = event.ruling.text.as_deref().unwrap_or_default();
            let name = event.tool.as_deref().unwrap_or_default();
            let line = columns("·", NOTE, place, name, &format!("{NOTE}{}{NOTE:#}", whole(said)));
            let _infallible = writeln!(text, "{line}");
        }
        if !text.is_empty() {
            self.print(event.who.depth, &text);
        }
    }

    fn used(&self, who: &Identity, usage: Usage) {
        self.counts().entry(who.turn_id.clone()).or_default().used(usage);
    }

    fn switched(&self, who: &Identity, switch: &ModelSwitch<'_>) {
        let said = format!("{NOTE}instead of {}{NOTE:#}: {}", clean(switch.from), whole(switch.why));
        self.print(who.depth, &columns("↻", NOTE, "model", switch.to, &said));
    }
}

/// Lines of a sub-agent stand further in: it may work beside the turn that it works for.
fn indented(depth: u8, lines: &str, columns: usize) -> String {
    let margin = " ".repeat(INDENT * usize::from(depth.min(MAX_INDENTED)));
    lines.lines().map(|line| fold(&format!("{margin}{line}"), columns, margin.len() + SAID_COLUMN) + "\n").collect()
}

/// What a text of the host's own is about, of those kinds of events that have one and are shown.
fn told(kind: &str) -> Option<&'static str> {
    match kind {
        "plan_tag_missing" => Some("planning"),
        "history_withheld" => Some("history"),
        "tool_missing" => Some("no such tool"),
        "arguments_unreadable" => Some("unreadable arguments"),
        _ => None,
    }
}

/// What became of a text of a skill at its point: a plus as it goes in, a minus as it leaves.
fn text_line(kind: Option<&str>, record: &Record) -> String {
    let said = match &record.outcome {
        HookOutcome::Said { reason, .. } => whole(reason.as_deref().unwrap_or_default()),
        HookOutcome::NotRun(why) => format!("{DIM}skipped: {}{DIM:#}", clean(&not_run(why, true))),
        // Nothing of a text runs, so nothing of it fails or is told.
        HookOutcome::Failed { .. } | HookOutcome::Told => return hook_line(record),
    };
    let (mark, style) = match (kind, &record.outcome) {
        (_, HookOutcome::NotRun(_)) => ("·", DIM),
        (None, _) => ("+", CHANGE),
        (Some("hook_removed"), _) => ("-", DIM),
        (Some(_), _) => ("·", DIM),
    };
    let name = record.hook.as_str();
    let name = filled(&clean(name.strip_prefix("skill:").unwrap_or(name)), 24);
    let point = record.checkpoint.name();
    format!("  {style}{mark}{style:#} {point:<18} {BOLD}{name}{BOLD:#} {said}").trim_end().to_owned()
}

/// One hook at one checkpoint.
fn hook_line(record: &Record) -> String {
    let line = |said: &str| columns("│", DIM, record.checkpoint.name(), record.hook.as_str(), said);
    let again = if record.again { " (asked again)" } else { "" };
    let instead = record.account.as_ref().and_then(|account| account.instead.as_ref());
    match &record.outcome {
        HookOutcome::Said { word, reason, .. } if let Some(why) = instead => {
            let reason = reason.as_deref().map(|reason| format!("  {}", whole(reason))).unwrap_or_default();
            line(&format!("{BAD}skipped: {} → {}{BAD:#}{reason}{again}", clean(&not_run(why, false)), word.as_str()))
        }
        HookOutcome::Said { word, reason, took } => {
            let mut text = word_and_time(record, style_of(*word), said(record, *word), *took);
            let change = || record.change.as_deref().and_then(change_note).map(|note| clip(&note));
            if let Some(note) = reason.as_deref().map(whole).or_else(change) {
                let _infallible = write!(text, "  {note}");
            }
            text.push_str(again);
            for warning in &record.warnings {
                let warning = format!("{NOTE}{}{NOTE:#}", whole(warning));
                let _infallible = write!(text, "\n{}", columns("│", DIM, "", "", &warning));
            }
            line(&text)
        }
        HookOutcome::Failed { fault, became, took } => {
            let phrase = fault.phrase().to_string();
            let said =
                fault_said(&phrase, fault.cause().map(Cause::shown).as_deref().map(|cause| fault.kind().brief(cause)));
            let text = word_and_time(record, BAD, fault_word(fault.kind().word(), &phrase), *took);
            line(&format!("{text}  {} → {}{again}", clean(&said), became.as_str()))
        }
        HookOutcome::Told => line(&format!("{DIM}told{DIM:#}")),
        HookOutcome::NotRun(why) => line(&format!("{DIM}skipped: {}{DIM:#}", clean(&not_run(why, false)))),
    }
}

/// One line of the timeline: a mark, a place, a name, and what there is to say.
fn columns(mark: &str, style: Style, place: &str, name: &str, said: &str) -> String {
    let (place, name) = (filled(&clean(place), 12), filled(&clean(name), NAME_COLUMNS));
    format!("  {style}{mark}{style:#} {place} {BOLD}{name}{BOLD:#} {said}").trim_end().to_owned()
}

/// What a hook said and how long it took, which ends at one place also behind a name that is somewhat too long: the room
/// that its word and its time leave is given up first.
fn word_and_time(record: &Record, style: Style, word: &str, took: Duration) -> String {
    let over = clean(record.hook.as_str()).width().saturating_sub(NAME_COLUMNS);
    let room = WORD_COLUMNS.saturating_sub(over);
    let left = TIME_COLUMNS.saturating_sub((over + word.len()).saturating_sub(WORD_COLUMNS));
    format!("{style}{word:<room$}{style:#} {}", time_column_of(took, left))
}

/// The word for a fault, as people read it: a script that threw broke no protocol.
pub(crate) fn fault_word<'a>(word: &'a str, phrase: &str) -> &'a str {
    if phrase == THREW { "threw" } else { word }
}

/// A fault in all the words that are kept of it, for a person.
pub(crate) fn fault_said(phrase: &str, cause: Option<&str>) -> String {
    match cause {
        Some(cause) if phrase == THREW => {
            format!("the script threw: {}", cause.strip_prefix("script threw: ").unwrap_or(cause))
        }
        Some(cause) => format!("{phrase}: {cause}"),
        None => phrase.to_owned(),
    }
}

/// `text`, filled up to so many columns of a terminal: a letter may take two.
fn filled(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

/// An approver's `continue` is its approval.
fn said(record: &Record, word: VerdictKind) -> &'static str {
    match (record.checkpoint, word) {
        (CheckpointKind::ApproveTool, VerdictKind::Continue) => "approved",
        (CheckpointKind::ApproveTool, VerdictKind::Deny) => "refused",
        (_, word) => word.as_str(),
    }
}

fn style_of(word: VerdictKind) -> Style {
    match word {
        VerdictKind::Continue => GOOD,
        VerdictKind::Inject => DIM,
        VerdictKind::Modify | VerdictKind::Respond => CHANGE,
        VerdictKind::Ask => NOTE,
        VerdictKind::Deny | VerdictKind::AbortTurn | VerdictKind::HardAbort => BAD,
    }
}

/// Why a hook was skipped, in words. A text of a skill has names of tools where a hook has a pattern.
pub(crate) fn not_run(why: &NotRun, is_text: bool) -> String {
    match why {
        NotRun::Disabled => "disabled".into(),
        NotRun::OutOfScope => "out of scope".into(),
        NotRun::Matcher { pattern, value } => mismatch(is_text, pattern, value),
        NotRun::Condition { text } => format!("its condition `{text}` does not hold"),
        NotRun::BreakerOpen { since } => format!("its circuit breaker tripped at {since}"),
        NotRun::Decided { by } => format!("`{by}` stopped the chain"),
        NotRun::Untrusted => "untrusted".into(),
        NotRun::ChainTimeSpent { ms } => format!("the hooks before it took all of the {ms} ms of the chain"),
        NotRun::BudgetSpent(need) => format!("budget spent: {need}"),
        NotRun::CapReached { cap } => format!("cap reached: {cap} times in this turn"),
        NotRun::Dropped => "its queue was full, so the event was dropped".into(),
    }
}

/// What a matcher was compared with, where it does not match.
pub(crate) fn mismatch(is_text: bool, pattern: &str, value: &str) -> String {
    let value = if value.is_empty() { "a call without a tool".to_owned() } else { format!("`{value}`") };
    if is_text { format!("`{pattern}` does not match {value}") } else { format!("/{pattern}/ does not match {value}") }
}

/// What a hook changed, in a few words.
fn change_note(change: &pintle_domain::record::Change) -> Option<String> {
    use pintle_domain::checkpoint::Snapshot;
    match (&change.before, &change.after) {
        (Snapshot::Request(before), Snapshot::Request(after)) => {
            let names = |request: &pintle_domain::llm::LlmRequest| -> Vec<String> {
                request.tools.iter().map(|tool| tool.get().function.name.clone()).collect()
            };
            let (was, is) = (names(before), names(after));
            let mut notes = Vec::new();
            notes.extend(is.iter().filter(|name| !was.contains(name)).map(|name| format!("+ tool {name}")));
            notes.extend(was.iter().filter(|name| !is.contains(name)).map(|name| format!("- tool {name}")));
            if before.messages != after.messages {
                notes.push(format!("messages {} → {}", before.messages.len(), after.messages.len()));
            }
            if before.model != after.model {
                notes.push(format!("model {} → {}", before.model, after.model));
            }
            if before.options != after.options {
                notes.push("options".into());
            }
            Some(notes.join(", "))
        }
        (Snapshot::Call { tool: was, .. }, Snapshot::Call { tool: is, arguments }) => {
            let arguments = serde_json::to_string(arguments).unwrap_or_default();
            Some(if was == is { arguments } else { format!("{was} → {is} {arguments}") })
        }
        (Snapshot::Prompt(_), Snapshot::Prompt(_)) => Some("the prompt".into()),
        (Snapshot::Output(_), Snapshot::Output(_)) => Some("the result".into()),
        (Snapshot::Reply(_), Snapshot::Reply(_)) => Some("the answer".into()),
        _ => None,
    }
}

/// The line of an event, for those that have one; `repeated` says that a request failed as the one before it did.
fn line_of(notice: &Notice, repeated: bool) -> Option<String> {
    let ObservedEvent::Runtime(event) = &notice.what else { return None };
    match event {
        RuntimeEvent::TurnStart { user_message, .. } => {
            Some(format!("{BOLD}turn{BOLD:#} {}  {}", clean(&notice.who.agent_id.to_string()), clip(user_message)))
        }
        RuntimeEvent::TurnEnd { status, iterations, duration, .. } => {
            let (style, word) = ended(*status);
            let rounds = counted(usize::try_from(*iterations).unwrap_or(usize::MAX), "round");
            // Where several are at work, it has to be said whose turn is over.
            let whose = match notice.who.depth {
                0 => String::new(),
                _ => format!("{} ", clean(&notice.who.agent_id.to_string())),
            };
            Some(format!("{BOLD}turn{BOLD:#} {whose}{style}{word}{style:#} after {rounds}, {}", time(*duration)))
        }
        RuntimeEvent::LlmRequest { model, messages_count, tools_count, .. } => Some(columns(
            "→",
            DIM,
            "model",
            model,
            &format!("{}, {}", counted(*messages_count, "message"), counted(*tools_count, "tool")),
        )),
        RuntimeEvent::LlmResponse { content_len, tool_calls, odd_end, .. } => {
            let odd = odd_end.map(|odd| format!("  {BAD}{}{BAD:#}: {}", odd.word(), odd.explained()));
            let calls = counted(*tool_calls, "tool call");
            let said = format!("{content_len} bytes of text, {calls}{}", odd.unwrap_or_default());
            Some(columns("←", DIM, "model", "", &said))
        }
        RuntimeEvent::LlmRetry { attempt, max_retries, error, backoff, .. } => {
            // What went wrong is read once; only another reason is worth a second look.
            let why = if repeated { "the same".to_owned() } else { whole(error) };
            let what = format!("{NOTE}retry {attempt} of {max_retries}{NOTE:#} in {}: {why}", time_said(*backoff));
            Some(columns("↻", NOTE, "model", "", &what))
        }
        RuntimeEvent::ToolExecStart { tool, arguments, hook, .. } => {
            let arguments = clip(&serde_json::to_string(arguments).unwrap_or_default());
            let by = hook
                .as_ref()
                .map(|hook| format!("  {CHANGE}answered by {}{CHANGE:#}", clean(&hook.to_string())))
                .unwrap_or_default();
            Some(columns("▸", DIM, "tool", tool, &format!("{arguments}{by}")))
        }
        RuntimeEvent::ToolExecEnd { tool, duration, is_error, for_llm_len, error, .. } => {
            let (style, word) = if *is_error { (BAD, "failed") } else { (GOOD, "ok") };
            let took = format!("{style}{word:<10}{style:#} {}  {for_llm_len} bytes", time_column(*duration));
            Some(columns("◂", DIM, "tool", tool, &with_error(took, error.as_deref())))
        }
        RuntimeEvent::ToolExecSkipped { tool, reason, .. } => {
            let is_late = reason == SkipReason::Limit.reason();
            let (mark, style, word) = if is_late { ("·", NOTE, "not run: ") } else { ("✗", BAD, "") };
            Some(columns(mark, style, "tool", tool, &format!("{style}{word}{}{style:#}", whole(reason))))
        }
        RuntimeEvent::InterruptReceived { kind, hook, .. } => {
            let what = match kind {
                // It is told of once it stands in the conversation.
                InterruptKind::Steering => return None,
                InterruptKind::Graceful => "finishes",
                InterruptKind::HardAbort => "stopped",
            };
            let by = hook.as_deref().unwrap_or("the user");
            Some(columns("■", BAD, what, "", &format!("by {}", clean(by))))
        }
        RuntimeEvent::Error { stage, message, .. } => Some(columns("✗", BAD, "error", stage, &whole(message))),
        RuntimeEvent::ContextCompress { .. }
        | RuntimeEvent::SessionSummarize { .. }
        | RuntimeEvent::SteeringInjected { .. }
        | RuntimeEvent::FollowUpQueued { .. } => line_of_conversation(event),
        RuntimeEvent::SubturnSpawn { .. }
        | RuntimeEvent::SubturnEnd { .. }
        | RuntimeEvent::SubturnOrphan { .. }
        | RuntimeEvent::SubturnResultDelivered { .. } => line_of_subturn(event),
        RuntimeEvent::LlmDelta { .. } => None,
    }
}

/// What is said of a result, and behind it the error that it is.
fn with_error(said: String, error: Option<&str>) -> String {
    match error {
        Some(error) => format!("{said}  {}", clip(error)),
        None => said,
    }
}

fn ended(status: TurnStatus) -> (Style, &'static str) {
    match status {
        TurnStatus::Completed => (GOOD, "completed"),
        TurnStatus::Error => (BAD, "ended with an error"),
        TurnStatus::Aborted => (BAD, "aborted"),
    }
}

/// The line of an event about what stands in the conversation.
fn line_of_conversation(event: &RuntimeEvent) -> Option<String> {
    let said = if let RuntimeEvent::ContextCompress { dropped_messages, remaining_messages, .. } = event {
        format!("the oldest {} gave way, {remaining_messages} stay", counted(*dropped_messages, "message"))
    } else if let RuntimeEvent::SessionSummarize { summarized_messages, summary_len, .. } = event {
        format!("{} summarised in {summary_len} bytes", counted(*summarized_messages, "message"))
    } else if let RuntimeEvent::SteeringInjected { count, .. } = event {
        format!("{} came in", counted(*count, "message"))
    } else if let RuntimeEvent::FollowUpQueued { content_len, .. } = event {
        format!("a result of {content_len} bytes waits for the next turn")
    } else {
        return None;
    };
    Some(columns("≡", DIM, "conversation", "", &said))
}

/// The line of an event about a sub-agent.
fn line_of_subturn(event: &RuntimeEvent) -> Option<String> {
    if let RuntimeEvent::SubturnSpawn { agent_id, .. } = event {
        return Some(columns("▹", DIM, "sub-agent", agent_id, "begins"));
    }
    let RuntimeEvent::SubturnEnd { agent_id, status } = event else { return None };
    let (style, word) = ended(*status);
    Some(columns("◃", DIM, "sub-agent", agent_id, &format!("{style}{word}{style:#}")))
}

#[cfg(test)]
mod tests;
