//! Seals on questions and answers: what stands in a store counts only as it was asked and as a person said it.

use std::fmt;

use super::flaw::ApprovalFlaw;
use super::{Approval, sha256};
use crate::json::{canonical, json};
use crate::mac::SealKey;

/// The purpose for which the key is derived.
const INFO: &[u8] = b"pintle-approval-1";

/// The key that seals questions and answers, and older ones whose seals still hold. It is not printed.
#[derive(Clone)]
pub struct ApprovalKey(SealKey);

impl ApprovalKey {
    /// The key that belongs to a secret of the host.
    pub fn of(secret: &[u8]) -> Self {
        Self(SealKey::of(secret, INFO))
    }

    /// This key, which also takes what `older` sealed.
    #[must_use]
    pub fn and_older(self, older: &Self) -> Self {
        Self(self.0.and_older(&older.0))
    }

    /// The seal on `approval` as it stands: base64url without padding.
    pub fn seal(&self, approval: &Approval) -> String {
        self.0.seal(&sealed(approval))
    }

    /// Whether `seal` is the seal of this key or of an older one on `approval` as it stands.
    pub fn holds(&self, approval: &Approval, seal: &str) -> bool {
        self.0.holds(&sealed(approval), seal)
    }
}

impl fmt::Debug for ApprovalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApprovalKey(…)")
    }
}

/// Everything that a seal is over: what is shown, where it stands, who said so, until when.
fn sealed(approval: &Approval) -> Vec<u8> {
    let Approval { id, state, answered_by, note, .. } = approval;
    canonical(&json!([id, approval.shown(), state, answered_by, note])).into_bytes()
}

impl Approval {
    /// SHA-256 over everything that a person is shown of the question, in hex: an answer is to exactly this.
    pub fn shown(&self) -> String {
        let call = json!([self.shown_digest(), self.digest, self.place]);
        let why = json!([self.by, self.reason, self.changed_from, self.again_because]);
        let when = match self.usable_seconds {
            None => json!([self.asked_at, self.expires_at]),
            Some(seconds) => json!([self.asked_at, self.expires_at, seconds]),
        };
        sha256(&json!([self.id, call, why, when]))
    }

    /// The question as a store with `key` is to take it, whose row has this `seal`.
    #[must_use]
    pub fn examined(self, key: Option<&ApprovalKey>, seal: Option<&str>) -> Self {
        let flaw = key.and_then(|key| self.unproven(key, seal));
        Self { flaw: self.flaw.or(flaw), ..self }
    }

    /// Whether a version that sealed nothing left the question as it is: such a one did not say where the call runs.
    pub fn is_of_before_seals(&self) -> bool {
        let placed = self.place.as_ref().is_some_and(|place| !place.is_anywhere());
        self.state == super::ApprovalState::Waiting && !placed && self.flaw.is_none()
    }

    fn unproven(&self, key: &ApprovalKey, seal: Option<&str>) -> Option<ApprovalFlaw> {
        use super::ApprovalState::{Approved, Expired, Refused, Used, Void, Waiting};
        let holds = seal.map(|seal| key.holds(self, seal));
        match (self.state, holds) {
            (Waiting | Approved, Some(true)) => None,
            // It says what was asked, so that it may as well be the key that is another one.
            (Waiting, Some(false)) if self.shown_digest().to_string() == self.digest => Some(ApprovalFlaw::BrokenSeal),
            // Those of versions that sealed nothing were sealed when the store was brought up to date.
            (Waiting, Some(false) | None) => Some(ApprovalFlaw::Altered),
            (Approved, Some(false)) => Some(ApprovalFlaw::BrokenSeal),
            (Approved, None) => Some(ApprovalFlaw::Unsealed),
            // None of these gives leave, and a no that somebody touched is no yes.
            (Refused | Used | Void | Expired, _) => None,
        }
    }
}
