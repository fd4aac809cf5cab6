//! What was proven of agents on this machine, and what the daemon heard of the last canary.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::places::GuardPlaces;

/// A proof that an agent's calls come past the guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuardProof {
    /// The version that it was proven with.
    pub(crate) version: String,
    /// When.
    pub(crate) at: Timestamp,
}

fn proofs_file(places: &GuardPlaces) -> PathBuf {
    places.folder.join("proofs")
}

fn heard_file(places: &GuardPlaces) -> PathBuf {
    places.folder.join("canary")
}

/// The newest proof of each agent, by its id.
pub(crate) fn proofs(places: &GuardPlaces) -> BTreeMap<String, GuardProof> {
    let bytes = fs::read(proofs_file(places)).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
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
    let beside = places.folder.join("proofs.new");
    fs::write(&beside, serde_json::to_vec(&all).map_err(io::Error::other)?)?;
    fs::rename(beside, proofs_file(places))
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
