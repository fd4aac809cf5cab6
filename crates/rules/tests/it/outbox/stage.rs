//! Hosts over one store, with scripts whose texts say how they go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use pintle_domain::breaker::BreakerPolicy;
use pintle_domain::checkpoint::{CheckpointKind, ObservedEvent};
use pintle_domain::execution::Execution;
use pintle_domain::id::{AgentId, HookId, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::llm::Usage;
use pintle_domain::record::EventRecord;
use pintle_domain::rule::{Decision, Edition, Fallback, HandlerType, HookScope, Rule, Source};
use pintle_domain::store::{
    Actor, ExecutionQuery, ExecutionStore, OnKept, OutboxJob, OutboxStore as _, RecordQuery, RecordStore, RuleChange,
    RuleStore as _, StoreError, StoredEvent, Tenant, TenantScope,
};
use pintle_egress::{Egress, KeepAlive};
use pintle_engine::evidence::Evidence;
use pintle_engine::{Clock, Deadlines, Engine, Tracer};
use pintle_rules::cache::RuleCache;
use pintle_rules::handler::{
    CommandEnv, Evaluator, ObserverPool, Outbox, PoolLimits, RuleServices, ScriptCall, ScriptFailure, ScriptResult,
    Scripts, Vault,
};
use pintle_rules::http::HttpSender;
use pintle_testkit::rules::MemoryRules;
use tokio::time::Instant;

use super::traced::Told;

pub(crate) const ACME: &str = "0193a5b0-7000-7000-8000-00000000000a";
const START: &str = "2026-11-22T09:00:00Z";

/// The clock of one runtime: it goes as the runtime's does, from `from`.
pub(crate) struct Ticking {
    from: Timestamp,
    began: Instant,
}

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        self.from + SignedDuration::try_from(self.began.elapsed()).unwrap()
    }
}

/// One run of a script.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) at: Timestamp,
    pub(crate) source: String,
    pub(crate) tenant: String,
    pub(crate) event_id: String,
}

/// What scripts of all hosts did.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) runs: Vec<Run>,
    /// How many run now, by tenant and by job.
    active: BTreeMap<String, usize>,
    /// The most that ever ran at once, by the same.
    pub(crate) most: BTreeMap<String, usize>,
}

/// Scripts: `ok`, `says WORD` (and wants more than it may), `fail`, `fail N` (the first N runs of an event), `sleep N` (seconds), `panic`.
pub(crate) struct Plays {
    log: Arc<Mutex<Log>>,
    clock: Arc<Ticking>,
}

/// Counts one run among those that are under way, until it is dropped.
struct Active(Arc<Mutex<Log>>, [String; 2]);

impl Drop for Active {
    fn drop(&mut self) {
        let mut log = self.0.lock().unwrap();
        for key in &self.1 {
            *log.active.get_mut(key).unwrap() -= 1;
        }
    }
}

impl Plays {
    fn begin(&self, call: &ScriptCall<'_>) -> (Active, usize) {
        let event: Value = serde_json::from_str(call.event).unwrap();
        let event_id = event["eventId"].as_str().unwrap().to_owned();
        let mut log = self.log.lock().unwrap();
        let keys = [call.tenant.to_owned(), format!("{}/{event_id}", call.source)];
        for key in &keys {
            let active = log.active.entry(key.clone()).or_default();
            *active += 1;
            let active = *active;
            let most = log.most.entry(key.clone()).or_default();
            *most = active.max(*most);
        }
        let before = log.runs.iter().filter(|run| run.event_id == event_id && run.source == call.source).count();
        let run =
            Run { at: self.clock.now(), source: call.source.to_owned(), tenant: call.tenant.to_owned(), event_id };
        log.runs.push(run);
        (Active(self.log.clone(), keys), before)
    }
}

impl Scripts for Plays {
    fn run<'a>(&'a self, call: ScriptCall<'a>) -> BoxFuture<'a, ScriptResult> {
        Box::pin(async move {
            let (active, before) = self.begin(&call);
            let (word, number) = call.source.split_once(' ').unwrap_or((call.source, "1000"));
            let decided = |word: &str| Ok(Object::from_iter([("decision".to_owned(), json!(word))]));
            if word == "says" {
                let wants = json!({"decision": number, "additionalContext": "look", "updatedInput": {"rawInput": "x"}});
                let Value::Object(wants) = wants else { unreachable!() };
                return ScriptResult { returned: Ok(wants), log: String::new(), waited: Duration::ZERO };
            }
            let number: u64 = number.parse().unwrap();
            let failed = || Err(ScriptFailure::Failed("Error: no".into()));
            let allow = || decided("allow");
            let returned = match word {
                "fail" if (before as u64) < number => failed(),
                "sleep" => match tokio::time::timeout(call.timeout, tokio::time::sleep(secs(number))).await {
                    Ok(()) => allow(),
                    Err(_) => Err(ScriptFailure::TimedOut { after: call.timeout }),
                },
                "panic" => panic!("on purpose"),
                "stuck" => std::future::pending().await,
                _ => allow(),
            };
            drop(active);
            ScriptResult { returned, log: String::new(), waited: Duration::ZERO }
        })
    }

