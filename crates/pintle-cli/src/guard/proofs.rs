//! What was proven of agents on this machine, and what the daemon heard of the last canary.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use jiff::Timestamp;
use pintle_guard::GuardHost;
use pintle_guard::measured::{CoverageFacts, GuardDoor, VersionFact};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::places::GuardPlaces;
use super::versions::HostVersion;

/// A proof that an agent's calls reach the guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuardProof {
    /// The version that it was proven with.
    pub(crate) version: String,
    /// When.
    pub(crate) at: Timestamp,
}

/// The newest time that the daemon itself wanted to prove an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuardTry {
    /// The version that it was about.
    pub(crate) version: String,
    /// When.
    pub(crate) at: Timestamp,
    /// What came of it, for people.
    pub(crate) said: String,
}

/// What is known of an agent on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownHere {
    /// Its version, where anybody can say it.
    version: Option<HostVersion>,
    /// The version that was proven.
    proof: Option<String>,
}

impl KnownHere {
    /// Of `host`, which runs in `version`.
    pub(crate) fn of(host: &GuardHost, version: Option<HostVersion>, places: &GuardPlaces) -> Self {
        Self { version, proof: proofs(places).remove(host.id).map(|proof| proof.version) }
    }

    /// That, for the coverage of its hooks, which `off` turns off.
    pub(crate) fn facts<'a>(&'a self, off: Option<&'a str>) -> CoverageFacts<'a> {
        let version = match &self.version {
            Some(HostVersion::Known(version)) => VersionFact::Tried(version),
            Some(HostVersion::Unproven(version)) => VersionFact::New(version),
            Some(HostVersion::Unsaid(_)) | None => VersionFact::Unknown,
        };
        CoverageFacts { door: GuardDoor::Hook, version, proof: self.proof.as_deref(), off }
    }
}

/// Whether the daemon is to prove an agent in `version` by itself: it is one that nobody has tried, or another one than was
/// proven here, and neither proven nor tried to be.
pub(crate) fn wants_proof(version: &HostVersion, proof: Option<&GuardProof>, tried: Option<&GuardTry>) -> bool {
    let (version, is_known) = match version {
        HostVersion::Known(version) => (version, true),
        HostVersion::Unproven(version) => (version, false),
        HostVersion::Unsaid(_) => return false,
    };
    let is_proven = proof.is_some_and(|proof| proof.version == *version);
    let is_tried = tried.is_some_and(|tried| tried.version == *version);
    (!is_known || proof.is_some()) && !is_proven && !is_tried
}

const PROOFS: &str = "proofs";

const TRIES: &str = "tries";

fn read<T: DeserializeOwned>(places: &GuardPlaces, name: &str) -> BTreeMap<String, T> {
    let bytes = fs::read(places.folder.join(name)).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

fn write<T: Serialize>(places: &GuardPlaces, (name, all): (&str, &BTreeMap<String, T>)) -> io::Result<()> {
    let beside = places.folder.join(format!("{name}.new"));
    fs::write(&beside, serde_json::to_vec(all).map_err(io::Error::other)?)?;
    fs::rename(beside, places.folder.join(name))
}

fn heard_file(places: &GuardPlaces) -> PathBuf {
    places.folder.join("canary")
}

/// The newest proof of each agent, by its id.
pub(crate) fn proofs(places: &GuardPlaces) -> BTreeMap<String, GuardProof> {
    read(places, PROOFS)
}

/// The newest time that the daemon wanted to prove each agent, by its id.
pub(crate) fn tries(places: &GuardPlaces) -> BTreeMap<String, GuardTry> {
    read(places, TRIES)
}

/// Keeps the proof of the agent `host`; without one, what was proven before counts no more.
///
/// # Errors
/// It cannot be written.
pub(crate) fn keep(places: &GuardPlaces, host: &str, proof: Option<GuardProof>) -> io::Result<()> {
    let mut all = proofs(places);
    match proof {
        Some(proof) => drop(all.insert(host.to_owned(), proof)),
        None => drop(all.remove(host)),
    }
    write(places, (PROOFS, &all))
}

/// Keeps that the daemon wanted to prove the agent `host`.
///
/// # Errors
/// It cannot be written.
pub(crate) fn keep_try(places: &GuardPlaces, host: &str, tried: GuardTry) -> io::Result<()> {
    let mut all = tries(places);
    all.insert(host.to_owned(), tried);
    write(places, (TRIES, &all))
}

/// The daemon heard the canary `nonce`.
pub(crate) fn heard(places: &GuardPlaces, nonce: &str) {
    if let Err(error) = fs::write(heard_file(places), nonce) {
        tracing::warn!("that a canary was heard cannot be kept: {error}");
    }
}

/// Whether the daemon heard the canary `nonce`.
pub(crate) fn was_heard(places: &GuardPlaces, nonce: &str) -> bool {
    fs::read_to_string(heard_file(places)).is_ok_and(|heard| heard == nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_proven_by_itself_once_and_when_it_is_new() {
        let proof = |version: &str| GuardProof { version: version.into(), at: Timestamp::UNIX_EPOCH };
        let tried =
            |version: &str| GuardTry { version: version.into(), at: Timestamp::UNIX_EPOCH, said: String::new() };
        let check = |version: &HostVersion, proven: Option<&str>, tries: Option<&str>, expected: bool| {
            let (proof, tried) = (proven.map(proof), tries.map(tried));
            let wants = wants_proof(version, proof.as_ref(), tried.as_ref());
            assert_eq!(wants, expected, "{version:?}, proven {proven:?}, tried {tries:?}");
        };
        let (known, new) = (HostVersion::Known("1".into()), HostVersion::Unproven("2".into()));
        // Whoever has just installed it has not asked for that.
        check(&known, None, None, false);
        check(&known, Some("1"), None, false);
        check(&known, Some("0"), None, true);
        check(&known, Some("0"), Some("1"), false);
        check(&new, None, None, true);
        check(&new, Some("1"), None, true);
        check(&new, Some("1"), Some("1"), true);
        check(&new, Some("1"), Some("2"), false);
        check(&new, Some("2"), None, false);
        check(&HostVersion::Unsaid("x".into()), Some("1"), None, false);
    }
}
