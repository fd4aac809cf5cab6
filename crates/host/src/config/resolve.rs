//! Layers into one configuration: every reference looked up, every default filled in.

mod agents;
mod flow;
mod hooks;
mod mcp;
mod providers;
mod settings;

use std::collections::BTreeMap;
use std::path::Path;

use super::detect;
use super::diagnostic::{Diagnostic, dotted};
use super::layer::Layer;
use super::places::Env;
use super::trust::{SpawnSeal, TrustStanding, TrustStore, entries};
use super::{Config, LoadOptions};
use crate::error::HostError;

/// One file and how far it is trusted.
pub(super) struct Trusted {
    /// The file.
    pub(super) layer: Layer,
    /// How its entries stand, by their path; `None` where the whole file is trusted for its place.
    standings: Option<BTreeMap<String, TrustStanding>>,
    /// The seals of its entries, by their path; none where the whole file is trusted for its place.
    seals: BTreeMap<String, SpawnSeal>,
}

impl Trusted {
    /// A file that is trusted for its place: named, or the user's own.
    pub(super) fn by_place(layer: Layer) -> Self {
        Self { layer, standings: None, seals: BTreeMap::new() }
    }

    /// A file that was merely found: its entries count as far as `store` says.
    pub(super) fn by_content(mut layer: Layer, store: &TrustStore, env: &Env) -> Self {
        let search_path = env.vars.get("PATH").cloned();
        let file = layer.document.file.clone();
        let (mut standings, mut seals) = (BTreeMap::new(), BTreeMap::new());
        for entry in entries(&layer) {
            let path = entry.path.clone();
            standings.insert(path.clone(), store.check(&file, &entry, search_path.as_deref()));
            if let Some(digest) = store.digest(&file, &path) {
                seals.insert(path, SpawnSeal::new(entry, digest.to_owned(), search_path.clone()));
            }
        }
        // A stranger's agents do contribute; of everything else that is left out nobody needs to know the mistakes.
        layer.forget(|path| {
            let entries = standings.iter().filter(|(entry, _)| within(path, entry));
            let entry = entries.max_by_key(|(entry, _)| entry.len());
            entry.is_some_and(|(entry, standing)| *standing == TrustStanding::Unknown && !entry.starts_with("agents."))
        });
        Self { layer, standings: Some(standings), seals }
    }

    /// How the entry at `path` stands. What is not an entry of its own stands as its section does.
    fn standing(&self, path: &str) -> TrustStanding {
        match &self.standings {
            None => TrustStanding::Trusted,
            Some(standings) => standings.get(path).cloned().unwrap_or(TrustStanding::Unknown),
        }
    }

    /// Whether the whole file is the user's own word, and not merely accepted by its content.
    fn is_by_place(&self) -> bool {
        self.standings.is_none()
    }

    fn is_trusted(&self, path: &str) -> bool {
        self.standing(path) == TrustStanding::Trusted
    }

    /// The seal that is checked before every spawn, for a file that is trusted by its content.
    fn seal(&self, path: &str) -> Option<SpawnSeal> {
        self.seals.get(path).cloned()
    }
}

/// The entries that are left out of a file because it is not trusted.
struct LeftOut(Vec<String>);

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
    let mut left_out = Vec::new();
    for (at, layer) in layers.iter_mut().enumerate() {
        let mut left = LeftOut(Vec::new());
        providers::add(&mut config, layer, &mut left);
        settings::add_skills(&mut config, layer, &mut left);
        agents::add(&mut config, layer, env, &mut left);
        hooks::add(&mut config, layer, options.builtins, &mut left);
        mcp::add(&mut config, layer, &mut left);
        settings::add(&mut config, layer, &mut left);
        left_out.extend(left.line(&layer.layer.document.file));
        if at == 0 {
            config.default_model = agents::default_model(&config);
        }
    }
    agents::finish(&mut config, env);
    agents::add_gates(&mut config);
    agents::look_for_others(&config, layers);
    if config.providers.is_empty() {
        detect::add(&mut config, env, options.probe)?;
    }
    config.secrets.extend(config.providers.values().filter_map(|provider| provider.api_key_env.clone()));
    // What a collector is shown is nothing for the children of hooks and tools.
    config.secrets.insert(telemetry::HEADERS.to_owned());
    agents::look_up_models(&config, layers);
    Ok((config, left_out))
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
    fn add(&mut self, what: impl Into<String>) {
        self.0.push(what.into());
    }

    fn line(self, file: &Path) -> Option<String> {
        (!self.0.is_empty()).then(|| {
            format!(
                "{} is not trusted; left out: {} (`pintle trust` shows what it would run, and accepts it)",
                file.display(),
                self.0.join(", ")
            )
        })
    }
}
