//! Which variables of the host a child sees.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

/// The environment of a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildEnv {
    /// All of it, sorted by name.
    pub vars: Vec<(OsString, OsString)>,
    /// Names of the host's variables that the child does not get, sorted.
    pub withheld: Vec<String>,
}

/// The environment of a child: `host` less what looks like a secret or is one of `secrets`, except the names in
/// `inherit`; then `extra`, literally.
pub fn child_environment(
    host: impl Iterator<Item = (OsString, OsString)>,
    secrets: &BTreeSet<String>,
    inherit: &[String],
    extra: &BTreeMap<String, String>,
) -> ChildEnv {
    let mut vars = BTreeMap::new();
    let mut withheld = BTreeSet::new();
    for (name, value) in host {
        let shown = name.to_string_lossy();
        let secret = secrets.contains(&*shown) || is_secret_name(&shown) || has_password(&value.to_string_lossy());
        if secret && !inherit.iter().any(|wanted| *wanted == shown) {
            withheld.insert(shown.into_owned());
        } else {
            vars.insert(name, value);
        }
    }
    for (name, value) in extra {
        withheld.remove(name);
        vars.insert(name.into(), value.into());
    }
    ChildEnv { vars: vars.into_iter().collect(), withheld: withheld.into_iter().collect() }
}

/// Whether a variable's name says that its value is a secret.
fn is_secret_name(name: &str) -> bool {
    const ENDS: [&str; 7] = ["KEY", "_KEY_ID", "TOKEN", "PASSWORD", "PASSWD", "_PAT", "_PASS"];
    const PARTS: [&str; 2] = ["SECRET", "CREDENTIAL"];
    let name = name.to_uppercase();
    ENDS.iter().any(|end| name.ends_with(end)) || PARTS.iter().any(|part| name.contains(part))
}

/// Whether `value` is a URL with a password. Looser than a URL parser on purpose: a list of hosts or an unescaped
/// slash in the password must not let it through.
fn has_password(value: &str) -> bool {
    let Some((scheme, rest)) = value.trim().split_once("://") else { return false };
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.:".contains(c);
    if scheme.is_empty() || !scheme.chars().all(is_scheme) {
        return false;
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((user, _)) => user.split_once(':').is_some_and(|(_, password)| !password.is_empty()),
        // `user:pass/word@host`: what follows the colon is no port.
        None => {
            let port = authority.rsplit_once(':').map(|(_, port)| port);
            let odd = port.is_some_and(|port| !port.ends_with(']') && !port.chars().all(|c| c.is_ascii_digit()));
            odd && rest.contains('@')
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        let secret = [
            "OPENAI_API_KEY",
            "KEY",
            "monkey",
            "AWS_ACCESS_KEY_ID",
            "GITHUB_TOKEN",
            "pgpassword",
            "MYSQL_PASSWD",
            "GH_PAT",
            "SMTP_PASS",
            "CLIENT_SECRET_V2",
            "GOOGLE_APPLICATION_CREDENTIALS",
        ];
        let plain = ["PATH", "HOME", "LANG", "KEYBOARD", "TOKENS_MAX", "COMPASS", "MY_PATH", "PAT", "PINTLE_HOME"];
        assert_eq!(secret.iter().filter(|name| !is_secret_name(name)).collect::<Vec<_>>(), Vec::<&&str>::new());
        assert_eq!(plain.iter().filter(|name| is_secret_name(name)).collect::<Vec<_>>(), Vec::<&&str>::new());
    }

    #[test]
    fn urls_with_passwords() {
        let secret = [
            "postgres://me:pw@host/db",
            "  https://:pw@host",
            "mongodb://me:pw@one:1,two:2/db",
            "postgres://me:p/w@host/db",
            "jdbc:mysql://me:pw@host/db",
            "redis://user:a@b@host",
        ];
        let plain = [
            "https://host:8080/x@y",
            "https://me@host",
            "https://me:@host/",
            "http://[::1]:80/a@b",
            "http://[fe80::1]/a@b",
            "me:pw@host",
            "a text about http://me:pw@host",
            "",
        ];
        assert_eq!(secret.iter().filter(|url| !has_password(url)).collect::<Vec<_>>(), Vec::<&&str>::new());
        assert_eq!(plain.iter().filter(|url| has_password(url)).collect::<Vec<_>>(), Vec::<&&str>::new());
    }

    #[test]
    fn exceptions_and_additions() {
        let host = [
            ("PATH", "/bin"),
            ("A_TOKEN", "1"),
            ("B_TOKEN", "2"),
            ("C_TOKEN", "3"),
            ("NAMED", "4"),
            ("DB", "pg://a:b@c"),
            ("b_token", "5"),
        ];
        let env = child_environment(
            host.into_iter().map(|(name, value)| (name.into(), value.into())),
            &BTreeSet::from(["NAMED".to_owned()]),
            &["B_TOKEN".to_owned()],
            &BTreeMap::from([("C_TOKEN".to_owned(), "own".to_owned()), ("PATH".to_owned(), "/x".to_owned())]),
        );
        let expected = [("B_TOKEN", "2"), ("C_TOKEN", "own"), ("PATH", "/x")];
        assert_eq!(env.vars, expected.map(|(name, value)| (name.into(), value.into())));
        assert_eq!(env.withheld, ["A_TOKEN", "DB", "NAMED", "b_token"]);
    }
}
