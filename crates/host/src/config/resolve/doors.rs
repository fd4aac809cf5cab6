//! The doors through which agents of others come.

use std::collections::BTreeMap;
use std::time::Duration;

use globset::GlobMatcher;
use pintle_dialects::process::config::EntryProblem;
use url::Url;

use crate::config::diagnostic::{Diagnostic, GUARD};
use crate::config::raw::{RawDoorBudget, RawDoorPrice, RawDoors, RawModelDoor, RawToolDoor};
use crate::config::{
    Config, DoorBudget, DoorLimit, DoorPrice, GUARDED_HOSTS, GuardedClass, MODEL_DOORS, ModelDoorConfig,
    TOOL_DOOR_ASK_TIMEOUT, ToolDoorConfig,
};
use crate::mcp_names::mcp_glob;

/// The words that `deny` takes.
const DENIES: [&str; 2] = ["answer", "text"];

/// The words that `on_change` takes.
const CHANGES: [&str; 2] = ["ask", "allow"];

/// The words that `ask` takes.
const ASKS: [&str; 2] = ["hold", "client"];

/// Longest time that a call may wait for a person: a day, beyond which no client waits.
const MAX_ASK_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Most dollars of a budget or price: what is more is a mistake.
const MAX_USD: f64 = 1_000_000.0;

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
/// nobody can read is everything. What was to be said of all agents under guard and cannot be read stands as `guard`.
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
                (Some("rules_from"), _) => config.rules_from = Some(Err(diagnostic.to_string())),
                (Some("require" | "hosts"), _) => note_bad_guard(config, diagnostic),
                // Whatever it was to say.
                (Some(_) | None, Some(_) | None) => {
                    note_bad_guard(config, diagnostic);
                    config.rules_from = Some(Err(diagnostic.to_string()));
                }
            },
            Some(_) | None if diagnostic.is_meant_for_guard() => note_bad_guard(config, diagnostic),
            Some(_) | None => {}
        }
    }
}

/// Keeps the first thing that is wrong with what was to be said of every agent under guard: nobody knows what was demanded.
fn note_bad_guard(config: &mut Config, diagnostic: &Diagnostic) {
    config.guard_require.extend(GuardedClass::ALL);
    config.broken.entry(GUARD.to_owned()).or_insert_with(|| diagnostic.to_string());
}

fn read_tools(raw: RawToolDoor) -> Result<ToolDoorConfig, EntryProblem> {
    let RawToolDoor { tools, hide, on_change, ask, ask_timeout_ms } = raw;
    let allows_change = match on_change.as_deref() {
        None | Some("ask") => false,
        Some("allow") => true,
        Some(word) => {
            let message = format!("unsupported word \"{word}\", expected {}", CHANGES.join(" or "));
            return Err(EntryProblem::new(&["on_change"], message).meant(word, CHANGES));
        }
    };
    let asks_client = match ask.as_deref() {
        None | Some("hold") => false,
        Some("client") => true,
        Some(word) => {
            let message = format!("unsupported word \"{word}\", expected {}", ASKS.join(" or "));
            return Err(EntryProblem::new(&["ask"], message).meant(word, ASKS));
        }
    };
    let ask_timeout = ask_timeout_ms.map_or(TOOL_DOOR_ASK_TIMEOUT, Duration::from_millis);
    if ask_timeout.is_zero() || ask_timeout > MAX_ASK_TIMEOUT {
        let message = format!("expected 1 to {} milliseconds", MAX_ASK_TIMEOUT.as_millis());
        return Err(EntryProblem::new(&["ask_timeout_ms"], message));
    }
    let tools = tools.map(|tools| globs("tools", &tools)).transpose()?;
    let hide = globs("hide", &hide.unwrap_or_default())?;
    Ok(ToolDoorConfig { tools, hide, allows_change, asks_client, ask_timeout })
}

fn globs(key: &str, entries: &[String]) -> Result<Vec<GlobMatcher>, EntryProblem> {
    let glob = |entry: &String| {
        mcp_glob(entry).map_err(|why| EntryProblem::new(&[key], format!("`{entry}` is not a glob: {why}")))
    };
    entries.iter().map(glob).collect()
}

fn read(raw: RawModelDoor) -> Result<ModelDoorConfig, EntryProblem> {
    let RawModelDoor { base_url, deny, hosted, key_env, tenant, budget, prices } = raw;
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
    for (key, text) in [("key_env", &key_env), ("tenant", &tenant)] {
        if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
            return Err(EntryProblem::new(&[key], "expected a name, not an empty text"));
        }
    }
    let budget = read_budget(budget.unwrap_or_default(), prices.unwrap_or_default())?;
    Ok(ModelDoorConfig { base_url, deny_as_text, hosted: hosted.unwrap_or_default(), key_env, tenant, budget })
}

fn read_budget(raw: RawDoorBudget, prices: BTreeMap<String, RawDoorPrice>) -> Result<DoorBudget, EntryProblem> {
    let RawDoorBudget { session_tokens, session_usd, day_tokens, day_usd } = raw;
    let limit = |tokens, usd: Option<f64>, key: &str| {
        let milli_dollars = usd.map(|usd| milli(usd, &["budget", key])).transpose()?;
        Ok::<_, EntryProblem>(DoorLimit { tokens, milli_dollars })
    };
    let session = limit(session_tokens, session_usd, "session_usd")?;
    let day = limit(day_tokens, day_usd, "day_usd")?;
    let price = |(name, raw): (String, RawDoorPrice)| {
        let RawDoorPrice { input_usd, cached_usd, output_usd } = raw;
        let read = |usd: f64, key: &str| milli(usd, &["prices", &name, key]);
        let price = DoorPrice {
            input_milli: read(input_usd, "input_usd")?,
            cached_milli: read(cached_usd.unwrap_or(input_usd), "cached_usd")?,
            output_milli: read(output_usd, "output_usd")?,
        };
        Ok((name.clone(), price))
    };
    let prices = prices.into_iter().map(price).collect::<Result<_, EntryProblem>>()?;
    Ok(DoorBudget { session, day, prices })
}

/// An amount of dollars in thousandths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is no less than 0, and no more than a million"
)]
fn milli(usd: f64, path: &[&str]) -> Result<u64, EntryProblem> {
    match (0.0..=MAX_USD).contains(&usd) {
        true => Ok((usd * 1000.0).round() as u64),
        false => Err(EntryProblem::new(path, format!("expected 0 to {MAX_USD} dollars"))),
    }
}
