//! Where the server is, how it is spoken to, and what its errors mean. No password leaves this module but to the server.

use std::error::Error as _;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use pintle_domain::store::StoreError;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;
use url::Url;

use super::link::{LOCK_TIMEOUT, PATIENCE};
use super::net::{CONNECT_TIMEOUT, Unconnected};
use super::tls::{self, Trust};
use crate::db::Failure;

/// How long a connection may be silent before the system looks whether the other side is still there, how long it
/// waits between looks, and how long sent bytes may go without a sign: a host that vanished is noticed within a minute.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(20);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const UNHEARD: Duration = Duration::from_secs(20);

/// A server and a database of it.
#[derive(Clone)]
pub(super) struct Target {
    config: Config,
    tls: MakeRustlsConnect,
    name: String,
    schema: Option<String>,
    /// The place where somebody wrote its URL, for messages.
    written: &'static str,
}

/// Its name only: the rest has a password.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Target {
    /// Reads a URL `postgres://USER:PASSWORD@HOST:PORT/DATABASE?OPTIONS`.
    ///
    /// # Errors
    /// What is wrong with it, without anything of it that could be a password.
    pub(super) fn of(text: &str) -> Result<Self, String> {
        if !text.split_once(':').is_some_and(|(_, rest)| rest.starts_with("//")) {
            return Err("the scheme is not followed by `//`".into());
        }
        let mut url = Url::parse(text).map_err(|e| {
            format!("it is not a URL ({e}); a password with `@ : / ? # %` is written with percent signs")
        })?;
        let trust = take_trust(&mut url)?;
        let schema = take_schema(&mut url);
        let mut config = Config::from_str(url.as_str()).map_err(|e| reasons(&e))?;
        if config.get_hosts().is_empty() {
            return Err("it names no host".into());
        }
        if config.get_dbname().is_none() {
            return Err("it names no database".into());
        }
        let name = name(&config)?;
        config.ssl_mode(trust.mode());
        if config.get_application_name().is_none() {
            config.application_name("pintle");
        }
        config.connect_timeout(config.get_connect_timeout().map_or(CONNECT_TIMEOUT, |it| CONNECT_TIMEOUT.min(*it)));
        config.keepalives_idle(KEEPALIVE_IDLE).keepalives_interval(KEEPALIVE_INTERVAL).tcp_user_timeout(UNHEARD);
        Ok(Self { tls: tls::connector(&trust)?, config, name, schema, written: "`store.url`" })
    }

    /// The same, whose URL stands in no configuration but where `written` says.
    pub(super) fn written(self, written: &'static str) -> Self {
        Self { written, ..self }
    }

    /// Host, port and database, for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The schema that the tables stand in, if the URL names it.
    pub(super) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The configuration and the TLS that a connection is made with.
    pub(super) fn ways(&self) -> (Config, MakeRustlsConnect) {
        (self.config.clone(), self.tls.clone())
    }

    /// The error for a connection that cannot be made.
    pub(super) fn unconnected(&self, why: Unconnected) -> StoreError {
        match why {
            Unconnected::Postgres(error) => self.failed(&error),
            Unconnected::Silence => self.silent(CONNECT_TIMEOUT.as_secs()),
        }
    }

    /// The error that a failure means.
    pub(super) fn error(&self, failure: Failure) -> StoreError {
        match failure {
            Failure::Postgres(error) => self.failed(&error),
            Failure::Silence => self.silent(PATIENCE.as_secs()),
            Failure::Said(error) => error,
            Failure::Foreign { what, why } => {
                StoreError::Corrupt(format!("{what} in `{}`: {why}; somebody else changed the row", self.name))
            }
            // A server has no file; whoever mixes them up hears of it.
            Failure::Sqlite(error) => StoreError::Unavailable(format!("`{}`: {error}", self.name)),
        }
    }

    fn silent(&self, seconds: u64) -> StoreError {
        StoreError::Unavailable(format!(
            "`{}` did not answer for {seconds} s; check the server and the way to it",
            self.name
        ))
    }

    fn failed(&self, error: &Error) -> StoreError {
        let (name, written) = (&self.name, self.written);
        let Some(db) = error.as_db_error() else {
            return StoreError::Unavailable(format!(
                "`{name}` cannot be reached: {}; check that the server runs, and {written}",
                reasons(error)
            ));
        };
        // Only the message: details may repeat the row.
        let said = db.message();
        let code = db.code();
        StoreError::Unavailable(if *code == SqlState::LOCK_NOT_AVAILABLE {
            let seconds = LOCK_TIMEOUT.as_secs();
            format!("`{name}` was locked by another process for {seconds} s; find it in `pg_stat_activity`")
        } else if *code == SqlState::INVALID_CATALOG_NAME {
            format!("`{name}`: {said}; make it with `createdb`, or name another one in {written}")
        } else if code.code().starts_with("28") {
            format!("`{name}` refused the connection: {said}; check user and password in {written}, and `pg_hba.conf`")
        } else if *code == SqlState::INSUFFICIENT_PRIVILEGE {
            format!("`{name}`: {said}; give the user the right to make tables there (GRANT CREATE ON SCHEMA)")
        } else if *code == SqlState::DUPLICATE_TABLE || *code == SqlState::DUPLICATE_FUNCTION {
            format!("`{name}` is another program's database ({said}); name an empty one in {written}")
        } else {
            format!("`{name}`: {said} ({})", code.code())
        })
    }
}

