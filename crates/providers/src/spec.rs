//! The settings of a provider.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;

use crate::capabilities::Overrides;
use crate::{ProviderError, Secret};

/// Longest silence of a provider, before its answer and within it: local models on slow machines read long prompts
/// for a minute or more.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest time for a connection to stand, TLS included.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where requests of kind `openai` go when nothing else is set.
pub const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";
/// Where requests of kind `anthropic` go when nothing else is set.
pub const ANTHROPIC_BASE_URL: &str = "https://api.anthropic.com";

/// What a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireKind {
    /// OpenAI chat completions, and every server that speaks them.
    OpenAi,
    /// The Anthropic Messages API.
    Anthropic,
    /// A file of replies; see [`crate::scripted`].
    Scripted,
}

/// How tools are offered to the models of an `openai` provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolMode {
    /// With the wire's own tool calls.
    #[default]
    Native,
    /// Through a JSON schema that the answer must follow; see [`crate::json_schema`].
    JsonSchema,
}

/// The settings of one provider.
#[derive(Clone, Debug)]
pub struct ProviderSpec {
    /// NAME of `[providers.NAME]`; it stands in every error.
    pub name: String,
    /// What it speaks.
    pub kind: WireKind,
    /// Where it listens: `http://host:port/v1`, with or without a slash at the end. None is the vendor's own address.
    pub base_url: Option<String>,
    /// The key, if it takes one.
    pub api_key: Option<Secret>,
    /// The variable that the key comes from, for messages.
    pub key_env: Option<String>,
    /// How tools are offered.
    pub tool_mode: ToolMode,
    /// Whether its models see images; without it only the text beside them is sent.
    pub vision: bool,
    /// Longest silence before and within an answer.
    pub idle_timeout: Duration,
    /// Longest time for a connection to stand.
    pub connect_timeout: Duration,
    /// The file of replies of a `scripted` provider.
    pub script: Option<PathBuf>,
    /// What its models take in the middle of a conversation, where that is not what the table says.
    pub capabilities: Overrides,
}

impl ProviderSpec {
    /// A provider with the defaults of its kind.
    pub fn new(name: impl Into<String>, kind: WireKind) -> Self {
        Self {
            name: name.into(),
            kind,
            base_url: None,
            api_key: None,
            key_env: None,
            tool_mode: ToolMode::default(),
            vision: true,
            idle_timeout: IDLE_TIMEOUT,
            connect_timeout: CONNECT_TIMEOUT,
            script: None,
            capabilities: Overrides::default(),
        }
    }

    /// The names under which the table of capabilities may know its models: its own, and at a vendor's own address that of
    /// the vendor.
    pub fn table_names(&self) -> Vec<String> {
        let elsewhere = self.base_url.as_deref().is_some_and(|base| !base.trim().is_empty());
        let vendor = match self.kind {
            WireKind::Anthropic | WireKind::OpenAi if elsewhere => None,
            WireKind::Anthropic => Some("anthropic"),
            WireKind::OpenAi => Some("openai"),
            WireKind::Scripted => None,
        };
        std::iter::once(self.name.as_str()).chain(vendor).map(str::to_owned).collect()
    }

    /// The address `path` below the base, or below `fallback` if none is set.
    pub(crate) fn address(&self, fallback: &str, path: &str) -> Result<Url, ProviderError> {
        let base = self.base_url.as_deref().map(str::trim).filter(|base| !base.is_empty()).unwrap_or(fallback);
        let wrong = |why: String| {
            ProviderError::fatal(format!("`base_url` {why}; expected something like `http://127.0.0.1:8000/v1`"))
        };
        let mut url = Url::parse(base).map_err(|e| wrong(format!("is not an address: {e}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(format!("has the scheme `{}`", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("holds a name or a password, which belong in `api_key_env`".into()));
        }
        let below = format!("{}/{path}", url.path().trim_end_matches('/'));
        url.set_path(&below);
        url.set_fragment(None);
        Ok(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(base: &str) -> String {
        let spec = ProviderSpec { base_url: Some(base.into()), ..ProviderSpec::new("p", WireKind::OpenAi) };
        match spec.address(OPENAI_BASE_URL, "chat/completions") {
            Ok(url) => url.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_base_url_is_joined_or_explained() {
        let like = "; expected something like `http://127.0.0.1:8000/v1`";
        let table = [
            ("http://h:1/v1", "http://h:1/v1/chat/completions".to_owned()),
            ("http://h:1/v1//", "http://h:1/v1/chat/completions".into()),
            ("https://h", "https://h/chat/completions".into()),
            ("https://h/v1?api-version=2", "https://h/v1/chat/completions?api-version=2".into()),
            (" ", "https://api.openai.com/v1/chat/completions".into()),
            ("localhost:8000/v1", format!("`base_url` has the scheme `localhost`{like}")),
            ("h", format!("`base_url` is not an address: relative URL without a base{like}")),
            ("http://u:p@h", format!("`base_url` holds a name or a password, which belong in `api_key_env`{like}")),
        ];
        for (base, expected) in table {
            assert_eq!(address(base), expected, "{base}");
        }
    }
}
