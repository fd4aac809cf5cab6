//! `pintle hooks lint`: everything that is wrong with the configuration and with its files of rules, and what is probably
//! wrong with its hooks.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use pintle_dialects::process::config::{MemberPart, ProcessEntry};
use pintle_domain::hook::{Hook, HookState};
use pintle_domain::id::{AgentId, TenantId};
use pintle_domain::nearest::nearest;
use pintle_domain::rule::Source;
use pintle_domain::store::{StoredRules, Tenant};
use pintle_rules::handler::is_script;
use pintle_store::Store;

use super::super::session::word;
use super::super::{Global, terminal};
use crate::clean::clean;
use crate::error::{CliError, USAGE};
use crate::guard::tool_door::check_name;
use pintle_host::blind::{self, is_guard, place_in};
use pintle_host::config::commands::{self, REPLACEABLE};
use pintle_host::config::document::Document;
use pintle_host::config::{self, Config, Diagnostic, Env, HookKind, LoadOptions, Loaded, LoadedHook};
use pintle_host::host::{load, open_store, unreadable};
use pintle_host::host_rules::edition;
use pintle_host::rule_files::{FileContext, FileProblem, FiledRules, GoodRule};

/// Said of a hook that observes events by names of both forms.
const MIXED: &str = "names of both forms; the hook is told `hook.event`, as without dots; say which with events = \"hook\" \
                     or events = \"runtime\"";

