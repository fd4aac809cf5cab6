//! Signatures under the checkpoints of the audit chain: Ed25519, so that whoever has the public key can check them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::DirBuilder;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use pintle_domain::approval::ApprovalKey;
use pintle_domain::audit::{AuditCheckpoint, ChainHead, ChangeKey, Proof};
use pintle_domain::id::TenantId;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use zeroize::Zeroizing;

use super::file::{self, FileError};
use super::key::kid;

/// The name of the key file in the state directory.
pub const SIGNING_KEY_FILE: &str = "audit-signing.key";

/// The file beside it with the public key, which is what others need to check signatures.
pub const PUBLIC_KEY_FILE: &str = "audit-signing.pub";

/// The variable that may hold the key: the same for every node of one store. The file counts where it is not set.
pub const ENV_SIGNING_KEY: &str = "PINTLE_AUDIT_SIGNING_KEY";

/// The mark that the line in the key file begins with, so that no other key is taken for one that signs.
const SEED_MARK: &str = "ed25519-seed:";

/// The mark that the line of a public key begins with.
const PUBLIC_MARK: &str = "ed25519";

/// Bytes of a public key.
const PUBLIC_BYTES: usize = 32;

/// Most public keys that are read: one a rotation, of every machine whose chains are checked together.
const MAX_PUBLIC_KEYS: usize = 10_000;

/// The key that signs checkpoints. It never leaves its file but for here, and `Debug` shows its id only.
///
/// ring keeps its own copy of the secret and does not overwrite it; all others are.
pub struct SigningKey {
    kid: String,
    pair: Ed25519KeyPair,
    /// Derived from the seed; it signs nothing.
    approvals: ApprovalKey,
    /// As derived.
    changes: ChangeKey,
}

/// Why there is no key to sign with.
#[derive(Debug, thiserror::Error)]
pub enum SigningError {
    /// The file cannot be used.
    #[error("audit signing key: {0}")]
    File(#[from] FileError),
    /// Its content is not a key.
    #[error(
        "audit signing key: `{}` does not hold `ed25519-seed:` and 64 hex digits; restore it from a backup, or move \
         it away and a new key is made", .0.display()
    )]
    Form(PathBuf),
    /// What the variable holds is not a key.
    #[error(
        "audit signing key: {ENV_SIGNING_KEY} holds {0} bytes that are not a key; expected 64 hex digits, such as `openssl \
         rand -hex 32` prints, or the line of `audit-signing.key`"
    )]
    Given(usize),
}

/// Where the key that signs comes from. `Debug` shows whether one is given and none of it.
#[derive(Clone)]
pub struct SigningSource {
    given: Option<OsString>,
    dir: PathBuf,
}

impl SigningSource {
    /// Asks `lookup` for the variable by its name; without it the key is that of the state directory `dir`.
    pub fn new(lookup: impl Fn(&str) -> Option<OsString>, dir: &Path) -> Self {
        let given = lookup(ENV_SIGNING_KEY).filter(|value| !value.is_empty());
        Self { given, dir: dir.into() }
    }

    /// Whether the variable is set: then a key that is none is no reason to go on without.
    pub fn is_given(&self) -> bool {
        self.given.is_some()
    }

    /// Whether there is a key, without making one.
    pub fn is_there(&self) -> bool {
        self.is_given() || self.dir.join(SIGNING_KEY_FILE).is_file()
    }

    /// The key. Its public part is written into the state directory, beside those of before.
    ///
    /// # Errors
    /// The variable holds no key, or the file cannot be used.
    pub fn key(&self) -> Result<SigningKey, SigningError> {
        match &self.given {
            None => SigningKey::open_or_create(&self.dir),
            Some(given) => {
                let line = given.as_bytes().trim_ascii();
                let digits = line.strip_prefix(SEED_MARK.as_bytes()).unwrap_or(line);
                let key = file::unhex(digits).and_then(|seed| SigningKey::new(&*seed));
                let key = key.ok_or(SigningError::Given(given.len()))?;
                key.publish(&self.dir)?;
                Ok(key)
            }
        }
    }
}

impl fmt::Debug for SigningSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningSource").field("is_given", &self.is_given()).field("dir", &self.dir).finish()
    }
}

impl SigningKey {
    /// The key of the state directory `dir`; on first use it is made there. The public key is written beside it.
    ///
    /// # Errors
    /// The file cannot be used, or holds something else.
    pub fn open_or_create(dir: &Path) -> Result<Self, SigningError> {
        let path = dir.join(SIGNING_KEY_FILE);
        let text = file::read_or_create(&path, || {
            let secret = file::fresh_secret()?;
            let seed = file::hex(&secret);
            let mut line = Zeroizing::new(String::with_capacity(SEED_MARK.len() + seed.len()));
            line.push_str(SEED_MARK);
            line.push_str(&seed);
            Ok(line)
        })?;
        let line = text.strip_suffix(b"\n").unwrap_or(&text);
        let seed = line.strip_prefix(SEED_MARK.as_bytes()).and_then(file::unhex);
        let key = seed.and_then(|seed| Self::new(&*seed)).ok_or(SigningError::Form(path))?;
        file::publish(&dir.join(PUBLIC_KEY_FILE), &key.public_line())?;
        Ok(key)
    }

