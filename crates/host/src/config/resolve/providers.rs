//! Providers: where requests to models go.

use std::path::PathBuf;

use pintle_dialects::process::config::EntryProblem;
use pintle_providers::capabilities::{MessageAfter, MessageBefore, MidSystem, Overrides, Placement};
use url::Url;

use super::{LeftOut, Trusted, note_bad};
use crate::config::diagnostic::dotted;
use crate::config::layer::{Layer, entry_path};
use crate::config::raw::{RawCapabilities, RawPlacement, RawProvider};
use crate::config::{Config, ProviderConfig, ProviderConfigKind};
use pintle_providers::{ToolMode, WireKind};

/// The words that `tool_mode` takes.
const TOOL_MODES: [&str; 2] = ["native", "json_schema"];

/// The words that `mid_system` takes.
const MID_SYSTEM: [(&str, MidSystem); 3] =
    [("free", MidSystem::Free), ("placed", MidSystem::Placed), ("none", MidSystem::None)];

/// The words that `placement.after` takes.
const AFTER: [(&str, MessageBefore); 3] =
    [("user", MessageBefore::User), ("assistant", MessageBefore::Assistant), ("tool", MessageBefore::Tool)];

/// The words that `placement.before` takes.
const BEFORE: [(&str, MessageAfter); 3] =
    [("user", MessageAfter::User), ("assistant", MessageAfter::Assistant), ("end", MessageAfter::End)];

/// Adds the providers of one file. They come on top of those of earlier files and never replace one.
pub(super) fn add(config: &mut Config, trusted: &mut Trusted, left: &mut LeftOut) {
    for member in trusted.layer.entries(&["providers"]) {
        let path = dotted(&entry_path(&["providers"], &member.key));
        if !trusted.is_trusted(&path) {
            left.add(path);
        }
    }
    for (name, raw) in trusted.layer.raw.providers.clone() {
        let path = dotted(&["providers", &name]);
        if !trusted.is_trusted(&path) {
            continue;
        }
        // What the user's own agents and judges are sent must not go elsewhere.
        let is_taken = config.providers.contains_key(&name) || config.broken.contains_key(&path);
        if trusted.acceptance().is_some() && is_taken {
            let message = format!("duplicate provider name \"{name}\": a found file adds to yours and replaces none");
            trusted.layer.remark(EntryProblem::new(&["providers", &name], message));
            continue;
        }
        match read(&raw, &trusted.layer) {
            Ok(provider) => drop(config.providers.insert(name, provider)),
            Err(problems) => {
                problems.into_iter().for_each(|problem| trusted.layer.report(problem.under(&["providers", &name])));
            }
        }
    }
    note_bad(config, trusted, "providers");
}

fn read(raw: &RawProvider, layer: &Layer) -> Result<ProviderConfig, Vec<EntryProblem>> {
    let mut problems = Vec::new();
    let wire = raw.kind.as_deref().and_then(WireKind::named);
    let base_url = raw.base_url.as_deref().and_then(|url| read_url(url).map_err(|why| problems.push(why)).ok());
    if raw.api_key_env.as_deref().is_some_and(|name| !is_variable(name)) {
        // What stands there may be the key itself, so it is not repeated.
        problems.push(EntryProblem::new(&["api_key_env"], "expected the name of a variable, never the key itself"));
    }
    let tool_mode = match raw.tool_mode.as_deref() {
        None | Some("native") => ToolMode::Native,
        Some("json_schema") => ToolMode::JsonSchema,
        Some(word) => {
            let problem = EntryProblem::new(
                &["tool_mode"],
                format!("unsupported tool_mode \"{word}\", expected native or json_schema"),
            );
            problems.push(problem.meant(word, TOOL_MODES));
            ToolMode::Native
        }
    };
    problems.extend(wire.map(|wire| misplaced(raw, wire)).unwrap_or_default());
    let takes = raw.capabilities.as_ref().map(overrides).unwrap_or_else(|| Ok(Overrides::default()));
    let takes = takes.map_err(|problem| problems.push(problem)).unwrap_or_default();
    let kind = match (wire, &raw.script) {
        (Some(wire), _) if wire.has_server() => Ok(ProviderConfigKind::Server { wire, base_url, tool_mode }),
        (Some(_), Some(script)) => Ok(ProviderConfigKind::Scripted { script: layer.folder.join(script) }),
        (Some(_), None) => Err(EntryProblem::new(&["script"], "script is required: the file of replies")),
        (None, _) => Err(no_kind(raw.kind.as_deref())),
    };
    match kind {
        Ok(kind) if problems.is_empty() => {
            let vision = raw.capabilities.as_ref().and_then(|capabilities| capabilities.vision);
            let vision = vision.unwrap_or_else(|| kind.sees());
            Ok(ProviderConfig { kind, api_key_env: raw.api_key_env.clone(), vision, takes })
        }
        Ok(_) => Err(problems),
        Err(problem) => {
            problems.push(problem);
            Err(problems)
        }
    }
}

