//! Codes that only whoever has a key can make (HMAC), and keys that are derived for one purpose each.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// A key that seals for one purpose, and older ones whose seals still hold. It is not printed.
#[derive(Clone)]
pub(crate) struct SealKey {
    seals: [u8; 32],
    holds: Vec<[u8; 32]>,
}

impl SealKey {
    /// The key for the purpose `info` that belongs to a secret of the host.
    pub(crate) fn of(secret: &[u8], info: &[u8]) -> Self {
        Self { seals: derived(secret, &[0; 32], info), holds: Vec::new() }
    }

    /// This key, which also takes what `older` sealed.
    pub(crate) fn and_older(mut self, older: &Self) -> Self {
        self.holds.push(older.seals);
        self.holds.extend(&older.holds);
        self
    }

    /// The seal on `bytes`: base64url without padding.
    pub(crate) fn seal(&self, bytes: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(mac(&self.seals, &[bytes]).finalize().into_bytes())
    }

    /// Whether `seal` is the seal of this key or of an older one on `bytes`.
    pub(crate) fn holds(&self, bytes: &[u8], seal: &str) -> bool {
        let Ok(seal) = URL_SAFE_NO_PAD.decode(seal) else { return false };
        let mut keys = std::iter::once(&self.seals).chain(&self.holds);
        keys.any(|key| mac(key, &[bytes]).verify_slice(&seal).is_ok())
    }
}

/// The code of `parts`, one after another, under `key`.
pub(crate) fn mac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("this code takes keys of every length");
    parts.iter().for_each(|part| mac.update(part));
    mac
}

/// One block of a key that is derived by RFC 5869 for the purpose `info`.
pub(crate) fn derived(secret: &[u8], salt: &[u8], info: &[u8]) -> [u8; 32] {
    let extracted = mac(salt, &[secret]).finalize().into_bytes();
    mac(&extracted, &[info, &[1]]).finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(digit).collect()
    }

    #[test]
    fn keys_are_derived_as_published() {
        // RFC 5869, test case 1; the first of its blocks.
        let derived = derived(&[0x0b; 22], &hex("000102030405060708090a0b0c"), &hex("f0f1f2f3f4f5f6f7f8f9"));
        assert_eq!(derived[..], hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf")[..]);
        // RFC 5869, test case 3: no salt is as many zeros.
        let derived = super::derived(&[0x0b; 22], &[0; 32], &[]);
        assert_eq!(derived[..], hex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d")[..]);
    }
}
