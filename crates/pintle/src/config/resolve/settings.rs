//! The sections that are not made of entries: audit, store, tools, and the settings of all hooks.

use dialects::process::config::Problem;
use engine::egress::Allow;
use store::Durability;

use super::{LeftOut, Trusted};
use crate::config::raw::RawAllow;
use crate::config::{Config, STORE};

/// The words that `audit.durability` takes.
const DURABILITIES: [&str; 2] = ["commit", "before_effect"];

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
        config.tools.exec_inherit_env.extend(tools.exec.and_then(|exec| exec.inherit_env).unwrap_or_default());
        let allow = tools.web_fetch.and_then(|fetch| fetch.allow).unwrap_or_default();
        for (i, raw) in allow.iter().enumerate() {
            match exception(raw) {
                Ok(allow) => config.tools.web_fetch_allow.push(allow),
                Err(problem) => problems.push(problem.under(&["tools", "web_fetch", "allow", &i.to_string()])),
            }
        }
    }
    problems.into_iter().for_each(|problem| trusted.layer.report(problem));
    note_bad_store(config, trusted);
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

fn durability(config: &mut Config, word: Option<&str>) -> Option<Problem> {
    config.durability = match word {
        None => config.durability,
        Some("commit") => Durability::Commit,
        Some("before_effect") => Durability::BeforeEffect,
        Some(word) => {
            let message = format!("unsupported durability \"{word}\", expected {}", DURABILITIES.join(" or "));
            return Some(Problem::new(&["audit", "durability"], message).meant(word, DURABILITIES));
        }
    };
    None
}

fn store_url(config: &mut Config, url: Option<String>) -> Option<Problem> {
    let url = url?;
    if url == "memory:" || url.strip_prefix("sqlite://").is_some_and(|file| !file.is_empty()) {
        config.store_url = url;
        return None;
    }
    // A foreign URL may hold a password, so only its scheme is repeated.
    let scheme = url.split_once(':').map_or("no scheme", |(scheme, _)| scheme);
    let message = format!("unsupported store, got {scheme:?}, expected sqlite://FILE or memory:");
    Some(Problem::new(&["store", "url"], message))
}

fn exception(raw: &RawAllow) -> Result<Allow, Problem> {
    let ports = raw.ports.clone().unwrap_or_default();
    match (&raw.host, &raw.cidr) {
        (Some(host), None) => Allow::host(host, ports).map_err(|why| Problem::new(&["host"], why.to_string())),
        (None, Some(cidr)) => Allow::cidr(cidr, ports).map_err(|why| Problem::new(&["cidr"], why.to_string())),
        (None, None) | (Some(_), Some(_)) => Err(Problem::new(&[], "expected either host or cidr")),
    }
}
