//! Where to send, and as whom.

use std::fmt;

use pintle_domain::shown_url::shown_url;
use thiserror::Error;
use url::Url;

/// The variable that names the collector. It goes before a configuration. Source: OpenTelemetry, OTLP exporter.
pub const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// The variable with headers of every request, `NAME=VALUE,NAME=VALUE`; these are secrets. Source: the same.
pub const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
/// The variable that says what this program is called at the collector. Source: OpenTelemetry, SDK environment.
pub const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
/// The variable that switches everything off when it is `true`. Source: the same.
const DISABLED: &str = "OTEL_SDK_DISABLED";

/// What this program is called unless somebody says otherwise.
pub const DEFAULT_SERVICE: &str = "pintle";

/// Where to send, and as whom.
#[derive(Clone)]
pub struct CollectorSettings {
    /// Where spans go.
    pub(crate) traces: Url,
    /// Where numbers go.
    pub(crate) metrics: Url,
    /// Headers of every request.
    pub(crate) headers: Vec<(String, String)>,
    /// What this program is called.
    pub(crate) service_name: String,
}

/// Why nothing can be sent.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum CollectorSettingsError {
    /// The address is none.
    #[error("{from}: {why}")]
    Endpoint {
        /// Where it is written.
        from: &'static str,
        /// What is wrong.
        why: String,
    },
    /// The headers cannot be read. What is written there is a secret, so only the place is named.
    #[error("{HEADERS}: entry {number} is not a header; expected `NAME=VALUE`, several with `,` between")]
    Header {
        /// Which one, from 1.
        number: usize,
    },
    /// There is no client.
    #[error("no HTTP client for {host}: {why}; install the system's root certificates")]
    Client {
        /// Whose client it was to be.
        host: String,
        /// What is wrong.
        why: String,
    },
}

/// Without the values of headers.
impl fmt::Debug for CollectorSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Settings")
            .field("traces", &self.traces.as_str())
            .field("headers", &names)
            .field("service_name", &self.service_name)
            .finish_non_exhaustive()
    }
}

