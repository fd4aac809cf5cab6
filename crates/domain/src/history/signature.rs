//! Signatures on what a front end keeps: they tell what passed the gates from what somebody wrote into a history.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::Mac as _;

use super::HistoryMessage;
use crate::json::canonical;
use crate::ledger::HookChunk;
use crate::mac::{derived, mac};
use crate::message::Role;

/// The purpose for which the key is derived.
const INFO: &[u8] = b"pintle-history-1";

/// The key of signatures, and older ones whose signatures still hold. It is not printed.
#[derive(Clone)]
pub struct HistoryKey {
    signs: [u8; 32],
    holds: Vec<[u8; 32]>,
}

impl std::fmt::Debug for HistoryKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HistoryKey(…)")
    }
}

/// The content that a signature is over.
#[derive(Clone, Copy, Debug)]
pub struct SignedContent<'a> {
    /// The tenant whose conversation it is.
    pub tenant: &'a str,
    /// The conversation.
    pub session: &'a str,
    /// Who speaks.
    pub role: Role,
    /// The text.
    pub content: &'a str,
    /// The skill, empty for no text of one.
    pub skill: &'a str,
    /// The hook, empty for no text of one.
    pub hook: &'a str,
}

impl<'a> SignedContent<'a> {
    /// The content that a signature on `kept` has to be over.
    pub fn of(kept: &'a HistoryMessage, tenant: &'a str, session: &'a str) -> Self {
        let (skill, hook) = (kept.skill.as_deref().unwrap_or_default(), kept.hook.as_deref().unwrap_or_default());
        Self { tenant, session, role: kept.role, content: &kept.content, skill, hook }
    }

    /// The content that the signature on a text of the user's is over.
    pub fn text(content: &'a str, tenant: &'a str, session: &'a str) -> Self {
        Self { tenant, session, role: Role::User, content, skill: "", hook: "" }
    }

    /// The content that the signature on a text of a skill is over.
    pub fn hook(chunk: &'a HookChunk, tenant: &'a str, session: &'a str) -> Self {
        let HookChunk { name, role, content, skill, .. } = chunk;
        Self { tenant, session, role: role.role(), content, skill, hook: name }
    }

    fn bytes(&self) -> Vec<u8> {
        let Self { tenant, session, role, content, skill, hook } = self;
        canonical(&crate::json::json!([tenant, session, role, content, skill, hook])).into_bytes()
    }
}

impl HistoryKey {
    /// The key that belongs to the host's encryption key.
    pub fn of(encryption_key: &[u8]) -> Self {
        Self { signs: derived(encryption_key, &[0; 32], INFO), holds: Vec::new() }
    }

    /// This key, which also takes what `older` signed.
    #[must_use]
    pub fn and_older(mut self, older: &Self) -> Self {
        self.holds.push(older.signs);
        self
    }

    /// The signature: base64url without padding.
    pub fn sign(&self, signed: SignedContent<'_>) -> String {
        URL_SAFE_NO_PAD.encode(mac(&self.signs, &[&signed.bytes()]).finalize().into_bytes())
    }

    /// A code for `text`, which passed the gates that `gates` names, for the caller that `caller` names: whoever has no key
    /// learns nothing of the text from it.
    pub fn passed_code(&self, caller: &[&str], gates: &str, text: &str) -> String {
        let bytes = canonical(&crate::json::json!({ "passed": text, "caller": caller, "gates": gates }));
        URL_SAFE_NO_PAD.encode(mac(&self.signs, &[bytes.as_bytes()]).finalize().into_bytes())
    }

    /// Whether `sig` is the signature of this key or of an older one. How much of it is wrong changes nothing in the
    /// time that this takes.
    pub fn verifies(&self, signed: SignedContent<'_>, sig: &str) -> bool {
        let Ok(sig) = URL_SAFE_NO_PAD.decode(sig) else { return false };
        let bytes = signed.bytes();
        let mut keys = std::iter::once(&self.signs).chain(&self.holds);
        keys.any(|key| mac(key, &[&bytes]).verify_slice(&sig).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_exactly_what_was_signed() {
        let key = HistoryKey::of(&[7; 32]);
        let signed =
            SignedContent { tenant: "t", session: "s", role: Role::User, content: "hi\u{2028}", skill: "", hook: "" };
        let sig = key.sign(signed);
        assert_eq!(sig.len(), 43);
        assert!(key.verifies(signed, &sig));
        let others = [
            SignedContent { tenant: "u", ..signed },
            SignedContent { session: "r", ..signed },
            SignedContent { role: Role::System, ..signed },
            SignedContent { content: "hi", ..signed },
            SignedContent { skill: "a", ..signed },
            SignedContent { hook: "a", ..signed },
            // The border between two members is part of it.
            SignedContent { tenant: "ts", session: "", ..signed },
        ];
        assert!(others.iter().all(|other| !key.verifies(*other, &sig)));
        assert!(!HistoryKey::of(&[8; 32]).verifies(signed, &sig));
        for wrong in ["", "?", &sig[1..], &format!("{sig}="), &sig.to_uppercase()] {
            assert!(!key.verifies(signed, wrong), "{wrong}");
        }
        assert_eq!(format!("{key:?}"), "HistoryKey(…)");
        // A key that was replaced no longer signs, and what it signed holds.
        let newer = HistoryKey::of(&[8; 32]).and_older(&key);
        assert!(newer.verifies(signed, &sig) && newer.verifies(signed, &newer.sign(signed)));
        assert_eq!(newer.sign(signed), HistoryKey::of(&[8; 32]).sign(signed));
    }
}
