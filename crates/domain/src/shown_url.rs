//! The one form in which a URL is shown: in messages, logs and reports.

/// Longest URL that is shown, in characters: enough to find its place, too short to flood a log.
const MAX_CHARS: usize = 300;

/// `url` without user, password, query and fragment, in one short line. Of a text that is not a URL nothing is left that
/// could be a name or a password.
pub fn shown_url(url: &str) -> String {
    let is_scheme = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    };
    let bare = match url.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) {
        Some((scheme, rest)) => match rest.strip_prefix("//") {
            Some(rest) => format!("{scheme}://{}", without_names(rest)),
            // Behind the colon there may be anything.
            None if rest.is_empty() => format!("{scheme}:"),
            // A host and its port.
            None if rest.bytes().all(|byte| byte.is_ascii_digit()) => url.to_owned(),
            None => format!("{scheme}:…"),
        },
        None => without_names(url.trim_start_matches('/')),
    };
    let mut line = String::new();
    for c in bare.chars().take(MAX_CHARS) {
        match c {
            '\'' | '"' | '\\' => line.push(c),
            c => line.extend(c.escape_debug()),
        }
    }
    if bare.chars().nth(MAX_CHARS).is_some() { line + "…" } else { line }
}

/// The host with its port, and the path.
fn without_names(rest: &str) -> String {
    let end = |text: &str, signs: &[char]| text.find(signs).unwrap_or(text.len());
    let authority = &rest[..end(rest, &['/', '\\', '?', '#'])];
    // A password may hold any of these signs unescaped, and then what looks like a port is the beginning of it.
    let port = authority.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let may_be_cut = port.is_some_and(|port| !is_port(port) || !authority.contains('@'));
    let names = if may_be_cut { rest.rfind('@') } else { authority.rfind('@') };
    let from = names.map_or(0, |at| at + 1);
    let shown = &rest[from..];
    shown[..end(shown, &['?', '#'])].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_of_a_url_is_shown() {
        for (url, shown) in [
            ("https://u:p@example.org:8443/a/b?token=t#f", "https://example.org:8443/a/b"),
            ("postgres://ada:hunter2@db:5432/pintle?sslmode=require&password=x", "postgres://db:5432/pintle"),
            ("postgresql://ada@db/pintle", "postgresql://db/pintle"),
            ("http://example.org", "http://example.org"),
            ("http://u:p@a b/?q", "http://a b/"),
            ("http://[fe80::1]:8080/x?y", "http://[fe80::1]:8080/x"),
            ("http://u:p@[fe80::1]/x", "http://[fe80::1]/x"),
            // Passwords with signs that should have been written with percent signs.
            ("postgres://ada:sec/ret@db/x", "postgres://db/x"),
            ("postgres://ada:se?cr#et@db/x", "postgres://db/x"),
            ("postgres://ada:p@ss@db/x", "postgres://db/x"),
            ("postgres://ada:a/b@c:d@db/x", "postgres://db/x"),
            ("postgres://ada:12/34@db/x", "postgres://db/x"),
            ("sqlite:///srv/ada/it's @ home.db", "sqlite:///srv/ada/it's @ home.db"),
            ("sqlite://pintle.db", "sqlite://pintle.db"),
            ("memory:", "memory:"),
            ("https://example.org/@scope/name", "https://example.org/@scope/name"),
            ("//u:p@h\\\r\nforged line", "h\\\\r\\nforged line"),
            ("u:p@h", "u:…"),
            ("localhost:4318", "localhost:4318"),
            ("data:text/plain,x?y", "data:…"),
            ("", ""),
        ] {
            assert_eq!(shown_url(url), shown, "{url}");
        }
        let long = format!("http://h/{}", "ä".repeat(10_000));
        assert_eq!(shown_url(&long).chars().count(), MAX_CHARS + 1);
    }
}
