//! `pintle hooks history`: what rules did, newest first.

use anstyle::{AnsiColor, Style};
use clap::Args;
use jiff::{Span, Timestamp};
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::json::{Value, json};
use pintle_domain::nearest::nearest;
use pintle_domain::rule::{AGENT_EVENTS, Decision};
use pintle_rules::admin::{AdminError, Caller, HistoryQuery, INVALID_AGENT, INVALID_CURSOR, MAX_PAGE, PAGE, RuleAdmin};

use super::super::command_line::again;
use super::super::session::word;
use super::super::{Global, terminal};
use super::stored::{all, json, lookup, no_hook, refused, text, with_admin, with_admin_of};
use crate::clean::{clean, prose};
use crate::error::CliError;
use crate::moment::{moment_of, when};
use crate::operator;
use crate::table::{folded, out_columns};
use crate::text::{waited, whole, whole_millis_column};
use pintle_host::config::Config;
use pintle_host::host::load;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();

/// Flags of `hooks history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// The hook: its id, or its name if only one has it; also what a removed one was called [default: all of them]
    #[arg(value_name = "HOOK")]
    hook: Option<String>,
    /// Only this event, such as pre_tool_use
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
    /// Only this decision: allow, block, ask, error or timeout
    #[arg(long, value_name = "WORD")]
    decision: Option<String>,
    /// Only this session
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// Only this agent: its name, or its id
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Not before: a time (RFC 3339), a day, or how long ago, such as 2h
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Before this time, said in the same ways
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// At most this many, up to 200
    #[arg(long, value_name = "N", default_value_t = PAGE)]
    limit: usize,
    /// Go on where the page before ended: what it printed as its cursor
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// The whole text of one execution's fault, secrets included, and what its program wrote: its id, as --json has it;
    /// only a person may ask
    #[arg(long, value_name = "EXECUTION_ID", conflicts_with_all = [
        "hook", "event", "decision", "session", "agent", "since", "until", "limit", "cursor",
    ])]
    detail: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(global: &Global, args: &HistoryArgs) -> Result<u8, CliError> {
    if let Some(id) = &args.detail {
        return detail(global, id, args.json);
    }
    let query = query(args, Timestamp::now())?;
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let config = loaded.config.clone();
    let page = with_admin_of(env, loaded, async |rule_admin, by| {
        let mut query = query.clone();
        let Some(named) = &args.hook else {
            return rule_admin.history(by, &query).await.map_err(|why| about_flags(why, args));
        };
        let hooks = all(rule_admin, by).await?;
        match lookup(&hooks, named)? {
            Some(hook) => query.hook = Some(text(hook, "id").to_owned()),
            None if uuid::Uuid::parse_str(named).is_ok() => query.hook = Some(named.clone()),
            None => query.deleted = Some(named.clone()),
        }
        let page = rule_admin.history(by, &query).await.map_err(|why| about_flags(why, args))?;
        // Nobody was ever called so, as far as anything is kept: it is a slip of the pen.
        let is_nobody = query.deleted.is_some() && query.cursor.is_none() && page.executions.is_empty();
        if is_nobody && !has_rows(rule_admin, by, named).await? {
            return Err(of_configuration(&config, named).unwrap_or_else(|| no_hook(&hooks, named)));
        }
        Ok(page)
    })?;
    if args.json {
        let page = json!({"executions": page.executions, "nextCursor": page.next_cursor});
        terminal::say(&json(&page)?)?;
        return Ok(0);
    }
    if page.executions.is_empty() {
        terminal::note("no execution matches these filters");
    }
    terminal::say(&folded(&page.executions.iter().map(line).collect::<String>(), out_columns(), 4))?;
    if !page.next_cursor.is_empty() {
        let fixed = fixed(args, &query);
        let mut flags: Vec<_> = fixed.iter().map(|(flag, at)| (*flag, Some(at.as_str()))).collect();
        flags.push(("--cursor", Some(&page.next_cursor)));
        terminal::note(&format!("there is more: `{}`", again(&flags)));
    }
    Ok(0)
}

