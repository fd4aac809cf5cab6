//! Layers into one configuration: every reference looked up, every default filled in.

mod agents;
mod claude;
mod doors;
mod guarded;
mod flow;
mod gateway;
mod hooks;
mod mcp;
mod providers;
mod settings;
mod team;

use std::path::Path;

use super::detect;
use super::diagnostic::{Diagnostic, dotted};
use super::found::OwnConfig;
use super::layer::Layer;
use super::places::{Env, FILE_NAMES};
use super::trust::{Acceptance, CHANGED, SpawnSeal, TrustStanding};
use super::{Config, LoadOptions, RulesFrom, TeamKey};
use crate::error::HostError;
pub(super) use claude::before as commands_before;

/// One file, and on whose word it counts.
pub(super) struct Trusted {
    /// What any file may say.
    pub(super) layer: Layer,
    word: Word,
}

/// On whose word a file counts.
enum Word {
    /// It is the user's own, or named: everything in it counts.
    Own(Box<OwnConfig>),
    /// It was found: its entries count as far as they were accepted, and there is nothing else of it.
    Found(Box<Acceptance>),
}

impl Trusted {
    /// A file that counts for its place: named, or the user's own.
    pub(super) fn own((layer, own): (Layer, OwnConfig)) -> Self {
        Self { layer, word: Word::Own(Box::new(own)) }
    }

    /// A file that was found, and how its entries stand.
    pub(super) fn found(mut layer: Layer, acceptance: Acceptance) -> Self {
        // Of what is left out nobody needs to know the mistakes.
        layer.forget(|path| {
            let entries = acceptance.paths().filter(|(entry, _)| within(path, entry));
            let entry = entries.max_by_key(|(entry, _)| entry.len());
            !acceptance.known || entry.is_some_and(|(_, standing)| *standing == TrustStanding::Unknown)
        });
        Self { layer, word: Word::Found(Box::new(acceptance)) }
    }

    /// What only the user's own files say.
    fn own_word(&self) -> Option<&OwnConfig> {
        match &self.word {
            Word::Own(own) => Some(own),
            Word::Found(_) => None,
        }
    }

    /// How its entries stand, where it was found.
    fn acceptance(&self) -> Option<&Acceptance> {
        match &self.word {
            Word::Own(_) => None,
            Word::Found(acceptance) => Some(acceptance),
        }
    }

    /// How the entry at `path` stands. What is not an entry of its own stands as its section does.
    fn standing(&self, path: &str) -> TrustStanding {
        self.acceptance().map_or(TrustStanding::Trusted, |acceptance| acceptance.standing(path))
    }

    fn is_trusted(&self, path: &str) -> bool {
        self.standing(path) == TrustStanding::Trusted
    }

    /// The seal that is checked before every spawn, for a file that is trusted by its content.
    fn seal(&self, path: &str) -> Option<SpawnSeal> {
        self.acceptance().and_then(|acceptance| acceptance.seal(path))
    }
}

/// Where hosts of agents look for the skills of a user, below the home of that user.
const SHARED_SKILLS: &str = ".agents/skills";

/// The entries that are left out of a file because it is not trusted.
struct LeftOut(Vec<LeftEntry>);

struct LeftEntry {
    /// Where it stands, as whoever accepts it is asked about it.
    path: String,
    /// What of it is left out, if not all.
    parts: String,
}

