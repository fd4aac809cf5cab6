//! Which variables of the host a child sees: the one list of what counts as a secret, for children of every kind.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;

use crate::platform::ProcessStat;

/// A variable that every command of the `exec` tool finds in its environment, with the value `1`, and that everything
/// which is started below it keeps: commands of an operator that must not come from inside the agent look for it.
pub const INSIDE_EXEC: &str = "PINTLE_INSIDE_EXEC";

/// How the names of the host's own variables begin, and those of the system that it can replace.
const OWN: [&str; 2] = ["PINTLE_", "GOCLAW_"];
/// The words that make a variable of the host's own a secret, beyond what makes any variable one: older keys,
/// connection strings.
const OWN_SECRETS: [&str; 8] = ["KEY", "TOKEN", "PASS", "SECRET", "CREDENTIAL", "PRIVATE", "DSN", "DATABASE"];

/// How secret a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Secrecy {
    /// It is none.
    Open,
    /// A child gets it only if somebody names it.
    Secret,
    /// It is the host's own secret, which no child ever gets: with it a child could read and sign what the host keeps.
    Own,
}

impl Secrecy {
    /// Of the variable `name`; what the configuration names in `secrets` is one, too.
    pub(crate) fn of(name: &str, value: &str, secrets: &BTreeSet<String>) -> Self {
        let upper = name.to_uppercase();
        let is_own = OWN.iter().any(|own| upper.starts_with(own));
        let is_secret = secrets.contains(name) || is_secret_name(&upper) || has_password(value);
        match (is_own, is_secret) {
            (true, true) => Self::Own,
            (true, false) if OWN_SECRETS.iter().any(|part| upper.contains(part)) => Self::Own,
            (false, true) => Self::Secret,
            (_, false) => Self::Open,
        }
    }
}

/// The environment of a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildEnv {
    /// All of it, sorted by name.
    pub vars: Vec<(OsString, OsString)>,
    /// Names of the host's variables that the child does not get, sorted.
    pub withheld: Vec<String>,
}

/// The environment of a child: `host` less what looks like a secret or is one of `secrets`, except the names in
/// `inherit`; then `extra`, literally. The host's own secrets (`PINTLE_*`, `GOCLAW_*`) are withheld even if `inherit`
/// names them.
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
        let is_withheld = match Secrecy::of(&shown, &value.to_string_lossy(), secrets) {
            Secrecy::Open => false,
            Secrecy::Secret => !inherit.iter().any(|wanted| *wanted == shown),
            Secrecy::Own => true,
        };
        if is_withheld {
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

/// Longest environment of a process that is taken over, in bytes; the kernel allows a quarter of the stack's limit,
/// usually 2 MiB.
const MAX_ENVIRONMENT_BYTES: u64 = 2 << 20;

/// Room for nearly every environment, in bytes: what fits is read in one piece.
const USUAL_ENVIRONMENT_BYTES: usize = 8 << 10;

/// The environment with which the process `pid`, which runs since `since`, was started; none where it has ended, where it
/// hides it, or where nothing is left of it. Source: proc_pid_environ(5).
pub fn first_environment((pid, since): (u32, u64)) -> Option<Vec<(OsString, OsString)>> {
    let mut bytes = Vec::with_capacity(USUAL_ENVIRONMENT_BYTES);
    let environ = File::open(format!("/proc/{pid}/environ")).ok()?;
    environ.take(MAX_ENVIRONMENT_BYTES + 1).read_to_end(&mut bytes).ok()?;
    let is_whole = u64::try_from(bytes.len()).is_ok_and(|length| length <= MAX_ENVIRONMENT_BYTES);
    // Looked at behind it: whoever has the number by now may be another one.
    let is_it = ProcessStat::of(pid).is_some_and(|stat| stat.since == since);
    let vars: Vec<_> = bytes.split(|byte| *byte == 0).filter_map(variable).collect();
    (is_whole && is_it && !vars.is_empty()).then_some(vars)
}

/// One variable, as it stands in an environment.
fn variable(text: &[u8]) -> Option<(OsString, OsString)> {
    let at = text.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
    let owned = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    Some((owned(&text[..at]), owned(&text[at + 1..])))
}

/// Whether a variable's name, in capitals, says that its value is a secret.
fn is_secret_name(name: &str) -> bool {
    const ENDS: [&str; 7] = ["KEY", "_KEY_ID", "TOKEN", "PASSWORD", "PASSWD", "_PAT", "_PASS"];
    const PARTS: [&str; 2] = ["SECRET", "CREDENTIAL"];
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
        // `user:pass/word@host`: what follows the colon is not a port.
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
        let is_secret_name = |name: &str| is_secret_name(&name.to_uppercase());
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

    /// Every variable of Pintle that holds a key, a token or a way to a store, today's and those of the system that it
    /// replaces.
    const KEYS: [&str; 10] = [
        "PINTLE_AUDIT_SIGNING_KEY",
        "PINTLE_ENCRYPTION_KEY",
        "PINTLE_ENCRYPTION_KEYS_OLD",
        "GOCLAW_ENCRYPTION_KEY",
        "GOCLAW_ENCRYPTION_KEYS_OLD",
        "PINTLE_GATEWAY_TOKEN",
        "GOCLAW_GATEWAY_TOKEN",
        "PINTLE_GATEWAY_TOKENS_OLD",
        "GOCLAW_POSTGRES_DSN",
        "pintle_console_token",
    ];

    #[test]
    fn secrets_of_the_host_are_given_to_nobody() {
        let named = BTreeSet::from(["GOCLAW_NAMED".to_owned()]);
        let host = || {
            let keys = KEYS.iter().map(|name| (*name, "secret"));
            let others =
                [("GOCLAW_NAMED", "x"), ("PINTLE_URL", "redis://:pw@host"), ("PINTLE_HOME", "/p"), (INSIDE_EXEC, "1")];
            keys.chain(others).map(|(name, value)| (OsString::from(name), OsString::from(value)))
        };
        let all: Vec<String> = host().map(|(name, _)| name.into_string().unwrap()).collect();
        let expected: Vec<(OsString, OsString)> =
            [("PINTLE_HOME", "/p"), (INSIDE_EXEC, "1")].map(|(name, value)| (name.into(), value.into())).to_vec();
        // Hooks, servers of tools and commands of the `exec` tool; then commands of rules.
        assert_eq!(child_environment(host(), &named, &all, &BTreeMap::new()).vars, expected);
        let given = crate::command::environment(host(), &all, &all, &named);
        let own: Vec<_> =
            given.into_iter().filter(|(name, _)| !["LANG", "PATH"].contains(&name.to_str().unwrap())).collect();
        assert_eq!(own, expected);
    }

    #[test]
    fn a_process_has_the_environment_that_it_was_started_with() {
        use std::process::{Command, Stdio};

        let mut command = Command::new("cat");
        command.env_clear().env("A", "x=1").env("EMPTY", "").stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let since = ProcessStat::of(child.id()).unwrap().since;
        let expected: Vec<(OsString, OsString)> =
            [("A", "x=1"), ("EMPTY", "")].map(|(name, value)| (name.into(), value.into())).to_vec();
        assert_eq!(first_environment((child.id(), since)), Some(expected));
        assert_eq!(first_environment((child.id(), since + 1)), None, "it is another process");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(first_environment((child.id(), since)), None);
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