/// `named` is a process hook: its records are those of turns.
fn of_configuration(config: &Config, named: &str) -> Option<CliError> {
    config.hooks.iter().find(|loaded| loaded.hook.name.as_str() == named)?;
    let message = format!("\"{}\" is a process hook, and this is the history of rules", clean(named));
    Some(CliError::usage(message).hint(format!("`pintle why --hook {}` shows what it did", word(named))))
}

/// Whether anything is kept of a deleted hook with this name, whatever else was asked for.
async fn has_rows(rule_admin: &RuleAdmin, by: &Caller, name: &str) -> Result<bool, CliError> {
    let query = HistoryQuery { deleted: Some(name.to_owned()), limit: Some(1), ..HistoryQuery::default() };
    let page = rule_admin.history(by, &query).await.map_err(refused)?;
    Ok(!page.executions.is_empty())
}

/// The execution `id` with the whole text of its fault, which everybody else sees masked, and with what its program
/// wrote, which nobody else sees.
fn detail(global: &Global, id: &str, as_json: bool) -> Result<u8, CliError> {
    operator::require()?;
    let found = with_admin(global, async |rule_admin, by| rule_admin.execution(by, id).await.map_err(refused))?;
    if as_json {
        terminal::say(&json(&found)?)?;
        return Ok(0);
    }
    let output = ["stdout", "stderr"].into_iter().filter_map(|name| output(name, &found[name]));
    let parts: Vec<String> = found["errorDetail"].as_str().map(prose).into_iter().chain(output).collect();
    let detail = if parts.is_empty() { NOTHING_SEALED.to_owned() } else { parts.join("\n") };
    terminal::say(&folded(&format!("{}{detail}\n", line(&found)), out_columns(), 4))?;
    Ok(0)
}

/// Where neither a fault nor an output is kept.
const NOTHING_SEALED: &str = "nothing more is kept of it: it did not fail, wrote nothing about an event that \
                              hooks left as it was, or `agent_hooks.error_detail_days` are over";

/// The beginning of what its program wrote there, if it is kept.
fn output(name: &str, head: &Value) -> Option<String> {
    let text = prose(head["text"].as_str()?.trim_end());
    let more = if head["cut"] == true { " (cut)" } else { "" };
    Some(format!("{name}{more}: {text}"))
}

/// What the desk says of members, said of the flags that they came from.
fn about_flags(why: AdminError, args: &HistoryArgs) -> CliError {
    match (why.message.as_str(), &args.agent) {
        (INVALID_CURSOR, _) => CliError::usage("--cursor: it belongs to other filters").hint(
            "repeat the command that printed it, with nothing changed but --limit; without --cursor the list starts over",
        ),
        (INVALID_AGENT, Some(agent)) => CliError::usage(format!("--agent: there is no agent \"{}\"", clean(agent)))
            .hint("name one of the configuration, or give the id that its executions have"),
        (_, _) => refused(why),
    }
}

/// The times that were said relative to now, as they were meant: a cursor goes with exactly the same question.
fn fixed(args: &HistoryArgs, query: &HistoryQuery) -> Vec<(&'static str, String)> {
    let times = [("--since", &args.since, query.since), ("--until", &args.until, query.until)];
    let relative =
        times.into_iter().filter(|(_, said, _)| said.as_ref().is_some_and(|said| said.parse::<Span>().is_ok()));
    relative.filter_map(|(flag, _, at)| Some((flag, at?.to_string()))).collect()
}

fn query(args: &HistoryArgs, now: Timestamp) -> Result<HistoryQuery, CliError> {
    if !(1..=MAX_PAGE).contains(&args.limit) {
        return Err(CliError::usage(format!("--limit: expected 1 to {MAX_PAGE}, got {}", args.limit)));
    }
    let when = |flag: &str, text: &Option<String>| text.as_deref().map(|text| when(flag, text, now)).transpose();
    Ok(HistoryQuery {
        tenant: None,
        hook: None,
        deleted: None,
        event: args.event.as_deref().map(|word| event("--event", word)).transpose()?,
        decision: args.decision.as_deref().map(decision).transpose()?,
        fault: None,
        session: args.session.clone(),
        agent: args.agent.clone(),
        since: when("--since", &args.since)?,
        until: when("--until", &args.until)?,
        limit: Some(args.limit),
        cursor: args.cursor.clone(),
    })
}

