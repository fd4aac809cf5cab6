//! The doors through which agents of others come.

use std::time::Duration;

use dialects::process::config::EntryProblem;
use globset::GlobMatcher;
use url::Url;

use crate::config::diagnostic::Diagnostic;
use crate::config::raw::{RawDoors, RawModelDoor, RawToolDoor};
use crate::config::{
    Config, GUARDED_HOSTS, GuardedClass, MODEL_DOORS, ModelDoorConfig, TOOL_DOOR_ASK_TIMEOUT, ToolDoorConfig,
};
use crate::mcp_names::mcp_glob;

/// The words that `deny` takes.
const DENIES: [&str; 2] = ["answer", "text"];

/// The words that `on_change` takes.
const CHANGES: [&str; 2] = ["ask", "allow"];

/// Longest time that a call may wait for a person: a day, beyond which no client waits.
const MAX_ASK_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Takes over what a file says of doors.
pub(super) fn add(config: &mut Config, raw: RawDoors) -> Vec<EntryProblem> {
    let mut problems = Vec::new();
    for (name, raw) in raw.model.unwrap_or_default() {
        let path = ["doors", "model", name.as_str()];
        if !MODEL_DOORS.contains(&name.as_str()) {
            let message = format!("there is no vendor `{name}`, expected {}", MODEL_DOORS.join(" or "));
            problems.push(EntryProblem::new(&path, message).meant(&name, MODEL_DOORS));
            continue;
        }
        match read(raw) {
            Ok(door) => drop(config.model_doors.insert(name, door)),
            Err(problem) => problems.push(problem.under(&path)),
        }
    }
    for (name, raw) in raw.tool.unwrap_or_default() {
        match read_tools(raw) {
            Ok(door) => drop(config.tool_doors.insert(name, door)),
            Err(problem) => problems.push(problem.under(&["doors", "tool", name.as_str()])),
        }
    }
    problems
}

/// Keeps what is wrong with doors and demands: a door is not opened without its bounds, and what is demanded in words that
/// nobody can read is everything.
pub(super) fn note_bad(config: &mut Config, diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        let mut steps = diagnostic.path.split('.');
        match steps.next() {
            Some("doors") => {
                let entry: Vec<&str> = ["doors"].into_iter().chain(steps.take(2)).collect();
                config.broken.insert(entry.join("."), diagnostic.to_string());
            }
            Some("guard") => match (steps.next(), steps.next()) {
                (Some("hosts"), Some(name)) if GUARDED_HOSTS.contains(&name) => {
                    config.broken.insert(format!("guard.hosts.{name}"), diagnostic.to_string());
                }
                // It may have been meant for any of them.
                (Some(_) | None, Some(_) | None) => config.guard_require.extend(GuardedClass::ALL),
            },
            Some(_) | None => {}
        }
    }
}

fn read_tools(raw: RawToolDoor) -> Result<ToolDoorConfig, EntryProblem> {
    let RawToolDoor { tools, hide, on_change, ask_timeout_ms } = raw;
    let allows_change = match on_change.as_deref() {
        None | Some("ask") => false,
        Some("allow") => true,
        Some(word) => {
            let message = format!("unsupported word \"{word}\", expected {}", CHANGES.join(" or "));
            return Err(EntryProblem::new(&["on_change"], message).meant(word, CHANGES));
        }
    };
    let ask_timeout = ask_timeout_ms.map_or(TOOL_DOOR_ASK_TIMEOUT, Duration::from_millis);
    if ask_timeout.is_zero() || ask_timeout > MAX_ASK_TIMEOUT {
        let message = format!("expected 1 to {} milliseconds", MAX_ASK_TIMEOUT.as_millis());
        return Err(EntryProblem::new(&["ask_timeout_ms"], message));
    }
    let tools = tools.map(|tools| globs("tools", &tools)).transpose()?;
    let hide = globs("hide", &hide.unwrap_or_default())?;
    Ok(ToolDoorConfig { tools, hide, allows_change, ask_timeout })
}

fn globs(key: &str, entries: &[String]) -> Result<Vec<GlobMatcher>, EntryProblem> {
    let glob = |entry: &String| {
        mcp_glob(entry).map_err(|why| EntryProblem::new(&[key], format!("`{entry}` is not a glob: {why}")))
    };
    entries.iter().map(glob).collect()
}

fn read(raw: RawModelDoor) -> Result<ModelDoorConfig, EntryProblem> {
    let RawModelDoor { base_url, deny, hosted } = raw;
    if let Some(text) = &base_url {
        let is_good = Url::parse(text).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https") && url.password().is_none() && url.query().is_none()
        });
        if !is_good {
            let message = "expected an http or https URL without a password and a query";
            return Err(EntryProblem::new(&["base_url"], message));
        }
    }
    let deny_as_text = match deny.as_deref() {
        None | Some("answer") => false,
        Some("text") => true,
        Some(word) => {
            let message = format!("unsupported word \"{word}\", expected {}", DENIES.join(" or "));
            return Err(EntryProblem::new(&["deny"], message).meant(word, DENIES));
        }
    };
    Ok(ModelDoorConfig { base_url, deny_as_text, hosted: hosted.unwrap_or_default() })
}
