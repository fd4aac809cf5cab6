//! Stored rules, in force in one host.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use pintle_domain::id::{AgentId, TenantId, agent_uuid};
use pintle_domain::llm::LlmRequest;
use pintle_domain::store::{StoreError, Tenant as TenantRow};
use pintle_engine::Engine;
use pintle_rule_runtime::{AdminSettings, RuntimeSettings};
use pintle_rules::admin::{RuleAdmin, UnknownAgent};
use pintle_rules::cache::{AgentNames, RuleCache};
use pintle_rules::handler::{
    CommandEnv, Evaluator, JudgeChoice, JudgeSettings, Judgement, PoolLimits, QuestionSent, RuleServices,
};
use pintle_rules::judge::JudgeQuestion;
use pintle_store::Store;
use tokio_util::sync::CancellationToken;

use crate::rule_source::{Judge, RuleSource};

/// The provider of a judge if a rule names none: the host decides then.
const THE_JUDGE: &str = "host";

/// The rules of one host, in force.
pub(crate) struct RulesInForce {
    store: Arc<dyn Store>,
    rule_cache: Arc<RuleCache>,
    services: Arc<RuleServices>,
    rule_admin: RuleAdmin,
    agents: Arc<Mutex<BTreeSet<AgentId>>>,
}

impl RulesInForce {
    /// Puts the rules of `source` in force in `engine`, and looks for changes until `closing` is set. Blocks.
    pub(crate) fn open(source: &RuleSource, engine: &Engine, closing: &CancellationToken) -> Result<Self, StoreError> {
        let folder = source.folder.clone();
        let evaluator = source.judge.clone().map(|judge| Arc::new(Judging(judge)) as Arc<dyn Evaluator>);
        let settings = RuntimeSettings {
            edition: source.edition,
            commands: CommandEnv {
                vars: std::env::vars_os().collect(),
                operator_env: Vec::new(),
                secrets: BTreeSet::new(),
                workspace_of: Arc::new(move |_| folder.clone()),
            },
            egress: source.egress.clone(),
            worker: source.worker.clone(),
            evaluator,
            judge: JudgeSettings::default(),
            limits: PoolLimits::default(),
            outbox: false,
        };
        let services = pintle_rule_runtime::services(settings, engine, &source.store, &source.keyring);
        let known: Arc<Mutex<BTreeSet<AgentId>>> = Arc::default();
        let met = known.clone();
        let agents: AgentNames = Arc::new(move || lock(&met).iter().cloned().collect());
        let (rule_cache, read) =
            RuleCache::open(source.store.clone(), engine.live().clone(), services.clone(), agents.clone());
        read?;
        let settings = AdminSettings {
            agents,
            known_of: Arc::new(|tenant, agent| {
                Arc::new(UnknownAgent { agent_uuid: agent_uuid(tenant, agent.as_str()) })
            }),
            // Whoever has a tenant's handle is the host itself.
            owns_session: Arc::new(|_, _| true),
            egress: source.egress.clone(),
        };
        let rule_admin =
            pintle_rule_runtime::rule_admin(settings, &source.store, &source.keyring, &rule_cache, &services);
        engine.tasks().spawn(rule_cache.clone().watch(closing.clone()));
        Ok(Self { store: source.store.clone(), rule_cache, services, rule_admin, agents: known })
    }

    /// Takes notice of an agent: rules that name it hold for its turns from the first one on.
    pub(crate) fn meets(&self, agent: &AgentId) {
        if lock(&self.agents).insert(agent.clone()) {
            self.rule_cache.remount();
        }
    }

    /// The tenant that is called so, or has this id.
    pub(crate) fn tenant(&self, name: &str) -> Option<TenantId> {
        let rules = self.rule_cache.rules();
        // Nobody lives in the tenant of rules for everybody.
        let mut tenants = rules.tenants.iter().filter(|row| row.id != TenantId::sentinel());
        tenants.find(|row| row.slug == name || row.id.as_str() == name).map(|row| row.id.clone())
    }

    /// The tenant that is called so: somebody's name that is another one's id leads to nobody.
    fn called(&self, slug: &str) -> Option<TenantId> {
        let rules = self.rule_cache.rules();
        let mut tenants = rules.tenants.iter().filter(|row| row.id != TenantId::sentinel());
        tenants.find(|row| row.slug == slug).map(|row| row.id.clone())
    }

    /// Writes a new tenant. Blocks.
    pub(crate) fn add_tenant(&self, name: &str) -> Result<TenantId, StoreError> {
        if let Some(known) = self.called(name) {
            return Ok(known);
        }
        let id = TenantId::new(uuid::Uuid::now_v7().to_string());
        let created_at = jiff::Timestamp::now().to_string();
        let row = TenantRow { id: id.clone(), slug: name.to_owned(), name: name.to_owned(), created_at };
        self.store.add_tenant(&row)?;
        self.rule_cache.reload()?;
        Ok(id)
    }

    /// How many rows of rules that only observe the store could not take.
    pub(crate) fn lost(&self) -> u64 {
        self.services.pool.lost()
    }

    /// No longer writes what is left, after what observers are told was worked off.
    pub(crate) fn close(&self) {
        self.rule_cache.close();
        self.services.pool.close();
    }

    pub(crate) fn rule_admin(&self) -> &RuleAdmin {
        &self.rule_admin
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is complete before anything could panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The host's judge as rules ask it.
struct Judging(Arc<dyn Judge>);

impl Evaluator for Judging {
    fn judge<'a>(
        &'a self,
        wanted: JudgeChoice<'a>,
        question: JudgeQuestion,
        sent: &'a QuestionSent,
    ) -> BoxFuture<'a, Result<Judgement, String>> {
        // What the host's own judge does with it nobody here can see.
        sent.mark();
        let model = format!("{}/{}", wanted.provider.unwrap_or(THE_JUDGE), wanted.model);
        Box::pin(async move {
            let request = LlmRequest { model: wanted.model.to_owned(), ..question.to(&model) };
            Ok(Judgement { reply: self.0.judge(request).await?, model })
        })
    }
}
