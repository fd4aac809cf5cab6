//! A host that is all fakes but for its rule admin and its rule cache.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use pintle_domain::id::{AgentId, HookId, TenantId, TurnId, agent_uuid};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::llm::{LlmReply, Usage};
use pintle_domain::message::CallPart;
use pintle_domain::rule::Edition;
use pintle_domain::store::{RuleStore as _, Tenant};
use pintle_domain::tool::ToolCall;
use pintle_egress::{Allow, Egress, KeepAlive};
use pintle_engine::{Clock, Engine, NullStore};
use pintle_rules::admin::{Caller, CallerRole, RuleAdmin, RuleAdminServices, SealingVault, UnknownAgent};
use pintle_rules::cache::RuleCache;
use pintle_rules::handler::{
    CommandEnv, Evaluator, JudgeChoice, Judgement, ObserverPool, PoolLimits, QuestionSent, RuleServices, ScriptCall,
    ScriptFailure, ScriptResult, Scripts, Vault,
};
use pintle_rules::http::HttpSender;
use pintle_rules::judge::JudgeQuestion;
use pintle_testkit::rules::MemoryRules;

use crate::http_exchange::time::StillTime;

pub(crate) const ACME: &str = "0193a5b0-7000-7000-8000-00000000000a";
pub(crate) const UNKNOWN: &str = "0193a5b0-7000-7000-8000-0000000000ff";

/// The time that a test says.
pub(crate) struct StillClock(Mutex<jiff::Timestamp>);

impl StillClock {
    pub(crate) fn pass(&self, seconds: i64) {
        let mut now = self.0.lock().unwrap();
        *now += jiff::SignedDuration::from_secs(seconds);
    }
}

impl Clock for StillClock {
    fn now(&self) -> jiff::Timestamp {
        *self.0.lock().unwrap()
    }
}

/// Writes down where a secret belongs, and opens it only there.
#[derive(Default)]
pub(crate) struct Safe {
    pub(crate) has_no_key: AtomicBool,
}

fn place(hook: &HookId, tenant: &TenantId, path: &str) -> String {
    format!("aes-gcm:fake:{hook}/{tenant}/{path}/")
}

impl SealingVault for Safe {
    fn seal(&self, hook: &HookId, tenant: &TenantId, path: &str, plain: &str) -> Result<String, String> {
        if self.has_no_key.load(Ordering::SeqCst) {
            return Err("encryption key not configured".into());
        }
        let turned: String = plain.chars().rev().collect();
        Ok(format!("{}{turned}", place(hook, tenant, path)))
    }
}

impl Vault for Safe {
    fn open(&self, hook: &HookId, tenant: &TenantId, path: &str, text: &str) -> Result<String, String> {
        let turned = text.strip_prefix(&place(hook, tenant, path)).ok_or("decrypt failed: another place")?;
        Ok(turned.chars().rev().collect())
    }
}

/// Runs scripts that are nothing but `return` and JSON.
#[derive(Default)]
pub(crate) struct Returning {
    pub(crate) events: Mutex<Vec<Value>>,
    /// Whether other texts are scripts, too: those that block once so many of them have run.
    pub(crate) blocks_after: Mutex<Option<usize>>,
    /// What happens while the next script is looked at.
    pub(crate) meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

fn returned(source: &str) -> Result<Object, String> {
    let text = source.strip_prefix("return ").ok_or("Line 1:1 expected return")?;
    serde_json::from_str(text).map_err(|error| format!("Line 1:8 {error}"))
}

impl Scripts for Returning {
    fn run<'a>(&'a self, call: ScriptCall<'a>) -> BoxFuture<'a, ScriptResult> {
        let mut events = self.events.lock().unwrap();
        events.push(serde_json::from_str(call.event).unwrap());
        let returned = match returned(call.source) {
            Err(_) if self.blocks_after.lock().unwrap().is_some() => {
                let is_last = Some(events.len()) == *self.blocks_after.lock().unwrap();
                let said = json!({"decision": if is_last { "block" } else { "allow" }});
                Ok(said.as_object().unwrap().clone())
            }
            Ok(object) if object.contains_key("throw") => Err(ScriptFailure::Threw("Error: thrown".into())),
            Ok(object) if object.contains_key("hang") => Err(ScriptFailure::TimedOut { after: call.timeout }),
            Ok(object) => Ok(object),
            Err(why) => Err(ScriptFailure::Failed(why)),
        };
        Box::pin(async { ScriptResult { returned, log: "log: seen".into(), waited: std::time::Duration::ZERO } })
    }