/// The event of stored hooks that `word` names.
pub(super) fn event(flag: &str, word: &str) -> Result<CheckpointKind, CliError> {
    if let Some(kind) = AGENT_EVENTS.into_iter().find(|kind| kind.name() == word) {
        return Ok(kind);
    }
    let names = AGENT_EVENTS.map(CheckpointKind::name);
    Err(unknown(flag, "event", word, &names))
}

fn decision(word: &str) -> Result<Decision, CliError> {
    let names: Vec<&str> = Decision::ALL.iter().map(|decision| decision.word()).collect();
    Decision::named(word).ok_or_else(|| unknown("--decision", "decision", word, &names))
}

fn unknown(flag: &str, what: &str, word: &str, known: &[&str]) -> CliError {
    match nearest(word, known.iter().copied()) {
        Some(near) => CliError::usage(format!("{flag}: there is no {what} `{word}`; did you mean `{near}`?")),
        None => CliError::usage(format!("{flag}: there is no {what} `{word}` of rules"))
            .hint(format!("there are {}", known.join(", "))),
    }
}

/// One execution.
pub(super) fn line(row: &Value) -> String {
    let decision = text(row, "decision");
    let tool = row["tool_name"].as_str().map(|tool| format!(" {}", clean(tool))).unwrap_or_default();
    let line = format!(
        "{}  {style}{decision:<7}{style:#}  {BOLD}{}{BOLD:#}  {}{tool}",
        moment_of(text(row, "created_at")),
        clean(text(row, "hook_name")),
        text(row, "event"),
        style = style(decision),
    );
    let why = row["error"].as_str().or(row["reason"].as_str()).filter(|why| !why.is_empty());
    let why = why.map(|why| format!("  {}", whole(why))).unwrap_or_default();
    let dropped: String = dropped(&row["metadata"]).map(|what| format!("; dropped {what}")).collect();
    let took = whole_millis_column(row["duration_ms"].as_f64().unwrap_or_default());
    let waited = row["metadata"]["slot_wait_ms"].as_f64().map(|ms| format!(", {}", waited(ms))).unwrap_or_default();
    format!("{line}  {DIM}{took}{waited}{DIM:#}{why}{dropped}\n")
}

/// What of an answer did not count.
fn dropped(metadata: &Value) -> impl Iterator<Item = String> {
    let rewrite = metadata["rewrite"].as_str().and_then(|said| said.strip_prefix("dropped: "));
    let rewrite = rewrite.map(|why| format!("rewrite: {}", clean(why)));
    rewrite.into_iter().chain((metadata["context"] == "dropped").then(|| "context".to_owned()))
}

fn style(decision: &str) -> Style {
    match Decision::named(decision) {
        Some(Decision::Allow) => GOOD,
        Some(Decision::Block) => BAD,
        Some(Decision::Ask) => NOTE,
        Some(Decision::Error | Decision::Timeout) | None => BAD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::UNBOUNDED;

    #[test]
    fn words_that_are_none_lead_to_the_nearest() {
        assert_eq!(event("--event", "stop"), Ok(CheckpointKind::Stop));
        let near = event("--event", "pre_tool").unwrap_err();
        assert!(near.message.starts_with("--event: there is no event `pre_tool`"), "{near}");
        assert_eq!(
            decision("blocc").unwrap_err().message,
            "--decision: there is no decision `blocc`; did you mean `block`?"
        );
        assert!(decision("deny").unwrap_err().hints[0].ends_with("allow, block, ask, error, timeout"));
    }

    #[test]
    fn an_execution_is_one_line() {
        let row = json!({
            "created_at": "2026-11-22T06:44:53.3Z", "decision": "block", "hook_name": "no\u{1b}rm", "event": "pre_tool_use",
            "tool_name": "exec", "duration_ms": 12, "reason": "two\nlines", "error": null,
        });
        let plain = anstream::adapter::strip_str(&folded(&line(&row), UNBOUNDED, 0)).to_string();
        assert_eq!(plain, "2026-11-22 06:44 UTC  block    no\\u{1b}rm  pre_tool_use exec     12 ms  two lines\n");
        let mut row = row;
        row["duration_ms"] = 0.into();
        assert!(folded(&line(&row), UNBOUNDED, 0).contains("   <1 ms"), "a run below a millisecond took some time");
    }
}
