//! Secrets in rows: sealed with AES-256-GCM under a key that is not in the database.
//!
//! [`Keyring::seal`] writes `aes-gcm:<kid>:<base64>`, bound to the [`SealedPlace`] where it stands, so that a sealed
//! text moved to another row, tenant or member does not open there. [`Keyring::open`] also reads what older systems
//! left:
//! `aes-gcm:<base64>` without a place, and plain text; [`Opened::form`] says which it was. What is sealed for a BYTEA
//! column is the same text as bytes.
//!
//! A key may seal 2^32 values before the chance of two equal nonces matters; `pintle secrets rotate` starts anew.

mod envelope;
mod file;
mod key;
pub mod signing;

use std::fmt;

use pintle_domain::approval::ApprovalKey;
use pintle_domain::audit::ChangeKey;
use pintle_domain::history::HistoryKey;
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use envelope::{Envelope, NONCE_BYTES};
use key::Key;

pub use file::FileError;
pub use key::{ENV_KEYS, ENV_OLD_KEYS, KEY_FILE, KeyError, KeyFormatError, KeySource};

/// The row and member where a sealed value stands. A value opens in its own place only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedPlace {
    table: String,
    row: String,
    tenant: String,
    path: String,
}

impl SealedPlace {
    /// The member `path` (lower case, such as `config.headers.authorization`) of the row `row` of `table`.
    pub fn new(table: &str, row: &str, tenant: &str, path: &str) -> Self {
        Self { table: table.into(), row: row.into(), tenant: tenant.into(), path: path.to_ascii_lowercase() }
    }

    /// The data that is authenticated beside the text. The path comes last and may hold a `|`, as names of HTTP
    /// headers do; with one in any other part, two places could be written alike.
    fn aad(&self) -> Option<Vec<u8>> {
        let Self { table, row, tenant, path } = self;
        let clear = [table, row, tenant].iter().all(|part| !part.contains('|'));
        clear.then(|| format!("pintle:1|{table}|{row}|{tenant}|{path}").into_bytes())
    }
}

/// The keys of an installation: one that seals, if there is any, and those that only open.
pub struct Keyring {
    current: Option<Key>,
    old: Vec<Key>,
    /// That of the home's file, where a variable holds the one that seals: it opens, and stays the home's.
    kept: Option<Key>,
}

/// The plain bytes of what was sealed. It is overwritten when it is dropped, and `Debug` shows its length only.
#[derive(Clone, PartialEq, Eq)]
pub struct Plain(Zeroizing<Vec<u8>>);

impl Plain {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as a text.
    ///
    /// # Errors
    /// They are none.
    pub fn as_str(&self) -> Result<&str, DecryptError> {
        std::str::from_utf8(&self.0).map_err(|_| DecryptError::NotText)
    }
}

impl fmt::Debug for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plain({} bytes)", self.0.len())
    }
}

/// In which of the forms a value was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Sealed in its place, with the key that seals now.
    Current,
    /// Sealed in its place, with a key that only opens.
    OldKey,
    /// `aes-gcm:` without a key id and bound to no place.
    Unbound,
    /// Not sealed at all. Whoever reads it logs `crypto.unencrypted_value_read`.
    Unsealed,
}

/// A value that was read, and how it stood there. All forms but [`Form::Current`] are to be sealed anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The plain bytes.
    pub plain: Plain,
    /// How it stood there.
    pub form: Form,
}

/// Why a value cannot be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// There is no key that seals; over the API this is FAILED_PRECONDITION.
    #[error("encryption key not configured")]
    NotConfigured,
    /// A table, row or tenant of that name would be confused with another.
    #[error("seal failed: table, row and tenant must not contain `|`")]
    Place,
    /// The operating system gave no random bytes.
    #[error("seal failed: the system gave no random bytes")]
    Random,
    /// Beyond what the cipher takes: 64 GiB.
    #[error("seal failed: the value is too long")]
    TooLong,
}