    fn check<'a>(&'a self, source: &'a str) -> BoxFuture<'a, Result<(), String>> {
        if let Some(meanwhile) = self.meanwhile.lock().unwrap().take() {
            meanwhile();
        }
        let any = self.blocks_after.lock().unwrap().is_some();
        Box::pin(async move { if any { Ok(()) } else { returned(source).map(drop) } })
    }
}

/// A judge that blocks whatever it is asked.
#[derive(Default)]
pub(crate) struct Stern {
    pub(crate) asked: Mutex<Vec<String>>,
}

impl Evaluator for Stern {
    fn judge<'a>(
        &'a self,
        wanted: JudgeChoice<'a>,
        question: JudgeQuestion,
        _sent: &'a QuestionSent,
    ) -> BoxFuture<'a, Result<Judgement, String>> {
        let request = question.to(wanted.model);
        self.asked.lock().unwrap().push(json!(request.messages).to_string());
        let decide = json!({
            "id": "call_1", "type": "function",
            "function": {"name": "decide", "arguments": "{\"decision\":\"block\",\"reason\":\"too risky\"}"},
        });
        let call: CallPart = pintle_domain::json::from_value(decide).unwrap();
        let usage = Usage { prompt_tokens: 90, completion_tokens: 10, total_tokens: 100 };
        let reply = LlmReply { usage: Some(usage), ..LlmReply::calls(vec![call]) };
        Box::pin(async move { Ok(Judgement { reply, model: "fake/judge".into() }) })
    }
}

/// The host.
pub(crate) struct Stage {
    pub(crate) store: Arc<MemoryRules>,
    pub(crate) engine: Engine,
    pub(crate) parts: Arc<RuleServices>,
    pub(crate) rule_cache: Arc<RuleCache>,
    pub(crate) rule_admin: RuleAdmin,
    pub(crate) clock: Arc<StillClock>,
    pub(crate) safe: Arc<Safe>,
    pub(crate) scripts: Arc<Returning>,
    pub(crate) judge: Arc<Stern>,
    pub(crate) folder: tempfile::TempDir,
}

/// What differs between hosts.
pub(crate) struct Plan {
    pub(crate) edition: Edition,
    pub(crate) allow: Vec<Allow>,
    /// Whether the store can be read when the host starts.
    pub(crate) is_down: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self { edition: Edition::Lite, allow: Vec::new(), is_down: false }
    }
}

