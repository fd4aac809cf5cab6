//! What is taken out of a text before anybody but its owner may read it.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::cut;

/// The longest reason or error that is kept, in characters. Source: the published schema of executions.
pub const MAX_TEXT_CHARS: usize = 256;

const REDACTED: &str = "[REDACTED]";

/// Mail addresses, bearer tokens and keys, by the published format of executions; the password of a URL; and the value
/// of a name that says what it is, as `password=…`, `"api_key": "…"`, `--token …` or `Authorization: Basic …`. Names
/// that are words of every day count only where `=` follows.
static SECRETS: LazyLock<Regex> = LazyLock::new(|| {
    let value = r#"(?:(?:basic|bearer|digest|token)\s+[^\s"']+|"[^"]*"?|'[^']*'?|[^\s,;&"'(){}\[\]]+)"#;
    let told = concat!(
        "password|passwd|passphrase|authorization|client[_-]?secret",
        "|(?:api|access|secret|private|signing|encryption)[_-]?key",
        "|(?:access|refresh|auth|api|id|session|bearer)[_-]?token",
    );
    let names = [
        format!(r#"[a-z0-9_.\-]*(?:{told})["']?\s*[=:]\s*"#),
        r#"[a-z0-9_.\-]*(?:token|secret|pwd|pass)["']?\s*=\s*"#.to_owned(),
        r#"(?:token|secret|pwd)["']\s*:\s*"#.to_owned(),
        r"--[a-z0-9\-]*(?:password|token|secret|key)\s+".to_owned(),
    ];
    let texts = [
        format!(r"(?i:(?P<name>{}){value})", names.join("|")),
        r"(?i-u:(?P<scheme>[a-z][a-z0-9+.\-]*://))[^\s/@?#]*:[^\s/@]*(?P<at>@)".to_owned(),
        r"(?i-u:[a-z0-9._%+\-]+@[a-z0-9.\-]+\.[a-z]{2,})".to_owned(),
        r"(?i:bearer)\s+[^\s]{8,}".to_owned(),
        r"sk-[A-Za-z0-9_\-]{8,}".to_owned(),
    ];
    Regex::new(&texts.join("|")).expect("it is a pattern")
});

/// `text` without what may be secret in it.
pub fn masked(text: &str) -> Cow<'_, str> {
    let part = |found: &Captures<'_>, name: &str| found.name(name).map_or("", |part| part.as_str()).to_owned();
    SECRETS.replace_all(text, |found: &Captures<'_>| {
        [part(found, "name"), part(found, "scheme"), REDACTED.to_owned(), part(found, "at")].concat()
    })
}

/// `text` without what may be secret in it, then cut to [`MAX_TEXT_CHARS`].
pub fn redacted(text: &str) -> String {
    cut(&masked(text), MAX_TEXT_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_before_the_text_is_cut() {
        let check = |text: &str, expected: &str| assert_eq!(redacted(text), expected);
        check("mail ann.b+c@example.org now", "mail [REDACTED] now");
        check("Authorization: bEaReR abcdefgh.ijk_l", "Authorization: [REDACTED]");
        check("Bearer short", "Bearer short");
        check("key sk-abcdEFGH1234 and sk-1234567", "key [REDACTED] and sk-1234567");
        let long = format!("{} sk-abcdefghijklmnop", "x".repeat(250));
        check(&long, &format!("{} [REDA", "x".repeat(250))[..256]);
        check("größe @ home", "größe @ home");
    }

    #[test]
    fn the_value_of_a_name_that_says_what_it_is_goes() {
        for (text, expected) in [
            ("login failed: password=hunter2 for ann", "login failed: password=[REDACTED] for ann"),
            ("PGPASSWORD='a b' psql", "PGPASSWORD=[REDACTED] psql"),
            (r#"{"password": "a \" b", "x": 1}"#, r#"{"password": [REDACTED] b", "x": 1}"#),
            ("?api_key=abc&page=2", "?api_key=[REDACTED]&page=2"),
            ("db.passwd: s3cret, next", "db.passwd: [REDACTED], next"),
            ("Authorization: Basic dXNlcjpwYXNz", "Authorization: [REDACTED]"),
            ("curl --token abc --user-key  def x", "curl --token [REDACTED] --user-key  [REDACTED] x"),
            ("token=abc secret=def", "token=[REDACTED] secret=[REDACTED]"),
            ("{'token': 'abc'}", "{'token': [REDACTED]}"),
            ("no connection to postgres://ann:pw@db:5432/x", "no connection to postgres://[REDACTED]@db:5432/x"),
            ("redis://:pw@db", "redis://[REDACTED]@db"),
            // Words of every day, and names that only look alike.
            ("unexpected token: x", "unexpected token: x"),
            ("max_tokens=512 password_file=/run/x", "max_tokens=512 password_file=/run/x"),
            ("http://h:80/a@b", "http://h:80/a@b"),
            ("the password is wrong", "the password is wrong"),
            ("password=", "password="),
        ] {
            assert_eq!(redacted(text), expected, "{text}");
        }
    }
}