/// The word for the kind is missing, or none.
fn no_kind(word: Option<&str>) -> EntryProblem {
    let words = WireKind::words().collect::<Vec<_>>().join(", ");
    match word {
        Some(word) => {
            let message = format!("unsupported kind \"{word}\", expected {words}");
            EntryProblem::new(&["kind"], message).meant(word, WireKind::words())
        }
        None => EntryProblem::new(&["kind"], format!("kind is required: {words}")),
    }
}

/// What is said of where messages may stand.
fn overrides(raw: &RawCapabilities) -> Result<Overrides, EntryProblem> {
    let at = |key: &'static str| move |problem: EntryProblem| problem.under(&["capabilities", key]);
    let mid_system = raw.mid_system.as_deref().map(|text| word(text, &MID_SYSTEM).map_err(at("mid_system")));
    let takes = Overrides {
        mid_system: mid_system.transpose()?,
        placement: raw.placement.as_ref().map(|raw| placement(raw).map_err(at("placement"))).transpose()?,
        alternation: raw.alternation,
        user_after_tool: raw.user_after_tool,
        turn_scoped: raw.turn_scoped.clone(),
        prefix_bound_reasoning: raw.prefix_bound_reasoning,
        cache_breakpoints: raw.cache_breakpoints,
    };
    takes.check().map_err(|error| EntryProblem::new(&["capabilities"], error.to_string()))?;
    Ok(takes)
}

fn placement(raw: &RawPlacement) -> Result<Placement, EntryProblem> {
    let after = raw.after.iter().map(|text| word(text, &AFTER).map_err(|problem| problem.under(&["after"])));
    let before = raw.before.iter().map(|text| word(text, &BEFORE).map_err(|problem| problem.under(&["before"])));
    Ok(Placement {
        after: after.collect::<Result<_, _>>()?,
        before: before.collect::<Result<_, _>>()?,
        consecutive: raw.consecutive,
    })
}

/// What `text` stands for among `words`.
fn word<T: Copy>(text: &str, words: &[(&'static str, T)]) -> Result<T, EntryProblem> {
    let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
    let found = words.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    let message = || format!("unsupported word \"{text}\", expected {}", names.join(", "));
    found.ok_or_else(|| EntryProblem::new(&[], message()).meant(text, names.iter().copied()))
}

/// Keys that would have no effect on a provider of this kind.
fn misplaced(raw: &RawProvider, wire: WireKind) -> Vec<EntryProblem> {
    let (kind, has_server) = (wire.word(), wire.has_server());
    let set = [
        ("base_url", raw.base_url.is_some(), !has_server),
        ("api_key_env", raw.api_key_env.is_some(), !has_server),
        ("tool_mode", raw.tool_mode.is_some(), !wire.has_tool_modes()),
        ("script", raw.script.is_some(), has_server),
        ("capabilities", raw.capabilities.is_some(), !has_server),
    ];
    set.iter()
        .filter(|(_, set, misplaced)| *set && *misplaced)
        .map(|(key, ..)| EntryProblem::new(&[key], format!("{key} has no meaning for kind \"{kind}\"")))
        .collect()
}

fn read_url(text: &str) -> Result<Url, EntryProblem> {
    let bad = |why: &str| Err(EntryProblem::new(&["base_url"], format!("expected an http or https URL, {why}")));
    match Url::parse(text) {
        Ok(url) if url.password().is_some() => bad("without a password; name a variable in api_key_env"),
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        Ok(url) => bad(&format!("got the scheme \"{}\"", url.scheme())),
        // What stands before an `@` may be a password.
        Err(why) if text.contains('@') => bad(&why.to_string()),
        Err(why) => bad(&format!("got {text:?}: {why}")),
    }
}

fn is_variable(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl ProviderConfigKind {
    /// Whether its models see images, as far as one can tell without asking.
    pub(in crate::config) fn sees(&self) -> bool {
        match self {
            Self::Server { wire, base_url, tool_mode } => wire.sees(base_url.is_none(), *tool_mode),
            Self::Scripted { .. } => false,
        }
    }
}

impl ProviderConfig {
    /// The file of replies, for a scripted provider.
    pub fn script(&self) -> Option<&PathBuf> {
        match &self.kind {
            ProviderConfigKind::Scripted { script } => Some(script),
            ProviderConfigKind::Server { .. } => None,
        }
    }
}
