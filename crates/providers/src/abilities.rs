//! The abilities of one provider's models: what its settings say, or else the table.

use crate::ProviderError;
use crate::capabilities::{CapabilityTable, Overrides};
use crate::lower::{CallKind, LoweringOptions, TurnPosition, WireShape};
use crate::spec::ProviderSpec;

/// What the models of one provider take.
#[derive(Clone, Debug)]
pub(crate) struct Abilities {
    provider: String,
    /// The names under which the table may know its models.
    names: Vec<String>,
    overrides: Overrides,
}

impl Abilities {
    /// Those that `spec` says, or else the table.
    ///
    /// # Errors
    /// A value that cannot be meant.
    pub(crate) fn of(spec: &ProviderSpec) -> Result<Self, ProviderError> {
        let wrong = |e| ProviderError::fatal(format!("in `[providers.{}.capabilities]`, {e}", spec.name));
        spec.capabilities.check().map_err(wrong)?;
        Ok(Self { provider: spec.name.clone(), names: spec.table_names(), overrides: spec.capabilities.clone() })
    }

    /// How requests to `model` are lowered.
    pub(crate) fn how<'a>(&self, model: &str, shape: WireShape, turn: Option<TurnPosition<'a>>) -> LoweringOptions<'a> {
        let capabilities = self.overrides.over(CapabilityTable::shipped().of_any(&self.names, model));
        let (goes_on, turn) = (turn.is_some(), turn.filter(|turn| turn.call != CallKind::Plain));
        LoweringOptions { model: format!("{}/{model}", self.provider), capabilities, shape, turn, goes_on }
    }

    /// `error`, with the entry to change if it is about where a message stands or who speaks in it.
    pub(crate) fn explain(&self, error: ProviderError, how: &LoweringOptions<'_>) -> ProviderError {
        how.capabilities.explain(error, &self.provider)
    }
}
