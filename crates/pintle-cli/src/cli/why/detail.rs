//! Every hook at every event, with all that is kept of each.

use anstyle::{AnsiColor, Style};
use pintle_domain::checkpoint::{CheckpointKind, Duty};
use pintle_domain::fault::FaultKind;
use pintle_domain::hook::Family;
use pintle_domain::store::{StoredEvent, StoredRecord};
use pintle_domain::verdict::VerdictKind;
use unicode_width::UnicodeWidthStr as _;

use super::cut::CutOff;
use super::words::{is_text, skipped};
use crate::clean::{clean, prose};
use crate::moment::moment_of;
use crate::text::{TIME_COLUMNS, family_said, millis_column, short_id, waited};
use crate::timeline::{fault_said, fault_word};

/// The width of the column of names, in columns: most names fit, and what stands behind them begins at one place.
const NAME_COLUMNS: usize = 18;

/// Most columns of that: beyond it nothing of what stands behind a name would be left of a line.
const MAX_NAME_COLUMNS: usize = 60;

/// What there is to say of a turn in which nothing was decided.
pub(super) const NOBODY_ASKED: &str = "no hook ran in this turn";

pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const BOLD: Style = Style::new().bold();
pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default();
pub(super) const CHANGE: Style = AnsiColor::Cyan.on_default();
pub(super) const NOTE: Style = AnsiColor::Yellow.on_default();

/// The turns that `events` belong to, one after another. Of those after the first only what there is to explain.
pub(super) fn turns(
    events: &[StoredEvent],
    shown: impl Fn(&&StoredEvent) -> bool,
    (cut, everything): (&CutOff, bool),
) -> String {
    let mut text = String::new();
    for (number, turn) in events.chunk_by(|one, next| one.turn_id == next.turn_id).enumerate() {
        let explained: String = turn.iter().filter(&shown).map(|event| plain(event, (cut, everything))).collect();
        let told = turn.iter().any(|event| !event.hooks.is_empty());
        let said = match (explained.is_empty(), told) {
            (false, _) => explained,
            (true, _) if number > 0 => continue,
            (true, false) => format!("{NOBODY_ASKED}\n"),
            (true, true) => format!("{NOBODY_ASKED}; -v shows what hooks were told\n"),
        };
        let gap = if text.is_empty() || text.ends_with("\n\n") { "" } else { "\n" };
        text += gap;
        text += &turn.last().map(|event| head(event, true)).unwrap_or_default();
        text += &said;
    }
    text
}

/// Which turn it is: when, whose, and, if they are wanted, its ids; without them a session is named that a person named.
pub(super) fn head(event: &StoredEvent, ids: bool) -> String {
    let (session, turn) = (clean(&event.session_id), clean(&event.turn_id));
    let which = match (ids, is_made_up(&event.session_id)) {
        (true, _) => format!("session {session}, turn {turn}"),
        (false, false) => format!("session {session}, turn {}", short_id(&turn)),
        (false, true) => format!("turn {}", short_id(&turn)),
    };
    let (agent, at) = (clean(&event.agent_id), moment_of(&event.at));
    format!("{BOLD}turn of {agent}{BOLD:#}  {at}  {DIM}{which}{DIM:#}\n\n")
}

/// Whether the key of a session is one that nobody typed.
fn is_made_up(key: &str) -> bool {
    key.rsplit(':').next().is_some_and(|end| uuid::Uuid::try_parse(end).is_ok())
}

/// Whether it says why its turn failed.
pub(super) fn is_failure(event: &StoredEvent) -> bool {
    event.event == "error" && event.text.is_some()
}

/// Whether a told event has anything to explain: a drop, or a hook that it was kept from for more than its filter.
pub(super) fn says_something(event: &StoredEvent) -> bool {
    is_failure(event)
        || event.hooks.iter().any(|hook| !hook.ran && hook.reason.as_deref().is_some_and(|why| why != "out of scope"))
}