/// Whether it helps to do the same once more: two transactions stood in each other's way.
pub(super) fn is_collision(failure: &Failure) -> bool {
    let Failure::Postgres(error) = failure else { return false };
    error
        .code()
        .is_some_and(|code| [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE].contains(code))
}

/// The beginnings of codes of faults that pass: the connection, transactions in each other's way, want of room or memory,
/// somebody else's lock, a server that stops or starts or follows another one, its disk. Source: PostgreSQL, appendix A.
const PASSING: [&str; 7] = ["08", "40", "53", "55P03", "57P", "25006", "58"];

/// Whether the same may be done later: then nothing is wrong with what was to be done.
pub(super) fn passes(failure: &Failure) -> bool {
    match failure {
        // Without a code it is the way to the server.
        Failure::Postgres(error) => {
            error.code().is_none_or(|code| PASSING.iter().any(|class| code.code().starts_with(class)))
        }
        Failure::Silence => true,
        Failure::Sqlite(_) | Failure::Said(_) | Failure::Foreign { .. } => false,
    }
}

/// An error with what is behind it, on one line. The library puts no value of a URL into them.
fn reasons(error: &Error) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_said = cause.to_string();
        if !said.ends_with(&cause_said) {
            said = format!("{said}: {cause_said}");
        }
        next = cause.source();
    }
    said
}

fn name(config: &Config) -> Result<String, String> {
    let database = config.get_dbname().unwrap_or_default();
    let ports = config.get_ports();
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(i, host)| {
            let port = ports.get(i).or(ports.first()).map_or_else(String::new, |port| format!(":{port}"));
            match host {
                Host::Tcp(host) => format!("{host}{port}"),
                Host::Unix(path) => format!("{}{port}", path.display()),
            }
        })
        .collect();
    // A password that was not written with percent signs ends up in a host.
    if hosts.iter().any(|host| host.contains(['@', '?', '#'])) {
        return Err("its host is not a name; a password with `@ : / ? # %` is written with percent signs".into());
    }
    Ok(format!("postgres://{}/{database}", hosts.join(",")))
}

/// Takes the option `schema` out, which the driver does not know.
fn take_schema(url: &mut Url) -> Option<String> {
    let schema = url.query_pairs().find(|(name, _)| name == "schema").map(|(_, value)| value.into_owned());
    let rest = |query: &str| query.split('&').filter(|part| !part.starts_with("schema=")).collect::<Vec<_>>().join("&");
    let rest = url.query().map(rest);
    url.set_query(rest.as_deref().filter(|rest| !rest.is_empty()));
    schema.filter(|schema| !schema.is_empty())
}

/// Takes what the driver does not know out of the options: how far the server's certificate is trusted.
fn take_trust(url: &mut Url) -> Result<Trust, String> {
    let option = |url: &Url, wanted: &str| {
        url.query_pairs().find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
    };
    let (mode, root) = (option(url, "sslmode"), option(url, "sslrootcert"));
    // The rest stays as it was written: the driver reads percent signs, and a plus as a plus.
    let ours = |part: &&str| part.starts_with("sslmode=") || part.starts_with("sslrootcert=");
    let rest = url.query().map(|query| query.split('&').filter(|part| !ours(part)).collect::<Vec<_>>().join("&"));
    url.set_query(rest.as_deref().filter(|rest| !rest.is_empty()));
    Trust::of(mode.as_deref(), root)
}

impl Trust {
    /// The driver's word for it.
    fn mode(&self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::Verify { .. } => SslMode::Require,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        Target::of(url).expect_err(url)
    }

    #[test]
    fn a_bad_url_is_named_without_its_password() {
        let percent = "a password with `@ : / ? # %` is written with percent signs";
        for (url, why) in [
            ("postgres:ada:secret", "the scheme is not followed by `//`".to_owned()),
            ("postgres://ada:secret@/x", format!("it is not a URL (empty host); {percent}")),
            ("postgres:///x", "it names no host".to_owned()),
            ("postgres://ada:secret@db", "it names no database".to_owned()),
            ("postgres://ada:sec/ret@db/x", format!("it is not a URL (invalid port number); {percent}")),
            (
                "postgres://ada:secret@db/x?sslmode=maybe",
                "unknown `sslmode`, expected disable, prefer, require, verify-ca or verify-full".to_owned(),
            ),
            (
                "postgres://ada:secret@db/x?sslrootcert=/nowhere/ca.pem",
                "`sslrootcert` is of use with `sslmode=verify-full` only".to_owned(),
            ),
        ] {
            assert_eq!(refused(url), why);
        }
        let unknown = refused("postgres://ada:secret@db/x?pgbouncer=true");
        assert!(unknown.contains("pgbouncer"), "{unknown}");
        let missing = refused("postgres://ada:secret@db/x?sslmode=verify-full&sslrootcert=/nowhere/ca.pem");
        assert!(missing.starts_with("`sslrootcert`: `/nowhere/ca.pem` cannot be read: "), "{missing}");
    }

    #[test]
    fn a_target_is_named_without_user_and_password() {
        for (url, name) in [
            ("postgres://ada:secret@db:5433/x", "postgres://db:5433/x"),
            ("postgresql://ada:se%40cret@db/x?sslmode=disable&application_name=me", "postgres://db:5432/x"),
            ("postgres://ada@%2Fvar%2Frun%2Fpostgresql/x", "postgres:///var/run/postgresql:5432/x"),
        ] {
            let target = Target::of(url).expect(url);
            assert_eq!((target.name(), format!("{target:?}").as_str()), (name, name));
        }
    }
}