/// Why a sealed value cannot be opened. None of these repeats any of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecryptError {
    /// There is no key at all.
    #[error("decrypt failed: encryption key not configured")]
    NotConfigured,
    /// The key is not at hand.
    #[error("decrypt failed: no key `{0}` here; add the key that it was sealed with to `{ENV_OLD_KEYS}`")]
    UnknownKey(String),
    /// The key id between the colons is none.
    #[error("decrypt failed: malformed key id; expected 8 hex digits after `aes-gcm:`")]
    KeyId,
    /// The part that follows is not base64.
    #[error("decrypt failed: bad base64")]
    Base64,
    /// Too short to hold a nonce and a tag.
    #[error("decrypt failed: {0} bytes are too few; expected at least 28")]
    TooShort(usize),
    /// Altered, moved from another place, or sealed with another key.
    #[error("decrypt failed: the tag does not fit; the value was altered, moved here or sealed with another key")]
    Tag,
    /// A place with a `|` in its table, row or tenant, where nothing can be sealed.
    #[error("decrypt failed: table, row and tenant must not contain `|`")]
    Place,
    /// Opened, but not a text where a text is expected.
    #[error("decrypt failed: the value is not UTF-8")]
    NotText,
}

/// Why a value could not be moved to the current key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResealError {
    /// It does not open.
    #[error(transparent)]
    Open(#[from] DecryptError),
    /// It opens and cannot be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
}

impl Keyring {
    /// Takes the keys from `source`; with no key given but a file named, that file holds the key and is created
    /// where it is missing.
    ///
    /// # Errors
    /// A key has none of the forms, or the file cannot be used.
    pub fn open(source: &KeySource) -> Result<Self, KeyError> {
        let (current, old) = source.keys()?;
        let kept = source.kept().filter(|kept| current.as_ref().is_none_or(|key| key.kid() != kept.kid()));
        Ok(Self { current, old, kept })
    }

    /// Whether values can be sealed.
    pub fn can_seal(&self) -> bool {
        self.current.is_some()
    }

    /// The id of the key that seals: the first 8 hex digits of its SHA-256.
    pub fn kid(&self) -> Option<&str> {
        self.current.as_ref().map(Key::kid)
    }

    /// The key that signs what front ends keep; what older keys signed holds as well. None where nothing is sealed.
    pub fn history_key(&self) -> Option<HistoryKey> {
        let current = self.current.as_ref()?.history().clone();
        Some(self.keys().skip(1).fold(current, |key, old| key.and_older(old.history())))
    }

    /// The key that seals what persons are asked and say; what older keys sealed holds as well.
    pub fn approval_key(&self) -> Option<ApprovalKey> {
        let mut keys = self.keys().map(Key::approvals);
        let first = keys.next()?.clone();
        Some(keys.fold(first, |key, old| key.and_older(old)))
    }

    /// The key that seals entries about rules in the audit chain; what older keys sealed holds as well.
    pub fn change_key(&self) -> Option<ChangeKey> {
        let mut keys = self.keys().map(Key::changes);
        let first = keys.next()?.clone();
        Some(keys.fold(first, |key, old| key.and_older(old)))
    }

    /// The keys that [`Self::change_key`] is put together of, each for itself: that of the home's file, where another one
    /// seals, before the others.
    pub(crate) fn change_keys(&self) -> impl Iterator<Item = &ChangeKey> {
        self.kept.iter().chain(&self.current).chain(&self.old).map(Key::changes)
    }

    /// Whether the key of the home's file holds beside the one that seals.
    pub fn keeps_file(&self) -> bool {
        self.kept.is_some()
    }

    /// Seals `plain` for `place`, under a fresh random nonce.
    ///
    /// # Errors
    /// There is no key, or the place cannot be told from others.
    pub fn seal(&self, place: &SealedPlace, plain: &[u8]) -> Result<String, SealError> {
        let mut nonce = [0; NONCE_BYTES];
        SystemRandom::new().fill(&mut nonce).map_err(|_| SealError::Random)?;
        self.seal_with(place, plain, nonce)
    }

    /// Seals `plain` into bytes, for a BYTEA column.
    ///
    /// # Errors
    /// As [`Self::seal`].
    pub fn seal_bytes(&self, place: &SealedPlace, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        self.seal(place, plain).map(String::into_bytes)
    }

