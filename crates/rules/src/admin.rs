//! Everything that can be done with rules, whoever asks: the command line or a gateway.
//!
//! This is the only place with the rules of who may: roles, tenants that do not see each other, hooks that are shipped,
//! and who closes a circuit breaker. What somebody may not see is looked up like what is not there: among the rules in
//! memory, by tenant and id at once, so neither the answer nor its time tells them apart.

use std::sync::Arc;

use jiff::Timestamp;
use pintle_domain::checkpoint::AgentInfo;
use pintle_domain::id::{AgentId, HookId, TenantId};
use pintle_domain::store::{Actor, BudgetStore, ExecutionStore, RuleStore, StoreError};

use crate::cache::{AgentNames, RuleCache};
use crate::handler::RuleServices;
use pintle_engine::approvals::Clock;

mod adding;
mod calling;
mod caller;
mod chain;
mod changing;
mod creating;
mod history;
mod logged;
mod judged;
mod reading;
mod error;
mod resetting;
mod sampling;
mod spending;
mod testing;

pub use adding::{AddOutcome, AddTrial, AddedRule, WhereThere};
pub use caller::{Caller, CallerRole};
pub use calling::METHODS;
pub use chain::{ChainQuery, UnknownAgent};
pub use changing::{ChangeTerms, UpdatedRule, said as reason_said};
pub use creating::CreatedRule;
pub use error::{AdminError, AdminErrorCode};
pub use history::{ExecutionPage, HistoryQuery, INVALID_CURSOR, MAX_PAGE, PAGE};
pub use logged::ChangePage;
pub use reading::{INVALID_AGENT, ListFilter};
pub use sampling::Sample;
pub use testing::{HookSaid, TESTS_PER_MINUTE, TestResult, TestTarget};

use testing::Throttle;

/// Encrypts what rows keep secret.
pub trait SealingVault: Send + Sync {
    /// The value at `path` of the row `hook` of `tenant`, encrypted.
    ///
    /// # Errors
    /// `encryption key not configured`, or what else is missing.
    fn seal(&self, hook: &HookId, tenant: &TenantId, path: &str, plain: &str) -> Result<String, String>;
}

/// Whether hooks of the tenant with this slug, or global ones, may be sent to a URL, by its text alone.
pub type CheckUrl = Arc<dyn Fn(Option<&str>, &str) -> Result<(), String> + Send + Sync>;

/// The knowledge about an agent of a tenant: its tools, and how to read its shell texts.
pub type AgentInfoOf = Arc<dyn Fn(&TenantId, &AgentId) -> Arc<dyn AgentInfo> + Send + Sync>;

/// Whether a session is the caller's own.
pub type OwnsSession = Arc<dyn Fn(&Caller, &str) -> bool + Send + Sync>;

/// The services that a rule admin is made of.
pub struct RuleAdminServices {
    /// The rules.
    pub hooks: Arc<dyn RuleStore>,
    /// The store of the rules' executions.
    pub executions: Arc<dyn ExecutionStore>,
    /// The store of the budgets of judges.
    pub budgets: Arc<dyn BudgetStore>,
    /// The rules in force.
    pub rule_cache: Arc<RuleCache>,
    /// Runs hooks that are tested.
    pub parts: Arc<RuleServices>,
    /// Encrypts secrets.
    pub vault: Arc<dyn SealingVault>,
    /// The agents of the host.
    pub agents: AgentNames,
    /// The knowledge about each agent.
    pub known_of: AgentInfoOf,
    /// The check of the URLs that are let through.
    pub check_url: CheckUrl,
    /// The check of who owns a session.
    pub owns_session: OwnsSession,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// Does what callers want with rules, if they may. Cheap to clone.
#[derive(Clone)]
pub struct RuleAdmin {
    parts: Arc<RuleAdminServices>,
    throttle: Arc<Throttle>,
    owns_session: OwnsSession,
}

impl RuleAdmin {
    /// A rule admin over a store whose rules `parts.rulebook` keeps in force.
    pub fn new(parts: RuleAdminServices) -> Self {
        let owns_session = parts.owns_session.clone();
        Self { parts: Arc::new(parts), throttle: Arc::default(), owns_session }
    }

    /// The same with another check of who owns a session: of a face that knows its users.
    #[must_use]
    pub fn with_owners(&self, owns_session: OwnsSession) -> Self {
        Self { owns_session, ..self.clone() }
    }

    /// Does something that blocks. It goes on to its end even if nobody waits for it any more: a change that is written
    /// is put in force.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, AdminError> + Send + 'static,
    ) -> Result<T, AdminError> {
        let rule_admin = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&rule_admin)).await;
        done.unwrap_or_else(|error| {
            Err(AdminError::new(AdminErrorCode::Internal, format!("it could not be done: {error}")))
        })
    }

    /// Now, as stores keep it.
    fn now(&self) -> Timestamp {
        let now = self.parts.clock.now();
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }

    fn actor(&self, by: &Caller) -> Actor {
        Actor { name: by.name.clone(), at: self.now(), reason: String::new() }
    }

    /// Puts in force what was just written.
    fn in_force(&self) -> Result<(), AdminError> {
        self.parts.rule_cache.reload().map_err(|error| {
            let text = format!("the change is kept, but not in force yet: {error}; it will be when the store answers");
            AdminError::new(AdminErrorCode::Unavailable, text)
        })
    }
}

impl From<StoreError> for AdminError {
    fn from(error: StoreError) -> Self {
        let code = match error {
            StoreError::Unavailable(_) => AdminErrorCode::Unavailable,
            StoreError::Corrupt(_) => AdminErrorCode::Internal,
            StoreError::NotFound(_) => AdminErrorCode::NotFound,
            StoreError::Conflict(_) => AdminErrorCode::FailedPrecondition,
        };
        Self::new(code, error.to_string())
    }
}
