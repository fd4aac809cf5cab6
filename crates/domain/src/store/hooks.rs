//! The ports to the rules of the agent family: their rows, their history, their budgets.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{OnKept, StoreError, TenantScope};
use crate::anchor::RuleDoubt;
use crate::audit::{AuditCheckpoint, AuditEntry};
use crate::breaker::BreakerRun;
use crate::checkpoint::CheckpointKind;
use crate::execution::Execution;
use crate::id::{HookId, TenantId};
use crate::json::Value;
use crate::rule::{Decision, Rule};

/// Everything that is needed to put rules in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredRules {
    /// Counts the changes.
    pub epoch: u64,
    /// All hooks, those that are switched off among them.
    pub hooks: Vec<Rule>,
    /// Circuit breakers of global hooks that are open for one tenant.
    pub trips: Vec<OpenBreaker>,
    /// Runs that are pending.
    pub runs: Vec<(HookId, TenantId, BreakerRun)>,
    /// All tenants.
    pub tenants: Vec<Tenant>,
    /// Those of them that are disabled: their gates stay shut.
    pub disabled: Vec<TenantId>,
    /// Rules whose rows are not as Pintle left them: they are not asked, and what they guard stays shut.
    pub doubts: Vec<RuleDoubt>,
    /// Why the store as a whole is not to be relied on, and what to do: then every gate stays shut.
    pub shut: Option<String>,
    /// Whether the store is a database of a server, which is restored with the server's own tools.
    pub is_of_server: bool,
}

/// A circuit breaker of a global hook that is open for one tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenBreaker {
    /// Which hook; [`NO_HOOK`] in a line about the budget of the tenant.
    pub hook_id: HookId,
    /// For whom.
    pub tenant_id: TenantId,
    /// Since when, RFC 3339, UTC.
    pub tripped_at: String,
}

/// One tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenant {
    /// A UUID.
    pub id: TenantId,
    /// Its name in files, on the command line and in addresses.
    pub slug: String,
    /// For people.
    pub name: String,
    /// RFC 3339, UTC.
    pub created_at: String,
}

/// Who changes something, when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// For the change log: `cli`, `system:breaker`, a user.
    pub name: String,
    /// The moment.
    pub at: Timestamp,
    /// Why; empty where nobody says it.
    pub reason: String,
}

/// Another budget for a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetChange {
    /// How many tokens a month.
    pub total: i64,
    /// Who sets it, when.
    pub by: Actor,
    /// Why, for the change log; empty where nobody said it.
    pub reason: String,
}

impl BudgetChange {
    /// The budget becomes `total`, and nobody says why.
    pub fn to(total: i64, by: Actor) -> Self {
        Self { total, by, reason: String::new() }
    }
}

/// One change of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleChange {
    /// A new row. Its version is 1.
    Create(Box<Rule>),
    /// The same, unless another hook has its place: [`Rule::has_place_of`].
    Add(Box<Rule>),
    /// Another content of the row with this id; its version becomes one more.
    Update {
        /// As it is to be; version and times are the store's.
        hook: Box<Rule>,
        /// The version that must be there.
        if_version: Option<u32>,
        /// The word of the change log: `updated`, `toggled`, `reset`, `disabled`.
        action: &'static str,
    },
    /// The row goes; its executions stay.
    Delete {
        /// Which one.
        id: HookId,
        /// Why, for the change log; empty where nobody said it.
        reason: String,
    },
}

impl RuleChange {
    /// The row `id` goes, and nobody says why.
    pub fn delete(id: HookId) -> Self {
        Self::Delete { id, reason: String::new() }
    }

    /// The rule whose row the change builds on: what somebody else made of that row would stay. What is kept in a file
    /// is written anew from there.
    pub fn needs_good_row(&self) -> Option<&HookId> {
        match self {
            Self::Update { hook, .. } if hook.file().is_none() => Some(&hook.id),
            Self::Update { .. } | Self::Create(_) | Self::Add(_) | Self::Delete { .. } => None,
        }
    }
}

/// The result that a change left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleChangeResult {
    /// The epoch after it.
    pub epoch: u64,
    /// The version of each row that was changed, in the order of the changes; 0 for one that is gone.
    pub versions: Vec<u32>,
}

