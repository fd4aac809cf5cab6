//! What headers of a server over HTTP say, and how they are written.

use axum::http::{StatusCode, header};
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

/// What the server wants before it answers: to know who asks, or that they may do more.
pub(super) fn sign_in_wanted(response: &Response) -> Option<SignInWanted> {
    let is_meant = matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let says = response.headers().get(header::WWW_AUTHENTICATE).filter(|_| is_meant)?.to_str().ok()?;
    Some(SignInWanted { status: response.status().as_u16(), says: says.to_owned() })
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
}
