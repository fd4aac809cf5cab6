//! Who may knock at a door of this machine: what a request says of where it comes from. Pure.

use std::net::IpAddr;

use axum::http::{HeaderMap, StatusCode, header};

/// Why a request is turned away.
type TurnedAway = (StatusCode, String);

/// The header in which a client of the gateway says who it is.
const OUR_KEY: &str = "x-pintle-key";

/// Whether a request may enter the model door of this machine's user.
pub(crate) fn from_this_machine(headers: &HeaderMap) -> Result<(), TurnedAway> {
    to_this_machine(headers)?;
    no_key(headers)
}

/// Whether a request may enter that nothing else was looked at of: no page, to this machine, and not compressed.
pub(crate) fn entered(headers: &HeaderMap) -> Result<(), TurnedAway> {
    no_page(headers)?;
    to_this_machine(headers)?;
    match text(headers, header::CONTENT_ENCODING).filter(|encoding| encoding != "identity") {
        Some(encoding) => {
            let why = format!("the body is compressed ({encoding}); send it as it is");
            Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, why))
        }
        None => Ok(()),
    }
}

/// A page in a browser may not enter, whatever name it has for this machine.
pub(crate) fn no_page(headers: &HeaderMap) -> Result<(), TurnedAway> {
    if let Some(origin) = text(headers, header::ORIGIN) {
        let why = format!("pages in a browser have no door here (`Origin: {origin}`)");
        return Err((StatusCode::FORBIDDEN, why));
    }
    if let Some(site) = headers.get("sec-fetch-site").filter(|site| *site == "cross-site") {
        let why = format!("pages in a browser have no door here (`Sec-Fetch-Site: {}`)", site.to_str().unwrap_or("?"));
        return Err((StatusCode::FORBIDDEN, why));
    }
    Ok(())
}

fn to_this_machine(headers: &HeaderMap) -> Result<(), TurnedAway> {
    let named = text(headers, header::HOST).unwrap_or_default();
    match is_this_machine(&named) {
        true => Ok(()),
        false => {
            let why = format!("`Host: {named}` does not name this machine; expected 127.0.0.1 or localhost");
            Err((StatusCode::FORBIDDEN, why))
        }
    }
}

/// Whoever says who they are means a gateway: here it would count for nothing.
fn no_key(headers: &HeaderMap) -> Result<(), TurnedAway> {
    match headers.contains_key(OUR_KEY) {
        true => {
            let why = "`X-Pintle-Key` is for the door of `pintle serve`; this one belongs to this machine's user, and \
                       knows no keys";
            Err((StatusCode::BAD_REQUEST, why.to_owned()))
        }
        false => Ok(()),
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?").to_owned())
}

fn is_this_machine(host: &str) -> bool {
    // What is said of the door is said of this name: nothing may stand in it but a name and a port.
    let split = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']'),
        None => Some(host.split_at(host.find(':').unwrap_or(host.len()))),
    };
    let Some((name, rest)) = split else { return false };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_whole = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
    is_whole && (name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn pages_have_no_door() {
        for (name, value, is_let_in) in [
            ("user-agent", "x", true),
            ("sec-fetch-site", "same-origin", true),
            ("sec-fetch-site", "cross-site", false),
            ("origin", "http://localhost", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("localhost"));
            headers.insert(name, HeaderValue::from_static(value));
            assert_eq!(entered(&headers).is_ok(), is_let_in, "{name}: {value}");
            assert_eq!(no_page(&headers).is_ok(), is_let_in, "{name}: {value}");
        }
    }

    #[test]
    fn only_names_of_this_machine_are_let_in() {
        for (host, is_known) in [
            ("127.0.0.1:8080", true),
            ("localhost", true),
            ("[::1]:80", true),
            ("127.9.9.9", true),
            ("rebound.example:8080", false),
            ("localhost.example", false),
            ("10.0.0.1", false),
            ("localhost:@evil.example", false),
            ("localhost:80/x", false),
            ("[::1]evil.example", false),
            ("[::1", false),
            ("", false),
        ] {
            assert_eq!(is_this_machine(host), is_known, "{host}");
        }
    }
}
