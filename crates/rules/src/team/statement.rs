//! What a gateway says of the rules of a team, and whether somebody believes it.
//!
//! A statement is signed as the bytes that it has, so nobody has to write JSON in the same way twice. With rules it is a
//! snapshot; without, it says that those with a certain digest are still the ones.

use jiff::Timestamp;
use pintle_domain::hex::hex;
use pintle_domain::json::{Value, canonical, json};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::rule::TeamRule;

/// The number of this form. A machine that reads another number believes nothing of it.
pub const FORMAT: u64 = 1;

/// Longest statement that is read and written, in bytes: most tenants have some dozens of rules of some kilobytes.
pub const MAX_STATEMENT_BYTES: usize = 8 << 20;

/// What stands before what is signed, so that no signature under anything else is one under rules.
const MARK: &str = "pintle team rules 1\n";

/// What is signed for a statement of this text.
pub fn message(signed: &str) -> Vec<u8> {
    [MARK.as_bytes(), signed.as_bytes()].concat()
}

/// The digest of rules, as a statement names it.
pub fn digest(rules: &[Value]) -> String {
    hex(&Sha256::digest(canonical(&Value::Array(rules.to_vec())).as_bytes()))
}

/// Whose rules they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamTenant {
    /// A UUID.
    pub id: String,
    /// Its name there.
    pub slug: String,
}

/// What a gateway says.
#[derive(Clone, Debug, PartialEq)]
pub struct TeamStatement {
    /// What the gateway calls itself, for people.
    pub gateway: String,
    /// Whose rules they are.
    pub tenant: TeamTenant,
    /// Counts the changes; it only grows.
    pub version: u64,
    /// When it was said.
    pub issued_at: Timestamp,
    /// What the machine asked with, so that nothing old passes for an answer.
    pub nonce: String,
    /// The digest of the rules.
    pub digest: String,
    /// The rules; nothing where the machine has them.
    pub rules: Option<Vec<Value>>,
}

/// A statement with its signature, as it goes over the network and stands in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedStatement {
    /// The number of the form.
    pub format: u64,
    /// The public key: `ed25519:<kid>:<base64>`.
    pub signer: String,
    /// The signature, as base64.
    pub signature: String,
    /// What is signed.
    pub signed: String,
}

/// Why something is not what the gateway said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TeamFault {
    /// It is longer than any.
    #[error("it has {0} bytes, and at most {MAX_STATEMENT_BYTES} are read")]
    TooLong(usize),
    /// It is no statement, or not all of one.
    #[error("it is not whole, or no rules of a gateway: {0}")]
    Unreadable(String),
    /// Somebody writes another form.
    #[error("it has form {0}, and this version reads form {FORMAT}: update Pintle here")]
    OtherForm(u64),
    /// The signature is not that of its key.
    #[error("its signature does not hold")]
    Forged,
    /// Another key than the one that is trusted.
    #[error(
        "it is signed with the key {found}, and {trusted} is trusted here; if the gateway has a new key, set `signer`"
    )]
    OtherSigner {
        /// The one that is trusted.
        trusted: String,
        /// The one that signed.
        found: String,
    },
    /// Rules of somebody else.
    #[error("its rules are of tenant \"{found}\", and those of \"{trusted}\" are trusted here")]
    OtherTenant {
        /// Whose rules are trusted.
        trusted: String,
        /// Whose they are.
        found: String,
    },
    /// What was said before is newer.
    #[error("it is older than what is known: version {found} of {at}, and {known} is known")]
    Older {
        /// The version that is known.
        known: u64,
        /// Its own.
        found: u64,
        /// When it was said.
        at: Timestamp,
    },
    /// It answers another question.
    #[error("it answers another question than the one that was asked")]
    NoAnswer,
    /// It says that rules are in force which are not here.
    #[error("it has no rules, and names others than those here")]
    NoRules,
    /// One of its rules is none.
    #[error("its rule \"{name}\" cannot be read: {why}; update Pintle here")]
    BadRule {
        /// Its name, or its place.
        name: String,
        /// Why.
        why: String,
    },
}

/// What is known of a team, and what therefore must hold of every statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownTeam {
    /// The only key that counts; at first use any.
    pub signer: Option<String>,
    /// The only tenant that counts; at first use any.
    pub tenant: Option<TeamTenant>,
    /// The highest version that was seen.
    pub newest: Option<u64>,
}

