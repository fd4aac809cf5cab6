//! What would be sent, without sending it.

use pintle_domain::llm::LlmRequest;

use crate::abilities::Abilities;
use crate::lower::TurnPosition;
use crate::wire::Outgoing;
use crate::{ProviderError, ProviderSpec, WireKind};

/// The JSON text of the body that the provider of `spec` would send to `model` for `request`: as a
/// call of `turn`, or as it stands. Keys stand in headers, never in a body. The requests of one turn are to be asked for
/// in their order.
///
/// # Errors
/// A setting that cannot be right, or a provider that sends nothing.
pub fn preview(
    spec: &ProviderSpec,
    model: &str,
    request: &LlmRequest,
    turn: Option<TurnPosition<'_>>,
) -> Result<String, ProviderError> {
    let abilities = Abilities::of(spec)?;
    let Some(server) = &spec.kind.row().server else {
        let message = format!("the provider `{}` plays a script: it sends nothing", spec.name);
        return Err(ProviderError::fatal(message));
    };
    let body = (server.body)(&Outgoing { spec, abilities: &abilities, model, request, turn });
    String::from_utf8(body).map_err(|_| ProviderError::fatal("the body is not UTF-8"))
}

/// The provider that the capability table knows by `name`, with the vendor's own address: `anthropic` speaks its own
/// wire, every other one that of chat completions.
pub fn spec_of_entry(name: &str) -> ProviderSpec {
    let kind = if name == "anthropic" { WireKind::Anthropic } else { WireKind::OpenAi };
    ProviderSpec::new(name, kind)
}