impl CollectorSettings {
    /// What `configured`, the address in the configuration, and the variables that `env` knows come to; nothing where
    /// nobody names a collector.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn read(
        configured: Option<&str>,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, CollectorSettingsError> {
        let said = |name: &str| env(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        if said(DISABLED).is_some_and(|word| word.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let (from, address) = match (said(ENDPOINT), configured) {
            (Some(address), _) => (ENDPOINT, address),
            (None, Some(address)) => ("telemetry.otlp_endpoint", address.trim().to_owned()),
            (None, None) => return Ok(None),
        };
        let base = base(&address).map_err(|why| CollectorSettingsError::Endpoint { from, why })?;
        Ok(Some(Self {
            traces: below(&base, "v1/traces"),
            metrics: below(&base, "v1/metrics"),
            headers: said(HEADERS).as_deref().map_or(Ok(Vec::new()), headers)?,
            service_name: said(SERVICE_NAME).unwrap_or_else(|| DEFAULT_SERVICE.to_owned()),
        }))
    }

    /// The collector, as it may be named to people.
    pub fn host(&self) -> String {
        let (host, port) = (self.traces.host_str().unwrap_or_default(), self.traces.port_or_known_default());
        port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

/// Whether `address` can be that of a collector.
///
/// # Errors
/// What is wrong with it, for people, without what may be secret in it.
pub fn check_address(address: &str) -> Result<(), String> {
    base(address.trim()).map(drop)
}

fn base(address: &str) -> Result<Url, String> {
    let wrong = |why: String| {
        let address = shown_url(address);
        format!("`{address}` is not an address of a collector: {why}; expected something like `http://localhost:4318`")
    };
    let url = Url::parse(address).map_err(|error| wrong(error.to_string()))?;
    if !["http", "https"].contains(&url.scheme()) {
        return Err(wrong(format!("it begins with `{}:`", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong(format!("it has a name or a password in it, which belong in {HEADERS}")));
    }
    Ok(url)
}

/// `path` below `base`, whatever that ends with.
fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

fn headers(text: &str) -> Result<Vec<(String, String)>, CollectorSettingsError> {
    let entries = text.split(',').map(str::trim).enumerate().filter(|(_, entry)| !entry.is_empty());
    let one = |(at, entry): (usize, &str)| {
        let wrong = || CollectorSettingsError::Header { number: at + 1 };
        let (name, value) = entry.split_once('=').ok_or_else(wrong)?;
        let value = decoded(value.trim()).ok_or_else(wrong)?;
        let name = reqwest::header::HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| wrong())?;
        reqwest::header::HeaderValue::from_str(&value).map_err(|_| wrong())?;
        Ok((name.to_string(), value))
    };
    entries.map(one).collect()
}

/// `text` with its `%XX` read. Source: W3C baggage, which the variable follows.
fn decoded(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        if *byte == b'%' {
            let digits = text.get(at + 1..at + 3)?;
            out.push(u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?);
            at += 3;
        } else {
            out.push(*byte);
            at += 1;
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        configured: Option<&str>,
        vars: &[(&str, &str)],
    ) -> Result<Option<CollectorSettings>, CollectorSettingsError> {
        let value = |name: &str| vars.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
        CollectorSettings::read(configured, value)
    }

    #[test]
    fn variables_go_before_the_configuration_and_nothing_is_sent_unasked() {
        let check = |configured, vars: &[(&str, &str)], expected: Option<&str>| {
            let read = read(configured, vars).unwrap();
            assert_eq!(read.as_ref().map(|settings| settings.traces.as_str()), expected);
        };
        check(None, &[], None);
        check(None, &[(HEADERS, "a=b"), (SERVICE_NAME, "x"), (ENDPOINT, " ")], None);
        check(Some("http://c:4318"), &[], Some("http://c:4318/v1/traces"));
        check(Some("http://c:4318/otlp/"), &[(ENDPOINT, "")], Some("http://c:4318/otlp/v1/traces"));
        check(Some("http://c:4318"), &[(ENDPOINT, "https://d/x?k=1")], Some("https://d/x/v1/traces?k=1"));
        check(Some("http://c:4318"), &[("OTEL_SDK_DISABLED", "TRUE")], None);
        let all = read(None, &[(ENDPOINT, "http://d"), (SERVICE_NAME, "bot"), (HEADERS, "a=b%20c, D = e=f,")]);
        let all = all.unwrap().unwrap();
        assert_eq!(all.headers, [("a".to_owned(), "b c".to_owned()), ("d".to_owned(), "e=f".to_owned())]);
        let shown = r#"Settings { traces: "http://d/v1/traces", headers: ["a", "d"], service_name: "bot", .. }"#;
        assert_eq!((format!("{all:?}").as_str(), all.host().as_str()), (shown, "d:80"));
        assert_eq!(read(Some("http://d"), &[]).unwrap().unwrap().service_name, "pintle");
    }

    #[test]
    fn what_is_wrong_is_named_and_no_secret_is() {
        let check = |configured, vars: &[(&str, &str)], expected: &str| {
            assert_eq!(read(configured, vars).map(drop).unwrap_err().to_string(), expected);
        };
        let like = "; expected something like `http://localhost:4318`";
        check(
            Some("localhost:4318"),
            &[],
            &format!(
                "telemetry.otlp_endpoint: `localhost:4318` is not an address of a collector: it begins with `localhost:`{like}"
            ),
        );
        check(
            None,
            &[(ENDPOINT, "http://u:s3cret@c")],
            &format!(
                "{ENDPOINT}: `http://c` is not an address of a collector: it has a name or a password in it, which \
                 belong in {HEADERS}{like}"
            ),
        );
        let no_header = |number: usize| {
            format!("{HEADERS}: entry {number} is not a header; expected `NAME=VALUE`, several with `,` between")
        };
        for (text, number) in
            [("s3cret", 1), ("a=b,s3cret", 2), ("a=%zz", 1), ("a=%2", 1), ("a b=c", 1), ("a=%0a", 1), ("a=%é", 1)]
        {
            check(Some("http://c"), &[(HEADERS, text)], &no_header(number));
        }
    }
}