/// The published form: `{event, hooks:[{hook, family, ran, reason?, compared?, verdict?, …}], cut?}`.
pub(super) fn json(event: &StoredEvent, cut: &CutOff) -> pintle_domain::json::Value {
    let mut head = pintle_domain::json::json!(event);
    let hooks = head.as_object_mut().and_then(|members| members.shift_remove("hooks"));
    match cut.line_of(event) {
        Some(cut) => pintle_domain::json::json!({ "event": head, "hooks": hooks, "cut": cut }),
        None => pintle_domain::json::json!({ "event": head, "hooks": hooks }),
    }
}

fn plain(event: &StoredEvent, (cut, everything): (&CutOff, bool)) -> String {
    let tool = event.tool.as_ref().map(|tool| format!(" {}", clean(tool))).unwrap_or_default();
    let ruling = ruling(event).map(|ruling| format!("  {ruling}")).unwrap_or_default();
    let mut lines = vec![format!(
        "{BOLD}{}{tool}{BOLD:#}{ruling}  {DIM}round {}, event {}{DIM:#}",
        event.event, event.iteration, event.event_id,
    )];
    // Never cut: this is where somebody reads what was said, word for word.
    lines.extend(event.text.as_deref().map(|text| format!("  {}", indented(text))));
    if let Some(call) = &event.call {
        lines.push(format!("  {DIM}arguments{DIM:#} {}", clean(&call.line())));
    }
    if let Some(permit) = &event.permit {
        lines.push(format!("  {DIM}permit sha256 {permit}{DIM:#}"));
    }
    lines.extend(cut.line_of(event).map(|cut| format!("  {BAD}{cut}{BAD:#}")));
    if event.hooks.is_empty() && !is_of_the_host(event) {
        let approves = event.checkpoint == CheckpointKind::ApproveTool.name();
        let nobody = match approves {
            // It runs: no hook approves calls here, and none has to.
            true if event.permit.is_some() => None,
            true => Some("no hook approves calls here"),
            false => Some("no hook is told of it"),
        };
        lines.extend(nobody.map(|nobody| format!("  {DIM}{nobody}{DIM:#}")));
    }
    let width = event.hooks.iter().map(|hook| clean(&hook.hook).width()).max().unwrap_or_default();
    for hook in &event.hooks {
        lines.extend(hook_lines(event, hook, everything, width.clamp(NAME_COLUMNS, MAX_NAME_COLUMNS)));
    }
    lines.push(String::new());
    lines.join("\n") + "\n"
}

/// A text that somebody wrote, whole; what follows its first line stands further in.
pub(super) fn indented(text: &str) -> String {
    prose(text).trim_end().replace('\n', "\n    ")
}

/// Whether it is something that the host did with a text of its own or of a front end: no hook is ever asked there.
pub(super) fn is_of_the_host(event: &StoredEvent) -> bool {
    let texts = CheckpointKind::named(&event.checkpoint).is_some_and(|at| at.duty() == Duty::Injector);
    let told =
        [super::HISTORY_WITHHELD, super::TOOL_MISSING, super::ARGUMENTS_UNREADABLE].contains(&event.event.as_str());
    event.event != event.checkpoint && (texts || told)
}

/// What was ruled. Texts that go in or leave rule nothing, nor does what is only told: their lines say it all.
fn ruling(event: &StoredEvent) -> Option<String> {
    let only_told = CheckpointKind::named(&event.checkpoint).is_some_and(|at| at.duty() == Duty::Observer);
    if only_told || event.ruling == VerdictKind::Inject.as_str() {
        return None;
    }
    let style = match event.ruling.as_str() {
        "continue" => GOOD,
        "modify" | "respond" => CHANGE,
        _ => BAD,
    };
    let word = match (event.ruling.as_str(), event.substituted) {
        ("continue", _) if event.permit.is_some() => "cleared",
        ("respond", true) => "answered by a hook",
        (word, _) => word,
    };
    Some(format!("{style}{word}{style:#}"))
}

