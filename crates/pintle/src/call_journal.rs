//! The journal of calls: it makes "once" hold over a crash.
//!
//! The use of a permit is written before its tool runs, and the result after it. A call that was used and has no result
//! when its process died is never run again: nobody knows what became of it, and the model is told so.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use pintle_domain::id::CallId;
use pintle_domain::identity::Identity;
use pintle_domain::json::{canonical, json};
use pintle_domain::store::StoreError;
use pintle_domain::tool::ToolOutput;
use sha2::{Digest as _, Sha256};

/// The name of one call: the same tenant, agent, session, turn and call id have the same, whatever the arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKey(String);

impl CallKey {
    pub(crate) fn of(who: &Identity, call: &CallId) -> Self {
        let names = json!([who.tenant_id, who.agent_id, who.session_id, who.turn_id, call]);
        let digest = Sha256::digest(canonical(&names).as_bytes());
        Self(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The name, as 64 characters of hex: it can name a file or a row.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Keeps which calls ran. Everything here may block; it is called on a thread for that.
pub trait CallJournal: Send + Sync {
    /// Takes the call `key` for this task, until what comes back is dropped or the process ends, however it does.
    ///
    /// # Errors
    /// The journal cannot be read or written; the call does not run then.
    fn open(&self, key: &CallKey) -> Result<CallStanding, StoreError>;
}

/// Where a call stands, as a journal knows it.
pub enum CallStanding {
    /// It never ran, and nobody else has it.
    Here(Box<dyn OpenCall>),
    /// Somebody else has it at this moment.
    AtWork,
    /// Its permit was used, and it has no result.
    Unknown,
    /// It ran, and this is its result as hooks left it.
    Finished(ToolOutput),
}

/// One call, held by one task.
pub trait OpenCall: Send {
    /// Writes that its permit is used, as durably as the journal promises.
    ///
    /// # Errors
    /// It cannot be written; the call does not run then.
    fn used(&mut self) -> Result<(), StoreError>;

    /// Writes its result.
    ///
    /// # Errors
    /// It cannot be written; the call stays used and without a result.
    fn finished(&mut self, output: &ToolOutput) -> Result<(), StoreError>;
}

/// A journal of calls in a folder: a file for each call that ran, on the disk before the tool runs. Processes of one
/// machine may share it. Files of turns that are over can be deleted by their age.
#[derive(Clone, Debug)]
pub struct CallFolder(PathBuf);

impl CallFolder {
    /// The journal in `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, StoreError> {
        std::fs::create_dir_all(&folder).map_err(unavailable)?;
        Ok(Self(folder.as_ref().to_owned()))
    }
}

impl CallJournal for CallFolder {
    fn open(&self, key: &CallKey) -> Result<CallStanding, StoreError> {
        let path = self.0.join(key.as_str());
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path).map_err(unavailable)?;
        // The lock goes with the process that holds it, however that ends.
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(CallStanding::AtWork),
            Err(TryLockError::Error(error)) => return Err(unavailable(error)),
        }
        let mut line = Line { file, folder: self.0.clone(), used: false };
        // Not as text: a crash may have cut a letter in two.
        let mut bytes = Vec::new();
        line.file.read_to_end(&mut bytes).map_err(unavailable)?;
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            return Ok(CallStanding::Here(Box::new(line)));
        };
        // A result that was cut off by a crash is none, and neither is one that was not begun.
        Ok(serde_json::from_slice(&bytes[end + 1..]).map_or(CallStanding::Unknown, CallStanding::Finished))
    }
}

/// One file of a [`CallFolder`]: the word `used`, then the result.
struct Line {
    file: File,
    folder: PathBuf,
    used: bool,
}

impl OpenCall for Line {
    fn used(&mut self) -> Result<(), StoreError> {
        self.file.seek(SeekFrom::Start(0)).map_err(unavailable)?;
        self.file.write_all(b"used\n").map_err(unavailable)?;
        self.file.sync_all().map_err(unavailable)?;
        // A file that is not in its folder is not there after a loss of power.
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(unavailable)?;
        self.used = true;
        Ok(())
    }

    fn finished(&mut self, output: &ToolOutput) -> Result<(), StoreError> {
        let mut text = json!(output).to_string();
        if !self.used {
            // A hook answered in the tool's place.
            self.file.seek(SeekFrom::Start(0)).map_err(unavailable)?;
            text.insert_str(0, "answered\n");
        }
        self.file.write_all(text.as_bytes()).map_err(unavailable)?;
        self.file.sync_all().map_err(unavailable)
    }
}

fn unavailable(error: impl std::fmt::Display) -> StoreError {
    StoreError::Unavailable(error.to_string())
}
