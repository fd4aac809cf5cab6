//! What is taken out of a text before anybody but its owner may read it.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::cut;

/// The longest reason or error that is kept, in characters. Source: the published schema of executions.
pub const MAX_TEXT_CHARS: usize = 256;

const REDACTED: &str = "[REDACTED]";

/// Mail addresses, bearer tokens and keys. Source: the published format of executions.
static SECRETS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i-u:[a-z0-9._%+\-]+@[a-z0-9.\-]+\.[a-z]{2,})|(?i:bearer)\s+[^\s]{8,}|sk-[A-Za-z0-9_\-]{8,}")
        .expect("it is a pattern")
});

/// `text` without mail addresses, bearer tokens and keys.
pub fn masked(text: &str) -> Cow<'_, str> {
    SECRETS.replace_all(text, REDACTED)
}

/// `text` without mail addresses, bearer tokens and keys, then cut to [`MAX_TEXT_CHARS`].
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
}
