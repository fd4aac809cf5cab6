//! The configuration of this folder, as far as it says what agents under guard may do.

use pintle_guard::GuardHost;
use pintle_host::HostError;
use pintle_host::config::{self, Config, Diagnostic, Env, LoadOptions, Loaded};
use serde_json::{Value, json};

use crate::cli::Global;
use crate::guard::folders::broken_hosts;
use crate::text::counted;

/// What a daemon that begins now would find.
pub(super) struct ConfigHere {
    loaded: Result<Box<Loaded>, String>,
}

impl ConfigHere {
    /// Loads it as a daemon does.
    pub(super) fn load(global: &Global, env: &Env) -> Self {
        let options =
            LoadOptions { config: global.config.as_deref(), home: global.home.as_deref(), builtins: &[], probe: None };
        let loaded = config::load(env, &options).map(Box::new).map_err(|why: HostError| why.to_string());
        Self { loaded }
    }

    /// The configuration, where it loads.
    pub(super) fn config(&self) -> Option<&Config> {
        self.loaded.as_ref().ok().map(|loaded| &loaded.config)
    }

    /// Why it does not load.
    pub(super) fn unloadable(&self) -> Option<&str> {
        self.loaded.as_ref().err().map(String::as_str)
    }

    /// Why `host` is refused each prompt and call, although it loads.
    pub(super) fn refuses(&self, host: &GuardHost) -> Option<String> {
        let config = self.config()?;
        let team = config.rules_from.as_ref().and_then(|from| from.as_ref().err());
        team.cloned().or_else(|| broken_hosts(config).remove(host.id))
    }

    fn diagnostics(&self) -> &[Diagnostic] {
        self.loaded.as_ref().map(|loaded| loaded.diagnostics.as_slice()).unwrap_or_default()
    }

    /// How many mistakes are in it, and one: of those about agents under guard, where there are any.
    pub(super) fn mistakes_said(&self) -> Option<(String, String)> {
        let all = self.diagnostics();
        let first = all.iter().find(|found| found.is_about_guard()).or_else(|| all.first())?;
        Some((counted(all.len(), "mistake"), first.to_string()))
    }

    /// The mistakes in it, for programs.
    pub(super) fn mistakes(&self) -> Vec<Value> {
        self.diagnostics().iter().map(|found| json!(found)).collect()
    }

    /// Whether it says of agents under guard what its person wrote.
    pub(super) fn is_well(&self) -> bool {
        self.loaded.is_ok() && !self.diagnostics().iter().any(Diagnostic::is_about_guard)
    }
}
