//! The sections that are not made of entries: audit, store, tools, and the settings of all hooks.

use std::path::Path;

use dialects::process::config::EntryProblem;
use domain::rule::Edition;
use egress::Allow;
use rules::builtin::builtins;
use store::Durability;

use super::{LeftOut, Trusted};
use crate::config::raw::{RawAllow, RawJudge, RawRuleAllow, RawRules};
use crate::config::trust::{CHANGED, TrustStanding};
use crate::config::{Config, JudgeConfig, RulesConfig, STORE};

/// The words that `audit.durability` takes.
const DURABILITIES: [&str; 2] = ["commit", "before_effect"];

/// The words that `skills.history_trust` takes.
const TRUSTS: [&str; 2] = ["accept", "verify"];

/// Said of a key that only the user sets.
const OWN_WORD: &str = "does not count in a file that was found, accepted or not; set it in your own configuration, or \
                        in a file that you name with -c";

/// Lays the sections of one file over what is there.
pub(super) fn add(config: &mut Config, trusted: &mut Trusted, left: &mut LeftOut) {
    let raw = trusted.layer.raw.clone();
    let mut problems = Vec::new();
    if raw.hooks.is_some_and(|hooks| hooks.strict_start == Some(true)) {
        match trusted.is_trusted("hooks") {
            true => config.strict_start = true,
            false => left.add("hooks.strict_start"),
        }
    }
    if let Some(audit) = raw.audit.filter(|_| trusts(trusted, "audit", left)) {
        problems.extend(durability(config, audit.durability.as_deref()));
    }
    if let Some(store) = raw.store.filter(|_| trusts(trusted, "store", left)) {
        problems.extend(store_url(config, store.url));
    }
    if let Some(tools) = raw.tools.filter(|_| trusts(trusted, "tools", left)) {
        let exec = tools.exec.unwrap_or_default();
        config.tools.exec_inherit_env.extend(exec.inherit_env.unwrap_or_default());
        match exec.unconfined {
            Some(unconfined) if trusted.is_by_place() => config.tools.exec_unconfined = unconfined,
            Some(_) => problems.push(EntryProblem::new(&["tools", "exec", "unconfined"], OWN_WORD)),
            None => {}
        }
        let allow = tools.web_fetch.and_then(|fetch| fetch.allow).unwrap_or_default();
        for (i, raw) in allow.iter().enumerate() {
            match exception(raw) {
                Ok(allow) => config.tools.web_fetch_allow.push(allow),
                Err(problem) => problems.push(problem.under(&["tools", "web_fetch", "allow", &i.to_string()])),
            }
        }
    }
    let folder = trusted.layer.document.file.parent().map(std::path::Path::to_owned).unwrap_or_default();
    if raw.agent_hooks.is_some() && matches!(trusted.standing("agent_hooks"), TrustStanding::Changed { .. }) {
        // Accepted once, and not what was accepted: gates among them must not vanish.
        let file = trusted.layer.document.file.display();
        config.agent_hooks.changed =
            Some(format!("the rules of {file} {CHANGED}; `pintle trust` shows the difference, and accepts it"));
    }
    if let Some(hooks) = raw.agent_hooks {
        if trusts(trusted, "agent_hooks", left) {
            problems.extend(agent_hooks(&mut config.agent_hooks, hooks, &folder));
        } else if trusted.standing("agent_hooks") == TrustStanding::Unknown {
            config.agent_hooks.untrusted_dirs.extend(hooks.dir.map(|dir| folder.join(dir)));
        }
    }
    if let Some(gateway) = raw.gateway.filter(|_| trusts(trusted, "gateway", left)) {
        problems.extend(edition(config, gateway.edition.as_deref()));
    }
    if let Some(background) = raw.background.filter(|_| trusts(trusted, "background", left)) {
        lay_over(&mut config.agent_hooks.background, background);
    }
    if let Some(raw) = raw.telemetry.filter(|_| trusts(trusted, "telemetry", left)) {
        problems.extend(collector(config, raw.otlp_endpoint));
    }
    problems.into_iter().for_each(|problem| trusted.layer.report(problem));
    note_bad_store(config, trusted);
}

/// Lays what one file says of skills over what is there. Agents are read against it.
pub(super) fn add_skills(config: &mut Config, trusted: &mut Trusted, left: &mut LeftOut) {
    let Some(raw) = trusted.layer.raw.skills.clone().filter(|_| trusts(trusted, "skills", left)) else { return };
    config.skills_dir = raw.dir.map(|dir| trusted.layer.folder.join(dir)).or(config.skills_dir.take());
    if let Some(problem) = history_trust(config, raw.history_trust.as_deref()) {
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

fn trusts(trusted: &Trusted, section: &str, left: &mut LeftOut) -> bool {
    let trusts = trusted.is_trusted(section);
    if !trusts {
        left.add(section);
    }
    trusts
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
    if let Err(why) = telemetry::check_address(&address) {
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

fn store_url(config: &mut Config, url: Option<String>) -> Option<EntryProblem> {
    let url = url?;
    let follows = |prefix: &str| url.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty());
    if url == "memory:" || ["sqlite://", "postgres://", "postgresql://"].into_iter().any(follows) {
        config.store_url = url;
        return None;
    }
    // A foreign URL may hold a password, so only its scheme is repeated.
    let scheme = url.split_once(':').map_or("no scheme", |(scheme, _)| scheme);
    let message = format!("unsupported store, got {scheme:?}, expected sqlite://FILE, postgres://… or memory:");
    Some(EntryProblem::new(&["store", "url"], message))
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
fn agent_hooks(config: &mut RulesConfig, raw: RawRules, folder: &Path) -> Vec<EntryProblem> {
    let mut problems = Vec::new();
    config.dirs.extend(raw.dir.map(|dir| folder.join(dir)));
    for (i, id) in raw.builtin_disable.unwrap_or_default().into_iter().enumerate() {
        match unknown_builtin(&id) {
            None => config.builtin_disable.push(id),
            Some(problem) => problems.push(problem.under(&["agent_hooks", "builtin_disable", &i.to_string()])),
        }
    }
    config.command_env.extend(raw.command_env.unwrap_or_default());
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
