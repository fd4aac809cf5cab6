//! The ports of what a gateway keeps beside conversations: files that clients hand over, requests that may come a second
//! time, and texts that passed the gates.

use std::collections::BTreeSet;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::{SessionKey, StoreError};
use crate::hex::hex;
use crate::id::{SessionId, TenantId, TurnId};
use crate::json::{canonical, json};

/// A file that a client handed over, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// 32 hexadecimal digits that nobody guesses.
    pub id: String,
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Who handed it over.
    pub user: String,
    /// The session that took it; before that it is its user's.
    pub session: Option<SessionId>,
    /// Such as `image/png`.
    pub content_type: String,
    /// Its name, as the client calls it; may be empty.
    pub file_name: String,
    /// How long it is.
    pub size_bytes: u64,
    /// Of its content, in hexadecimal digits.
    pub sha256: String,
    /// When it came.
    pub created_at: Timestamp,
}

/// Keeps files that clients hand over, in pieces.
pub trait UploadStore: Send + Sync {
    /// Keeps `upload` with its content, unless its tenant would have more than `quota_bytes` then. Says whether it did.
    /// Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn keep_upload(&self, upload: &Upload, content: &[u8], quota_bytes: u64) -> Result<bool, StoreError>;

    /// The upload `id` of `tenant`. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn upload(&self, tenant: &TenantId, id: &str) -> Result<Option<Upload>, StoreError>;

    /// Its content. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn upload_content(&self, tenant: &TenantId, id: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Gives the upload `id` of `user` to `session`, if it belongs to nobody else; says whether it is that session's now.
    /// Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn take_upload(&self, session: &SessionKey, id: &str, user: &str) -> Result<bool, StoreError>;

    /// Forgets at most `limit` uploads from before `before` that no session took. Says how many. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn forget_uploads(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;
}

/// The name of a request that may come a second time: its caller's, in one session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepeatName {
    /// The session that it is about; an empty name where the request is the whole conversation.
    pub session: SessionKey,
    /// Who asked.
    pub user: String,
    /// What they call it.
    pub key: String,
}

impl RepeatName {
    /// The name in a few letters, for a column.
    pub fn digest(&self) -> String {
        let Self { session, user, key } = self;
        hex(&Sha256::digest(canonical(&json!([session.tenant, session.session, user, key])).as_bytes()))
    }
}

/// A request that came, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Of what was asked: another request by the same name is a mistake.
    pub digest: String,
    /// The turn that works it.
    pub turn_id: TurnId,
    /// The process that works it.
    pub owner: String,
    /// When it came.
    pub began_at: Timestamp,
    /// What came of it, once it is over.
    pub outcome: Option<String>,
}

/// Remembers requests that may come a second time, and texts that passed the gates.
pub trait RepeatStore: Send + Sync {
    /// Notes the request `name`; an earlier one by that name from `since` on comes back, and stays. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn begin_repeat(&self, name: &RepeatName, new: &Repeat, since: Timestamp) -> Result<Option<Repeat>, StoreError>;

    /// The request `name`, if one came from `since` on. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn repeat(&self, name: &RepeatName, since: Timestamp) -> Result<Option<Repeat>, StoreError>;

    /// Notes what came of the requests that the turn `turn_id` worked; `None` forgets them, as if they had not come.
    /// Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn end_repeats(&self, tenant: &TenantId, turn_id: &TurnId, outcome: Option<&str>) -> Result<(), StoreError>;

    /// Forgets the request `name`. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn forget_repeat(&self, name: &RepeatName) -> Result<(), StoreError>;

    /// Forgets requests and texts from before `before`, at most `limit` of each. Says how many. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn forget_repeats(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;

    /// Remembers that the texts with these codes passed. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn remember_passed(&self, codes: &[String], at: Timestamp) -> Result<(), StoreError>;

    /// Those of `codes` that were remembered from `since` on. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn passed(&self, codes: &[String], since: Timestamp) -> Result<BTreeSet<String>, StoreError>;
}