/// Resolves `layers`, the user's own first.
///
/// # Errors
/// The environment offers a provider at an address that is none.
pub(super) fn resolve(
    layers: &mut [Trusted],
    env: &Env,
    home: &Path,
    options: &LoadOptions<'_>,
) -> Result<(Config, Vec<String>), HostError> {
    let mut config = Config::empty(home.to_owned());
    // What counts the next time that somebody starts without `-c` and `--home` is as much theirs as what counts now.
    let own = env.config_folder().into_iter().flat_map(|folder| FILE_NAMES.map(|name| folder.join(name)));
    config.found_folders.extend(own);
    config.own_home = env.home(None).ok().filter(|own| own != home);
    config.more_skills = env.vars.get("HOME").map(|home| Path::new(home).join(SHARED_SKILLS)).into_iter().collect();
    let mut left_out = Vec::new();
    for (at, layer) in layers.iter_mut().enumerate() {
        let mut left = LeftOut(Vec::new());
        providers::add(&mut config, layer, &mut left);
        settings::add_skills(&mut config, layer, env);
        agents::add(&mut config, layer, env, &mut left);
        hooks::add(&mut config, layer, options.builtins, &mut left);
        hooks::add_misplaced(&mut config, layer);
        claude::add(&mut config, layer, &mut left);
        mcp::add(&mut config, layer, &mut left);
        settings::add(&mut config, layer, &mut left);
        left_out.extend(left.line(layer));
        left_out.extend(beyond(layer));
        if at == 0 {
            config.default_model = agents::default_model(&config);
        }
    }
    // One store is opened once.
    config.conversations_url = config.conversations_url.take().filter(|url| *url != config.store_url);
    agents::finish(&mut config, env);
    agents::add_gates(&mut config);
    agents::look_for_others(&config, layers);
    if config.providers.is_empty() {
        detect::add(&mut config, env, options.probe)?;
    }
    config.secrets.extend(config.providers.values().filter_map(|provider| provider.api_key_env.clone()));
    config.secrets.extend(config.model_doors.values().filter_map(|door| door.key_env.clone()));
    // What a collector is shown is nothing for the children of hooks and tools.
    config.secrets.extend(config.gateway.token_env.clone());
    config.secrets.extend(config.gateway.webhooks.iter().map(|webhook| webhook.secret_env.clone()));
    if let Some(Ok(RulesFrom { key: TeamKey::Env(name), .. })) = &config.rules_from {
        config.secrets.insert(name.clone());
    }
    config.secrets.insert(pintle_telemetry::HEADERS.to_owned());
    agents::look_up_models(&config, layers);
    Ok((config, left_out))
}

/// What of a file that was found counts nowhere, whoever accepted it, on one line.
fn beyond(trusted: &Trusted) -> Option<String> {
    let acceptance = trusted.acceptance().filter(|acceptance| acceptance.known)?;
    let never = (!acceptance.never.is_empty())
        .then(|| format!("never counts in a found file: {}", acceptance.never.join(", ")));
    let refused = (!acceptance.refused.is_empty()).then(|| format!("not loaded: {}", acceptance.refused.join(", ")));
    let said: Vec<String> = never.into_iter().chain(refused).collect();
    (!said.is_empty()).then(|| format!("{}: {}", trusted.layer.document.file.display(), said.join("; ")))
}

/// The diagnostics of `layers`, in the order of the files and of their lines.
pub(super) fn diagnostics(layers: Vec<Trusted>) -> Vec<Diagnostic> {
    let sorted = layers.into_iter().map(|trusted| {
        let mut diagnostics = trusted.layer.diagnostics;
        diagnostics.sort_by(|a, b| a.place.cmp(&b.place));
        diagnostics
    });
    sorted.flatten().collect()
}

/// Keeps the diagnostics of the bad entries of `section`, so that naming one can say what is wrong with it.
fn note_bad(config: &mut Config, trusted: &Trusted, section: &str) {
    let bad = trusted.layer.bad.iter().filter(|(path, _)| path[0] == section);
    let noted = bad.map(|(path, diagnostic)| (dotted(path), diagnostic.to_string()));
    config.broken.extend(noted.filter(|(path, _)| trusted.is_trusted(path)));
}

fn within(path: &str, entry: &str) -> bool {
    path.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl LeftOut {
    fn add(&mut self, path: impl Into<String>) {
        self.add_of(path, "");
    }

    /// Of the entry at `path`, `parts` are left out.
    fn add_of(&mut self, path: impl Into<String>, parts: &str) {
        self.0.push(LeftEntry { path: path.into(), parts: parts.to_owned() });
    }

    /// What is left out of `file`, and what of it was accepted once and changed.
    fn line(self, trusted: &Trusted) -> Option<String> {
        let changed = |left: &LeftEntry| matches!(trusted.standing(&left.path), TrustStanding::Changed { .. });
        let said = |LeftEntry { path, parts }| if parts.is_empty() { path } else { format!("{path} ({parts})") };
        let all = |left: Vec<LeftEntry>| left.into_iter().map(said).collect::<Vec<_>>().join(", ");
        let file = trusted.layer.document.file.display();
        let (changed, unknown): (Vec<_>, Vec<_>) = self.0.into_iter().partition(changed);
        let accepts = "(`pintle trust` shows what it would run, and accepts it)";
        let (changed, unknown) = (all(changed), all(unknown));
        match (unknown.is_empty(), changed.is_empty()) {
            (true, true) => None,
            (false, true) => Some(format!("{file} is not trusted; left out: {unknown} {accepts}")),
            (true, false) => Some(format!("{file} {CHANGED}; what changed is left out: {changed} {accepts}")),
            (false, false) => Some(format!(
                "{file} is not trusted; left out: {unknown}; {CHANGED}, and left out: {changed} {accepts}"
            )),
        }
    }
}
