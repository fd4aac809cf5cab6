//! Which variables of the host a command sees: few, and those by name.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use crate::environment::{INSIDE_EXEC, Secrecy};

/// Where programs are looked for. Not the host's own: that one is the operator's, with folders anybody may write to.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Text is UTF-8, messages are English.
const LANG: &str = "C.UTF-8";
/// The whole environment of a command: a plain `PATH`, the `HOME` of `host`, a `LANG`, then those of `allowed` that
/// `host` has, which may replace them.
///
/// What the configuration names in `secrets` or looks like a secret is given only if the operator lists it too, in
/// `operator_env`; secrets of the host's own (`PINTLE_*`, `GOCLAW_*`) are never given.
pub fn environment(
    host: impl Iterator<Item = (OsString, OsString)>,
    allowed: &[String],
    operator_env: &[String],
    secrets: &BTreeSet<String>,
) -> Vec<(OsString, OsString)> {
    let mut vars = BTreeMap::from([("PATH".into(), PATH.into()), ("LANG".into(), LANG.into())]);
    for (name, value) in host {
        let shown = name.to_string_lossy();
        let is_given = match Secrecy::of(&shown, &value.to_string_lossy(), secrets) {
            // It can take nothing away from a command that it is marked, and much if it is not.
            Secrecy::Open => shown == "HOME" || shown == INSIDE_EXEC || allowed.iter().any(|asked| *asked == shown),
            Secrecy::Secret => [allowed, operator_env].iter().all(|names| names.iter().any(|name| *name == shown)),
            Secrecy::Own => false,
        };
        if is_given {
            vars.insert(name, value);
        }
    }
    vars.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: [(&str, &str); 16] = [
        ("PATH", "/opt/bin"),
        ("HOME", "/srv/me"),
        ("LANG", "de_DE"),
        ("MY_VAR", "mine"),
        ("my_var", "other"),
        ("UNASKED", "1"),
        ("EMPTY", ""),
        ("GH_TOKEN", "t"),
        ("NAMED", "by the configuration"),
        ("DB", "postgres://me:pw@host/db"),
        ("PINTLE_HOME", "/p"),
        ("PINTLE_ENCRYPTION_KEY", "k"),
        ("PINTLE_ENCRYPTION_KEYS_OLD", "k"),
        ("GOCLAW_POSTGRES_DSN", "host=db password=pw"),
        ("GOCLAW_NAMED", "by the configuration"),
        ("GOCLAW_URL", "redis://:pw@host"),
    ];

    fn check(allowed: &[&str], operator: &[&str], expected: &[(&str, &str)]) {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let host = HOST.into_iter().map(|(name, value)| (name.into(), value.into()));
        let secrets = BTreeSet::from(["NAMED", "GOCLAW_NAMED"].map(str::to_owned));
        let vars = environment(host, &owned(allowed), &owned(operator), &secrets);
        let expected: Vec<(OsString, OsString)> = expected.iter().map(|(n, v)| (n.into(), v.into())).collect();
        assert_eq!(vars, expected, "{allowed:?} {operator:?}");
    }

    const BARE: [(&str, &str); 3] =
        [("HOME", "/srv/me"), ("LANG", "C.UTF-8"), ("PATH", "/usr/local/bin:/usr/bin:/bin")];

    #[test]
    fn an_empty_list_adds_nothing() {
        check(&[], &[], &BARE);
        check(&[], &["GH_TOKEN", "UNASKED"], &BARE);
        assert_eq!(
            environment(std::iter::empty(), &["HOME".into()], &[], &BTreeSet::new()),
            [("LANG".into(), "C.UTF-8".into()), ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]
        );
    }

    #[test]
    fn what_is_listed_and_there_is_given() {
        let [home, lang, path] = BARE;
        check(&["MY_VAR", "MISSING", "EMPTY"], &[], &[("EMPTY", ""), home, lang, ("MY_VAR", "mine"), path]);
        let own = [home, ("LANG", "de_DE"), ("PATH", "/opt/bin")];
        check(&["PATH", "LANG", "HOME"], &[], &own);
        check(&["PINTLE_HOME"], &[], &[home, lang, path, ("PINTLE_HOME", "/p")]);
    }

    #[test]
    fn secrets_need_the_operator() {
        let [home, lang, path] = BARE;
        let secret = ["GH_TOKEN", "NAMED", "DB"];
        check(&secret, &[], &BARE);
        check(&secret, &["NAMED"], &[home, lang, ("NAMED", "by the configuration"), path]);
        let db = ("DB", "postgres://me:pw@host/db");
        check(&secret, &secret, &[db, ("GH_TOKEN", "t"), home, lang, ("NAMED", "by the configuration"), path]);
    }

    #[test]
    fn secrets_of_the_host_are_never_given() {
        let own = [
            "PINTLE_ENCRYPTION_KEY",
            "PINTLE_ENCRYPTION_KEYS_OLD",
            "GOCLAW_POSTGRES_DSN",
            "GOCLAW_NAMED",
            "GOCLAW_URL",
        ];
        check(&own, &own, &BARE);
    }
}