    /// Writes the public key into `dir`, before those that stand there: what they signed stays proven.
    fn publish(&self, dir: &Path) -> Result<(), FileError> {
        let (path, own) = (dir.join(PUBLIC_KEY_FILE), self.public_line());
        // A home that is used for the first time is made here.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(|source| FileError::Io { path: dir.into(), doing: "created", source })?;
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        let others = before.lines().filter(|line| *line != own && !line.trim().is_empty());
        let lines: Vec<&str> = std::iter::once(own.as_str()).chain(others).collect();
        file::publish(&path, &lines.join("\n"))
    }

    fn new(seed: &[u8]) -> Option<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).ok()?;
        let (approvals, changes) = (ApprovalKey::of(seed), ChangeKey::of(seed));
        Some(Self { kid: kid(pair.public_key().as_ref()), pair, approvals, changes })
    }

    /// The key that seals what persons are asked and say, where nothing is encrypted.
    pub fn approval_key(&self) -> &ApprovalKey {
        &self.approvals
    }

    /// The key that seals entries about rules, where nothing is encrypted.
    pub fn change_key(&self) -> &ChangeKey {
        &self.changes
    }

    /// The id of the key: the first 8 hex digits of the SHA-256 of the public key.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The public key as one line: `ed25519:<kid>:<base64>`.
    pub fn public_line(&self) -> String {
        format!("{PUBLIC_MARK}:{}:{}", self.kid, STANDARD.encode(self.pair.public_key().as_ref()))
    }

    /// The signature of `message`, as base64.
    pub fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.pair.sign(message).as_ref())
    }

    /// A checkpoint over everything up to `head` of the chain of `tenant`.
    pub fn checkpoint(&self, tenant: &TenantId, head: &ChainHead, at: Timestamp) -> AuditCheckpoint {
        AuditCheckpoint::signed(tenant, head, at, &self.kid, |message| self.sign(message))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("kid", &self.kid).finish_non_exhaustive()
    }
}

/// The public keys that somebody trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicKeys(BTreeMap<String, [u8; PUBLIC_BYTES]>);

/// The fault of a file of public keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublicKeysError {
    /// One of its lines.
    #[error("public keys: line {line}: {why}; expected `ed25519:<8 hex digits>:<base64 of 32 bytes>`")]
    Line {
        /// Which, counted from 1.
        line: usize,
        /// The reason why it is wrong.
        why: &'static str,
    },
    /// Nothing could be proven with it.
    #[error("public keys: there is none; copy `{PUBLIC_KEY_FILE}` from the state directory of the machine")]
    None,
    /// More than anybody has.
    #[error("public keys: more than {MAX_PUBLIC_KEYS}")]
    TooMany,
}

impl PublicKeys {
    /// Reads keys, one a line. Empty lines, and those that begin with `#`, are passed over.
    ///
    /// # Errors
    /// A line is not a key, or none is.
    pub fn parse(text: &str) -> Result<Self, PublicKeysError> {
        let mut keys = BTreeMap::new();
        for (i, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (kid, key) = public_key(line).map_err(|why| PublicKeysError::Line { line: i + 1, why })?;
            if keys.insert(kid, key).is_some_and(|other| other != key) {
                return Err(PublicKeysError::Line { line: i + 1, why: "another key has this id" });
            }
            if keys.len() > MAX_PUBLIC_KEYS {
                return Err(PublicKeysError::TooMany);
            }
        }
        if keys.is_empty() { Err(PublicKeysError::None) } else { Ok(Self(keys)) }
    }

    /// Whether `signature` (base64) is that of the key `kid` under `message`.
    pub fn verify(&self, kid: &str, message: &[u8], signature: &str) -> Proof {
        let Some(key) = self.0.get(kid) else { return Proof::UnknownKey };
        let Ok(signature) = STANDARD.decode(signature) else { return Proof::Bad };
        match UnparsedPublicKey::new(&ED25519, key).verify(message, &signature) {
            Ok(()) => Proof::Good,
            Err(_) => Proof::Bad,
        }
    }
}

fn public_key(line: &str) -> Result<(String, [u8; PUBLIC_BYTES]), &'static str> {
    let mut parts = line.split(':');
    let (Some(PUBLIC_MARK), Some(id), Some(key), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err("it has another form");
    };
    let key = STANDARD.decode(key).map_err(|_| "the key is not base64")?;
    let key: [u8; PUBLIC_BYTES] = key.try_into().map_err(|_| "the key has not 32 bytes")?;
    if kid(&key) == id { Ok((id.into(), key)) } else { Err("the id is not that of the key") }
}

#[cfg(test)]
mod tests;
