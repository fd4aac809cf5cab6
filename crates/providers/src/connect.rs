//! From a provider's settings to a provider.

use std::sync::Arc;

use crate::spec::{ProviderSpec, ToolMode};
use crate::{Provider, ProviderError};

/// Makes the provider that `spec` describes. Nothing is sent yet.
///
/// # Errors
/// A setting that cannot be right, or a script that cannot be read.
pub fn connect(spec: &ProviderSpec) -> Result<Arc<dyn Provider>, ProviderError> {
    let made = match spec.tool_mode {
        ToolMode::JsonSchema if !spec.kind.has_tool_modes() => {
            Err(ProviderError::fatal("`tool_mode` may only be `native` here; `json_schema` is for kind `openai`"))
        }
        ToolMode::Native | ToolMode::JsonSchema => (spec.kind.row().connect)(spec),
    };
    made.map_err(|error| error.tidy(&format!("provider `{}`", spec.name), spec.api_key.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capabilities::Overrides;
    use crate::{Secret, WireKind};

    #[test]
    fn capabilities_that_cannot_be_meant_are_named() {
        let overrides = Overrides { cache_breakpoints: Some(5), ..Overrides::default() };
        for kind in [WireKind::OpenAi, WireKind::Anthropic] {
            let spec = ProviderSpec { capabilities: overrides.clone(), ..ProviderSpec::new("p", kind) };
            let error = connect(&spec).err().map(|e| e.to_string());
            assert_eq!(
                error.unwrap(),
                "provider `p`: in `[providers.p.capabilities]`, `cache_breakpoints` is 5; expected at most 4"
            );
        }
    }

    #[test]
    fn a_setting_that_cannot_be_right_is_named() {
        let error = |spec: ProviderSpec| connect(&spec).err().map(|e| e.to_string());
        let bad_key = ProviderSpec {
            api_key: Some(Secret::new("sk\nlong")),
            key_env: Some("K".into()),
            ..ProviderSpec::new("p", WireKind::Anthropic)
        };
        assert_eq!(
            error(bad_key).unwrap(),
            "provider `p`: the key holds a character that no header can carry; \
             check the variable `K` that `api_key_env` of `providers.p` names"
        );
        let no_script = ProviderSpec::new("s", WireKind::Scripted);
        assert_eq!(
            error(no_script).unwrap(),
            "provider `s`: a scripted provider needs a file of replies, and none is set"
        );
        let wrong_mode =
            ProviderSpec { tool_mode: ToolMode::JsonSchema, ..ProviderSpec::new("a", WireKind::Anthropic) };
        assert_eq!(
            error(wrong_mode).unwrap(),
            "provider `a`: `tool_mode` may only be `native` here; `json_schema` is for kind `openai`"
        );
    }
}
