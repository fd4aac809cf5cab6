//! The settings of a provider, from its section and the environment.

use pintle_providers::{ProviderSpec, Secret, ToolMode, WireKind};

use crate::config::{Env, ProviderConfig, ProviderConfigKind};

/// The settings of a provider, with its key from the environment.
pub fn provider_spec(env: &Env, name: &str, provider: &ProviderConfig) -> ProviderSpec {
    let (kind, base_url, tool_mode, script) = match &provider.kind {
        ProviderConfigKind::Server { wire, base_url, tool_mode } => (*wire, base_url.clone(), *tool_mode, None),
        ProviderConfigKind::Scripted { script } => (WireKind::Scripted, None, ToolMode::Native, Some(script.clone())),
    };
    ProviderSpec {
        base_url: base_url.map(String::from),
        api_key: provider.api_key_env.as_ref().and_then(|name| env.text(name)).map(Secret::new),
        key_env: provider.api_key_env.clone(),
        tool_mode,
        vision: provider.vision,
        capabilities: provider.takes.clone(),
        script,
        ..ProviderSpec::new(name, kind)
    }
}
