//! `pintle skills lint`: everything that is wrong with skills. Nothing of them goes anywhere.

use std::path::{Path, PathBuf};

use pintle_domain::nearest::nearest;
use pintle_domain::skill::finding::{Finding, Severity};
use pintle_domain::skill::scan::Scan;
use pintle_skills::{Scanner, SkillSelection, folders, is_skill};

use super::super::{Global, terminal};
use super::list::line;
use super::{LintArgs, folder};
use crate::error::{CliError, FAILED};
use pintle_host::config::{self, AgentConfig, Env, LoadOptions, Loaded};
use pintle_host::host::load;
use pintle_host::skill_sets::{scan, view};

pub(super) fn run(global: &Global, args: &LintArgs) -> Result<u8, CliError> {
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let (mut found, mut checked) = (Vec::new(), 0);
    for loaded in whole(&env, loaded, global.home.as_deref())? {
        let scans = scans(&env, &loaded, args)?;
        checked += scans.iter().map(|scan| scan.skills.len()).sum::<usize>();
        found.extend(scans.into_iter().flat_map(|scan| scan.findings));
    }
    let mut told: Vec<Finding> = Vec::new();
    for finding in found {
        if !told.contains(&finding) {
            told.push(finding);
        }
    }
    let text = if args.json {
        let text = serde_json::to_string_pretty(&told).map_err(|error| CliError::failed(error.to_string()))?;
        format!("{text}\n")
    } else {
        told.iter().map(line).collect()
    };
    terminal::say(&text)?;
    if told.is_empty() && !args.json {
        terminal::note(if checked == 0 { "there are no skills to check" } else { "no mistakes" });
    }
    let fails = if args.strict { Severity::Warning } else { Severity::Error };
    Ok(if told.iter().any(|finding| finding.severity >= fails) { FAILED } else { 0 })
}

/// What is loaded; where some of it is left out because nobody accepted it, each file by itself, since nothing is run
/// here.
fn whole(env: &Env, loaded: Loaded, home: Option<&Path>) -> Result<Vec<Loaded>, CliError> {
    if loaded.left_out.is_empty() {
        return Ok(vec![loaded]);
    }
    let alone = |file: &PathBuf| config::load(env, &LoadOptions { config: Some(file), home, ..LoadOptions::default() });
    Ok(loaded.files.iter().map(alone).collect::<Result<_, _>>()?)
}

fn scans(env: &Env, loaded: &Loaded, args: &LintArgs) -> Result<Vec<Scan>, CliError> {
    let config = &loaded.config;
    let agent = args.agent.as_deref().map(|name| config.agent(Some(name))).transpose()?;
    if !args.skills.is_empty() {
        return args.skills.iter().map(|asked| one(env, loaded, agent, asked)).collect();
    }
    let agents: Vec<&AgentConfig> = match agent {
        Some(agent) => vec![agent],
        None => config.agents.values().filter(|agent| !agent.skills.is_empty()).collect(),
    };
    if agents.is_empty() {
        let dir = folder(env, loaded, None);
        return Ok(vec![alone(loaded, None, &dir, &folders(&dir))]);
    }
    Ok(agents.into_iter().map(|agent| scan(loaded, agent)).collect())
}

/// What is wrong with the skill that `asked` names: by its name, or by the path of its folder.
fn one(env: &Env, loaded: &Loaded, agent: Option<&AgentConfig>, asked: &str) -> Result<Scan, CliError> {
    let by_path = asked.contains('/') || [".", ".."].contains(&asked);
    let path = if by_path { env.cwd.join(asked) } else { named(env, loaded, agent, asked) };
    if !path.is_dir() {
        let missing = CliError::usage(format!("there is no skill `{asked}`: {} is not a folder", path.display()));
        let known = path.parent().map(folders).unwrap_or_default();
        return Err(match nearest(asked, known.iter().map(String::as_str)) {
            Some(name) => missing.hint(format!("did you mean `{name}`?")),
            None => missing.hint("name a folder in `skills.dir`, or the path of a folder with a `/` in it"),
        });
    }
    if !is_skill(&path) {
        let path = path.canonicalize().unwrap_or(path);
        return Err(CliError::usage(format!(
            "there is no skill in {}: it holds neither `SKILL.md` nor `hooks/hooks.json`",
            path.display()
        )));
    }
    // The name of `.` is that of where it leads.
    let plain = path.file_name().is_some() && !asked.ends_with("..");
    let real = if plain && asked != "." { path } else { path.canonicalize().unwrap_or(path) };
    let (Some(dir), Some(name)) = (real.parent(), real.file_name().and_then(|name| name.to_str())) else {
        return Err(CliError::usage(format!("`{asked}` is not the folder of a skill")));
    };
    Ok(alone(loaded, agent, dir, &[name.to_owned()]))
}

/// The folder of the skill called `name`, where one of the agents has it; else where it would have to be.
fn named(env: &Env, loaded: &Loaded, agent: Option<&AgentConfig>, name: &str) -> PathBuf {
    let has = |other: &&AgentConfig| other.skills.iter().any(|skill| skill.text == name);
    let agent = agent.or_else(|| loaded.config.agents.values().find(has));
    let own = folder(env, loaded, agent).join(name);
    let further = || loaded.config.more_skills.iter().map(|dir| dir.join(name)).find(|path| path.is_dir());
    if own.is_dir() { own } else { further().unwrap_or(own) }
}

/// What is wrong with skills that need not be enabled.
fn alone(loaded: &Loaded, agent: Option<&AgentConfig>, dir: &Path, names: &[String]) -> Scan {
    let mut scanner = Scanner::default();
    match agent {
        None => scanner.look(SkillSelection::of(dir, names)),
        Some(agent) => view(&loaded.config, agent, |view| {
            scanner.look(SkillSelection { agent: Some(view), ..SkillSelection::of(dir, names) })
        }),
    };
    Scan::clone(scanner.current())
}
