//! What is taken out of a text before anybody but its owner may read it.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::cut;

/// The longest reason or error that is kept, in characters. Source: the published schema of executions.
pub const MAX_TEXT_CHARS: usize = 256;

/// What stands in the place of a secret.
pub(crate) const REDACTED: &str = "[REDACTED]";

/// Keys and tokens that are told by how they begin, of whoever gives them out. A beginning has to be one that no other
/// text has, or what follows it longer than a word: a text is also masked where it is a picture, a digest or prose.
const TOKENS: [&str; 22] = [
    // OpenAI, Anthropic and others, by the published format of executions.
    r"sk-[A-Za-z0-9_\-]{8,}",
    // Pintle: API keys, sessions of the console.
    r"pintle_[0-9a-f]{16,}",
    r"pintle_[0-9a-f]{8}=[A-Za-z0-9_\-]{8,}",
    // GitHub, GitLab.
    r"gh[oprsu]_[A-Za-z0-9]{16,}",
    r"github_pat_[A-Za-z0-9_]{16,}",
    r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat)-[A-Za-z0-9_\-]{16,}",
    // Slack.
    r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9\-]{8,}",
    r"xapp-[0-9]-[A-Za-z0-9\-]{8,}",
    // Google: API keys, access tokens, client secrets.
    r"AIza[A-Za-z0-9_\-]{20,}",
    r"ya29\.[A-Za-z0-9_\-]{16,}",
    r"GOCSPX-[A-Za-z0-9_\-]{16,}",
    // AWS.
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    // Stripe; Standard Webhooks.
    r"[sr]k_(?:live|test)_[A-Za-z0-9]{8,}",
    r"whsec_[A-Za-z0-9+/=_\-]{8,}",
    // npm, PyPI, Docker, Hugging Face, Groq, xAI, DigitalOcean, SendGrid, Shopify, Vault.
    r"(?:npm|hf|gsk)_[A-Za-z0-9]{20,}",
    r"xai-[A-Za-z0-9]{20,}",
    r"pypi-AgE[A-Za-z0-9_\-]{8,}",
    r"dckr_[a-z]{3}_[A-Za-z0-9_\-]{16,}",
    r"do[opr]_v1_[a-f0-9]{16,}",
    r"SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}",
    r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{16,}",
    r"hvs\.[A-Za-z0-9_\-]{16,}",
];

/// Mail addresses, bearer tokens and keys, by the published format of executions; [`TOKENS`], JSON Web Tokens and private
/// keys; the password of a URL; and the value of a name that says what it is, as `password=…`, `"api_key": "…"`,
/// `MY_TOKEN: …`, `--token …` or `Authorization: Basic …`. Names that are words of every day count only where `=`
/// follows, or something that is no word.
///
/// A search looks only a bounded way beyond the end of what it finds, so that a text is read a bounded number of times:
/// a mail address has the 64 characters before its `@` that it may have, a token takes the rest of its run with it, and
/// no private key holds two dashes in a row.
static SECRETS: LazyLock<Regex> = LazyLock::new(|| {
    // Where a text is quoted in another one, its quotes have backslashes.
    let end = r#"\\*["']?\s*"#;
    let value = concat!(
        r#"(?:(?i-u:basic|bearer|digest|token)\s+[^\s"']+|"#,
        r#"\\*"[^"]*"?|\\*'[^']*'?|[^\s,;&"'(){}\[\]]+)"#,
    );
    let long_value = r#"(?:\\*"[^"]{6,}"?|\\*'[^']{6,}'?|[^\s,;&"'(){}\[\]]{6,})"#;
    let told = concat!(
        "password|passwd|passphrase|authorization|client[_-]?secret",
        "|(?:api|access|account|secret|private|signing|encryption)[_-]?key",
        "|(?:access|refresh|auth|api|id|session|bearer)[_-]?token",
    );
    let names = [
        format!(r"(?i-u:{told}){end}[=:]\s*"),
        format!(r"(?i-u:token|secret|pwd|pass){end}=\s*"),
        r#"(?i-u:token|secret|pwd)\\*["']\s*:\s*"#.to_owned(),
        r"--(?i-u:[a-z0-9\-]*(?:password|token|secret|key))\s+".to_owned(),
    ];
    let joined_names = [
        format!(r"(?i-u:[_\-](?:token|secret|pwd|pass|pat|credentials?)){end}:\s*"),
        format!(r"[A-Z0-9]_(?:KEY(?:_ID)?|PAT|CREDENTIALS?){end}[=:]\s*"),
    ];
    let private_key = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----";
    let texts = [
        format!("(?P<name>{})(?P<value>{value})", names.join("|")),
        format!("(?P<joined>{}){long_value}", joined_names.join("|")),
        r#"(?P<word>(?i-u:token|secret|pwd|pass|passcode)\s*:\s*\\*["']?)(?P<odd>[A-Za-z0-9_+/.~\-]{12,}=*)"#
            .to_owned(),
        r"(?P<scheme>://)[^\s/@?#]*:[^\s/@]*(?P<at>@)".to_owned(),
        r"(?i-u:[a-z0-9._%+\-]{1,64}@[a-z0-9.\-]+\.[a-z]{2,})".to_owned(),
        r"(?i-u:bearer)\s+[^\s]{8,}".to_owned(),
        r"eyJ[A-Za-z0-9_\-]{8,}\.\.?[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]+){0,3}".to_owned(),
        format!(r"{private_key}(?:[^\-]|-[^\-])*-{{5,10}}END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----"),
        // One that was cut.
        format!(r#"{private_key}(?:(?:\s|\\[nrt]|["'+>|,])*[A-Za-z0-9+/=]{{16,}})+"#),
        format!(r"(?:{})[A-Za-z0-9_\-]*", TOKENS.join("|")),
    ];
    Regex::new(&texts.join("|")).expect("it is a pattern")
});

/// `text` without what may be secret in it. Reads it in time linear in its length.
pub fn masked(text: &str) -> Cow<'_, str> {
    SECRETS.replace_all(text, |found: &Captures<'_>| {
        let part = |name: &str| found.name(name).map_or("", |part| part.as_str());
        let odd = part("odd");
        if says_no_secret(part("value")) {
            found[0].to_owned()
        } else if !odd.is_empty() && !is_odd(odd) {
            format!("{}{}", part("word"), masked(odd))
        } else {
            [part("name"), part("joined"), part("word"), part("scheme"), REDACTED, part("at")].concat()
        }
    })
}

/// Whether what is given by `name` is a secret, whatever it is.
pub(crate) fn names_a_secret(name: &str) -> bool {
    ends_masked(&format!("{name}=x")) || ends_masked(&format!("{name}: unknown"))
}

/// Whether what is given by `name` is a secret even where it is a number: not so where it may be how many tokens.
pub(crate) fn names_a_password(name: &str) -> bool {
    ends_masked(&format!("{name}: 1"))
}

fn ends_masked(text: &str) -> bool {
    masked(text).ends_with(REDACTED)
}

/// Whether `value` is a word that says whether there is a secret, and not which.
fn says_no_secret(value: &str) -> bool {
    ["true", "false", "null", "none", "nil", "undefined"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Whether `value` is no word of a language.
fn is_odd(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_digit()) && value.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// `text` without what may be secret in it, then cut to [`MAX_TEXT_CHARS`].
pub fn redacted(text: &str) -> String {
    cut(&masked(text), MAX_TEXT_CHARS)
}

#[cfg(test)]
mod tests;