    fn seal_with(&self, place: &SealedPlace, plain: &[u8], nonce: [u8; NONCE_BYTES]) -> Result<String, SealError> {
        let key = self.current.as_ref().ok_or(SealError::NotConfigured)?;
        let aad = place.aad().ok_or(SealError::Place)?;
        let sealed = key.encrypt(&nonce, plain, &aad).ok_or(SealError::TooLong)?;
        Ok(envelope::write(key.kid(), &nonce, &sealed))
    }

    /// Opens what stands in `place`, in any of the forms.
    ///
    /// # Errors
    /// It is sealed and does not open: see [`DecryptError`].
    pub fn open_value(&self, place: &SealedPlace, text: &str) -> Result<Opened, DecryptError> {
        self.open_bytes(place, text.as_bytes())
    }

    /// Opens the value of a BYTEA column.
    ///
    /// # Errors
    /// As [`Self::open_value`].
    pub fn open_bytes(&self, place: &SealedPlace, bytes: &[u8]) -> Result<Opened, DecryptError> {
        match envelope::read(bytes)? {
            Envelope::None => Ok(opened(Zeroizing::new(bytes.to_vec()), Form::Unsealed)),
            Envelope::Unbound(sealed) => {
                let plain = self.first(self.keys(), &sealed, &[])?;
                Ok(opened(plain, Form::Unbound))
            }
            Envelope::Bound(kid, sealed) => {
                let aad = place.aad().ok_or(DecryptError::Place)?;
                let named: Vec<&Key> = self.keys().filter(|key| key.kid() == kid).collect();
                if named.is_empty() && self.keys().next().is_some() {
                    return Err(DecryptError::UnknownKey(kid));
                }
                let plain = self.first(named.into_iter(), &sealed, &aad)?;
                Ok(opened(plain, if self.kid() == Some(&kid) { Form::Current } else { Form::OldKey }))
            }
        }
    }

    /// Whether `text` is sealed under the key that seals now. Whether it opens is another question.
    pub fn is_current(&self, text: &str) -> bool {
        match envelope::read(text.as_bytes()) {
            Ok(Envelope::Bound(kid, _)) => self.kid() == Some(&kid),
            Ok(Envelope::Unbound(_) | Envelope::None) | Err(_) => false,
        }
    }

    /// `text` sealed under the key that seals now; nothing if it is so already.
    ///
    /// # Errors
    /// It does not open, or cannot be sealed.
    pub fn reseal(&self, place: &SealedPlace, text: &str) -> Result<Option<String>, ResealError> {
        let Opened { plain, form } = self.open_value(place, text)?;
        match form {
            Form::Current => Ok(None),
            Form::OldKey | Form::Unbound | Form::Unsealed => Ok(Some(self.seal(place, plain.as_bytes())?)),
        }
    }

    /// [`Self::reseal`] for a BYTEA column.
    ///
    /// # Errors
    /// As [`Self::reseal`].
    pub fn reseal_bytes(&self, place: &SealedPlace, bytes: &[u8]) -> Result<Option<Vec<u8>>, ResealError> {
        let Opened { plain, form } = self.open_bytes(place, bytes)?;
        match form {
            Form::Current => Ok(None),
            Form::OldKey | Form::Unbound | Form::Unsealed => Ok(Some(self.seal_bytes(place, plain.as_bytes())?)),
        }
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        self.current.iter().chain(&self.old).chain(&self.kept)
    }

    /// The plain bytes that the first of `keys` that fits makes of `sealed`.
    fn first<'a>(
        &self,
        keys: impl Iterator<Item = &'a Key>,
        sealed: &envelope::SealedParts,
        aad: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, DecryptError> {
        if self.keys().next().is_none() {
            return Err(DecryptError::NotConfigured);
        }
        let mut keys = keys;
        keys.find_map(|key| key.decrypt(sealed, aad)).ok_or(DecryptError::Tag)
    }
}

fn opened(plain: Zeroizing<Vec<u8>>, form: Form) -> Opened {
    Opened { plain: Plain(plain), form }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let old: Vec<&str> = self.old.iter().chain(&self.kept).map(Key::kid).collect();
        f.debug_struct("Keyring").field("seals", &self.kid()).field("opens", &old).finish()
    }
}

#[cfg(test)]
mod tests;
