//! `pintle skills list`: the skills of agents, their hooks in running order, and what is wrong.

use anstyle::{AnsiColor, Style};
use pintle_domain::json::{Value, json};
use pintle_domain::skill::SkillHook;
use pintle_domain::skill::finding::{Finding, Severity};
use pintle_domain::skill::scan::{Scan, Skill};
use pintle_skills::{folders, is_skill};

use super::super::{Global, terminal};
use super::{ListArgs, folder};
use crate::clean::clean;
use crate::error::CliError;
use crate::table::{Table, out_columns};
use pintle_host::config::{AgentConfig, Config, Env, Loaded};
use pintle_host::host::load;
use pintle_host::skill_sets::scan;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();

/// How many names of folders a line shows.
const SHOWN_NAMES: usize = 8;

/// How much of a description a line shows, in characters.
const SHOWN_CHARS: usize = 60;

pub(super) fn run(global: &Global, args: &ListArgs) -> Result<u8, CliError> {
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    for line in loaded.diagnostics.iter().map(ToString::to_string).chain(loaded.left_out.iter().cloned()) {
        terminal::warn(&clean(&line));
    }
    let listings: Vec<Listing> = chosen(&loaded.config, args.agent.as_deref())?
        .into_iter()
        .map(|agent| Listing::of(&env, &loaded, agent))
        .collect();
    if listings.iter().all(|listing| listing.scan.skills.is_empty() && listing.scan.findings.is_empty()) && !args.json {
        terminal::note(
            "no agent has skills; enable them by the names of their folders: `[agents.NAME]`, `skills = [\"…\"]`",
        );
    }
    let text = if args.json {
        let all: Value = listings.iter().map(Listing::json).collect();
        let text = serde_json::to_string_pretty(&all).map_err(|error| CliError::failed(error.to_string()))?;
        format!("{text}\n")
    } else {
        listings.iter().map(|listing| listing.plain(out_columns())).collect()
    };
    terminal::say(&text)?;
    Ok(0)
}

/// The agent called `name`; without a name those that have skills, or else the one that is meant.
fn chosen<'a>(config: &'a Config, name: Option<&str>) -> Result<Vec<&'a AgentConfig>, CliError> {
    let with: Vec<&AgentConfig> = config.agents.values().filter(|agent| !agent.skills.is_empty()).collect();
    match name {
        None if !with.is_empty() => Ok(with),
        // Several agents, none of which is meant, are not a mistake where nobody has skills.
        None => Ok(config.agent(None).into_iter().collect()),
        Some(_) => Ok(vec![config.agent(name)?]),
    }
}

/// The skills of one agent.
struct Listing {
    agent: String,
    dir: String,
    scan: Scan,
    /// Folders that nobody enabled.
    others: Vec<String>,
}

impl Listing {
    fn of(env: &Env, loaded: &Loaded, agent: &AgentConfig) -> Self {
        let dir = folder(env, loaded, Some(agent));
        let scan = scan(loaded, agent);
        let is_other = |name: &String| {
            let is_named = agent.skills.iter().any(|named| named.text == *name);
            !is_named && scan.skill(name).is_none() && is_skill(&dir.join(name))
        };
        let others = folders(&dir).into_iter().filter(is_other);
        Self { agent: agent.name.clone(), dir: dir.display().to_string(), others: others.collect(), scan }
    }

    fn json(&self) -> Value {
        let hook = |hook: &SkillHook| {
            json!({
                "name": hook.name,
                "timing": hook.timing,
                "role": hook.role,
                "persistent": hook.persistent,
                "tool_filter": hook.tool_filter,
                "bytes": hook.content.len(),
            })
        };
        let skill = |skill: &Skill| {
            json!({
                "name": skill.name,
                "folder": skill.folder,
                "description": skill.description,
                "hooks": skill.hooks.iter().map(hook).collect::<Value>(),
            })
        };
        json!({
            "agent": self.agent,
            "dir": self.dir,
            "skills": self.scan.skills.iter().map(skill).collect::<Value>(),
            "findings": self.scan.findings,
            "not_enabled": self.others,
        })
    }

    fn plain(&self, columns: usize) -> String {
        let mut table = Table::indented(4);
        table.line(format!("{BOLD}{}{BOLD:#}  {DIM}{}{DIM:#}", clean(&self.agent), clean(&self.dir)), 2);
        let digits = self.scan.skills.iter().map(|skill| skill.hooks.len()).sum::<usize>().to_string().len();
        let mut place = 0;
        for skill in &self.scan.skills {
            let about = skill.description.as_deref().map(short).unwrap_or_default();
            table.line(format!("  {BOLD}{}{BOLD:#}  {about}", clean(&skill.name)), 4);
            for hook in &skill.hooks {
                place += 1;
                let name = format!("{place:>digits$}. {}", clean(&hook.name));
                table.row([name, hook.timing.word().to_owned(), terms(hook)]);
            }
        }
        let (notices, others): (Vec<_>, Vec<_>) =
            self.scan.findings.iter().partition(|found| found.severity == Severity::Notice);
        others.into_iter().for_each(|found| table.line(line(found).trim_end(), 2));
        match notices.as_slice() {
            [] => {}
            [only] => table.line(line(only).trim_end(), 2),
            several => {
                let more = format!("{} notices; `pintle skills lint` shows them", several.len());
                table.line(format!("  {DIM}{more}{DIM:#}"), 4);
            }
        }
        if !self.others.is_empty() {
            table.line(format!("  {DIM}not enabled: {}{DIM:#}", self.not_enabled()), 4);
        }
        table.text(columns)
    }

    /// The folders that nobody enabled, on one line of bounded length.
    fn not_enabled(&self) -> String {
        let names: Vec<String> = self.others.iter().take(SHOWN_NAMES).map(|name| clean(name)).collect();
        let more = self.others.len() - names.len();
        let more = if more == 0 { String::new() } else { format!(", and {more} more") };
        format!("{}{more}", names.join(", "))
    }
}

fn short(description: &str) -> String {
    let line = clean(&description.split_whitespace().collect::<Vec<_>>().join(" "));
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn terms(hook: &SkillHook) -> String {
    let role = hook.role.word();
    let persistent = if hook.persistent { ", persistent" } else { "" };
    let filter: Vec<String> = hook.tool_filter.iter().map(|tool| clean(tool)).collect();
    let filter = if filter.is_empty() { String::new() } else { format!(", after {}", filter.join(", ")) };
    format!("{role}, {} bytes{persistent}{filter}", hook.content.len())
}

/// A finding on a line of its own, by how bad it is.
pub(super) fn line(found: &Finding) -> String {
    let style = match found.severity {
        Severity::Error => BAD,
        Severity::Warning => NOTE,
        Severity::Notice => DIM,
    };
    let said = clean(&found.to_string());
    let mark = format!(" {} {}: ", found.severity.word(), found.code);
    match said.split_once(&mark) {
        Some((place, message)) => {
            format!("{place} {style}{} {}:{style:#} {message}\n", found.severity.word(), found.code)
        }
        None => format!("{said}\n"),
    }
}
