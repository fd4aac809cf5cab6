//! The sections that are not made of entries: audit, store, tools, and the settings of all hooks.

use std::path::PathBuf;

use pintle_agent::tools::ExecShell;
use pintle_dialects::process::config::EntryProblem;
use pintle_domain::rule::Edition;
use pintle_egress::Allow;
use pintle_rules::builtin::builtins;
use pintle_store::Durability;

use super::{LeftOut, Trusted, doors, gateway, guarded, team};
use crate::config::found::{OwnConfig, can_count};
use crate::config::places::Env;
use crate::config::raw::{RawAllow, RawJudge, RawRuleAllow, RawRules};
use crate::config::trust::{CHANGED, SECTIONS, TrustStanding};
use crate::config::{Config, JudgeConfig, RulesConfig, STORE};
use crate::rule_files::RuleFolder;

/// The words that `audit.durability` takes.
const DURABILITIES: [&str; 2] = ["commit", "before_effect"];

/// The words that `skills.history_trust` takes.
const TRUSTS: [&str; 2] = ["accept", "verify"];

/// Lays the sections of one file over what is there.
pub(super) fn add(config: &mut Config, trusted: &mut Trusted, left: &mut LeftOut) {
    let raw = trusted.layer.raw.clone();
    if raw.hooks.strict_start == Some(true) {
        match trusted.standing("hooks") {
            TrustStanding::Trusted => config.strict_start = true,
            // Whoever asked for it still wants it while somebody looks at what changed.
            TrustStanding::Changed { .. } => config.strict_start = true,
            TrustStanding::Unknown => left.add("hooks.strict_start"),
        }
    }
    let mut problems = match trusted.own_word() {
        Some(own) => {
            let folder = trusted.layer.folder.clone();
            gateway::lay_over(&mut config.gateway, &own.gateway, &folder)
                .into_iter()
                .chain(own_settings(config, own))
                .chain(team::rules_from(config, own.guard.rules_from.as_ref(), &folder))
                .collect()
        }
        None => found_settings(config, trusted, left),
    };
    let folder = trusted.layer.folder.clone();
    let is_own = trusted.own_word().is_some();
    let rules = |dir: &String| match is_own {
        true => RuleFolder::own(folder.join(dir)),
        false => RuleFolder::found(folder.join(dir), &folder),
    };
    let rules: Option<RuleFolder> = raw.rules_dir.as_ref().map(rules).filter(|rules| !rules.is_out());
    match trusted.standing("agent_hooks") {
        TrustStanding::Trusted => {
            config.agent_hooks.dirs.extend(rules);
            config.agent_hooks.command_env.extend(raw.command_env);
        }
        TrustStanding::Unknown => config.agent_hooks.untrusted_dirs.extend(rules),
        // Accepted once, and not what was accepted: gates among them must not vanish.
        TrustStanding::Changed { .. } => {
            let file = trusted.layer.document.file.display();
            config.agent_hooks.changed =
                Some(format!("the rules of {file} {CHANGED}; `pintle trust` shows the difference, and accepts it"));
        }
    }
    if trusted.is_trusted("tools") {
        config.tools.exec_inherit_env.extend(raw.exec_inherit_env);
    }
    problems.drain(..).for_each(|problem| trusted.layer.report(problem));
    note_bad_store(config, trusted);
    if is_own {
        doors::note_bad(config, &trusted.layer.diagnostics);
    }
}

/// What only the user's own files say.
fn own_settings(config: &mut Config, own: &OwnConfig) -> Vec<EntryProblem> {
    let mut problems = Vec::new();
    problems.extend(durability(config, own.audit.durability.as_deref()));
    problems.extend(exec_shell(config, own.exec_shell.as_deref()));
    config.tools.exec_unconfined = own.exec_unconfined.unwrap_or(config.tools.exec_unconfined);
    match own.store_url.as_deref().map(store_url) {
        Some(Ok(url)) => config.store_url = url,
        Some(Err(problem)) => problems.push(problem),
        None => {}
    }
    for (i, raw) in own.web_fetch.allow.iter().flatten().enumerate() {
        match exception(raw) {
            Ok(allow) => config.tools.web_fetch_allow.push(allow),
            Err(problem) => problems.push(problem.under(&["tools", "web_fetch", "allow", &i.to_string()])),
        }
    }
    problems.extend(agent_hooks(&mut config.agent_hooks, own.rules.clone()));
    problems.extend(edition(config, own.gateway.edition.as_deref()));
    lay_over(&mut config.agent_hooks.background, own.background.clone());
    problems.extend(collector(config, own.telemetry.otlp_endpoint.clone()));
    problems.extend(doors::add(config, own.doors.clone()));
    problems.extend(guarded::add(config, own.guard.clone()));
    problems
}

