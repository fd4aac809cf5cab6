//! `pintle why`: which hooks ran or did not on an event, and exactly why.

use anstyle::{AnsiColor, Style};
use clap::Args;
use dialects::process::config::nearest;
use domain::store::{RecordQuery, RecordStore as _, StoredEvent, StoredRecord};

use super::{Global, terminal};
use crate::error::CliError;
use crate::host::{load, open_store};

/// Most events of one turn that are shown: a long turn has some hundreds.
const MAX_EVENTS: usize = 2000;

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const CHANGE: Style = AnsiColor::Cyan.on_default();

/// Flags of `why`.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// The event, or the beginning of its id
    #[arg(value_name = "EVENT_ID", conflicts_with = "last")]
    event: Option<String>,
    /// The newest turn (this is what happens without an event, too)
    #[arg(long)]
    last: bool,
    /// Only events about this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(global: &Global, args: &WhyArgs) -> Result<u8, CliError> {
    let (_, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let store = open_store(&loaded.config)?;
    let query = RecordQuery {
        event_id: args.event.clone(),
        tool: args.tool.clone(),
        last_turn: args.event.is_none(),
        limit: MAX_EVENTS,
    };
    let events = store.find(&query).map_err(|error| CliError::failed(error.to_string()))?;
    if events.is_empty() {
        return Err(nothing(args));
    }
    // Events that are only told are many and say little; -v shows them.
    let shown = events.iter().filter(|event| {
        args.event.is_some() || global.verbose > 0 || event.checkpoint != "runtime" || says_something(event)
    });
    let text: String = if args.json {
        let all: Vec<serde_json::Value> = shown.map(json).collect();
        let text = serde_json::to_string_pretty(&all).map_err(|error| CliError::failed(error.to_string()))?;
        format!("{text}\n")
    } else {
        shown.map(|event| plain(event, global.verbose > 0)).collect()
    };
    terminal::say(&text)?;
    Ok(0)
}

fn nothing(args: &WhyArgs) -> CliError {
    match (&args.event, &args.tool) {
        (Some(event), _) => CliError::failed(format!("there is no record of an event `{event}`")),
        (None, Some(tool)) => CliError::failed(format!("the newest turn has no event about a tool `{tool}`")),
        (None, None) => CliError::failed("there is no record of any turn").hint("work one: `pintle run \"hello\"`"),
    }
}

/// Whether a told event has anything to explain: a drop, or a hook that it was kept from for more than its filter.
fn says_something(event: &StoredEvent) -> bool {
    event.hooks.iter().any(|hook| !hook.ran && hook.reason.as_deref().is_some_and(|why| why != "out of scope"))
}

/// The published form: `{event, hooks:[{hook, family, ran, reason?, compared?, verdict?, …}]}`.
fn json(event: &StoredEvent) -> serde_json::Value {
    let mut head = serde_json::json!(event);
    let hooks = head.as_object_mut().and_then(|members| members.shift_remove("hooks"));
    serde_json::json!({ "event": head, "hooks": hooks })
}

fn plain(event: &StoredEvent, everything: bool) -> String {
    let tool = event.tool.as_ref().map(|tool| format!(" {tool}")).unwrap_or_default();
    let mut lines = vec![format!(
        "{BOLD}{}{tool}{BOLD:#}  {}  {DIM}round {}, event {}{DIM:#}",
        event.event,
        ruling(event),
        event.iteration,
        event.event_id,
    )];
    if let Some(text) = &event.text {
        lines.push(format!("  {}", crate::timeline::clip(text)));
    }
    if let Some(permit) = &event.permit {
        lines.push(format!("  {DIM}permit sha256 {permit}{DIM:#}"));
    }
    if event.hooks.is_empty() {
        lines.push(format!("  {DIM}no approver is registered{DIM:#}"));
    }
    for hook in &event.hooks {
        lines.extend(hook_lines(event, hook, everything));
    }
    lines.push(String::new());
    lines.join("\n") + "\n"
}

fn ruling(event: &StoredEvent) -> String {
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
    format!("{style}{word}{style:#}")
}

fn hook_lines(event: &StoredEvent, hook: &StoredRecord, everything: bool) -> Vec<String> {
    let took = hook.duration_ms.map(|ms| format!("{ms:.1} ms")).unwrap_or_default();
    let place = format!("  {:<18} {:<8}", hook.hook, hook.family);
    let mut lines = Vec::new();
    match (&hook.fault, hook.ran) {
        (Some(fault), _) => {
            let became = hook.verdict.as_deref().unwrap_or_default();
            let detail = hook.fault_detail.as_deref().unwrap_or_default();
            lines.push(format!("{place} {BAD}{fault}{BAD:#} {took}  {detail} → {became}"));
        }
        (None, true) => {
            let again = if hook.again { " (asked again)" } else { "" };
            let word = hook.verdict.as_deref().unwrap_or("told");
            let reason =
                hook.reason.as_deref().map(|why| format!("  {}", crate::timeline::clip(why))).unwrap_or_default();
            lines.push(format!("{place} {word:<10} {took:>9}{reason}{again}"));
        }
        (None, false) => lines.push(format!("{place} {DIM}not run: {}{DIM:#}", not_run(event, hook))),
    }
    lines.extend(hook.warnings.iter().map(|warning| format!("  {:<28}warning: {warning}", "")));
    if let Some(change) = hook.change.as_ref().filter(|_| everything || hook.fault.is_none()) {
        let patch = change.to_string();
        let patch = if everything { patch } else { crate::timeline::clip(&patch) };
        lines.push(format!("  {:<28}{CHANGE}changed{CHANGE:#} {patch}", ""));
    }
    lines
}

/// Why a hook did not run, with both sides of a comparison and the name that was probably meant.
fn not_run(event: &StoredEvent, hook: &StoredRecord) -> String {
    let reason = hook.reason.as_deref().unwrap_or("unknown");
    if let Some(by) = &hook.by {
        return format!("{reason} by `{by}`");
    }
    let Some(compared) = &hook.compared else { return reason.to_owned() };
    let near = event.tool.as_deref().and_then(|tool| nearest(&compared.pattern, [tool]));
    let near = near.map(|tool| format!("; did the matcher mean \"{tool}\"?")).unwrap_or_default();
    format!("{reason}: pattern /{}/, tool `{}`{near}", compared.pattern, compared.value)
}