    fn check<'a>(&'a self, _source: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

struct NoSecrets;

impl Vault for NoSecrets {
    fn open(&self, _hook: &HookId, _tenant: &TenantId, _path: &str, text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }
}

/// When a store answers for the rows of observers.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Rows {
    AtOnce,
    Never,
}

/// Waits for a fault to pass that does not.
struct Waits {
    store: Arc<MemoryRules>,
    waiting: Mutex<Vec<OnKept>>,
}

impl ExecutionStore for Waits {
    fn keep_executions(&self, _executions: Vec<Execution>, done: OnKept) {
        self.waiting.lock().unwrap().push(done);
    }

    fn executions(&self, query: &ExecutionQuery) -> Result<Vec<Execution>, StoreError> {
        self.store.executions(query)
    }

    fn execution(&self, of: &TenantScope, id: &str) -> Result<Option<Execution>, StoreError> {
        self.store.execution(of, id)
    }

    fn note_read(&self, execution: &Execution, by: &Actor) -> Result<(), StoreError> {
        self.store.note_read(execution, by)
    }

    fn forget(&self, rows: Timestamp, details: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.store.forget(rows, details, limit)
    }
}

/// Keeps the rows that stores make of the records of events.
struct OfEvents(Arc<MemoryRules>);

impl RecordStore for OfEvents {
    fn keep(&self, records: Vec<EventRecord>, done: OnKept) {
        let rows = records.iter().flat_map(|event| event.hooks.iter().filter_map(|hook| Execution::of(event, &hook)));
        self.0.keep_executions(rows.collect(), done);
    }

    fn find(&self, _query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        Ok(Vec::new())
    }
}

/// What all hosts share: it outlives them.
pub(crate) struct World {
    pub(crate) store: Arc<MemoryRules>,
    pub(crate) log: Arc<Mutex<Log>>,
}

/// One process.
pub(crate) struct Host {
    pub(crate) engine: Engine,
    pub(crate) pool: Arc<ObserverPool>,
    pub(crate) rule_cache: Arc<RuleCache>,
    pub(crate) clock: Arc<Ticking>,
    /// What is told of its runs.
    pub(crate) told: Arc<Told>,
}

/// A process, as it is when a test says nothing else.
pub(crate) struct Plan {
    pub(crate) durable: bool,
    pub(crate) limits: PoolLimits,
    /// How long after the beginning of the world it starts, in seconds.
    pub(crate) after: u64,
    pub(crate) judge: Option<Arc<dyn Evaluator>>,
    pub(crate) rows: Rows,
}

impl Default for Plan {
    fn default() -> Self {
        Self { durable: true, limits: PoolLimits::default(), after: 0, judge: None, rows: Rows::AtOnce }
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let store = Arc::new(MemoryRules::new());
        let acme = Tenant {
            id: TenantId::from(ACME),
            slug: "acme".into(),
            name: "Acme".into(),
            created_at: "2026-01-01T00:00:00Z".into(),
        };
        store.add_tenant(&acme).unwrap();
        Self { store, log: Arc::default() }
    }

    /// A hook on the end of turns of `tenant` that runs `source`.
    pub(crate) fn hook(&self, tenant: &str, source: &str) -> Rule {
        let hook = Rule {
            id: HookId::fresh(),
            tenant_id: TenantId::from(tenant),
            agent_ids: Vec::new(),
            event: CheckpointKind::Stop,
            handler_type: HandlerType::Script,
            scope: HookScope::Tenant,
            name: source.into(),
            config: Object::from_iter([("source".to_owned(), json!(source))]),
            matcher: String::new(),
            if_expr: String::new(),
            timeout_ms: 10_000,
            on_timeout: Fallback::Allow,
            priority: 0,
            enabled: true,
            version: 1,
            source: Source::User,
            may_rewrite: false,
            breaker: BreakerPolicy::Off,
            on_trip: Fallback::Allow,
            tripped_at: None,
            disabled_reason: String::new(),
            metadata: Object::new(),
            created_by: None,
            created_at: "2026-11-22T08:00:00Z".into(),
            updated_at: "2026-11-22T08:00:00Z".into(),
        };
        self.change(RuleChange::Create(Box::new(hook.clone())));
        hook
    }

