//! How a team stands by what its files say: its rules in force, or every gate shut, and why.

use std::path::Path;

use pintle_domain::audit::Proof;
use pintle_rules::team::{KnownTeam, SignedStatement, TeamFault, TeamRule, TeamStatement};
use pintle_store::keyring::signing::PublicKeys;

use super::kept::{Pin, TeamFolder};
use crate::config::RulesFrom;

/// The rules of a team that are in force.
#[derive(Clone, Debug, PartialEq)]
pub struct TeamInForce {
    /// The gateway, as it is shown.
    pub from: String,
    /// The key that signed them.
    pub signer: String,
    /// What the gateway said.
    pub statement: TeamStatement,
    /// The rules in it.
    pub rules: Vec<TeamRule>,
}

/// How a team stands.
#[derive(Clone, Debug, PartialEq)]
pub enum TeamStanding {
    /// Its last good rules hold.
    InForce(Box<TeamInForce>),
    /// Nothing is let pass.
    Shut {
        /// Why, and what to do.
        why: String,
    },
}

/// A gateway, as it is shown.
pub(crate) fn shown(from: &RulesFrom) -> String {
    from.url.as_str().trim_end_matches('/').to_owned()
}

/// What must hold of everything that the gateway says, by what is trusted since its first good word.
pub(crate) fn known(from: &RulesFrom, pin: Option<&Pin>) -> KnownTeam {
    let pin = pin.filter(|pin| pin.url == from.url.as_str());
    KnownTeam {
        // What the operator says counts before what was seen first.
        signer: from.signer.clone().or_else(|| pin.map(|pin| pin.signer.clone())),
        tenant: pin.map(|pin| pin.tenant.clone()),
        newest: pin.map(|pin| pin.version),
    }
}

/// Whether `signature` under `message` is that of the key of `line`.
pub(crate) fn holds(line: &str, message: &[u8], signature: &str) -> bool {
    let (Ok(keys), Some(kid)) = (PublicKeys::parse(line), line.split(':').nth(1)) else { return false };
    keys.verify(kid, message, signature) == Proof::Good
}

/// What is wrong, and what a person does about it who knows why.
pub(crate) fn explained(fault: &TeamFault, folder: &Path) -> String {
    let remedy = match fault {
        TeamFault::Older { .. } => format!("; if the gateway was set back on purpose, remove {}", folder.display()),
        TeamFault::OtherTenant { .. } => format!("; if the other one is meant, remove {}", folder.display()),
        TeamFault::TooLong(_)
        | TeamFault::Unreadable(_)
        | TeamFault::OtherForm(_)
        | TeamFault::Forged
        | TeamFault::OtherSigner { .. }
        | TeamFault::NoAnswer
        | TeamFault::NoRules
        | TeamFault::BadRule { .. } => String::new(),
    };
    format!("{fault}{remedy}")
}

impl TeamStanding {
    /// How the team of the gateway `from` stands by what is kept in `folder`. Blocks.
    pub fn of(from: &Result<RulesFrom, String>, folder: &TeamFolder) -> Self {
        let from = match from {
            Ok(from) => from,
            Err(why) => {
                let why = format!("`guard.rules_from` cannot be read, so nobody knows which rules hold: {why}");
                return Self::Shut { why };
            }
        };
        Self::kept(from, folder).unwrap_or_else(|why| Self::Shut { why })
    }

    fn kept(from: &RulesFrom, folder: &TeamFolder) -> Result<Self, String> {
        let (shown, unread) = (shown(from), |error| format!("what is kept of the team cannot be read: {error}"));
        let (contact, pin) = (folder.contact().map_err(unread)?, folder.pin().map_err(unread)?);
        let is_of_it = contact.is_of(from.url.as_str());
        if let Some((_, why)) = contact.refused.filter(|_| is_of_it) {
            return Err(format!(
                "what {shown} sent as the rules of the team is not believed, and nothing passes until it sends good ones: {why}"
            ));
        }
        let is_other = |pin: &Pin| from.signer.as_ref().is_some_and(|signer| *signer != pin.signer);
        let pin = pin.filter(|pin| pin.url == from.url.as_str() && !is_other(pin));
        let (Some(pin), Some(bytes)) = (pin, folder.rules().map_err(unread)?) else {
            let why = contact.turned_away.or(contact.away).filter(|_| is_of_it);
            let why = why.map(|(_, why)| format!(": {why}")).unwrap_or_default();
            return Err(format!("no rules of the team have come from {shown} yet, and nothing passes without{why}"));
        };
        let bad = |fault| {
            let why = explained(&fault, folder.path());
            format!("the rules of the team that are kept here are not those of {shown}, which is asked for them: {why}")
        };
        let (signed, statement) = SignedStatement::open(&bytes, &known(from, Some(&pin)), holds).map_err(bad)?;
        if statement.rules.is_none() {
            return Err(bad(TeamFault::NoRules));
        }
        let rules = statement.team_rules().map_err(bad)?;
        Ok(Self::InForce(Box::new(TeamInForce { from: shown, signer: signed.signer, statement, rules })))
    }

    /// The digest of the rules in force.
    pub fn digest(&self) -> Option<&str> {
        match self {
            Self::InForce(team) => Some(&team.statement.digest),
            Self::Shut { .. } => None,
        }
    }

    /// Whether the same is in force, whenever it was said.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::InForce(one), Self::InForce(other)) => {
                (&one.from, &one.statement.digest) == (&other.from, &other.statement.digest)
            }
            (Self::Shut { why }, Self::Shut { why: other }) => why == other,
            (Self::InForce(_), Self::Shut { .. }) | (Self::Shut { .. }, Self::InForce(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests;
