//! Servers of tools: what is started or reached, and what their tools are called after.

use std::time::Duration;

use pintle_dialects::process::config::EntryProblem;
use url::Url;

use super::{LeftOut, Trusted};
use crate::config::commands::{is_replaceable, placed, replaceable};
use crate::config::diagnostic::dotted;
use crate::config::layer::{Layer, MCP_SERVERS, entry_path};
use crate::config::raw::RawMcpServer;
use crate::config::trust::{CHANGED, TrustStanding};
use crate::config::{Config, McpReach, McpServerConfig};

/// Longest name of a server, in characters: providers take tool names of 64, and the tool's own has to fit behind.
const MAX_NAME_CHARS: usize = 32;

/// Adds the servers of one file. They come on top of those of earlier files and never replace one.
pub(super) fn add(config: &mut Config, trusted: &mut Trusted, left: &mut LeftOut) {
    let names: Vec<String> = trusted.layer.entries(MCP_SERVERS).iter().map(|member| member.key.clone()).collect();
    for name in names {
        let keys = entry_path(MCP_SERVERS, &name);
        if trusted.layer.is_off(&keys) {
            continue;
        }
        let problem = match trusted.standing(&dotted(&keys)) {
            TrustStanding::Trusted => None,
            TrustStanding::Unknown => {
                left.add(dotted(&keys));
                continue;
            }
            TrustStanding::Changed { .. } => Some(format!("{CHANGED}; `pintle trust` shows how, and accepts it")),
        };
        let path: Vec<&str> = keys.iter().map(String::as_str).collect();
        if let Some(message) = problem {
            trusted.layer.report(EntryProblem::new(&path, message));
        }
        if trusted.layer.bad.contains_key(&keys) {
            continue;
        }
        if trusted.acceptance().is_some() && config.mcp.contains_key(&name) {
            let message = format!("duplicate server name \"{name}\": a found file adds to yours and replaces none");
            trusted.layer.report(EntryProblem::new(&path, message));
            continue;
        }
        let servers = trusted.layer.raw.mcp.servers.as_ref();
        let raw = servers.and_then(|servers| servers.get(&name)).cloned().unwrap_or_default();
        match read(&name, &raw, &trusted.layer) {
            Ok((reach, start_timeout)) => {
                let seal = trusted.seal(&dotted(&keys));
                if let McpReach::Command { argv, dir, .. } = &reach
                    && is_replaceable(config, (argv, dir), seal.is_some())
                {
                    let at = format!("{}, where an agent works", dir.display());
                    trusted.layer.remark(EntryProblem::new(&["command"], replaceable(&at)).under(&path));
                }
                config.mcp.insert(name, McpServerConfig { reach, start_timeout, seal });
            }
            Err(problems) => {
                problems.into_iter().for_each(|problem| trusted.layer.report(problem.under(&path)));
            }
        }
    }
}

fn read(name: &str, raw: &RawMcpServer, layer: &Layer) -> Result<(McpReach, Duration), Vec<EntryProblem>> {
    let mut problems = Vec::new();
    problems.extend(bad_name(name));
    let reach = match (&raw.command, &raw.url) {
        (Some(argv), None) => {
            problems.extend(bad_command(argv));
            problems.extend(bad_variables(raw));
            let dir = layer.folder.join(raw.dir.as_deref().unwrap_or_default());
            let argv = placed(argv, &dir).unwrap_or_else(|problem| {
                problems.push(problem);
                argv.clone()
            });
            Some(McpReach::Command {
                argv,
                dir,
                env: raw.env.clone().unwrap_or_default(),
                inherit_env: raw.inherit_env.clone().unwrap_or_default(),
            })
        }
        (None, Some(url)) => {
            problems.extend(without_command(raw));
            read_url(url).map_err(|problem| problems.push(problem)).ok().map(McpReach::Url)
        }
        (None, None) => {
            problems.push(EntryProblem::new(
                &[],
                "expected a command to start, or the url of a server that runs; got neither",
            ));
            None
        }
        (Some(_), Some(_)) => {
            problems
                .push(EntryProblem::new(&["url"], "expected either a command or a url, got both; remove one of them"));
            None
        }
    };
    let start_timeout = match raw.start_timeout_ms.map(|ms| (ms, u64::try_from(ms))) {
        None => pintle_mcp::spec::START_TIMEOUT,
        Some((1.., Ok(ms))) => Duration::from_millis(ms),
        Some(_) => {
            problems.push(EntryProblem::new(&["start_timeout_ms"], "must be greater than 0"));
            pintle_mcp::spec::START_TIMEOUT
        }
    };
    match reach {
        Some(reach) if problems.is_empty() => Ok((reach, start_timeout)),
        Some(_) | None => Err(problems),
    }
}

/// A name goes into the names of tools, which matchers and models have to spell.
fn bad_name(name: &str) -> Option<EntryProblem> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let good = (1..=MAX_NAME_CHARS).contains(&name.chars().count()) && name.chars().all(plain);
    let expected = format!("expected a name of 1 to {MAX_NAME_CHARS} letters a to z, digits, _ and -, got {name:?}");
    (!good).then(|| EntryProblem {
        at: pintle_dialects::process::config::MemberPart::Key,
        ..EntryProblem::new(&[], expected)
    })
}

fn bad_command(argv: &[String]) -> Option<EntryProblem> {
    if argv.first().is_none_or(|program| program.trim().is_empty()) {
        return Some(EntryProblem::new(&["command"], "command is empty; expected a program and its arguments"));
    }
    let word = argv.iter().position(|word| word.contains('\0'))?;
    Some(EntryProblem::new(&["command", &word.to_string()], "must not hold a NUL character"))
}

fn bad_variables(raw: &RawMcpServer) -> Vec<EntryProblem> {
    let bad =
        |(name, value): &(&String, &String)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0');
    let problem =
        |name: &str| EntryProblem::new(&["env", name], "not a variable: no `=` in its name, no NUL character");
    raw.env.iter().flatten().filter(bad).map(|(name, _)| problem(name)).collect()
}

/// Keys that would have no effect on a server that runs somewhere else.
fn without_command(raw: &RawMcpServer) -> Vec<EntryProblem> {
    let set = [("dir", raw.dir.is_some()), ("env", raw.env.is_some()), ("inherit_env", raw.inherit_env.is_some())];
    let misplaced = set.iter().filter(|(_, set)| *set);
    misplaced.map(|(key, _)| EntryProblem::new(&[key], format!("{key} has no meaning without a command"))).collect()
}

fn read_url(text: &str) -> Result<Url, EntryProblem> {
    let bad = |why: &str| Err(EntryProblem::new(&["url"], format!("expected an http or https URL, {why}")));
    match Url::parse(text) {
        Ok(url) if url.password().is_some() => bad("without a password"),
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        Ok(url) => bad(&format!("got the scheme \"{}\"", url.scheme())),
        // What stands before an `@` may be a password.
        Err(why) if text.contains('@') => bad(&why.to_string()),
        Err(why) => bad(&format!("got {text:?}: {why}")),
    }
}