/// What a found file says beyond its entries: where its conversations are, and where no tool may write.
fn found_settings(config: &mut Config, trusted: &Trusted, left: &mut LeftOut) -> Vec<EntryProblem> {
    let Some(acceptance) = trusted.acceptance() else { return Vec::new() };
    let is_left = |section: &str| match can_count(section) {
        true => !trusted.is_trusted(section),
        false => !acceptance.known,
    };
    let root = &trusted.layer.document.root;
    SECTIONS
        .into_iter()
        .filter(|section| root.get(section).is_some() && is_left(section))
        .for_each(|name| left.add(name));
    let raw = &trusted.layer.raw;
    let names_skills = raw.skills_dir.is_some() || raw.agents.values().any(|agent| agent.skills.is_some());
    let skills = acceptance.skills_dir().filter(|_| names_skills).cloned();
    let rules = raw.rules_dir.as_ref().map(|dir| trusted.layer.folder.join(dir));
    config.found_folders.extend(skills.into_iter().chain(rules));
    match raw.conversations.as_deref().filter(|_| trusted.is_trusted("store")).map(store_url) {
        Some(Ok(url)) => config.conversations_url = Some(url),
        Some(Err(problem)) => return vec![problem],
        None => {}
    }
    Vec::new()
}

/// Lays what one file says of skills over what is there. Agents are read against it.
pub(super) fn add_skills(config: &mut Config, trusted: &mut Trusted, env: &Env) {
    // A found file's own agents have its folder; nobody else's.
    let Some(own) = trusted.own_word() else { return };
    let word = own.history_trust.clone();
    let dir = trusted.layer.raw.skills_dir.as_ref().map(|dir| trusted.layer.folder.join(dir));
    config.skills_dir = dir.or(config.skills_dir.take());
    if let Some(dirs) = &own.skills_dirs {
        let home = env.vars.get("HOME").map(PathBuf::from);
        let placed = |dir: &String| match (dir.strip_prefix("~/"), &home) {
            (Some(below), Some(home)) => home.join(below),
            (Some(_), None) | (None, _) => trusted.layer.folder.join(dir),
        };
        config.more_skills = dirs.iter().map(placed).collect();
    }
    if let Some(problem) = history_trust(config, word.as_deref()) {
        trusted.layer.report(problem);
    }
}

/// A store that nobody can make out must not become another one: the record would be where nobody looks for it.
fn note_bad_store(config: &mut Config, trusted: &Trusted) {
    let of_the_store = |path: &str| path == "store" || path.starts_with("store.");
    let bad = trusted.layer.diagnostics.iter().find(|diagnostic| of_the_store(&diagnostic.path));
    if let Some(bad) = bad.filter(|_| trusted.is_trusted("store")) {
        config.broken.insert(STORE.to_owned(), bad.to_string());
    }
}

fn exec_shell(config: &mut Config, path: Option<&str>) -> Option<EntryProblem> {
    let path = path?;
    if !path.starts_with('/') {
        let message = format!("expected the absolute path of a shell, such as /bin/bash, got \"{path}\"");
        return Some(EntryProblem::new(&["tools", "exec", "shell"], message));
    }
    config.tools.exec_shell = ExecShell::new(path.into());
    None
}

fn durability(config: &mut Config, word: Option<&str>) -> Option<EntryProblem> {
    config.durability = match word {
        None => config.durability,
        Some("commit") => Durability::Commit,
        Some("before_effect") => Durability::BeforeEffect,
        Some(word) => {
            let message = format!("unsupported durability \"{word}\", expected {}", DURABILITIES.join(" or "));
            return Some(EntryProblem::new(&["audit", "durability"], message).meant(word, DURABILITIES));
        }
    };
    None
}

fn collector(config: &mut Config, address: Option<String>) -> Option<EntryProblem> {
    let address = address?;
    if let Err(why) = pintle_telemetry::check_address(&address) {
        return Some(EntryProblem::new(&["telemetry", "otlp_endpoint"], why));
    }
    config.otlp_endpoint = Some(address);
    None
}

fn history_trust(config: &mut Config, word: Option<&str>) -> Option<EntryProblem> {
    config.verify_history = match word {
        None => config.verify_history,
        Some("accept") => false,
        Some("verify") => true,
        Some(word) => {
            // Whoever names one wants something of it, and this is the one that believes less.
            config.verify_history = true;
            let message = format!("unsupported trust \"{word}\", expected {}", TRUSTS.join(" or "));
            return Some(EntryProblem::new(&["skills", "history_trust"], message).meant(word, TRUSTS));
        }
    };
    None
}

