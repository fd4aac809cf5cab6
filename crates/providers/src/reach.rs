//! Whether a provider can be reached, without a token spent.

use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{StatusCode, Url};

use crate::anthropic::VERSION;
use crate::connect::connect;
use crate::http::http_client;
use crate::spec::{ANTHROPIC_BASE_URL, OPENAI_BASE_URL, ProviderSpec, WireKind};
use crate::{ProviderError, Secret};

/// Asks the provider for its list of models, or reads its script. Says what answered.
///
/// A server without such a list is reached all the same, so that only a refused key and a server's own failure count
/// as errors.
///
/// # Errors
/// What cannot be right in the settings, or why nothing answered within `timeout`.
pub async fn reach(spec: &ProviderSpec, timeout: Duration) -> Result<String, ProviderError> {
    let reached = match spec.kind {
        WireKind::Scripted => return connect(spec).map(|_| "its script can be played".to_owned()),
        WireKind::OpenAi => models(spec, spec.address(OPENAI_BASE_URL, "models")?, timeout).await,
        WireKind::Anthropic => {
            let versioned = spec.address(ANTHROPIC_BASE_URL, "")?.path().trim_end_matches('/').ends_with("/v1");
            let url = spec.address(ANTHROPIC_BASE_URL, if versioned { "models" } else { "v1/models" })?;
            models(spec, url, timeout).await
        }
    };
    reached.map_err(|error| error.tidy(&format!("provider `{}`", spec.name), spec.api_key.as_ref()))
}

async fn models(spec: &ProviderSpec, url: Url, timeout: Duration) -> Result<String, ProviderError> {
    let client = http_client(&url, timeout)?;
    let mut request = client.get(url.clone()).timeout(timeout);
    if spec.kind == WireKind::Anthropic {
        request = request.header("anthropic-version", VERSION);
    }
    if let Some(key) = &spec.api_key {
        let (name, value) = key_header(spec.kind, key)?;
        request = request.header(name, value);
    }
    let host = url.host_str().unwrap_or_default().to_owned();
    let answer = request.send().await.map_err(|error| {
        let why = if error.is_timeout() {
            format!("it did not answer within {} ms", timeout.as_millis())
        } else {
            // The last cause is the system's own word, such as a refused connection.
            let mut cause: &dyn std::error::Error = &error;
            while let Some(deeper) = cause.source() {
                cause = deeper;
            }
            cause.to_string()
        };
        ProviderError::fatal(format!("{host} cannot be reached: {why}"))
    })?;
    match answer.status() {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let variable = spec.key_env.as_deref().map(|name| format!("; check the variable `{name}`"));
            let status = answer.status().as_u16();
            Err(ProviderError::fatal(format!("{host} refuses the key (HTTP {status}){}", variable.unwrap_or_default())))
        }
        status if status.is_server_error() => {
            Err(ProviderError::fatal(format!("{host} fails by itself (HTTP {})", status.as_u16())))
        }
        _ => Ok(format!("{host} answers")),
    }
}

fn key_header(kind: WireKind, key: &Secret) -> Result<(HeaderName, HeaderValue), ProviderError> {
    let (name, text) = match kind {
        WireKind::Anthropic => ("x-api-key", key.expose().to_owned()),
        WireKind::OpenAi | WireKind::Scripted => ("authorization", format!("Bearer {}", key.expose())),
    };
    let mut value = HeaderValue::from_str(&text)
        .map_err(|_| ProviderError::fatal("the key holds a character that no header can carry"))?;
    value.set_sensitive(true);
    Ok((HeaderName::from_static(name), value))
}