pub(crate) fn agents() -> Vec<AgentId> {
    vec![AgentId::from("main"), AgentId::from("helper")]
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::planned(Plan::default())
    }

    pub(crate) fn planned(plan: Plan) -> Self {
        let store = Arc::new(MemoryRules::new());
        let acme = Tenant {
            id: TenantId::from(ACME),
            slug: "acme".into(),
            name: "Acme".into(),
            created_at: "2026-01-01T00:00:00Z".into(),
        };
        store.add_tenant(&acme).unwrap();
        if plan.is_down {
            store.break_down("the disk is gone");
        }
        let engine = Engine::new(Arc::new(NullStore), Vec::new());
        let (safe, scripts, judge) = (Arc::<Safe>::default(), Arc::<Returning>::default(), Arc::<Stern>::default());
        let folder = tempfile::tempdir().unwrap();
        let egress = Egress::new(plan.allow);
        let parts =
            Arc::new(parts(&store, &engine, (&safe, &scripts, &judge), (plan.edition, &egress, folder.path().into())));
        let (rule_cache, _) = RuleCache::open(store.clone(), engine.live().clone(), parts.clone(), Arc::new(agents));
        let clock = Arc::new(StillClock(Mutex::new("2026-11-22T09:00:00Z".parse().unwrap())));
        let rule_admin = RuleAdmin::new(RuleAdminServices {
            hooks: store.clone(),
            executions: store.clone(),
            budgets: store.clone(),
            rule_cache: rule_cache.clone(),
            parts: parts.clone(),
            vault: safe.clone(),
            agents: Arc::new(agents),
            known_of: Arc::new(|tenant, agent| {
                Arc::new(UnknownAgent { agent_uuid: agent_uuid(tenant, agent.as_str()) })
            }),
            check_url: Arc::new(move |slug, url| {
                egress.for_tenant(slug).check_url(url).map(drop).map_err(|error| error.to_string())
            }),
            owns_session: Arc::new(|by, session| session.starts_with(&format!("{}:", by.name))),
            clock: clock.clone(),
        });
        Self { store, engine, parts, rule_cache, rule_admin, clock, safe, scripts, judge, folder }
    }

    /// A tool call of an agent of `tenant` at its gates: what came of it, in words.
    pub(crate) async fn gate(&self, tenant: &str, tool: &str) -> String {
        use pintle_domain::checkpoint::PreToolUse;
        use pintle_domain::ruling::Ruling;
        let who = Identity { tenant_id: TenantId::from(tenant), ..Identity::top("main", "s", TurnId::fresh()) };
        let hooks = self.engine.dispatcher(who);
        let call = ToolCall { id: "c1".into(), tool: tool.into(), raw_tool: tool.into(), arguments: Object::new() };
        let (_, ruling) = hooks.check(PreToolUse { call }).await;
        match ruling {
            Ruling::Proceed => "allow".into(),
            Ruling::Deny(denied) => format!("block: {}", denied.reason),
            Ruling::Ask { why, .. } => format!("ask: {why}"),
            Ruling::Respond { .. } | Ruling::Abort(_) => "something else".into(),
        }
    }

    /// The payload of a method, which must succeed.
    pub(crate) async fn ok(&self, by: &Caller, method: &str, params: Value) -> Value {
        match self.rule_admin.call(by, method, &params).await {
            Ok(payload) => payload,
            Err(refused) => panic!("{method} {params}: {refused}"),
        }
    }

    /// The refusal of a method, as `CODE text`.
    pub(crate) async fn no(&self, by: &Caller, method: &str, params: Value) -> String {
        match self.rule_admin.call(by, method, &params).await {
            Ok(payload) => panic!("{method} {params}: {payload}"),
            Err(refused) => format!("{} {}", refused.code.word(), refused.message),
        }
    }

    /// Creates a hook and gives its id.
    pub(crate) async fn create(&self, by: &Caller, record: Value) -> String {
        self.ok(by, "hooks.create", record).await["hookId"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn get(&self, by: &Caller, id: &str) -> Value {
        self.ok(by, "hooks.get", json!({ "hookId": id })).await["hook"].clone()
    }
}

fn parts(
    store: &Arc<MemoryRules>,
    engine: &Engine,
    (safe, scripts, judge): (&Arc<Safe>, &Arc<Returning>, &Arc<Stern>),
    (edition, egress, folder): (Edition, &Egress, PathBuf),
) -> RuleServices {
    let slug = |tenant: &TenantId| match tenant.as_str() {
        ACME => Some("acme".to_owned()),
        pintle_domain::id::DEFAULT_TENANT => Some("default".to_owned()),
        _ => None,
    };
    let time = StillTime::new();
    RuleServices {
        edition,
        tasks: engine.tasks().clone(),
        deadlines: engine.deadlines().clone(),
        commands: CommandEnv {
            vars: std::env::vars_os().collect(),
            operator_env: Vec::new(),
            secrets: BTreeSet::new(),
            workspace_of: Arc::new(move |_| folder.clone()),
        },
        // Nobody waits for a second attempt.
        exchange: HttpSender::new(KeepAlive::new(egress.clone()), engine.deadlines().clone())
            .with_time(time.clone(), time),
        scripts: scripts.clone(),
        evaluator: Some(judge.clone()),
        budgets: store.clone(),
        vault: safe.clone(),
        slug_of: Arc::new(slug),
        judges: Default::default(),
        judge: Default::default(),
        pool: ObserverPool::new(PoolLimits::default(), store.clone(), engine.tasks().clone()),
    }
}

/// Somebody of a tenant.
pub(crate) fn somebody(tenant: &str, role: CallerRole) -> Caller {
    Caller {
        tenant: TenantId::from(tenant),
        role,
        name: role.word().to_owned(),
        user: None,
        lang: pintle_rules::record::Lang::Api,
    }
}

pub(crate) fn of_default(role: CallerRole) -> Caller {
    somebody(pintle_domain::id::DEFAULT_TENANT, role)
}

pub(crate) fn of_acme(role: CallerRole) -> Caller {
    somebody(ACME, role)
}

/// A script hook on tool calls that says `decision`.
pub(crate) fn script(scope: &str, name: &str, decision: &str) -> Value {
    let source = format!("return {}", json!({ "decision": decision, "reason": format!("{name} says so") }));
    json!({
        "event": "pre_tool_use", "handler_type": "script", "scope": scope, "name": name, "matcher": "^exec$",
        "config": {"source": source},
    })
}

/// An http hook with a secret.
pub(crate) fn http(url: &str) -> Value {
    json!({
        "event": "pre_tool_use", "handler_type": "http", "scope": "tenant", "name": "webhook",
        "config": {"url": url, "headers": {"Authorization": "Bearer opensesame", "X-Plain": "seen"}},
    })
}
