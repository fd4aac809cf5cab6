//! What headers of a server over HTTP say, and how they are written.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Response;

use crate::mcp::proxy::SignInWanted;

/// `value` as a header takes it. Source: `Mcp-Name` of the Model Context Protocol of 2026-07-28.
pub(super) fn plain(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    let is_edged = value.starts_with([' ', '\t']) || value.ends_with([' ', '\t']);
    let looks_coded = value.starts_with("=?base64?") && value.ends_with("?=");
    if is_plain && !is_edged && !looks_coded {
        return value.to_owned();
    }
    format!("=?base64?{}?=", STANDARD.encode(value))
}

/// The headers in which arguments stand, too. A name that is none has no header: the server says what it makes of that.
/// Source: `Mcp-Param-{Name}` of the Model Context Protocol of 2026-07-28.
pub(super) fn mirrored(arguments: &[(String, String)]) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    arguments.iter().filter_map(|(name, value)| {
        let name = HeaderName::try_from(format!("mcp-param-{name}")).ok()?;
        Some((name, HeaderValue::from_str(&plain(value)).ok()?))
    })
}

/// What the server wants before it answers: to know who asks, or that they may do more.
pub(super) fn sign_in_wanted(response: &Response) -> Option<SignInWanted> {
    let is_meant = matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let says = response.headers().get_all(header::WWW_AUTHENTICATE).iter().filter(|_| is_meant);
    // Several say as much as one with commas. Source: RFC 9110, 5.3.
    let says: Vec<&str> = says.filter_map(|says| says.to_str().ok()).collect();
    (!says.is_empty()).then(|| SignInWanted { status: response.status().as_u16(), says: says.join(", ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_a_header_takes() {
        for (name, expected) in [
            ("echo", "echo"),
            ("größe", "=?base64?Z3LDtsOfZQ==?="),
            (" a", "=?base64?IGE=?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
            ("\n\n\n", "=?base64?CgoK?="),
        ] {
            assert_eq!(plain(name), expected);
        }
    }

    #[test]
    fn all_challenges_are_told_and_none_of_what_succeeded() {
        for (status, expected) in [(401, Some("Basic, Bearer a=b")), (403, Some("Basic, Bearer a=b")), (200, None)] {
            let answer = axum::http::Response::builder().status(status);
            let answer = answer.header("www-authenticate", "Basic").header("www-authenticate", "Bearer a=b");
            let wanted = sign_in_wanted(&Response::from(answer.body("").unwrap()));
            let expected = expected.map(|says| SignInWanted { status, says: says.to_owned() });
            assert_eq!(wanted, expected);
        }
        let bare = axum::http::Response::builder().status(401).body("").unwrap();
        assert_eq!(sign_in_wanted(&Response::from(bare)), None);
    }

    #[test]
    fn an_argument_has_a_header_if_its_name_is_one() {
        let said = [("Region", "größe"), ("no name", "x"), ("Host\r\nX", "x")];
        let said = said.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let headers: Vec<_> = mirrored(&said).collect();
        let shown: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(shown, [("mcp-param-region", "=?base64?Z3LDtsOfZQ==?=")]);
    }
}
