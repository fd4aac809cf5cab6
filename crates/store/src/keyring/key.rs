//! Keys: the forms in which they are given, and where they come from.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use aes_gcm::aead::{Aead as _, KeyInit as _, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_domain::approval::ApprovalKey;
use pintle_domain::audit::ChangeKey;
use pintle_domain::history::HistoryKey;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::envelope::{KID_DIGITS, NONCE_BYTES, SealedParts};
use super::file::{self, FileError};

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// Most keys that only open. Rotation leaves one a time; each more is tried on every value without a key id.
const MAX_OLD_KEYS: usize = 64;

/// The variables that may hold the key that seals; the first one that is set counts.
pub const ENV_KEYS: [&str; 2] = ["PINTLE_ENCRYPTION_KEY", "GOCLAW_ENCRYPTION_KEY"];

/// The variable with the keys that only open, separated by commas.
pub const ENV_OLD_KEYS: &str = "PINTLE_ENCRYPTION_KEYS_OLD";

/// The name of the key file in the state directory.
pub const KEY_FILE: &str = "encryption.key";

/// Where keys come from. `Debug` shows what is given and none of it.
#[derive(Clone, Default)]
pub struct KeySource {
    /// The key that seals, and the name of the variable that it stands in.
    pub primary: Option<(&'static str, OsString)>,
    /// The keys that only open, separated by commas.
    pub old: Option<OsString>,
    /// The file that holds the key where none is given; it is created if need be. None in the standard edition. Where one
    /// is given, what the key of a file that is there sealed holds as well.
    pub file: Option<PathBuf>,
}

impl KeySource {
    /// Asks `lookup` for the variables by name; `file` is the key file of the lite edition.
    pub fn new(lookup: impl Fn(&str) -> Option<OsString>, file: Option<PathBuf>) -> Self {
        let primary = ENV_KEYS.into_iter().find_map(|name| lookup(name).map(|value| (name, value)));
        Self { primary, old: lookup(ENV_OLD_KEYS), file }
    }

    /// The key that seals, if any, and those that only open.
    pub(super) fn keys(&self) -> Result<(Option<Key>, Vec<Key>), KeyError> {
        let current = match (&self.primary, &self.file) {
            (Some((name, value)), _) => {
                Some(parse(value).map_err(|found| KeyError::Form { at: (*name).into(), found })?)
            }
            (None, Some(path)) => {
                let text = file::read_or_create(path, || file::fresh_secret().map(|key| file::hex(&key)))?;
                let text = text.strip_suffix(b"\n").unwrap_or(&text);
                let at = path.display().to_string();
                Some(parse(OsStr::from_bytes(text)).map_err(|found| KeyError::Form { at, found })?)
            }
            (None, None) => None,
        };
        Ok((current, self.old_keys()?))
    }

    /// The key of the file, where another one is given and seals: without it, what the home sealed so far would be
    /// nothing as soon as a variable appears. A file that cannot be used is not needed then.
    pub(super) fn kept(&self) -> Option<Key> {
        let path = self.file.as_ref().filter(|_| self.primary.is_some())?;
        let text = file::read(path).ok()??;
        parse(OsStr::from_bytes(text.strip_suffix(b"\n").unwrap_or(&text))).ok()
    }

    fn old_keys(&self) -> Result<Vec<Key>, KeyError> {
        let text = self.old.as_deref().map_or(&[][..], OsStrExt::as_bytes);
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let parts: Vec<&[u8]> = text.split(|byte| *byte == b',').collect();
        if parts.len() > MAX_OLD_KEYS {
            return Err(KeyError::TooMany(parts.len()));
        }
        let read = |(i, part)| {
            let at = format!("{ENV_OLD_KEYS}, key {}", i + 1);
            parse(OsStr::from_bytes(part)).map_err(|found| KeyError::Form { at, found })
        };
        parts.into_iter().enumerate().map(read).collect()
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySource")
            .field("primary", &self.primary.as_ref().map(|(name, _)| name))
            .field("old", &self.old.as_ref().map(|_| "given"))
            .field("file", &self.file)
            .finish()
    }
}

/// Why there are no keys. The boot fails with it, since rows would be read or written wrongly without them.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A key that has none of the forms.
    #[error(
        "encryption key: `{at}` {found}; expected 64 hex digits, the base64 of 32 bytes (44 characters) or 32 raw \
         bytes; `openssl rand -hex 32` makes one"
    )]
    Form {
        /// The variable, or the file.
        at: String,
        /// The kind of thing that it is instead.
        found: KeyFormatError,
    },
    /// A list that is no list of keys.
    #[error("encryption key: `{ENV_OLD_KEYS}` has {0} keys; at most {MAX_OLD_KEYS} are read")]
    TooMany(usize),
    /// The key file.
    #[error("encryption key: {0}")]
    File(#[from] FileError),
}

