//! What would be sent, without sending it.

use domain::llm::LlmRequest;

use crate::abilities::Abilities;
use crate::lower::{TurnPosition, WireShape};
use crate::openai::request::native;
use crate::{ProviderError, ProviderSpec, ToolMode, WireKind, anthropic, json_schema};

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
    let body = match (spec.kind, spec.tool_mode) {
        (WireKind::OpenAi, ToolMode::Native) => {
            let how = abilities.how(model, WireShape::Messages, turn);
            native(model, request, spec.vision, &how).body(true)
        }
        (WireKind::OpenAi, ToolMode::JsonSchema) => {
            let how = abilities.how(model, WireShape::Texts, turn);
            json_schema::render(model, request, spec.vision, &how).0.body(true)
        }
        (WireKind::Anthropic, ToolMode::Native | ToolMode::JsonSchema) => {
            let how = abilities.how(model, WireShape::Blocks, turn);
            anthropic::request::body(model, request, spec.vision, &how)
        }
        (WireKind::Scripted, ToolMode::Native | ToolMode::JsonSchema) => {
            let message = format!("the provider `{}` plays a script: it sends nothing", spec.name);
            return Err(ProviderError::fatal(message));
        }
    };
    String::from_utf8(body).map_err(|_| ProviderError::fatal("the body is not UTF-8"))
}

/// The provider that the capability table knows by `name`, with the vendor's own address: `anthropic` speaks its own
/// wire, every other one that of chat completions.
pub fn spec_of_entry(name: &str) -> ProviderSpec {
    let kind = if name == "anthropic" { WireKind::Anthropic } else { WireKind::OpenAi };
    ProviderSpec::new(name, kind)
}