/// Stands for no hook in a line of the change log: a UUID of zeros.
pub const NO_HOOK: &str = "00000000-0000-0000-0000-000000000000";

/// One line of a hook's change log. This is also its JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoggedChange {
    /// A UUID.
    pub id: String,
    /// The tenant that owns the hook.
    pub tenant_id: TenantId,
    /// Which hook.
    pub hook_id: HookId,
    /// When. RFC 3339, UTC.
    pub at: String,
    /// Who.
    pub actor: String,
    /// The action: `created`, `updated`, `deleted`, `toggled`, `tripped`, `reset`, `disabled`.
    pub action: String,
    /// The version after it.
    pub version: u32,
    /// The difference, as a JSON Patch; secrets are masked.
    pub diff: Value,
}

/// Called when rules may have changed. Must not block, and must hold nothing of the store.
pub type OnRulesChanged = Box<dyn Fn() + Send + Sync>;

/// Somebody listens for changes of rules, until this is dropped.
pub trait RuleSubscription: Send + Sync {
    /// Whether every change is told now. Otherwise only who looks at the epoch notices one.
    fn is_told(&self) -> bool;

    /// Whether what tells can fall silent unnoticed, as a connection that hangs does.
    fn may_hang(&self) -> bool {
        true
    }
}

/// Nobody tells anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSubscription;

impl RuleSubscription for NullSubscription {
    fn is_told(&self) -> bool {
        false
    }
}

/// Keeps rules. Every method blocks, shortly. A write is one transaction: the rows, the change log, the audit chain and
/// the epoch.
pub trait RuleStore: Send + Sync {
    /// Everything that is needed to put rules in force.
    ///
    /// # Errors
    /// The store cannot be read.
    fn rules(&self) -> Result<StoredRules, StoreError>;

    /// The counter of the changes of rules, of every process.
    ///
    /// # Errors
    /// The store cannot be read.
    fn epoch(&self) -> Result<u64, StoreError>;

    /// Calls `heard` whenever some process changed rules, and whenever one may have done so unheard, until what is
    /// returned is dropped. Never blocks. Stores that are told of nothing never call it.
    fn listen(&self, heard: OnRulesChanged) -> Box<dyn RuleSubscription> {
        drop(heard);
        Box::new(NullSubscription)
    }

    /// The row `id`.
    ///
    /// # Errors
    /// The store cannot be read.
    fn hook(&self, id: &HookId) -> Result<Option<Rule>, StoreError>;

    /// Carries `changes` out, all or none.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] for a row that is not there, [`StoreError::Conflict`] with `version conflict: have N` or
    /// for an id that is taken; or the store cannot do it.
    fn change(&self, changes: Vec<RuleChange>, by: &Actor) -> Result<RuleChangeResult, StoreError>;

    /// The newest `limit` changes of a hook that are about `of` or everybody, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn changes(&self, of: &TenantScope, id: &HookId, limit: usize) -> Result<Vec<LoggedChange>, StoreError>;

    /// The changes of the hooks of `tenant` and of everybody's, or of all of them, newest first; only what comes after
    /// the line with this moment and id.
    ///
    /// # Errors
    /// The store cannot be read.
    fn change_log(
        &self,
        _tenant: Option<&TenantId>,
        _after: Option<&(String, String)>,
        _limit: usize,
    ) -> Result<Vec<LoggedChange>, StoreError> {
        Ok(Vec::new())
    }

    /// Opens the circuit breaker of a hook: its own, or, of a global hook, that of one tenant. Clears its run.
    ///
    /// # Errors
    /// The hook is gone; or the store cannot do it.
    fn trip(&self, id: &HookId, tenant: &TenantId, by: &Actor) -> Result<u64, StoreError>;

    /// Closes the circuit breaker of a hook and clears its runs: everywhere, or, of a global hook, for one tenant.
    ///
    /// # Errors
    /// The hook is gone; or the store cannot do it.
    fn reset(&self, id: &HookId, tenant: Option<&TenantId>, by: &Actor) -> Result<u64, StoreError>;

    /// Keeps the run of a hook for a tenant; an empty one is forgotten. Changes no epoch.
    ///
    /// # Errors
    /// The store cannot do it.
    fn keep_run(&self, id: &HookId, tenant: &TenantId, run: &BreakerRun, now: Timestamp) -> Result<(), StoreError>;