/// Flags of `hooks lint`.
#[derive(Debug, Args)]
pub struct LintArgs {
    /// A file: the configuration names those that are looked at
    #[arg(value_name = "FILE", hide = true)]
    file: Option<PathBuf>,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

pub(super) fn run(global: &Global, args: &LintArgs) -> Result<u8, CliError> {
    if let Some(file) = &args.file {
        let file = file.to_string_lossy();
        return Err(CliError::usage(format!("lint takes no file, got \"{}\"", clean(&file)))
            .hint(format!("`pintle hooks test --file {}` tries the rules of a file", word(&file)))
            .hint("for another configuration: `pintle -c FILE hooks lint`"));
    }
    let (env, loaded) = match load(global.config.as_deref(), global.home.as_deref()) {
        Ok(loaded) => loaded,
        Err(error) => {
            // Whoever asked for JSON reads what is wrong there, too.
            let found = unreadable(global.config.as_deref()).filter(|_| args.json);
            found.map(|found| terminal::say(&json(&[found])?)).transpose()?;
            return Err(error.into());
        }
    };
    let found = findings(&env, loaded, global.home.as_deref())?;
    let plain = || found.iter().map(|found| format!("{}\n", clean(&found.to_string()))).collect::<String>();
    if args.json {
        terminal::say(&json(&found)?)?
    } else {
        terminal::tell(&plain())?
    }
    if found.is_empty() && !args.json {
        terminal::note("no mistakes");
    }
    Ok(if found.is_empty() { 0 } else { USAGE })
}

fn json(found: &[Diagnostic]) -> Result<String, CliError> {
    let text = serde_json::to_string_pretty(found).map_err(|error| CliError::failed(error.to_string()))?;
    Ok(format!("{text}\n"))
}

/// Everything that is wrong, file by file.
fn findings(env: &Env, mut loaded: Loaded, home: Option<&Path>) -> Result<Vec<Diagnostic>, CliError> {
    let mut found = loaded.diagnostics;
    found.extend(config::twins(&loaded.files));
    // What nobody accepted yet may bring the tools that a matcher is about, so these are looked for once more.
    let blind = blind::findings(env, &loaded.config, &loaded.files);
    found.retain(|diagnostic| !blind.contains(diagnostic));
    // Nothing is run here, so what nobody accepted yet is looked at as well.
    if !loaded.left_out.is_empty() {
        for file in &loaded.files {
            let options = LoadOptions { config: Some(file), home, ..LoadOptions::default() };
            let alone = config::load(env, &options)?;
            let hooks = alone.diagnostics.into_iter().filter(|diagnostic| diagnostic.path.starts_with("hooks"));
            // Once it is accepted, what it runs is looked at before every start.
            let hooks = hooks.filter(|diagnostic| !diagnostic.message.starts_with(REPLACEABLE));
            found.extend(hooks);
            adopt(&mut loaded.config, alone.config);
        }
    }
    let eye =
        Linter { env, documents: loaded.files.iter().filter_map(|file| config::parsed(env, file).ok()).collect() };
    found.extend(loaded.config.hooks.iter().flat_map(|hook| eye.suspicions(hook)));
    found.extend(eye.of_guard(&loaded.config));
    found.extend(rules(env, &loaded.config)?);
    found.extend(blind::findings(env, &loaded.config, &loaded.files));
    found.sort_by(|a, b| (&a.place, &a.path, &a.message).cmp(&(&b.place, &b.path, &b.message)));
    found.dedup();
    Ok(found)
}

/// What is wrong with the rules of files, and which of these and of the stored ones are about no tool. They are read as
/// at a start; nothing of it is kept.
fn rules(env: &Env, config: &Config) -> Result<Vec<Diagnostic>, CliError> {
    let agents: Vec<AgentId> = config.agents.values().map(|agent| AgentId::from(agent.name.as_str())).collect();
    // Only who names a tenant beside the first has to have it; whatever is wrong with the store is not wrong with a file.
    let known = known_store(config)
        .and_then(|store| store.rules().ok())
        .unwrap_or_else(|| StoredRules { tenants: vec![first_tenant()], ..StoredRules::default() });
    let own = || known.hooks.iter().filter(|rule| rule.source == Source::User && rule.file().is_none());
    let stored = own().filter_map(|rule| blind::of_rule(config, rule, Path::new(&config.store_url)));
    let mut stored: Vec<Diagnostic> = stored.collect();
    stored.extend(own().filter_map(|rule| commands::finding(rule, Path::new(&config.store_url))));
    if config.agent_hooks.dirs.is_empty() {
        return Ok(stored);
    }
    let reader = FileContext {
        config: &config.agent_hooks,
        edition: edition(config, env)?,
        agents: &agents,
        tenants: &known.tenants,
        stored: &known.hooks,
        seal: &Ok,
    };
    let FiledRules { bad, odd, good } = reader.read();
    let file_of = |good: &GoodRule| good.plain.file().map(PathBuf::from);
    let filed = good.iter().filter_map(|good| blind::of_rule(config, &good.plain, &file_of(good)?));
    let replaceable = good.iter().filter_map(|good| commands::finding(&good.plain, &file_of(good)?));
    let filed = filed.chain(replaceable);
    Ok(bad.into_iter().map(FileProblem::placed).chain(odd).map(with_nearest).chain(filed).chain(stored).collect())
}

/// The store, if there is one already: looking for mistakes makes none.
fn known_store(config: &Config) -> Option<Arc<dyn Store>> {
    let file = config.store_url.strip_prefix("sqlite://").map(|file| config.home.join(file));
    if file.is_some_and(|file| !file.is_file()) { None } else { open_store(config).ok() }
}

fn first_tenant() -> Tenant {
    let name = "default".to_owned();
    Tenant { id: TenantId::default_tenant(), slug: name.clone(), name, created_at: String::new() }
}

/// A diagnostic whose message names what was probably meant, with that name by itself.
fn with_nearest(found: Diagnostic) -> Diagnostic {
    let split = found.message.split_once(" (did you mean \"").and_then(|(message, rest)| {
        let (nearest, rest) = rest.rsplit_once("\"?)")?;
        rest.is_empty().then(|| (message.to_owned(), nearest.to_owned()))
    });
    match split {
        Some((message, nearest)) => Diagnostic { message, nearest: Some(nearest), ..found },
        None => found,
    }
}

/// Puts hooks of a file that was read by itself in the place of those that are idle because nobody accepted it.
fn adopt(config: &mut Config, alone: Config) {
    config.mcp.extend(alone.mcp);
    config.agent_hooks.dirs.extend(alone.agent_hooks.dirs);
    let mut seen = BTreeSet::new();
    config.agent_hooks.dirs.retain(|folder| seen.insert(folder.dir.clone()));
    let mut alone: BTreeMap<String, LoadedHook> =
        alone.hooks.into_iter().map(|loaded| (loaded.hook.origin.clone(), loaded)).collect();
    for loaded in config.hooks.iter_mut().filter(|loaded| loaded.hook.state == HookState::Untrusted) {
        if let Some(read) = alone.remove(&loaded.hook.origin) {
            *loaded = read;
        }
    }
}

/// Looks for what is probably wrong with hooks that are well-formed.
struct Linter<'a> {
    env: &'a Env,
    /// The files, so that what is found can be shown where it stands.
    documents: Vec<Document>,
}

