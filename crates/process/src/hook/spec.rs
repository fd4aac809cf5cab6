//! What is known of a process hook before its child runs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pintle_dialects::process::config::EventForm;
use pintle_domain::checkpoint::RuntimeKind;
use pintle_domain::id::HookName;

/// The check that runs before every start of a child, restarts included; its error is the detail of the fault.
pub type SpawnCheck = Arc<dyn Fn() -> Result<StillSame, String> + Send + Sync>;

/// What follows from a check once the child has read what it runs: whether that is what was looked at.
pub type StillSame = Box<dyn FnOnce() -> Result<(), String> + Send>;

/// The check of a child that may always be started.
pub fn unchecked() -> SpawnCheck {
    Arc::new(|| Ok(Box::new(|| Ok(()))))
}

/// Everything that a process hook needs to run. Two are equal if the same child would run and be spoken to in the
/// same way; the check before a start does not count.
#[derive(Clone)]
pub struct ProcessSpec {
    /// The hook's name.
    pub name: HookName,
    /// Program and arguments; no shell.
    pub argv: Vec<String>,
    /// The child's working directory, absolute; the host's when absent.
    pub dir: Option<PathBuf>,
    /// The whole environment, sorted.
    pub env: Vec<(OsString, OsString)>,
    /// The modes that `hook.hello` lists.
    pub modes: Vec<&'static str>,
    /// Deadline of the handshake.
    pub start_timeout: Duration,
    /// Longest line, either way, in bytes.
    pub max_frame_bytes: usize,
    /// How long a notification may wait at the head of its queue, and how long closing waits for the queue.
    pub observer_timeout: Duration,
    /// Whether likely mistakes in replies are faults.
    pub strict: bool,
    /// The form of notifications.
    pub event_form: EventForm,
    /// Which runtime events it is told; all when absent. Counts only if the modes hold `observe`.
    pub events: Option<BTreeSet<RuntimeKind>>,
    /// Runs before every start.
    pub before_spawn: SpawnCheck,
}

impl PartialEq for ProcessSpec {
    fn eq(&self, other: &Self) -> bool {
        // Taken apart, so that a new member has to be thought of here.
        let Self {
            name,
            argv,
            dir,
            env,
            modes,
            start_timeout,
            max_frame_bytes,
            observer_timeout,
            strict,
            event_form,
            events,
            before_spawn: _,
        } = self;
        *name == other.name
            && *argv == other.argv
            && *dir == other.dir
            && *env == other.env
            && *modes == other.modes
            && *start_timeout == other.start_timeout
            && *max_frame_bytes == other.max_frame_bytes
            && *observer_timeout == other.observer_timeout
            && *strict == other.strict
            && *event_form == other.event_form
            && *events == other.events
    }
}

/// Without the environment: its values may be secret.
impl fmt::Debug for ProcessSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessSpec").field("name", &self.name).field("argv", &self.argv).finish_non_exhaustive()
    }
}