fn store_url(url: &str) -> Result<String, EntryProblem> {
    let follows = |prefix: &str| url.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty());
    if url == "memory:" || ["sqlite://", "postgres://", "postgresql://"].into_iter().any(follows) {
        return Ok(url.to_owned());
    }
    // A foreign URL may hold a password, so only its scheme is repeated.
    let scheme = url.split_once(':').map_or("no scheme", |(scheme, _)| scheme);
    let message = format!("unsupported store, got {scheme:?}, expected sqlite://FILE, postgres://… or memory:");
    Err(EntryProblem::new(&["store", "url"], message))
}

fn edition(config: &mut Config, word: Option<&str>) -> Option<EntryProblem> {
    let word = word?;
    match Edition::named(word) {
        Some(edition) => config.agent_hooks.edition = Some(edition),
        None => {
            let words = Edition::ALL.iter().map(|edition| edition.word());
            let message = format!("unsupported edition \"{word}\", expected lite or standard");
            return Some(EntryProblem::new(&["gateway", "edition"], message).meant(word, words));
        }
    }
    None
}

/// The words that `agent_hooks.outbox` takes.
const OUTBOXES: [&str; 2] = ["memory", "durable"];

/// Lays the rules' settings of one file over what is there; lists grow.
fn agent_hooks(config: &mut RulesConfig, raw: RawRules) -> Vec<EntryProblem> {
    let mut problems = Vec::new();
    for (i, id) in raw.builtin_disable.unwrap_or_default().into_iter().enumerate() {
        match unknown_builtin(&id) {
            None => config.builtin_disable.push(id),
            Some(problem) => problems.push(problem.under(&["agent_hooks", "builtin_disable", &i.to_string()])),
        }
    }
    match raw.outbox.as_deref() {
        None => {}
        Some("memory") => config.durable_outbox = false,
        Some("durable") => config.durable_outbox = true,
        Some(word) => {
            let message = format!("unsupported outbox \"{word}\", expected {}", OUTBOXES.join(" or "));
            problems.push(EntryProblem::new(&["agent_hooks", "outbox"], message).meant(word, OUTBOXES));
        }
    }
    let kept = &mut config.kept;
    kept.execution_days = raw.retention_days.or(kept.execution_days);
    kept.detail_days = raw.error_detail_days.or(kept.detail_days);
    kept.audit_days = raw.audit_retention_days.or(kept.audit_days);
    config.workers = raw.workers.map(|workers| workers as usize).or(config.workers);
    config.queue = raw.queue.map(|queue| queue as usize).or(config.queue);
    lay_over(&mut config.judge, raw.prompt.unwrap_or_default());
    for (i, raw) in raw.http.and_then(|http| http.allow).unwrap_or_default().into_iter().enumerate() {
        let RawRuleAllow { host, cidr, ports, tenants } = raw;
        let allow = exception(&RawAllow { host, cidr, ports }).and_then(|allow| match tenants {
            None => Ok(allow),
            Some(tenants) => {
                allow.for_tenants(&tenants).map_err(|why| EntryProblem::new(&["tenants"], why.to_string()))
            }
        });
        match allow {
            Ok(allow) => config.http_allow.push(allow),
            Err(problem) => problems.push(problem.under(&["agent_hooks", "http", "allow", &i.to_string()])),
        }
    }
    problems
}

/// Who writes a name that there is not believes something to be off that is on.
fn unknown_builtin(id: &str) -> Option<EntryProblem> {
    let builtins = builtins();
    let known = || builtins.iter().map(|builtin| builtin.id.as_str());
    let names = || known().collect::<Vec<_>>().join(" or ");
    let unknown = || format!("there is no built-in rule {id:?}, expected {}", names());
    (!known().any(|known| known == id)).then(|| EntryProblem::new(&[], unknown()).meant(id, known()))
}

fn lay_over(judge: &mut JudgeConfig, raw: RawJudge) {
    judge.provider = raw.provider.or(judge.provider.take());
    judge.model = raw.model.or(judge.model.take());
}

fn exception(raw: &RawAllow) -> Result<Allow, EntryProblem> {
    let ports = raw.ports.clone().unwrap_or_default();
    match (&raw.host, &raw.cidr) {
        (Some(host), None) => Allow::host(host, ports).map_err(|why| EntryProblem::new(&["host"], why.to_string())),
        (None, Some(cidr)) => Allow::cidr(cidr, ports).map_err(|why| EntryProblem::new(&["cidr"], why.to_string())),
        (None, None) | (Some(_), Some(_)) => Err(EntryProblem::new(&[], "expected either host or cidr")),
    }
}
