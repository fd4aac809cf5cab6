//! What is kept of a team beside the state: its last good rules as they came, what is trusted, and how it went.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use nix::fcntl::{Flock, FlockArg};
use pintle_rules::team::{MAX_STATEMENT_BYTES, TeamTenant};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The folder, in the home folder.
const FOLDER: &str = "team";

/// The folder of what is kept of a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamFolder(PathBuf);

/// What is trusted since the first good rules came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pin {
    /// Where they come from.
    pub(crate) url: String,
    /// The key that they are signed with.
    pub(crate) signer: String,
    /// Whose they are.
    pub(crate) tenant: TeamTenant,
    /// The highest version that was seen.
    pub(crate) version: u64,
    /// Since when.
    pub(crate) since: Timestamp,
    /// The id by which the gateway knows this machine: a UUID.
    pub(crate) machine: String,
}

/// How it went with the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    /// When it last said that the rules in force are those of the team.
    pub confirmed: Option<Timestamp>,
    /// Since when it could not be asked, and why not.
    #[serde(default)]
    pub away: Option<(Timestamp, String)>,
    /// When it said something that nobody believes, and why not: nothing is let pass until something good comes.
    #[serde(default)]
    pub refused: Option<(Timestamp, String)>,
    /// Since when it gives this machine no rules, or there is no key to ask it with, and why: that ends by no waiting.
    #[serde(default)]
    pub turned_away: Option<(Timestamp, String)>,
    /// The gateway that all of this is about.
    #[serde(default)]
    pub(crate) from: Option<String>,
}

impl Contact {
    /// Whether it is about the gateway at `url`.
    pub fn is_of(&self, url: &str) -> bool {
        self.from.as_ref().is_none_or(|from| from == url)
    }
}

/// What was told back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Everything until then.
    pub until: Option<Timestamp>,
    /// Records around that moment that were told, with theirs.
    #[serde(default)]
    pub ids: Vec<(String, Timestamp)>,
    /// How many were told in all.
    #[serde(default)]
    pub count: u64,
    /// How many the gateway did not take, and the last reason.
    #[serde(default)]
    pub refused: (u64, String),
    /// Since when nothing could be told, and why not.
    #[serde(default)]
    pub away: Option<(Timestamp, String)>,
}

impl TeamFolder {
    /// That of the state in `home`.
    pub fn of(home: &Path) -> Self {
        Self(home.join(FOLDER))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes it, for this user alone.
    pub(crate) fn make(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)
    }

    /// The last good rules as they came; nothing where none did.
    pub(crate) fn rules(&self) -> io::Result<Option<Vec<u8>>> {
        read(&self.0.join("rules.json"))
    }

    pub(crate) fn keep_rules(&self, text: &str) -> io::Result<()> {
        self.replace("rules.json", text.as_bytes())
    }

    /// What is trusted; nothing where nothing came yet.
    pub(crate) fn pin(&self) -> io::Result<Option<Pin>> {
        self.typed("pin.json")
    }

    pub(crate) fn keep_pin(&self, pin: &Pin) -> io::Result<()> {
        self.replace("pin.json", &serde_json::to_vec(pin)?)
    }

    /// How it went.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn contact(&self) -> io::Result<Contact> {
        Ok(self.typed("contact.json")?.unwrap_or_default())
    }

    pub(crate) fn keep_contact(&self, contact: &Contact) -> io::Result<()> {
        self.replace("contact.json", &serde_json::to_vec(contact)?)
    }

    /// What was told back.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn told(&self) -> io::Result<Told> {
        Ok(self.typed("told.json")?.unwrap_or_default())
    }

    pub(crate) fn keep_told(&self, told: &Told) -> io::Result<()> {
        self.replace("told.json", &serde_json::to_vec(told)?)
    }

    /// What only one process has: it asks and tells for all of this home. Nothing while another one does.
    pub(crate) fn turn(&self) -> io::Result<Option<Flock<File>>> {
        self.make()?;
        let file = File::options().create(true).truncate(false).write(true).mode(0o600).open(self.0.join("lock"))?;
        Ok(Flock::lock(file, FlockArg::LockExclusiveNonblock).ok())
    }

    fn typed<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        let Some(bytes) = read(&self.0.join(name))? else { return Ok(None) };
        let damaged = |error| io::Error::other(format!("{} is damaged: {error}", self.0.join(name).display()));
        serde_json::from_slice(&bytes).map(Some).map_err(damaged)
    }

    /// Whole or not at all, and for this user alone.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.make()?;
        let beside = self.0.join(format!("{name}.{}", std::process::id()));
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(beside, self.0.join(name))
    }
}

/// What a file holds, not more than it may; nothing where it is not there.
fn read(file: &Path) -> io::Result<Option<Vec<u8>>> {
    let opened = match File::open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    opened.take(MAX_STATEMENT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}
