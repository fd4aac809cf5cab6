//! The requests of a turn as a provider would send them.

use pintle_agent::driver::rehearsal::{CallPurpose, ModelCall, RehearsedTurn};
use pintle_providers::capabilities::{CapabilityTable, Overrides};
use pintle_providers::preview::{preview, spec_of_entry};
use pintle_providers::{CallKind, ProviderSpec, RemovalMode, TurnPosition, TurnWire, WireKind};

use crate::error::CliError;
use pintle_host::config::{Config, Env};
use pintle_host::host::provider_spec;

/// Whom the requests would go to.
pub(super) struct Wire {
    spec: ProviderSpec,
    /// The name of the model, as the provider knows it.
    pub(super) model: String,
    /// The entry of the capability table that fits; empty if none does.
    pub(super) entry: String,
}

impl Wire {
    /// The model that `name` means, `PROVIDER/MODEL`: of a provider of `config`, or one that the capability table knows.
    ///
    /// # Errors
    /// There is neither, or the provider sends nothing.
    pub(super) fn resolve(env: &Env, config: &Config, name: &str) -> Result<Self, CliError> {
        let split = name.split_once('/').filter(|(provider, model)| !provider.is_empty() && !model.is_empty());
        let Some((provider, model)) = split else {
            return Err(known(CliError::usage(format!("--wire: expected PROVIDER/MODEL, got \"{name}\"")), config));
        };
        let entry = CapabilityTable::shipped().of(provider, model).entry;
        let spec = match config.providers.get(provider) {
            // Its key is in no body, and nothing here has to know it.
            Some(settings) => ProviderSpec { api_key: None, ..provider_spec(env, provider, settings) },
            None if !entry.is_empty() => spec_of_entry(provider),
            None => {
                let why = format!(
                    "--wire: there is no provider \"{provider}\", and no entry of the capability table fits \"{name}\""
                );
                return Err(known(CliError::usage(why), config));
            }
        };
        let entry = CapabilityTable::shipped().of_any(&spec.table_names(), model).entry;
        if spec.kind == WireKind::Scripted {
            let why = format!("--wire: the provider \"{provider}\" plays a script, so nothing of it is ever sent");
            return Err(known(CliError::usage(why), config));
        }
        Ok(Self { spec, model: model.to_owned(), entry })
    }

    /// Whether the configuration says otherwise of what the provider's models take.
    pub(super) fn overridden(&self) -> bool {
        self.spec.capabilities != Overrides::default()
    }

    /// What the requests are lowered by, for a person.
    pub(super) fn by(&self) -> String {
        let entry = if self.entry.is_empty() { "no entry".to_owned() } else { format!("entry {}", self.entry) };
        let also = if self.overridden() { " and the configuration" } else { "" };
        format!("{entry}{also}")
    }

    /// `PROVIDER/MODEL`.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.spec.name, self.model)
    }

    /// The body of each call of `went`.
    ///
    /// # Errors
    /// A setting of the provider cannot be right.
    pub(super) fn bodies(&self, went: &RehearsedTurn, removal: RemovalMode) -> Result<Vec<String>, CliError> {
        let wire = TurnWire::new(removal);
        let body = |call: &ModelCall| {
            let kind = match call.aim {
                // A turn without texts sends every request as it stands.
                _ if !went.texts => CallKind::Plain,
                CallPurpose::Plan => CallKind::Planning,
                CallPurpose::Step | CallPurpose::LastWords => CallKind::Loop,
            };
            preview(&self.spec, &self.model, &call.request, Some(TurnPosition { wire: &wire, call: kind }))
        };
        went.calls.iter().map(|call| body(call).map_err(|error| CliError::usage(error.to_string()))).collect()
    }
}

/// `error` with every name that would do.
fn known(error: CliError, config: &Config) -> CliError {
    let wired = config.providers.iter().filter(|(_, provider)| provider.script().is_none());
    let names: Vec<&str> = wired.map(|(name, _)| name.as_str()).collect();
    let error =
        if names.is_empty() { error } else { error.hint(format!("configured providers: {}", names.join(", "))) };
    let entries: Vec<&str> = CapabilityTable::shipped().patterns().collect();
    error.hint(format!("entries of the capability table: {}", entries.join(", ")))
}
