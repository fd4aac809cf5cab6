//! What of the host no tool may touch: one list, for file tools and for what commands are confined by.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pintle_agent::tools::Protected;
use pintle_dialects::command::all_words;

use crate::config::places::FILE_NAMES;
use crate::config::{AgentConfig, Config, HookKind, LoadedHook, McpReach, McpServerConfig, ProviderConfig};
use crate::rule_files;

/// The programs that belong together and are installed beside each other: hooks of guarded agents run one, scripts of rules
/// another.
const PROGRAMS: [&str; 3] = ["pintle", "pintle-hook", "pintle-script-worker"];

/// The files that no tool may change: those of the configuration among `files`, what hooks run, our programs; the folders
/// in which what hooks and servers run stands, where nothing new is made; and the home folder, not even read.
pub(crate) fn protected(config: &Config, files: &[PathBuf]) -> Protected {
    let mut files = operator_files(config, files);
    files.extend(std::env::current_exe().ok().into_iter().flat_map(own_programs));
    files.extend(config.agent_hooks.dirs.iter().map(|folder| folder.dir.clone()));
    // Nor may it lay there what somebody might accept unread.
    files.extend(config.found_folders.clone());
    // Whoever could write a text of a skill would speak as the operator in every later turn.
    let with_skills = config.agents.values().filter(|agent| !agent.skills.is_empty());
    files.extend(with_skills.flat_map(|agent| skill_folders(config, agent)));
    Protected {
        files: files.into_iter().map(absolute).collect(),
        dirs: [Some(&config.home), config.own_home.as_ref()].into_iter().flatten().cloned().map(absolute).collect(),
        beside: beside(config),
        names: FILE_NAMES.map(str::to_owned).to_vec(),
    }
}

/// `program`, and what stands beside it of ours.
fn own_programs(program: PathBuf) -> Vec<PathBuf> {
    let beside = PROGRAMS.iter().map(|name| program.with_file_name(name));
    let mut programs: Vec<PathBuf> = beside.filter(|beside| *beside != program && beside.is_file()).collect();
    programs.push(program);
    programs
}

/// The files that decide what runs beside every gate: those of the configuration among `files`, what hooks and servers
/// run, models that are scripts, and rules.
pub(crate) fn operator_files(config: &Config, files: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = files.to_vec();
    files.extend(config.hooks.iter().flat_map(hook_files));
    files.extend(config.mcp.values().flat_map(server_files));
    files.extend(config.providers.values().filter_map(ProviderConfig::script).cloned());
    // Whoever could write a rule could run commands beside every gate. Each file by itself, for its other names.
    files.extend(config.agent_hooks.dirs.iter().flat_map(|folder| rule_files::listed(&folder.dir).unwrap_or_default()));
    files
}

/// The folders in which what hooks and servers run stands, and whose it is. An interpreter loads what lies there.
pub(crate) fn beside(config: &Config) -> BTreeMap<PathBuf, String> {
    let of_hook = |loaded: &LoadedHook| (hook_files(loaded), format!("hook \"{}\"", loaded.hook.name));
    let of_server =
        |(name, server): (&String, &McpServerConfig)| (server_files(server), format!("MCP server `{name}`"));
    let all = config.hooks.iter().map(of_hook).chain(config.mcp.iter().map(of_server));
    let mut folders = BTreeMap::new();
    for (files, of) in all {
        // Where it really is, and where it is called from.
        let places = files.into_iter().flat_map(|file| [file.canonicalize().ok(), Some(absolute(file))]).flatten();
        for place in places {
            folders.extend(place.parent().map(|folder| (folder.to_owned(), of.clone())));
        }
    }
    folders
}

/// They are named to programs that work somewhere else.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// The files that a hook runs, as far as its command names them.
fn hook_files(loaded: &LoadedHook) -> Vec<PathBuf> {
    match (&loaded.kind, loaded.content.as_ref().and_then(|content| content.command.as_ref())) {
        (HookKind::Process(entry), _) => command_files(&entry.argv, &entry.dir),
        (HookKind::Command(entry), Some(command)) => {
            // As it was read: a module is a file by now.
            let read = command_files(&entry.argv, &command.dir);
            command_files(&command.argv, &command.dir).into_iter().chain(read).collect()
        }
        (HookKind::Command(_) | HookKind::Builtin(_) | HookKind::Ask(_) | HookKind::Nothing, _) => Vec::new(),
    }
}

/// The folders of an agent's skills, and those that they stand in.
fn skill_folders(config: &Config, agent: &AgentConfig) -> Vec<PathBuf> {
    let dirs = || std::iter::once(&agent.skills_dir).chain(&config.more_skills);
    // A link in there may lead elsewhere.
    let own = agent.skills.iter().flat_map(|named| dirs().map(|dir| dir.join(&named.text)));
    dirs().cloned().chain(own).filter(|path| path.exists() || path == &agent.skills_dir).collect()
}

/// The files that the command of an MCP server runs.
fn server_files(server: &McpServerConfig) -> Vec<PathBuf> {
    match &server.reach {
        McpReach::Command { argv, dir, .. } => command_files(argv, dir),
        McpReach::Url(_) => Vec::new(),
    }
}

fn command_files(argv: &[String], dir: &Path) -> Vec<PathBuf> {
    all_words(argv).iter().map(|word| dir.join(word)).filter(|path| path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_beside_the_program_belongs_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["pintle", "pintle-hook", "other"] {
            std::fs::write(at(name), "").unwrap();
        }
        assert_eq!(own_programs(at("pintle")), [at("pintle-hook"), at("pintle")]);
        assert_eq!(own_programs(at("embeds")), [at("pintle"), at("pintle-hook"), at("embeds")]);
    }
}