fn hook_lines(event: &StoredEvent, hook: &StoredRecord, everything: bool, width: usize) -> Vec<String> {
    let took = hook.duration_ms.map(millis_column).unwrap_or_default();
    let name = clean(&hook.hook);
    let gap = " ".repeat(width.saturating_sub(name.width()));
    let place = if is_text(hook) {
        format!("  {name}{gap} ")
    } else {
        format!("  {name}{gap} {:<8}", family_said(&hook.family))
    };
    let below = " ".repeat(2 + width + 10);
    let mut lines = Vec::new();
    match (&hook.fault, hook.ran) {
        (Some(fault), _) => {
            let became = hook.verdict.as_deref().unwrap_or_default();
            let detail = indented(&fault_text(hook).unwrap_or_default());
            let fault = fault_word(fault, hook.fault_detail.as_deref().unwrap_or_default());
            lines.push(format!("{place} {BAD}{fault}{BAD:#} {took}  {detail} → {became}"));
        }
        (None, true) if is_text(hook) => {
            lines.push(format!("{place} {}", indented(hook.reason.as_deref().unwrap_or_default())));
        }
        (None, true) => {
            let again = if hook.again { " (asked again)" } else { "" };
            let word = hook.verdict.as_deref().unwrap_or("told");
            let reason = hook.reason.as_deref().map(|why| format!("  {}", indented(why))).unwrap_or_default();
            lines.push(format!("{place} {word:<10} {took:>TIME_COLUMNS$}{reason}{again}"));
        }
        (None, false) => {
            let why = clean(&skipped(event, hook));
            lines.push(match &hook.verdict {
                // Something else spoke in its place.
                Some(became) => format!("{place} {BAD}skipped: {why}{BAD:#} → {became}"),
                None => format!("{place} {DIM}skipped: {why}{DIM:#}"),
            });
        }
    }
    lines.extend(last_words(hook).into_iter().map(|line| format!("{below}{line}")));
    lines.extend(hook.slot_wait_ms.map(|ms| format!("{below}{DIM}{}{DIM:#}", waited(ms))));
    lines.extend(hook.warnings.iter().map(|warning| format!("{below}warning: {}", indented(warning))));
    lines.extend(hook.dropped.iter().map(|what| format!("{below}dropped: {}", indented(what))));
    if let Some(change) = hook.change.as_ref().filter(|_| everything || hook.fault.is_none()) {
        let patch = change.to_string();
        let patch = if everything { clean(&patch) } else { crate::text::clip(&patch) };
        lines.push(format!("{below}{CHANGE}changed{CHANGE:#} {patch}"));
    }
    lines
}

/// Whether the program of a hook ended, by itself or not: its cause is what it wrote last.
fn is_end(hook: &StoredRecord) -> bool {
    [Family::Process, Family::Command].iter().any(|family| hook.family == family.word())
        && hook.fault.as_deref().is_some_and(FaultKind::is_of_an_end)
}

/// The last lines that the program of a hook wrote before its end, where [`fault_text`] has only the last of them.
pub(super) fn last_words(hook: &StoredRecord) -> Vec<String> {
    let lines: Vec<&str> =
        hook.cause.as_deref().filter(|_| is_end(hook)).map(str::lines).into_iter().flatten().collect();
    let several = lines.len() > 1;
    lines.into_iter().filter(|_| several).map(|line| format!("{DIM}│ {}{DIM:#}", clean(line))).collect()
}

/// A fault in all the words that are kept of it, for a person.
pub(super) fn fault_text(hook: &StoredRecord) -> Option<String> {
    let (phrase, cause) = (hook.fault_detail.as_deref(), hook.cause.as_deref());
    let cause = cause.map(|cause| if is_end(hook) { FaultKind::BadExit.brief(cause) } else { cause });
    phrase.map(|phrase| fault_said(phrase, cause)).or_else(|| cause.map(str::to_owned))
}
