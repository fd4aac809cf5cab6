//! Whether a provider can be reached, without a token spent.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderValue;

use crate::ProviderError;
use crate::connect::connect;
use crate::http::http_client;
use crate::spec::ProviderSpec;
use crate::wire::ModelList;

/// Asks the provider for its list of models, or reads its script. Says what answered.
///
/// A server without such a list is reached all the same, so that only a refused key and a server's own failure count
/// as errors.
///
/// # Errors
/// What cannot be right in the settings, or why nothing answered within `timeout`.
pub async fn reach(spec: &ProviderSpec, timeout: Duration) -> Result<String, ProviderError> {
    let Some(server) = &spec.kind.row().server else {
        return connect(spec).map(|_| "its script can be played".to_owned());
    };
    let reached = models(spec, (server.models)(spec)?, timeout).await;
    reached.map_err(|error| error.tidy(&format!("provider `{}`", spec.name), spec.api_key.as_ref()))
}

async fn models(spec: &ProviderSpec, list: ModelList, timeout: Duration) -> Result<String, ProviderError> {
    let ModelList { url, key_header, header } = list;
    let client = http_client(&url, timeout)?;
    let mut request = client.get(url.clone()).timeout(timeout);
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    if let Some(key) = &spec.api_key {
        let mut value = HeaderValue::from_str(&format!("{}{}", key_header.prefix, key.expose()))
            .map_err(|_| ProviderError::fatal("the key holds a character that no header can carry"))?;
        value.set_sensitive(true);
        request = request.header(key_header.name, value);
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
