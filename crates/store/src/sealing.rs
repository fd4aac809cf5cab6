//! The keys that a store works with.

use std::sync::Arc;

use pintle_domain::approval::ApprovalKey;
use pintle_domain::audit::ChangeKey;

use crate::anchor_file::{AnchorFile, AnchorNow};
use crate::keyring::Keyring;
use crate::keyring::signing::SigningKey;

/// The keys that a store seals and signs with. Without a keyring, what would have to be encrypted is not kept; without
/// a key that signs, the audit chain has no checkpoints, and nothing in it can be proven to others.
#[derive(Clone, Debug, Default)]
pub struct StoreKeys {
    /// For the details of faults, and whatever else is secret in a row.
    pub keyring: Option<Arc<Keyring>>,
    /// For the checkpoints of the audit chain.
    pub signing: Option<Arc<SigningKey>>,
    /// For entries about rules, where neither of these two is given.
    pub changes: Option<ChangeKey>,
    /// What is known of the store outside of it; without it, what somebody else makes of the store is taken as it is.
    pub anchor: Option<Arc<AnchorFile>>,
}

impl StoreKeys {
    /// What approvals are held against.
    pub(crate) fn approval_proofs(&self) -> Proofs {
        Proofs {
            key: self.approval_key(),
            changes: self.change_key(),
            signing: self.signing.clone(),
            anchor: self.anchor.as_ref().map(|file| file.now()),
        }
    }

    /// The key that seals what persons are asked and say: that of the keyring, which several machines may share, or
    /// else one of this machine. What the other one sealed holds, too. Nothing is sealed where there is neither.
    pub(crate) fn approval_key(&self) -> Option<ApprovalKey> {
        let shared = self.keyring.as_ref().and_then(|keyring| keyring.approval_key());
        let own = self.signing.as_ref().map(|signing| signing.approval_key());
        match (shared, own) {
            (Some(shared), Some(own)) => Some(shared.and_older(own)),
            (Some(key), None) => Some(key),
            (None, own) => own.cloned(),
        }
    }

    /// The key that seals entries about rules: as [`Self::approval_key`], so that what one of the machines with the key of
    /// the keyring writes holds for the others.
    pub(crate) fn change_key(&self) -> Option<ChangeKey> {
        let shared = self.keyring.as_ref().and_then(|keyring| keyring.change_key());
        let own = self.signing.as_ref().map(|signing| signing.change_key());
        match (shared, own) {
            (Some(shared), Some(own)) => Some(shared.and_older(own)),
            (Some(key), None) => Some(key),
            (None, own) => own.or(self.changes.as_ref()).cloned(),
        }
    }

    /// The same for whoever neither encrypts nor signs anything, and tells what hosts sealed.
    #[must_use]
    pub fn only_to_tell(self) -> Self {
        Self { changes: self.change_key(), keyring: None, signing: None, anchor: self.anchor }
    }
}

/// What proves that an approval is what a person gave, and that it was not used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proofs {
    /// The key that seals.
    pub(crate) key: Option<ApprovalKey>,
    /// The one that seals changes: what it sealed in the same store tells whether that is the key of the store.
    pub(crate) changes: Option<ChangeKey>,
    /// The key that signs the chain.
    pub(crate) signing: Option<Arc<SigningKey>>,
    /// What is known of the chain.
    pub(crate) anchor: Option<AnchorNow>,
}
