//! One question to a gateway about the rules of its team.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use pintle_rules::team::{KnownTeam, MAX_STATEMENT_BYTES, SignedStatement, TeamFault, TeamStatement};
use uuid::Uuid;

use super::standing::holds;
use crate::config::{Env, RulesFrom, TeamKey};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How long an answer may take beyond what the gateway was asked to wait.
pub(super) const SLACK: Duration = Duration::from_secs(10);

/// Most of a refusal that is told on, in bytes.
const MAX_REFUSAL: usize = 2 << 10;

/// Most of it that people read, in characters.
const MAX_SAID_CHARS: usize = 200;

/// What came of a question.
#[derive(Debug)]
pub(super) enum Said {
    /// Something that is believed.
    Good(SignedStatement, Box<TeamStatement>),
    /// Something that is not.
    Bad(TeamFault),
    /// That it gives no rules to this machine; or there is no key to ask it with.
    TurnedAway(String),
    /// Nothing about rules: it is away.
    Away(String),
}

/// A client of a gateway, as this machine.
pub(super) struct GatewayClient {
    from: RulesFrom,
    env: Env,
}

/// An answer, and what kind it says it is.
pub(super) struct Answered {
    status: u16,
    is_json: bool,
    /// Nothing where it is longer than any.
    body: Option<Vec<u8>>,
}

impl GatewayClient {
    pub(super) fn new(from: RulesFrom, env: Env) -> Self {
        Self { from, env }
    }

    pub(super) fn from(&self) -> &RulesFrom {
        &self.from
    }

    /// The key: looked up each time, because it may be replaced.
    fn key(&self) -> Result<String, String> {
        let (found, place) = match &self.from.key {
            TeamKey::Env(name) => {
                let missing = format!("the variable {name}, which is to hold the key, is not set for this process");
                (self.env.text(name).map(str::to_owned).ok_or(missing)?, format!("the variable {name}"))
            }
            TeamKey::File(file) => {
                let unread = |error| format!("the key cannot be read from {}: {error}", file.display());
                let mode = std::fs::metadata(file).map_err(unread)?.permissions().mode();
                if mode & 0o077 != 0 {
                    return Err(format!("others may read the key in {0}: `chmod 600 {0}`", file.display()));
                }
                (std::fs::read_to_string(file).map_err(unread)?, file.display().to_string())
            }
        };
        let key = found.trim().to_owned();
        let is_key = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
        if is_key { Ok(key) } else { Err(format!("{place} holds no API key")) }
    }

    /// Sends a request to `path` below the gateway. No redirect is followed: the key goes nowhere else.
    async fn send(&self, path: &str, body: Option<String>, within: Duration) -> Result<Answered, String> {
        let url = self.from.url.join(path).map_err(|error| error.to_string())?;
        let key = self.key()?;
        let client = pintle_egress::client_for(&url, CONNECT, Some(within)).map_err(|error| error.to_string())?;
        let request = match body {
            None => client.get(url),
            Some(body) => client.post(url).header("content-type", "application/json").body(body),
        };
        let failed = |error: reqwest::Error| match error.is_timeout() {
            true => format!("it gave no answer within {} s", within.as_secs()),
            false => cause(&error),
        };
        let mut response = request.bearer_auth(key).send().await.map_err(failed)?;
        let status = response.status().as_u16();
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_json = kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json");
        let most = if status == 200 { MAX_STATEMENT_BYTES } else { MAX_REFUSAL };
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if bytes.len() + chunk.len() > most {
                return Ok(Answered { status, is_json, body: None });
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(Answered { status, is_json, body: Some(bytes) })
    }

    /// Asks for the rules, unless they are those with the digest `have`; then the gateway may wait so long for others.
    pub(super) async fn ask(&self, known: &KnownTeam, have: Option<&str>, wait: Duration) -> Said {
        let nonce = Uuid::new_v4().to_string();
        let have_text = have.map(|digest| format!("&have={digest}&wait={}", wait.as_secs())).unwrap_or_default();
        let path = format!("guard/v1/rules?nonce={nonce}{have_text}");
        if let Err(why) = self.key() {
            return Said::TurnedAway(why);
        }
        let answered = match self.send(&path, None, wait + SLACK).await {
            Ok(answered) => answered,
            Err(why) => return Said::Away(why),
        };
        match answered.status {
            200 => {}
            401 | 403 | 404 => return Said::TurnedAway(answered.refusal()),
            _ => return Said::Away(answered.refusal()),
        }
        match answered.statement(known, &nonce, have) {
            Ok((signed, statement)) => Said::Good(signed, Box::new(statement)),
            Err(fault) => Said::Bad(fault),
        }
    }

    /// Tells records.
    pub(super) async fn tell(&self, body: String) -> Result<Vec<u8>, TellFault> {
        let answered = self.send("guard/v1/records", Some(body), SLACK).await.map_err(TellFault::Away)?;
        match (answered.status, &answered.body) {
            (200, Some(body)) if answered.is_json => Ok(body.clone()),
            (413, _) => Err(TellFault::TooLong),
            (400, _) => Err(TellFault::Refused(answered.refusal())),
            (_, _) => Err(TellFault::Away(answered.refusal())),
        }
    }
}

/// Why records were not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TellFault {
    /// The same may be taken later.
    Away(String),
    /// It is too much at once.
    TooLong,
    /// It never is.
    Refused(String),
}

impl Answered {
    fn statement(
        self,
        known: &KnownTeam,
        nonce: &str,
        have: Option<&str>,
    ) -> Result<(SignedStatement, TeamStatement), TeamFault> {
        let Some(body) = self.body.filter(|_| self.is_json) else {
            return Err(match self.is_json {
                true => TeamFault::TooLong(MAX_STATEMENT_BYTES + 1),
                false => TeamFault::Unreadable("it is not JSON".to_owned()),
            });
        };
        let (signed, statement) = SignedStatement::open(&body, known, holds)?;
        if statement.nonce != nonce {
            return Err(TeamFault::NoAnswer);
        }
        if statement.rules.is_none() && have != Some(statement.digest.as_str()) {
            return Err(TeamFault::NoRules);
        }
        Ok((signed, statement))
    }

    /// What it says instead of rules, for people.
    fn refusal(&self) -> String {
        let status = self.status;
        match status {
            300..=399 => format!("it sends elsewhere ({status}), where nobody follows"),
            401 | 403 => format!("it does not take the key ({status}{})", self.said()),
            404 => {
                "it has no rules for guards (404): it is older than this version, or no gateway of Pintle".to_owned()
            }
            _ => format!("it answers {status}{}", self.said()),
        }
    }

    fn said(&self) -> String {
        let read = self.body.as_deref().and_then(|body| serde_json::from_slice::<serde_json::Value>(body).ok());
        let text = read.as_ref().and_then(|it| it["error"]["message"].as_str()).unwrap_or_default();
        let plain: String = text.chars().filter(|char| !char.is_control()).take(MAX_SAID_CHARS).collect();
        if plain.is_empty() { plain } else { format!(": {plain}") }
    }
}

/// The last cause of a failure: what stands before it only says that a request failed.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    format!("it cannot be reached: {cause}")
}