    /// All tenants, the sentinel among them.
    ///
    /// # Errors
    /// The store cannot be read.
    fn tenants(&self) -> Result<Vec<Tenant>, StoreError>;

    /// Adds a tenant.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if its id or slug is taken; or the store cannot do it.
    fn add_tenant(&self, tenant: &Tenant) -> Result<(), StoreError>;
}

/// Which executions are wanted. Empty members ask for everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionQuery {
    /// Whose they are.
    pub tenant: TenantScope,
    /// Of which hook.
    pub hook: Option<HookId>,
    /// Of hooks that had this name then.
    pub name: Option<String>,
    /// Where.
    pub event: Option<CheckpointKind>,
    /// With which decision.
    pub decision: Option<Decision>,
    /// In which session.
    pub session: Option<String>,
    /// Of which agent, by the id that rules know.
    pub agent: Option<String>,
    /// Not before.
    pub since: Option<Timestamp>,
    /// Before.
    pub until: Option<Timestamp>,
    /// Only what comes after this one in the order of the listing: its moment and its id.
    pub after: Option<(String, String)>,
    /// At most this many.
    pub limit: usize,
}

impl ExecutionQuery {
    /// Every execution of `tenant`; how many of them, whoever asks says.
    pub fn of(tenant: TenantScope) -> Self {
        Self {
            tenant,
            hook: None,
            name: None,
            event: None,
            decision: None,
            session: None,
            agent: None,
            since: None,
            until: None,
            after: None,
            limit: 0,
        }
    }
}

/// Keeps executions. Methods but the first block.
pub trait ExecutionStore: Send + Sync {
    /// Hands executions over that are part of no event: of hooks that only observe. Never blocks. A fault of the store
    /// that may pass is waited out, as by [`RecordStore::keep_patiently`](super::RecordStore::keep_patiently).
    fn keep_executions(&self, executions: Vec<Execution>, done: OnKept);

    /// The executions that `query` asks for, newest first, without what is encrypted of them.
    ///
    /// # Errors
    /// The store cannot be read.
    fn executions(&self, query: &ExecutionQuery) -> Result<Vec<Execution>, StoreError>;

    /// The execution `id` of `of`, with the detail of its fault and its output: those of another tenant are not
    /// decrypted.
    ///
    /// # Errors
    /// The store cannot be read, or what is encrypted cannot be decrypted.
    fn execution(&self, of: &TenantScope, id: &str) -> Result<Option<Execution>, StoreError>;

    /// Says in the audit chain of its tenant that `by` is about to read what is encrypted of `execution`.
    ///
    /// # Errors
    /// The store cannot write it; then nobody may read it.
    fn note_read(&self, execution: &Execution, by: &Actor) -> Result<(), StoreError>;

    /// Forgets executions that are older than `rows_before`, and what is encrypted of those that are older than
    /// `details_before`; at most `limit` of each. Says how many.
    ///
    /// # Errors
    /// The store cannot do it.
    fn forget(&self, rows_before: Timestamp, details_before: Timestamp, limit: usize) -> Result<usize, StoreError>;
}

/// The budget that a tenant may spend on judges in one month, in tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// The first day of the month, as `2026-11-01`.
    pub month_start: String,
    /// All of it.
    pub budget_total: i64,
    /// The tokens that are spent or reserved.
    pub used: i64,
    /// The tokens that are left; negative once what was booked turned out too small.
    pub remaining: i64,
}

impl Budget {
    /// The first day of the month after, on which all of it is there again.
    pub fn comes_back(&self) -> String {
        let begins = self.month_start.parse::<jiff::civil::Date>();
        let next = begins.ok().and_then(|day| day.checked_add(jiff::Span::new().months(1)).ok());
        next.map_or_else(|| "the next month".to_owned(), |day| day.to_string())
    }
}

/// Keeps budgets. A row is made, and rolled over to another month, by whoever touches it first. Every method blocks,
/// shortly.
pub trait BudgetStore: Send + Sync {
    /// The budget of `tenant` in the month of `now`.
    ///
    /// # Errors
    /// The store cannot do it.
    fn budget(&self, tenant: &TenantId, now: Timestamp) -> Result<Budget, StoreError>;

