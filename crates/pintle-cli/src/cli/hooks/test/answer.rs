//! What came back, for people and for scripts.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use bytes::Bytes;
use pintle_agent::tools::{BUILTIN, nearest_builtin};
use pintle_dialects::process::wire;
use pintle_domain::checkpoint::{CheckpointKind, Snapshot};
use pintle_domain::execution::masked;
use pintle_domain::fault::Fault;
use pintle_domain::hook::Hook;
use pintle_domain::json::Value;
use pintle_domain::record::{HookOutcome, NotRun, Record};
use pintle_domain::verdict::VerdictKind;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::cli::session::BLOCKED;
use crate::error::{CliError, FAILED};
use crate::text::clip;
use pintle_host::mcp_names::{is_mcp, names_mcp};
use pintle_host::tool_names::{is_about, meant};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();
const CHANGE: Style = AnsiColor::Cyan.on_default();

/// What came of the question.
pub(super) struct TestOutcome {
    /// The event's name.
    pub(super) event: &'static str,
    /// How it went.
    pub(super) what: TestEnd,
    /// What the verdict carries, in words.
    pub(super) note: Option<String>,
    /// The params that were sent.
    pub(super) sent: Option<Bytes>,
    /// The line that came back.
    pub(super) came: Option<String>,
    /// The end of the child's standard error.
    pub(super) stderr: String,
    /// How many lines of its standard output answered nothing.
    pub(super) stray_lines: u64,
}

/// How it went.
pub(super) enum TestEnd {
    /// It was asked, or passed over.
    Recorded(Box<Record>),
    /// It could not even be asked.
    Fault(Fault),
    /// It was told.
    Told,
    /// It was to be told, and did not take it.
    Dropped,
}

impl TestOutcome {
    fn new(event: &'static str, what: TestEnd) -> Self {
        Self { event, what, note: None, sent: None, came: None, stderr: String::new(), stray_lines: 0 }
    }

    pub(super) fn recorded(event: &'static str, record: Record) -> Self {
        Self::new(event, TestEnd::Recorded(Box::new(record)))
    }

    pub(super) fn fault(event: &'static str, fault: Fault) -> Self {
        Self::new(event, TestEnd::Fault(fault))
    }

    pub(super) fn told(event: &'static str) -> Self {
        Self::new(event, TestEnd::Told)
    }

    pub(super) fn dropped(event: &'static str) -> Self {
        Self::new(event, TestEnd::Dropped)
    }
}

/// The answer, as it is printed with `--json`.
#[derive(Serialize)]
pub(super) struct Answer {
    hook: String,
    family: &'static str,
    event: &'static str,
    ran: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<Failed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_run: Option<NotRun>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<Value>,
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Payload>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    stderr: String,
    #[serde(skip)]
    shown: Shown,
}

/// Why there is no verdict, and what that becomes.
#[derive(Serialize)]
struct Failed {
    kind: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    became: Option<&'static str>,
}

/// What was sent.
#[derive(Serialize)]
struct Payload {
    method: &'static str,
    params: Box<RawValue>,
}

/// The line for people, in parts, and the exit code.
struct Shown {
    word: &'static str,
    style: Style,
    note: String,
    code: u8,
}

impl Answer {
    pub(super) fn new(hook: &Hook, came: TestOutcome) -> Self {
        let mut answer = Self {
            hook: hook.name.to_string(),
            family: hook.family.word(),
            event: came.event,
            ran: true,
            verdict: None,
            reason: None,
            fault: None,
            not_run: None,
            nearest: None,
            change: None,
            warnings: Vec::new(),
            duration_ms: None,
            payload: payload(came.event, came.sent.as_ref()),
            reply: came.came.as_deref().map(raw),
            stderr: masked(&came.stderr).into_owned(),
            shown: Shown { word: "told", style: GOOD, note: came.event.to_owned(), code: 0 },
        };
        let stray_lines = came.stray_lines;
        match came.what {
            TestEnd::Recorded(record) => answer.take(hook, *record, came.note),
            TestEnd::Fault(fault) => answer.take_fault(&fault, None),
            TestEnd::Told => {}
            TestEnd::Dropped => {
                answer.not_run = Some(NotRun::Dropped);
                answer.ran = false;
                let note = format!("{} was dropped: the hook does not read its input", came.event);
                answer.shown = Shown { word: "dropped", style: BAD, note, code: FAILED };
            }
        }
        answer.warnings.extend(strays(stray_lines));
        answer
    }

