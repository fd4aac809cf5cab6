//! What things of a session are found by, and for how long.

use jiff::SignedDuration;
use sha2::{Digest as _, Sha256};

/// How long a session is kept that nobody speaks in. Source: the specification of the door.
pub const KEPT_FOR: SignedDuration = SignedDuration::from_hours(24);

/// What names a text in its session: where it stands and what it is.
pub type TextKey = [u8; 32];

/// The key of what a user said, as the prompt number `ordinal` of the session.
pub fn prompt_key(ordinal: usize, text: &str) -> TextKey {
    key(&["prompt", &ordinal.to_string(), text])
}

/// The key of the result of the call `call`.
pub fn result_key(call: &str, text: &str) -> TextKey {
    key(&["result", call, text])
}

/// A digest of `parts`, each of which keeps its bounds.
pub fn key(parts: &[&str]) -> TextKey {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}