    /// Books `tokens`, if they fit. Says whether they did.
    ///
    /// # Errors
    /// The store cannot do it.
    fn reserve(&self, tenant: &TenantId, tokens: u64, now: Timestamp) -> Result<bool, StoreError>;

    /// Corrects what was booked by `delta` tokens. Says what is left, and whether this is the first time this month that
    /// it is less than a fifth.
    ///
    /// # Errors
    /// The store cannot do it.
    fn settle(&self, tenant: &TenantId, delta: i64, now: Timestamp) -> Result<(Budget, bool), StoreError>;

    /// Sets what a tenant may spend a month, which is a line of the change log.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] for a tenant that is not there; or the store cannot do it.
    fn set_budget(&self, tenant: &TenantId, change: &BudgetChange) -> Result<Budget, StoreError>;
}

/// Reads the audit chain. Every method blocks.
pub trait AuditStore: Send + Sync {
    /// The entries of `tenant` from `seq` on, at most `limit`, in order.
    ///
    /// # Errors
    /// The store cannot be read.
    fn audit_entries(&self, tenant: &TenantId, from_seq: u64, limit: usize) -> Result<Vec<AuditEntry>, StoreError>;

    /// The checkpoints of `tenant` of the rows from `from_seq` on, at most `limit`, in order.
    ///
    /// # Errors
    /// The store cannot be read.
    fn checkpoints(&self, tenant: &TenantId, from_seq: u64, limit: usize) -> Result<Vec<AuditCheckpoint>, StoreError>;

    /// The last checkpoint of `tenant`.
    ///
    /// # Errors
    /// The store cannot be read.
    fn last_checkpoint(&self, tenant: &TenantId) -> Result<Option<AuditCheckpoint>, StoreError>;

    /// The tenants that have entries.
    ///
    /// # Errors
    /// The store cannot be read.
    fn audited(&self) -> Result<Vec<TenantId>, StoreError>;

    /// How many entries of each tenant are kept and could not be hashed and put into its chain yet: they are committed
    /// first, and nearly always the others follow before anybody asks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn unhashed(&self) -> Result<Vec<(TenantId, u64)>, StoreError> {
        Ok(Vec::new())
    }

    /// Forgets the oldest entries of `tenant` up to a checkpoint, which stays as anchor: at most `limit` of them, more
    /// only where checkpoints stand farther apart, and none behind the newest checkpoint before `before`. Says how many
    /// went; 0 once nothing is left to be forgotten.
    ///
    /// # Errors
    /// The store cannot do it.
    fn forget_audit(&self, tenant: &TenantId, before: Timestamp, limit: usize) -> Result<usize, StoreError>;
}

/// A job for a hook that only observes, kept until it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxJob {
    /// A UUID.
    pub id: String,
    /// The tenant that owns the event.
    pub tenant_id: TenantId,
    /// Which hook.
    pub hook_id: HookId,
    /// The event.
    pub event_id: String,
    /// The payload that the hook is sent, and what its record needs; encrypted where it is kept.
    pub payload: Vec<u8>,
    /// The number of times that the job was tried.
    pub attempts: u32,
    /// When it is due.
    pub next_at: Timestamp,
}

/// Keeps jobs. Methods but the first block.
pub trait OutboxStore: Send + Sync {
    /// Hands jobs over. Never blocks.
    fn enqueue(&self, jobs: Vec<OutboxJob>, done: OnKept);

    /// The oldest `limit` jobs that are due, taken by this process until `until`.
    ///
    /// # Errors
    /// The store cannot do it.
    fn take_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Vec<OutboxJob>, StoreError>;

    /// How many jobs there are, due or not.
    ///
    /// # Errors
    /// The store cannot be read.
    fn jobs_left(&self) -> Result<u64, StoreError>;

    /// The job is over.
    ///
    /// # Errors
    /// The store cannot do it.
    fn finish(&self, id: &str) -> Result<(), StoreError>;

    /// The job is to be tried again.
    ///
    /// # Errors
    /// The store cannot do it.
    fn try_again(&self, id: &str, attempts: u32, next_at: Timestamp) -> Result<(), StoreError>;
}
