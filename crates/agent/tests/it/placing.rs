//! Whether a server would take a request, by the linters of the crate of the providers.

use pintle_domain::json::Value;
use pintle_providers::WireKind::{self, Anthropic};
use pintle_providers::capabilities::CapabilityTable;

use self::linters::{blocks, completions};

#[path = "../../../providers/src/lower/tests/linters.rs"]
mod linters;

/// Whether the server of a model `m` of the provider `name` would take the request `body`; why not, if it would not.
pub(crate) fn placed(name: &str, kind: WireKind, body: &str) -> Result<(), String> {
    let body = pintle_domain::json::parse(body)?;
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let capabilities = CapabilityTable::shipped().of(name, "m");
    let lint: fn(&[Value], _) -> _ = if kind == Anthropic { blocks } else { completions };
    lint(&messages, &capabilities)
}
