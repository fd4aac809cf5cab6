//! The text that a sealed value is written as.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::DecryptError;

/// Bytes of a nonce, always random.
pub(super) const NONCE_BYTES: usize = 12;

/// Bytes of the tag at the end of what is sealed.
const TAG_BYTES: usize = 16;

/// Hex digits of a key id.
pub(super) const KID_DIGITS: usize = 8;

/// The mark that every sealed value begins with.
const MARK: &str = "aes-gcm:";

/// A nonce, and what was sealed under it with its tag.
#[derive(Debug)]
pub(super) struct SealedParts {
    pub(super) nonce: [u8; NONCE_BYTES],
    pub(super) body: Vec<u8>,
}

/// The kind of a stored value.
#[derive(Debug)]
pub(super) enum Envelope {
    /// Not sealed.
    None,
    /// Sealed without a key id and for no place.
    Unbound(SealedParts),
    /// Sealed with the key of this id, for a place.
    Bound(String, SealedParts),
}

/// The text of what was sealed with the key `kid`.
pub(super) fn write(kid: &str, nonce: &[u8; NONCE_BYTES], body: &[u8]) -> String {
    let mut text = format!("{MARK}{kid}:");
    STANDARD.encode_string([nonce.as_slice(), body].concat(), &mut text);
    text
}

/// The kind of `bytes`. Only what begins with the mark can be malformed.
pub(super) fn read(bytes: &[u8]) -> Result<Envelope, DecryptError> {
    let Some(rest) = bytes.strip_prefix(MARK.as_bytes()) else { return Ok(Envelope::None) };
    // Base64 has no colon, so a second one tells the two forms apart.
    let Some(colon) = rest.iter().position(|byte| *byte == b':') else {
        return Ok(Envelope::Unbound(sealed(rest)?));
    };
    let (kid, body) = (&rest[..colon], &rest[colon + 1..]);
    if kid.len() != KID_DIGITS || !kid.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(DecryptError::KeyId);
    }
    Ok(Envelope::Bound(kid.iter().copied().map(char::from).collect(), sealed(body)?))
}

fn sealed(text: &[u8]) -> Result<SealedParts, DecryptError> {
    let mut nonce = STANDARD.decode(text).map_err(|_| DecryptError::Base64)?;
    if nonce.len() < NONCE_BYTES + TAG_BYTES {
        return Err(DecryptError::TooShort(nonce.len()));
    }
    let body = nonce.split_off(NONCE_BYTES);
    let nonce = nonce.try_into().expect("what was left by the split is as long as a nonce");
    Ok(SealedParts { nonce, body })
}