    fn take(&mut self, hook: &Hook, record: Record, note: Option<String>) {
        self.warnings = record.warnings;
        self.change = record.change.as_deref().map(pintle_domain::record::Change::patch);
        match record.outcome {
            HookOutcome::Said { word, reason, took } => {
                self.verdict = Some(word.as_str());
                self.duration_ms = Some(millis(took));
                let change = record.change.as_ref().map(|change| changed(&change.after));
                let quoted = |text: String| format!("\"{}\"", clip(&text));
                let note = reason.clone().or(note).map(quoted).or(change).unwrap_or_default();
                self.reason = reason;
                let (word, style, code) = said(record.checkpoint, word);
                self.shown = Shown { word, style, note, code };
            }
            HookOutcome::Failed { fault, became, took } => {
                self.duration_ms = Some(millis(took));
                self.take_fault(&fault, Some(became));
            }
            HookOutcome::Told => {}
            HookOutcome::NotRun(why) => self.take_not_run(hook, why),
        }
    }

    fn take_fault(&mut self, fault: &Fault, became: Option<VerdictKind>) {
        let (message, became) = (fault.explained().to_string(), became.map(VerdictKind::as_str));
        let effect = became.map(|became| format!(" → {became}")).unwrap_or_default();
        self.shown =
            Shown { word: "fault", style: BAD, note: format!("{}{effect}", clip_long(&message)), code: FAILED };
        self.fault = Some(Failed { kind: fault.kind().word(), message, became });
    }

    fn take_not_run(&mut self, hook: &Hook, why: NotRun) {
        self.ran = false;
        let note = match &why {
            NotRun::Matcher { pattern, value } => {
                let known: Vec<&str> = BUILTIN.into_iter().filter(|tool| is_about(hook, tool)).collect();
                self.nearest = meant(pattern).filter(|_| known.is_empty());
                let about = match self.nearest {
                    Some(near) => format!("; did you mean `{near}`?"),
                    None if names_mcp(pattern) => "; it is about tools of MCP servers".to_owned(),
                    None if known.is_empty() => "; it matches no tool that there is".to_owned(),
                    None => format!("; it matches {}", known.join(", ")),
                };
                // An alias stands there with the name that it means.
                let is_known = BUILTIN.into_iter().any(|tool| value.split(' ').next() == Some(tool));
                let slip = nearest_builtin(value).filter(|_| !is_known && !is_mcp(value));
                let mismatch = format!("/{pattern}/ does not match `{value}`{about}");
                match slip {
                    Some(tool) => format!("there is no tool `{value}`; did you mean `{tool}`? {mismatch}"),
                    None => mismatch,
                }
            }
            NotRun::Condition { text } => format!("its condition `{text}` does not hold"),
            NotRun::BreakerOpen { since } => format!("its circuit breaker tripped at {since}"),
            NotRun::Disabled => "it is disabled".to_owned(),
            NotRun::Untrusted => "it is untrusted".to_owned(),
            NotRun::ChainTimeSpent { .. } => "the time of its chain is spent".to_owned(),
            NotRun::BudgetSpent(need) => format!("the budget of judges is spent: {need}"),
            NotRun::CapReached { cap } => format!("it was asked {cap} times in this turn, as often as it may be"),
            NotRun::OutOfScope | NotRun::Decided { .. } | NotRun::Dropped => "it is not asked here".to_owned(),
        };
        self.not_run = Some(why);
        self.shown = Shown { word: "skipped", style: NOTE, note, code: 0 };
    }

    /// The exit code.
    pub(super) fn code(&self) -> u8 {
        self.shown.code
    }

    /// # Errors
    /// It cannot be written as JSON.
    pub(super) fn json(&self) -> Result<String, CliError> {
        let text = serde_json::to_string_pretty(self).map_err(|error| CliError::failed(error.to_string()))?;
        Ok(format!("{text}\n"))
    }

