//! A store of Pintle's own kinds, opened in one call with the rules that are kept in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_domain::rule::Edition;
use pintle_egress::{Allow, Egress};
use pintle_rule_runtime::Launcher;
use pintle_store::keyring::{ENV_KEYS, ENV_OLD_KEYS, KeySource, Keyring};
use pintle_store::{Durability, StoreKeys};

use crate::rule_source::{Judge, RuleSource};
use crate::stores::Stores;

/// The word that makes the program `pintle` a worker for scripts.
const WORKER_COMMAND: &str = "__script";
/// The name of the worker alone, which needs no word.
const WORKER: &str = "pintle-script-worker";
/// A script that any worker runs.
const SAMPLE: &str = "function handle(event) { return {}; }";

/// A store of Pintle's own kinds, with the rules that are kept in it.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::path::Path;
///
/// let stores = pintle::PintleStore::at("sqlite://agent.db", Path::new("state")).key("0f…").open()?;
/// # Ok(())
/// # }
/// ```
pub struct PintleStore {
    url: String,
    folder: PathBuf,
    key: Option<String>,
    old_keys: Option<String>,
    durable: bool,
    commands: Option<bool>,
    worker: Option<PathBuf>,
    allowed: Vec<(String, Vec<u16>)>,
    judge: Option<Arc<dyn Judge>>,
}

/// A store with rules cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PintleStoreError {
    /// The URL names no store, or the store cannot be used.
    #[error("{0}")]
    Store(String),
    /// The key is not 32 bytes in hex or base64.
    #[error("{0}")]
    Key(String),
    /// The program that was to run scripts does not.
    #[error("`{program}` does not run scripts: {why}; name the program `pintle`, or `pintle-script-worker`")]
    Worker {
        /// The program.
        program: String,
        /// The fate of a sample.
        why: String,
    },
    /// A host that requests were to reach cannot stand in a URL.
    #[error("{0}")]
    Allowed(String),
}

impl PintleStore {
    /// The store at `url`: `sqlite://FILE`, with a relative file taken from `folder`, `postgres://…` or `memory:`.
    pub fn at(url: &str, folder: &Path) -> Self {
        Self {
            url: url.to_owned(),
            folder: folder.to_owned(),
            key: None,
            old_keys: None,
            durable: false,
            commands: None,
            worker: None,
            allowed: Vec::new(),
            judge: None,
        }
    }

    /// Encrypts what is secret in rules: a key of 32 bytes in hex or base64. Without one, rules with secrets are errors.
    #[must_use]
    pub fn key(self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self }
    }

    /// Keys that only open what was encrypted before, separated by commas.
    #[must_use]
    pub fn old_keys(self, keys: &str) -> Self {
        Self { old_keys: Some(keys.to_owned()), ..self }
    }

    /// Records survive the loss of power, and not only the death of the process.
    #[must_use]
    pub fn synced(self) -> Self {
        Self { durable: true, ..self }
    }

    /// Whether rules may run commands. Without a word from you they may where the store is one file or memory, and not
    /// where it is a database of a server, which others write to.
    #[must_use]
    pub fn commands(self, allowed: bool) -> Self {
        Self { commands: Some(allowed), ..self }
    }

    /// Runs scripts of rules by `program`: `pintle`, or `pintle-script-worker`. Without it, adding a rule with a script is
    /// an error.
    #[must_use]
    pub fn scripts_by(self, program: &Path) -> Self {
        Self { worker: Some(program.to_owned()), ..self }
    }

    /// Lets requests of rules reach this host of the inner network, at these ports; none are the usual ones.
    #[must_use]
    pub fn may_reach(mut self, host: &str, ports: &[u16]) -> Self {
        self.allowed.push((host.to_owned(), ports.to_vec()));
        self
    }

    /// Asks `judge` where a rule wants a judgement. Without one such a rule fails, which keeps its gate shut.
    #[must_use]
    pub fn judged_by(self, judge: impl Judge) -> Self {
        Self { judge: Some(Arc::new(judge)), ..self }
    }

    /// Opens the store, and tries the program for scripts. Blocks.
    ///
    /// # Errors
    /// What is wrong with the URL, the key, the store or the program.
    pub fn open(self) -> Result<Stores, PintleStoreError> {
        let lookup = |name: &str| {
            let said = if name == ENV_KEYS[0] { &self.key } else { &None };
            let old = if name == ENV_OLD_KEYS { &self.old_keys } else { &None };
            said.as_ref().or(old.as_ref()).map(Into::into)
        };
        let keyring =
            Keyring::open(&KeySource::new(lookup, None)).map_err(|error| PintleStoreError::Key(error.to_string()))?;
        let keyring = Arc::new(keyring);
        let worker = self.worker.as_deref().map(tried).transpose()?;
        let allowed: Result<Vec<Allow>, _> =
            self.allowed.iter().map(|(host, ports)| Allow::host(host, ports.clone())).collect();
        let allowed = allowed.map_err(|error| PintleStoreError::Allowed(error.to_string()))?;
        let durability = if self.durable { Durability::BeforeEffect } else { Durability::Commit };
        let sealing = StoreKeys { keyring: Some(keyring.clone()), ..StoreKeys::default() };
        let kept = pintle_store::open_with(&self.url, &self.folder, durability, sealing);
        let kept = kept.map_err(|error| PintleStoreError::Store(error.to_string()))?;
        // Named one by one: a kind of store that comes later runs no commands until somebody says so.
        let is_own = ["sqlite:", "memory:"].iter().any(|scheme| self.url.starts_with(scheme));
        let commands = self.commands.unwrap_or(is_own);
        let source = RuleSource {
            store: kept.clone(),
            keyring,
            edition: if commands { Edition::Lite } else { Edition::Standard },
            folder: self.folder,
            worker,
            egress: Egress::new(allowed),
            judge: self.judge,
        };
        Ok(Stores { rules: Some(Arc::new(source)), ..Stores::records(kept.clone()).with_approvals(kept) })
    }
}

/// How `program` is started as a worker, after it was tried.
fn tried(program: &Path) -> Result<Launcher, PintleStoreError> {
    let alone = program.file_name().is_some_and(|name| name == WORKER);
    let args = if alone { Vec::new() } else { vec![WORKER_COMMAND.into()] };
    let worker = Launcher { program: program.into(), args, vars: Vec::new() };
    let bad = |why: String| PintleStoreError::Worker { program: program.display().to_string(), why };
    pintle_rule_runtime::check_script(worker.clone(), SAMPLE).map_err(bad)?;
    Ok(worker)
}