/// The thing that was given in place of a key, told without repeating any of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFormatError {
    /// Nothing.
    Empty,
    /// As long as a key in hex, but it is no hex.
    NotHex,
    /// As long as a key in base64, but it is not the base64 of 32 bytes.
    NotBase64,
    /// One byte more than a key, and that is a line break.
    LineBreak,
    /// So many bytes.
    Length(usize),
}

impl fmt::Display for KeyFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "is empty"),
            Self::NotHex => write!(f, "has 64 bytes that are not all hex digits"),
            Self::NotBase64 => write!(f, "has 44 bytes that are not the base64 of 32 bytes"),
            Self::LineBreak => write!(f, "ends with a line break, which is not part of a key"),
            Self::Length(bytes) => write!(f, "has {bytes} bytes"),
        }
    }
}

/// One key, ready to use. It is overwritten when it is dropped.
pub(super) struct Key {
    kid: String,
    cipher: Aes256Gcm,
    /// Derived from it; it seals and opens nothing.
    history: HistoryKey,
    /// As derived.
    approvals: ApprovalKey,
    /// As derived.
    changes: ChangeKey,
}

impl Key {
    fn new(key: &[u8; KEY_BYTES]) -> Self {
        Self {
            kid: kid(key),
            cipher: Aes256Gcm::new(key.into()),
            history: HistoryKey::of(key),
            approvals: ApprovalKey::of(key),
            changes: ChangeKey::of(key),
        }
    }

    /// The first 8 hex digits of the key's SHA-256.
    pub(super) fn kid(&self) -> &str {
        &self.kid
    }

    /// The key that signs what front ends keep.
    pub(super) fn history(&self) -> &HistoryKey {
        &self.history
    }

    /// The key that seals what persons are asked and say.
    pub(super) fn approvals(&self) -> &ApprovalKey {
        &self.approvals
    }

    /// The key that seals entries about rules.
    pub(super) fn changes(&self) -> &ChangeKey {
        &self.changes
    }

    /// `plain` sealed, with its tag; nothing if it is too long for the cipher.
    pub(super) fn encrypt(&self, nonce: &[u8; NONCE_BYTES], plain: &[u8], aad: &[u8]) -> Option<Vec<u8>> {
        self.cipher.encrypt(&Nonce::from(*nonce), Payload { msg: plain, aad }).ok()
    }

    /// The plain bytes that were sealed; nothing if the tag does not fit.
    pub(super) fn decrypt(&self, sealed: &SealedParts, aad: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let plain = self.cipher.decrypt(&Nonce::from(sealed.nonce), Payload { msg: &sealed.body, aad });
        plain.ok().map(Zeroizing::new)
    }
}

/// The id of a key, secret or public: the first 8 hex digits of its SHA-256.
pub(super) fn kid(key: &[u8]) -> String {
    let mut digits = format!("{:x}", Sha256::digest(key));
    digits.truncate(KID_DIGITS);
    digits
}

/// The length tells the forms apart.
fn parse(value: &OsStr) -> Result<Key, KeyFormatError> {
    let bytes = value.as_bytes();
    match bytes.len() {
        0 => Err(KeyFormatError::Empty),
        KEY_BYTES => {
            let raw: &[u8; KEY_BYTES] = bytes.try_into().expect("this arm is for this length");
            Ok(Key::new(raw))
        }
        44 => {
            let mut key = Zeroizing::new([0; KEY_BYTES]);
            // The decoder wants room for what unpadded text of this length would hold.
            let mut room = Zeroizing::new([0; KEY_BYTES + 1]);
            if STANDARD.decode_slice(bytes, &mut *room) != Ok(KEY_BYTES) {
                return Err(KeyFormatError::NotBase64);
            }
            key.copy_from_slice(&room[..KEY_BYTES]);
            Ok(Key::new(&key))
        }
        64 => file::unhex(bytes).map(|key| Key::new(&key)).ok_or(KeyFormatError::NotHex),
        33 | 45 | 65 if bytes.ends_with(b"\n") => Err(KeyFormatError::LineBreak),
        length => Err(KeyFormatError::Length(length)),
    }
}