    /// One line, and one more for each warning; with `whole` also what crossed the wire.
    pub(super) fn plain(&self, whole: bool) -> String {
        let Shown { word, style, note, .. } = &self.shown;
        let time = self.duration_ms.map(|ms| format!("{DIM}{ms:.1} ms{DIM:#}"));
        let parts = [Some(format!("{style}{word}{style:#}")), Some(format!("{BOLD}{}{BOLD:#}", self.hook))];
        let rest = [Some(note.clone()).filter(|note| !note.is_empty()), time];
        let line: Vec<String> = parts.into_iter().chain(rest).flatten().collect();
        let mut text = line.join("  ") + "\n";
        for warning in &self.warnings {
            text.push_str(&format!("  {NOTE}warning:{NOTE:#} {}\n", clip_long(warning)));
        }
        let failed = self.fault.is_some() || self.not_run.as_ref().is_some_and(|why| *why == NotRun::Dropped);
        for line in self.stderr.lines().filter(|_| failed || whole) {
            text.push_str(&format!("  {DIM}stderr{DIM:#}  {}\n", clip_long(line)));
        }
        if whole {
            if let Some(Payload { method, params }) = &self.payload {
                text.push_str(&format!("  {DIM}sent{DIM:#}    {method} {params}\n"));
            }
            if let Some(reply) = &self.reply {
                text.push_str(&format!("  {DIM}came{DIM:#}    {reply}\n"));
            }
            if let Some(change) = &self.change {
                text.push_str(&format!("  {DIM}change{DIM:#}  {change}\n"));
            }
        }
        text
    }
}

/// What is said of lines on standard output that answer nothing: whoever prints them there may break an answer in two.
fn strays(lines: u64) -> Option<String> {
    let what = match lines {
        0 => return None,
        1 => "1 line on standard output answers nothing".to_owned(),
        lines => format!("{lines} lines on standard output answer nothing"),
    };
    Some(format!("{what}; print for people on standard error"))
}

/// A text of the hook's own, without anything that moves a terminal.
fn clip_long(text: &str) -> String {
    crate::clean::line(text)
}

fn payload(event: &str, sent: Option<&Bytes>) -> Option<Payload> {
    let method = wire::method(CheckpointKind::named(event)?)?;
    let params = String::from_utf8_lossy(sent?).into_owned();
    Some(Payload { method, params: RawValue::from_string(params).ok()? })
}

/// The reply as it is if that is JSON, else as a text.
fn raw(line: &str) -> Box<RawValue> {
    RawValue::from_string(line.to_owned())
        .or_else(|_| serde_json::value::to_raw_value(line))
        .unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn millis(took: Duration) -> f64 {
    (took.as_secs_f64() * 1e6).round() / 1e3
}

/// The word for people, its colour, and the exit code.
fn said(at: CheckpointKind, word: VerdictKind) -> (&'static str, Style, u8) {
    match (word, at) {
        (VerdictKind::Continue, CheckpointKind::ApproveTool) => ("approved", GOOD, 0),
        (VerdictKind::Deny, CheckpointKind::ApproveTool) => ("refused", BAD, BLOCKED),
        (VerdictKind::Continue | VerdictKind::Inject, _) => (word.as_str(), GOOD, 0),
        (VerdictKind::Modify | VerdictKind::Respond, _) => (word.as_str(), CHANGE, 0),
        (VerdictKind::Ask, _) => (word.as_str(), NOTE, BLOCKED),
        (VerdictKind::Deny | VerdictKind::AbortTurn | VerdictKind::HardAbort, _) => (word.as_str(), BAD, BLOCKED),
    }
}

/// What a rewrite left, in a few words.
fn changed(after: &Snapshot) -> String {
    match after {
        Snapshot::Prompt(text) => format!("\"{}\"", clip(text)),
        Snapshot::Request(request) => {
            format!("{} messages, {} tools for {}", request.messages.len(), request.tools.len(), request.model)
        }
        Snapshot::Reply(reply) => format!("\"{}\"", clip(&reply.content)),
        Snapshot::Call { tool, arguments } => {
            clip(&format!("{tool} {}", serde_json::to_string(arguments).unwrap_or_default()))
        }
        Snapshot::Task { agent, task } => format!("{agent}: \"{}\"", clip(task)),
        Snapshot::Output(output) => format!("\"{}\"", clip(&output.for_llm)),
    }
}
