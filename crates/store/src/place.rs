//! The number under which a session is locked.

use pintle_domain::store::SessionKey;
use sha2::{Digest, Sha256};

/// 63 bits of SHA-256 of a session's key: all that a place in a file has room for. Two sessions of the same place
/// would exclude each other; even among a million sessions that happens to one machine in eighteen million.
pub(crate) fn place(key: &SessionKey) -> i64 {
    let mut hash = Sha256::new();
    // The length keeps `a` + `bc` from `ab` + `c`.
    hash.update((key.tenant.as_str().len() as u64).to_be_bytes());
    hash.update(key.tenant.as_str());
    hash.update(key.session.as_str());
    let hash: [u8; 32] = hash.finalize().into();
    let (first, _) = hash.split_first_chunk().expect("8 of 32 bytes");
    (u64::from_be_bytes(*first) >> 1) as i64
}
