//! What the handlers of rules need of the host.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::id::{AgentId, HookId, TenantId};
use domain::json::Object;
use domain::rule::Edition;
use domain::store::BudgetStore;
use futures_util::future::BoxFuture;
use tokio_util::task::TaskTracker;

use super::judging::{Evaluator, JudgeSettings, Judges};
use super::observing::ObserverPool;
use crate::http::HttpSender;
use engine::deadlines::Deadlines;

/// The name of a tenant in addresses and lists; nothing for the owner of global hooks.
pub type SlugOf = Arc<dyn Fn(&TenantId) -> Option<String> + Send + Sync>;

/// Everything that rules need to run, shared by all of them.
pub struct RuleServices {
    /// What kinds of hooks there are.
    pub edition: Edition,
    /// Owns what has to be cleaned up after a run.
    pub tasks: TaskTracker,
    /// The timer of their time limits.
    pub deadlines: Deadlines,
    /// What commands see of the host.
    pub commands: CommandEnv,
    /// Sends requests, behind the guard.
    pub exchange: HttpSender,
    /// Runs scripts.
    pub scripts: Arc<dyn Scripts>,
    /// Asks judges; none where no model is configured.
    pub evaluator: Option<Arc<dyn Evaluator>>,
    /// What tenants may spend on judges.
    pub budgets: Arc<dyn BudgetStore>,
    /// Decrypts the secrets of rows.
    pub vault: Arc<dyn Vault>,
    /// The name of a tenant in the operator's allow-list.
    pub slug_of: SlugOf,
    /// What judges said lately, and how often each was asked.
    pub judges: Judges,
    /// Which model judges where a hook names none.
    pub judge: JudgeSettings,
    /// Works off what observers are told.
    pub pool: Arc<ObserverPool>,
}

/// What commands see of the host.
pub struct CommandEnv {
    /// The host's own variables.
    pub vars: Vec<(OsString, OsString)>,
    /// Names that the operator gives to commands although they look like secrets.
    pub operator_env: Vec<String>,
    /// Names that the configuration calls secrets.
    pub secrets: BTreeSet<String>,
    /// Where an agent works.
    pub workspace_of: Arc<dyn Fn(&AgentId) -> PathBuf + Send + Sync>,
}

/// Runs the scripts of hooks, somewhere they can do no harm.
pub trait Scripts: Send + Sync {
    /// Runs a script once. Dropping the future ends it.
    fn run<'a>(&'a self, call: ScriptCall<'a>) -> BoxFuture<'a, ScriptResult>;

    /// Says whether a script can be used. The error is the published message.
    fn check<'a>(&'a self, source: &'a str) -> BoxFuture<'a, Result<(), String>>;
}

/// One run of a script.
#[derive(Clone, Copy, Debug)]
pub struct ScriptCall<'a> {
    /// Whose slots it takes.
    pub tenant: &'a str,
    /// The text of the script.
    pub source: &'a str,
    /// The event as JSON, in the words of scripts.
    pub event: &'a str,
    /// What the script has, from when it has its slot.
    pub timeout: Duration,
    /// What the caller has in all, waiting for the slot included.
    pub budget: Duration,
}

/// What a run of a script gave.
#[derive(Clone, Debug)]
pub struct ScriptResult {
    /// The object that it returned, or why there is none.
    pub returned: Result<Object, ScriptFailure>,
    /// What it wrote to its console.
    pub log: String,
}

/// Why a script gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptFailure {
    /// Its own time was over.
    TimedOut {
        /// That time.
        after: Duration,
    },
    /// It had no slot within the caller's time: this says nothing of the script.
    NoSlot {
        /// That time.
        waited: Duration,
    },
    /// Everything else, in words.
    Failed(String),
}

/// Decrypts what rows keep encrypted.
pub trait Vault: Send + Sync {
    /// The plain text of the value at `path` of the row `hook` of `tenant`.
    ///
    /// # Errors
    /// `decrypt failed: …`
    fn open(&self, hook: &HookId, tenant: &TenantId, path: &str, text: &str) -> Result<String, String>;
}