    pub(crate) fn change(&self, change: RuleChange) {
        let by = Actor { name: "ann".into(), at: START.parse().unwrap(), reason: String::new() };
        self.store.change(vec![change], &by).unwrap();
    }

    /// Starts a process. Needs a runtime whose time stands still.
    pub(crate) fn host(&self, plan: Plan) -> Host {
        let told = Arc::new(Told::default());
        let tracer = Arc::new(Tracer::new(told.clone()));
        let evidence = Evidence::new(Arc::new(OfEvents(self.store.clone())), Vec::new(), Deadlines::default());
        let engine = Engine::keeping(evidence.traced_by(tracer.clone()));
        let from = START.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(plan.after.cast_signed());
        let clock = Arc::new(Ticking { from, began: Instant::now() });
        let tasks = engine.tasks().clone();
        let outbox = Outbox { store: self.store.clone(), clock: clock.clone() };
        let rows: Arc<dyn ExecutionStore> = match plan.rows {
            Rows::AtOnce => self.store.clone(),
            Rows::Never => Arc::new(Waits { store: self.store.clone(), waiting: Mutex::default() }),
        };
        let pool = match plan.durable {
            true => ObserverPool::durable(plan.limits, rows, tasks, outbox),
            false => ObserverPool::new(plan.limits, rows, tasks),
        };
        pool.trace_by(tracer);
        let parts = RuleServices {
            edition: Edition::Lite,
            tasks: engine.tasks().clone(),
            deadlines: engine.deadlines().clone(),
            commands: CommandEnv {
                vars: Vec::new(),
                operator_env: Vec::new(),
                secrets: BTreeSet::new(),
                workspace_of: Arc::new(|_| std::env::temp_dir()),
            },
            exchange: HttpSender::new(KeepAlive::new(Egress::new(Vec::new())), engine.deadlines().clone()),
            scripts: Arc::new(Plays { log: self.log.clone(), clock: clock.clone() }),
            evaluator: plan.judge,
            budgets: self.store.clone(),
            vault: Arc::new(NoSecrets),
            slug_of: Arc::new(|_| None),
            judges: Default::default(),
            judge: Default::default(),
            pool: pool.clone(),
        };
        let agents = Arc::new(|| vec![AgentId::from("main")]);
        // A store that is down is a test's own doing.
        let (rule_cache, _) = RuleCache::open(self.store.clone(), engine.live().clone(), Arc::new(parts), agents);
        Host { engine, pool, rule_cache, clock, told }
    }

    pub(crate) fn runs(&self) -> Vec<Run> {
        self.log.lock().unwrap().runs.clone()
    }

    /// The seconds between the runs.
    pub(crate) fn gaps(&self) -> Vec<i64> {
        self.runs().windows(2).map(|pair| pair[1].at.duration_since(pair[0].at).as_secs()).collect()
    }

    /// The most jobs of `tenant` that ever ran at once.
    pub(crate) fn most_of(&self, tenant: &str) -> usize {
        self.log.lock().unwrap().most[tenant]
    }

    pub(crate) fn rows(&self) -> Vec<Execution> {
        let query = ExecutionQuery { limit: 10_000, ..ExecutionQuery::of(TenantScope::All) };
        self.store.executions(&query).unwrap()
    }

    /// What the rows say, in a word each.
    pub(crate) fn decisions(&self) -> Vec<(Decision, u32, Option<String>)> {
        self.rows().into_iter().map(|row| (row.decision, row.retry, row.error)).collect()
    }

    /// Everything that is in the outbox. It is not to be used afterwards.
    pub(crate) fn left(&self) -> Vec<OutboxJob> {
        let end: Timestamp = "2099-01-01T00:00:00Z".parse().unwrap();
        self.store.take_due(end, end, 10_000).unwrap()
    }
}

impl Host {
    /// Tells the hooks of `tenant` that a turn is over.
    pub(crate) fn stop(&self, tenant: &str) {
        let who = Identity { tenant_id: TenantId::from(tenant), ..Identity::top("main", "s", TurnId::fresh()) };
        let what = ObservedEvent::Stop {
            reply: "done".into(),
            iterations: 1,
            usage: Usage::default(),
            duration: Duration::ZERO,
        };
        self.engine.dispatcher(who).tell(what);
    }

    /// Ends the process as its end should be. Says how long that took, in seconds.
    pub(crate) async fn close(&self) -> u64 {
        let began = Instant::now();
        self.pool.close();
        self.engine.close().await;
        began.elapsed().as_secs()
    }
}

/// A process of its own: what `work` leaves undone ends with it.
pub(crate) fn process<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(work)
}