impl Linter<'_> {
    fn suspicions(&self, loaded: &LoadedHook) -> Vec<Diagnostic> {
        let hook = &loaded.hook;
        if hook.state != HookState::Armed {
            return Vec::new();
        }
        let mut found = Vec::new();
        match &loaded.kind {
            HookKind::Process(entry) => {
                let missing = missing(self.env, entry);
                found.extend(missing.map(|(keys, message)| self.suspicion(hook, &keys, message)));
                let mixed = entry.mixed_events.then(|| MIXED.to_owned());
                found.extend(mixed.map(|message| self.suspicion(hook, &["observe".to_owned()], message)));
            }
            HookKind::Command(_) | HookKind::Builtin(_) | HookKind::Ask(_) | HookKind::Nothing => {}
        }
        found
    }

    /// What of agents under guard, and of doors, can never count as it is written.
    fn of_guard(&self, config: &Config) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (host, guarded) in &config.guard_hosts {
            let Some(agent) = guarded.agent.as_deref().filter(|agent| config.agent(Some(agent)).is_err()) else {
                continue;
            };
            let message = format!("`{agent}` is no agent here, so each prompt and call of `{host}` is refused");
            let nearest = nearest(agent, config.agents.keys().map(String::as_str));
            let nearest = nearest.map(str::to_owned);
            found.extend(self.written(&["guard", "hosts", host.as_str(), "agent"], message, nearest));
        }
        for (server, why) in config.tool_doors.keys().filter_map(|name| Some((name, check_name(name).err()?))) {
            let hint = why.hints.first().map(|hint| format!(", {hint}")).unwrap_or_default();
            let message = format!("{}{hint}, so nothing of it counts", why.message);
            found.extend(self.written(&["doors", "tool", server.as_str()], message, None));
        }
        found
    }

    /// A mistake where `path` stands, in the file that has it.
    fn written(&self, path: &[&str], message: String, nearest: Option<String>) -> Option<Diagnostic> {
        let document = self.documents.iter().find(|document| document.root.at(path).is_some())?;
        let path: Vec<String> = path.iter().map(|step| (*step).to_owned()).collect();
        let place = document.place(&path, MemberPart::Value);
        Some(Diagnostic { place, path: config::diagnostic::dotted(&path), message, nearest, guard: true })
    }

    fn suspicion(&self, hook: &Hook, keys: &[String], message: String) -> Diagnostic {
        let entry = ["hooks", "processes", hook.name.as_str()].map(str::to_owned);
        let path: Vec<String> = entry.into_iter().chain(keys.iter().cloned()).collect();
        Diagnostic {
            place: place_in(&self.documents, &hook.origin, &path),
            path: config::diagnostic::dotted(&path),
            message,
            nearest: None,
            guard: is_guard(hook),
        }
    }
}

/// What a command names and is not there, and the keys that lead to the word.
fn missing(env: &Env, entry: &ProcessEntry) -> Option<(Vec<String>, String)> {
    if !entry.dir.is_dir() {
        return Some((vec!["dir".to_owned()], format!("the folder {} does not exist", entry.dir.display())));
    }
    let word = |number: usize| vec!["command".to_owned(), number.to_string()];
    let program = entry.argv.first()?;
    if !is_program(env, entry, program) {
        let place =
            if program.contains('/') { "does not exist or is not executable" } else { "was not found through PATH" };
        return Some((word(0), format!("the program `{program}` {place}")));
    }
    let words = entry.argv.iter().enumerate().skip(1);
    let (number, gone) = words.into_iter().find(|(_, word)| is_script(word) && !entry.dir.join(word).exists())?;
    let folder = format!(" in {}", entry.dir.display());
    let folder = if Path::new(gone).is_absolute() { "" } else { &folder };
    Some((word(number), format!("the file `{gone}` does not exist{folder}")))
}

fn is_program(env: &Env, entry: &ProcessEntry, word: &str) -> bool {
    use nix::unistd::{AccessFlags, access};
    let runs = |path: PathBuf| path.is_file() && access(&path, AccessFlags::X_OK).is_ok();
    if word.contains('/') {
        return runs(entry.dir.join(word));
    }
    let own = entry.env.get("PATH").map(OsStr::new);
    let search = own.or_else(|| env.vars.get("PATH").map(AsRef::as_ref)).unwrap_or(OsStr::new("/bin:/usr/bin"));
    std::env::split_paths(search).any(|folder| runs(entry.dir.join(folder).join(word)))
}
