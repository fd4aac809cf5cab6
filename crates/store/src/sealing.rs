//! The keys that a store works with.

use std::sync::Arc;

use crate::anchor_file::AnchorFile;
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
    /// What is known of the store outside of it; without it, what somebody else makes of the store is taken as it is.
    pub anchor: Option<Arc<AnchorFile>>,
}
