//! What the log says of a URL that may not be reached.

use url::Url;

use egress::EgressError;

/// Longest URL that is logged, in characters: enough to find the hook, too short to flood the log.
const MAX_URL_CHARS: usize = 300;

/// One line for those who watch for attacks.
pub(super) fn log(url: &str, reason: &EgressError) {
    tracing::warn!(url = %without_secrets(url), reason = %reason, "security.hook.ssrf_block");
}

/// A URL without user, password, query and fragment, in one short line.
pub(super) fn without_secrets(url: &str) -> String {
    let bare = match Url::parse(url) {
        // Behind the colon there may be anything.
        Ok(parsed) if parsed.cannot_be_a_base() => format!("{}:…", parsed.scheme()),
        Ok(parsed) => {
            let rest = parsed.path();
            let host = parsed.host_str().unwrap_or_default();
            let port = parsed.port().map(|port| format!(":{port}")).unwrap_or_default();
            format!("{}://{host}{port}{rest}", parsed.scheme())
        }
        // Where a user name would stand in a text that is no URL, nobody knows: all before an `@` may be one.
        Err(_) => {
            let end = url.find(['?', '#']).unwrap_or(url.len());
            let text = &url[..end];
            text.rsplit('@').next().unwrap_or_default().to_owned()
        }
    };
    let line: String = bare.chars().take(MAX_URL_CHARS).flat_map(char::escape_debug).collect();
    if bare.chars().nth(MAX_URL_CHARS).is_some() { line + "…" } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_of_a_url_is_logged() {
        for (url, logged) in [
            ("https://u:p@example.org:8443/a/b?token=t#f", "https://example.org:8443/a/b"),
            ("http://EXAMPLE.org", "http://example.org/"),
            ("http://u:p@a b/?q", "a b/"),
            ("http://[fe80::1%25eth0]/x?y", "http://[fe80::1%25eth0]/x"),
            ("//u:p@h\\\r\nforged line", "h\\\\\\r\\nforged line"),
            ("u:p@h", "u:…"),
            ("data:text/plain,x?y", "data:…"),
            ("", ""),
        ] {
            assert_eq!(without_secrets(url), logged, "{url}");
        }
        let long = format!("http://h/{}", "ä".repeat(10_000));
        assert_eq!(without_secrets(&long).chars().count(), MAX_URL_CHARS + 1);
    }
}
