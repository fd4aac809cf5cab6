//! From a provider's settings to a provider.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;

use crate::anthropic::Anthropic;
use crate::capabilities::Overrides;
use crate::openai::OpenAi;
use crate::scripted::Scripted;
use crate::{Provider, ProviderError, Secret};

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
            return Err(wrong("holds a name or a password, which belong into `api_key_env`".into()));
        }
        let below = format!("{}/{path}", url.path().trim_end_matches('/'));
        url.set_path(&below);
        url.set_fragment(None);
        Ok(url)
    }
}

/// Makes the provider that `spec` describes. Nothing is sent yet.
///
/// # Errors
/// A setting that cannot be right, or a script that cannot be read.
pub fn connect(spec: &ProviderSpec) -> Result<Arc<dyn Provider>, ProviderError> {
    let made: Result<Arc<dyn Provider>, ProviderError> = match (spec.kind, spec.tool_mode) {
        (WireKind::OpenAi, ToolMode::Native | ToolMode::JsonSchema) => {
            OpenAi::new(spec).map(|provider| Arc::new(provider) as _)
        }
        (WireKind::Anthropic, ToolMode::Native) => Anthropic::new(spec).map(|provider| Arc::new(provider) as _),
        (WireKind::Anthropic | WireKind::Scripted, ToolMode::JsonSchema) => {
            Err(ProviderError::fatal("`tool_mode` may only be `native` here; `json_schema` is for kind `openai`"))
        }
        (WireKind::Scripted, ToolMode::Native) => scripted(spec).map(|provider| Arc::new(provider) as _),
    };
    made.map_err(|error| error.tidy(&format!("provider `{}`", spec.name), spec.api_key.as_ref()))
}

fn scripted(spec: &ProviderSpec) -> Result<Scripted, ProviderError> {
    let Some(file) = &spec.script else {
        return Err(ProviderError::fatal("a scripted provider needs a file of replies, and none is set"));
    };
    Scripted::from_file(file).map_err(|e| ProviderError::fatal(e.to_string()))
}

/// One HTTP client for the address `url`.
///
/// It follows no redirect, so that a key reaches no other host. It uses the proxies that the environment names,
/// except for an address of this very machine, which no proxy can reach. TLS is rustls with ring and the system's
/// root certificates; for a plain `http` address they are not even loaded, so a bare machine can talk to a local model.
///
/// # Errors
/// When there are no root certificates for an `https` address.
pub fn http_client(url: &Url, connect_timeout: Duration) -> Result<reqwest::Client, ProviderError> {
    // Fails only if the process has a TLS provider already, and any will do.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut builder = reqwest::Client::builder()
        .connect_timeout(connect_timeout)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("pintle/", env!("CARGO_PKG_VERSION")));
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|e| {
        let cause = std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string);
        ProviderError::fatal(format!("no HTTP client: {cause}; install the system's root certificates"))
    })
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
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
            ("http://u:p@h", format!("`base_url` holds a name or a password, which belong into `api_key_env`{like}")),
        ];
        for (base, expected) in table {
            assert_eq!(address(base), expected, "{base}");
        }
    }

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
    fn only_this_machine_is_loopback() {
        let table = [
            ("http://127.0.0.1:1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://localhost", true),
            ("http://localhost.example.org", false),
            ("http://10.0.0.1", false),
        ];
        for (url, expected) in table {
            assert_eq!(is_loopback(&url.parse().unwrap()), expected, "{url}");
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
