//! What the handlers of rules need of the host.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use pintle_domain::id::{AgentId, HookId, TenantId};
use pintle_domain::rule::{Edition, Rule};
use pintle_domain::store::BudgetStore;
use tokio_util::task::TaskTracker;

use super::judges::{Evaluator, JudgeChoice, JudgeSettings, Judges};
use super::observing::ObserverPool;
use super::scripts::Scripts;
use crate::http::HttpSender;
use crate::record::HandlerConfig;
use pintle_engine::deadlines::Deadlines;

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

impl RuleServices {
    /// The model that would judge for `row`, if a model does; nobody is asked, and nothing is spent.
    ///
    /// # Errors
    /// Why nobody could be asked.
    pub fn judge_of(&self, row: &Rule) -> Option<Result<String, String>> {
        let HandlerConfig::Prompt(config) = HandlerConfig::of(row.handler_type, &row.config).ok()? else { return None };
        let wanted = JudgeChoice { provider: config.provider.as_deref(), model: &config.model, settings: &self.judge };
        Some(match &self.evaluator {
            Some(evaluator) => evaluator.would_ask(wanted),
            None => Err("no provider is configured, so no model can judge".to_owned()),
        })
    }
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

/// Decrypts what rows keep encrypted.
pub trait Vault: Send + Sync {
    /// The plain text of the value at `path` of the row `hook` of `tenant`.
    ///
    /// # Errors
    /// `decrypt failed: …`
    fn open(&self, hook: &HookId, tenant: &TenantId, path: &str, text: &str) -> Result<String, String>;
}
