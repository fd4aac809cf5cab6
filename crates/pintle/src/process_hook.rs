//! Hooks that are children and speak JSON lines.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_domain::hook::HookState;
use pintle_domain::json::{Object, Value, json};
use pintle_engine::Mount;
use pintle_process::ProcessHook;

use crate::pintle::{AddError, Pintle};

/// A process hook to be added: its program, and where it acts. What is not said is as in a configuration.
#[derive(Clone, Debug)]
pub struct Process {
    entry: Object,
    folder: PathBuf,
}

impl Process {
    /// The program `argv`, without a shell. Relative paths start from the working directory.
    pub fn new<'a>(argv: impl IntoIterator<Item = &'a str>) -> Self {
        let argv: Vec<Value> = argv.into_iter().map(Value::from).collect();
        let mut entry = Object::new();
        entry.insert("enabled".to_owned(), true.into());
        entry.insert("command".to_owned(), Value::Array(argv));
        Self { entry, folder: PathBuf::from(".") }
    }

    /// The hook of the entry that would stand under `hooks.processes.NAME` in a configuration. It counts as enabled.
    pub fn from_entry(mut entry: Object) -> Self {
        entry.insert("enabled".to_owned(), true.into());
        Self { entry, folder: PathBuf::from(".") }
    }

    /// The folder from which relative paths start.
    #[must_use]
    pub fn in_folder(self, folder: &Path) -> Self {
        Self { folder: folder.to_owned(), ..self }
    }

    /// The stages at which it is asked, such as `before_tool`.
    #[must_use]
    pub fn intercept(self, stages: &[&str]) -> Self {
        self.with("intercept", json!(stages))
    }

    /// The events that it is told of, such as `tool_exec_end`.
    #[must_use]
    pub fn observe(self, events: &[&str]) -> Self {
        self.with("observe", json!(events))
    }

    /// How long an answer may take.
    #[must_use]
    pub fn within(self, timeout: Duration) -> Self {
        let milliseconds = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.with("timeout_ms", json!(milliseconds))
    }

    /// The tools that it is asked about, as a regular expression.
    #[must_use]
    pub fn tools(self, pattern: &str) -> Self {
        self.with("matcher", json!(pattern))
    }

    fn with(mut self, name: &str, value: Value) -> Self {
        self.entry.insert(name.to_owned(), value);
        self
    }
}

impl Pintle {
    /// Adds a process hook: starts its program, waits for the handshake, and puts it in force.
    ///
    /// # Errors
    /// What is wrong with it, that its program does not come up, or that its name is taken. Nothing is left running then.
    pub async fn process(&self, name: &str, hook: Process) -> Result<(), AddError> {
        if self.0.closing.is_cancelled() {
            return Err(AddError::Closed(name.to_owned()));
        }
        let mount = pintle_process::mount_entry(&self.0.engine, name, &Value::Object(hook.entry), &hook.folder)
            .map_err(|bad| AddError::Entry(bad.to_string()))?;
        let handler = mount.handler.clone();
        let added = match self.is_up(name, &mount).await {
            Ok(()) => self.add(mount),
            Err(why) => Err(why),
        };
        if added.is_err() {
            handler.close().await;
        }
        added
    }

    /// Lets those pass that can act: some tool is theirs, and their child shook hands.
    async fn is_up(&self, name: &str, mount: &Mount) -> Result<(), AddError> {
        self.meets_a_tool(mount)?;
        let not_up = |why: String| AddError::NotUp { hook: name.to_owned(), why };
        if mount.hook.state != HookState::Armed {
            return Err(not_up("is not armed".to_owned()));
        }
        let handler: &dyn std::any::Any = &*mount.handler;
        match handler.downcast_ref::<ProcessHook>() {
            Some(child) => child.ready().await.map_err(|fault| not_up(fault.explained().to_string())),
            None => Ok(()),
        }
    }
}