impl TeamStatement {
    /// The text that is signed: canonical JSON.
    pub fn text(&self) -> String {
        let mut value = json!({
            "format": FORMAT,
            "gateway": self.gateway,
            "tenant": { "id": self.tenant.id, "slug": self.tenant.slug },
            "version": self.version,
            "issued_at": self.issued_at.to_string(),
            "nonce": self.nonce,
            "digest": self.digest,
        });
        if let Some(rules) = &self.rules {
            value["rules"] = Value::Array(rules.clone());
        }
        canonical(&value)
    }

    fn read(text: &str) -> Result<Self, TeamFault> {
        #[derive(Deserialize)]
        struct Written {
            format: u64,
            gateway: String,
            tenant: TeamTenant,
            version: u64,
            issued_at: Timestamp,
            nonce: String,
            digest: String,
            rules: Option<Vec<Value>>,
        }
        let written: Written = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        if written.format != FORMAT {
            return Err(TeamFault::OtherForm(written.format));
        }
        let Written { gateway, tenant, version, issued_at, nonce, digest, rules, format: _ } = written;
        Ok(Self { gateway, tenant, version, issued_at, nonce, digest, rules })
    }

    /// Its rules, each as it is to be.
    ///
    /// # Errors
    /// One is none.
    pub fn team_rules(&self) -> Result<Vec<TeamRule>, TeamFault> {
        let of = |(at, value): (usize, &Value)| {
            let name = value.get("name").and_then(Value::as_str).map_or_else(|| format!("number {at}"), str::to_owned);
            TeamRule::read(value).map_err(|why| TeamFault::BadRule { name, why })
        };
        self.rules.iter().flatten().enumerate().map(of).collect()
    }

    /// Whether it may follow what is `known`.
    fn follows(&self, known: &KnownTeam) -> Result<(), TeamFault> {
        if let Some(tenant) = known.tenant.as_ref().filter(|tenant| tenant.id != self.tenant.id) {
            return Err(TeamFault::OtherTenant { trusted: tenant.slug.clone(), found: self.tenant.slug.clone() });
        }
        match known.newest {
            // One version is said again and again, by nodes whose clocks differ.
            Some(newest) if self.version < newest => {
                Err(TeamFault::Older { known: newest, found: self.version, at: self.issued_at })
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl SignedStatement {
    /// The statement `signed`, with its signature by the key whose line is `signer`.
    pub fn of(signed: String, signer: String, sign: impl FnOnce(&[u8]) -> String) -> Self {
        let signature = sign(&message(&signed));
        Self { format: FORMAT, signer, signature, signed }
    }

    /// As it goes over the network and stands in a file.
    pub fn to_text(&self) -> String {
        let value = json!({
            "format": self.format, "signer": self.signer, "signature": self.signature, "signed": self.signed,
        });
        canonical(&value)
    }

    /// What `bytes` say, if that may follow what is `known`. `holds` says whether a signature (the last) under a message
    /// is that of the key of a line (the first).
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn open(
        bytes: &[u8],
        known: &KnownTeam,
        holds: impl FnOnce(&str, &[u8], &str) -> bool,
    ) -> Result<(Self, TeamStatement), TeamFault> {
        if bytes.len() > MAX_STATEMENT_BYTES {
            return Err(TeamFault::TooLong(bytes.len()));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| unreadable(&error))?;
        let written: Self = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        if written.format != FORMAT {
            return Err(TeamFault::OtherForm(written.format));
        }
        if let Some(trusted) = known.signer.as_ref().filter(|trusted| **trusted != written.signer) {
            return Err(TeamFault::OtherSigner { trusted: trusted.clone(), found: shown(&written.signer) });
        }
        if !holds(&written.signer, &message(&written.signed), &written.signature) {
            return Err(TeamFault::Forged);
        }
        let statement = TeamStatement::read(&written.signed)?;
        statement.follows(known)?;
        match &statement.rules {
            Some(rules) if digest(rules) != statement.digest => Err(TeamFault::Forged),
            Some(_) | None => {
                statement.team_rules()?;
                Ok((written, statement))
            }
        }
    }
}

/// A line of a key that anybody may have written, for a message.
fn shown(line: &str) -> String {
    /// More than any key has.
    const MAX_CHARS: usize = 80;
    line.chars().take(MAX_CHARS).flat_map(char::escape_debug).collect()
}

fn unreadable(error: &impl std::fmt::Display) -> TeamFault {
    TeamFault::Unreadable(error.to_string())
}
