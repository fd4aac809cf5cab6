//! Rules in turns: what comes in the middle of one, messages and rules alike.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use pintle_agent::{Conversation, TurnHandle};
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::{AgentId, HookId, TenantId};
use pintle_domain::json::{Object, Value, json};
use pintle_domain::llm::{LlmReply, LlmRequest};
use pintle_domain::rule::{Edition, HookScope, Rule, Source};
use pintle_domain::store::{Actor, RuleChange, RuleStore as _};
use pintle_domain::tool::ToolOutput;
use pintle_egress::{Egress, KeepAlive};
use pintle_engine::Engine;
use pintle_rules::builtin::builtins;
use pintle_rules::cache::RuleCache;
use pintle_rules::handler::{
    CommandEnv, ObserverPool, PoolLimits, RuleServices, ScriptCall, ScriptFailure, ScriptResult, Scripts, Vault,
};
use pintle_rules::http::HttpSender;
use pintle_testkit::rules::MemoryRules;
use regex::Regex;

use crate::hooks::OwnTool;
use crate::test_agents::{Mind, TestAgents, TestAgentsParts, call, said};

const PHONE: &str = "15551234567";
const CLEAN: &str = "[REDACTED_PHONE]";

/// Plays the scripts that these tests have: the redactor, and others that say what stands in them.
#[derive(Default)]
struct Plays {
    /// What each script was asked about, with what stood in it.
    asked: Mutex<Vec<(String, Value)>>,
}

fn played(source: &str, event: &Value) -> Result<Object, ScriptFailure> {
    let answer = if source.contains(CLEAN) {
        let text = event["rawInput"].as_str().unwrap_or_default();
        let clean = Regex::new("[0-9]{8,15}").unwrap().replace_all(text, CLEAN);
        json!({"decision": "allow", "updatedInput": {"rawInput": clean}})
    } else {
        serde_json::from_str(source).map_err(|error| ScriptFailure::Failed(error.to_string()))?
    };
    Ok(answer.as_object().unwrap().clone())
}

impl Scripts for Plays {
    fn run<'a>(&'a self, call: ScriptCall<'a>) -> BoxFuture<'a, ScriptResult> {
        let event: Value = serde_json::from_str(call.event).unwrap();
        let returned = played(call.source, &event);
        self.asked.lock().unwrap().push((call.source.to_owned(), event));
        Box::pin(async { ScriptResult { returned, log: String::new(), waited: std::time::Duration::ZERO } })
    }

    fn check<'a>(&'a self, _source: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}

/// There are no secrets in these tests.
struct NoSecrets;

impl Vault for NoSecrets {
    fn open(&self, _: &HookId, _: &TenantId, _: &str, _: &str) -> Result<String, String> {
        Err("decrypt failed: there is no key".into())
    }
}

/// Rules of a store, in force in one engine.
struct Rules {
    store: Arc<MemoryRules>,
    rule_cache: Arc<RuleCache>,
    scripts: Arc<Plays>,
}

fn by() -> Actor {
    Actor { name: "test".into(), at: jiff::Timestamp::now(), reason: String::new() }
}

impl Rules {
    fn of(engine: &Engine) -> Arc<Self> {
        let (store, scripts) = (Arc::new(MemoryRules::new()), Arc::<Plays>::default());
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
            scripts: scripts.clone(),
            evaluator: None,
            budgets: store.clone(),
            vault: Arc::new(NoSecrets),
            slug_of: Arc::new(|_| None),
            judges: Default::default(),
            judge: Default::default(),
            pool: ObserverPool::new(PoolLimits::default(), store.clone(), engine.tasks().clone()),
        };
        let agents = Arc::new(|| vec![AgentId::from("main")]);
        let (rule_cache, read) = RuleCache::open(store.clone(), engine.live().clone(), Arc::new(parts), agents);
        read.unwrap();
        Arc::new(Self { store, rule_cache, scripts })
    }

    fn change(&self, change: RuleChange) {
        self.store.change(vec![change], &by()).unwrap();
        self.rule_cache.reload().unwrap();
    }

    fn add(&self, row: Rule) -> HookId {
        let id = row.id.clone();
        self.change(RuleChange::Create(Box::new(row)));
        id
    }
}

/// The redactor of messages, switched on.
fn redactor() -> Rule {
    let shipped = builtins().into_iter().find(|builtin| builtin.id == "pii-redactor").expect("it is shipped");
    let mut rows = shipped.rows(jiff::Timestamp::now()).into_iter();
    let row = rows.find(|row| row.event == CheckpointKind::UserPromptSubmit).expect("it reads messages");
    Rule { enabled: true, ..row }
}

/// A script of the default tenant that says `answer`.
fn script(name: &str, event: CheckpointKind, answer: &Value) -> Rule {
    let mut config = Object::new();
    config.insert("source".into(), answer.to_string().into());
    Rule {
        id: HookId::fresh(),
        tenant_id: TenantId::default_tenant(),
        scope: HookScope::Tenant,
        source: Source::User,
        name: name.into(),
        priority: 0,
        event,
        config,
        ..redactor()
    }
}

/// Three calls, one after the other, and a last word.
fn working(request: &LlmRequest, n: usize) -> LlmReply {
    match n {
        0..3 => LlmReply::calls(vec![call(n, "work", &json!({}))]),
        _ => LlmReply::text(format!("done after {} messages", request.messages.len())),
    }
}

/// A crew whose model calls `work` three times, which does `at` with the number of the run.
fn agents_at_work(at: impl Fn(usize) + Send + Sync + 'static) -> TestAgents {
    let runs = Mutex::new(0);
    let work = OwnTool::new(
        "work",
        false,
        Box::new(move |_, _| {
            let mut runs = runs.lock().unwrap();
            *runs += 1;
            at(*runs);
            Box::pin(std::future::ready(ToolOutput::ok("worked")))
        }),
    );
    let model = Mind::quick(|_, request| {
        let calls = request.messages.iter().filter(|message| !message.get().tool_calls.is_empty()).count();
        working(request, calls)
    });
    TestAgentsParts::of(model, &["main"]).own(work).test_agents()
}

/// What is kept, told and sent in the turns of a crew. Of a change, that is its patch.
fn everything(test_agents: &TestAgents) -> String {
    let records = test_agents.seen.records.lock().unwrap();
    let hooks = records.iter().flat_map(|event| &event.hooks);
    let kept: Vec<String> = hooks
        .map(|record| format!("{:?} {:?}", record.outcome, record.change.as_ref().map(|change| change.patch())))
        .collect();
    let (told, asked) = (test_agents.seen.notices.lock().unwrap(), test_agents.model.asked.lock().unwrap());
    format!("{kept:?}{told:?}{asked:?}{:?}", test_agents.seen.for_user.lock().unwrap())
}

/// What everybody saw of a turn in the middle of which somebody says something, with these rules.
async fn steered(rules: Vec<Rule>) -> (Vec<String>, String, Vec<(String, Value)>) {
    let turn_handle = TurnHandle::default();
    let by_tool = turn_handle.clone();
    let test_agents = agents_at_work(move |run| {
        if run == 1 {
            by_tool.steer(format!("call {PHONE}")).unwrap();
        }
    });
    let force = Rules::of(&test_agents.engine);
    rules.into_iter().for_each(|row| drop(force.add(row)));
    let mut conversation = Conversation::new("s");
    test_agents.turn_by(&mut conversation, "go", &turn_handle).await;
    let asked = force.scripts.asked.lock().unwrap().clone();
    (said(&conversation), everything(&test_agents), asked)
}

#[tokio::test]
async fn a_message_in_the_middle_of_a_turn_is_redacted_like_the_first() {
    let sees = || script("sees", CheckpointKind::UserPromptSubmit, &json!({"decision": "allow"}));
    let (said, everything, asked) = steered(vec![redactor(), sees()]).await;
    assert!(said.contains(&format!("user: call {CLEAN}")), "{said:?}");
    assert!(!everything.contains(PHONE), "{everything}");
    let seen: Vec<_> = asked.iter().filter(|(source, _)| !source.contains(CLEAN)).map(|(_, event)| event).collect();
    let told: Vec<_> = seen.iter().map(|event| (&event["inputKind"], &event["rawInput"])).collect();
    assert_eq!(told, [(&json!("first"), &json!("go")), (&json!("steering"), &json!(format!("call {CLEAN}")))]);
    let (said, everything, asked) = steered(vec![sees()]).await;
    assert!(said.contains(&format!("user: call {PHONE}")) && everything.contains(PHONE), "{said:?}");
    assert_eq!(asked[1].1["rawInput"], format!("call {PHONE}"));
}

#[tokio::test]
async fn a_message_that_is_blocked_in_the_middle_of_a_turn_goes_no_further() {
    let blocks = json!({"decision": "block", "reason": "not now"});
    let row = Rule { if_expr: "!first_prompt".into(), ..script("quiet", CheckpointKind::UserPromptSubmit, &blocks) };
    let (said, everything, asked) = steered(vec![row]).await;
    assert!(!said.concat().contains("call") && !everything.contains(PHONE), "{everything}");
    assert!(everything.contains("hook blocked user_prompt_submit: quiet: not now"), "{everything}");
    assert_eq!((asked.len(), said.last().unwrap().as_str()), (1, "assistant: done after 7 messages"));
}

#[tokio::test]
async fn what_hooks_add_to_a_message_in_the_middle_stands_behind_it() {
    let adds = json!({"decision": "allow", "additionalContext": "it is Sunday"});
    let row = Rule { if_expr: "!first_prompt".into(), ..script("adds", CheckpointKind::UserPromptSubmit, &adds) };
    let (said, ..) = steered(vec![row]).await;
    let at = said.iter().position(|line| *line == format!("user: call {PHONE}")).unwrap();
    assert_eq!(said[at + 1], "system: [hook \"adds\"] it is Sunday");
}

#[tokio::test]
async fn a_rule_that_comes_and_goes_in_the_middle_of_a_turn_holds_at_the_next_call() {
    let rules: Arc<Mutex<Option<Arc<Rules>>>> = Arc::default();
    let force = rules.clone();
    let test_agents = agents_at_work(move |run| {
        if run == 1 {
            let refuses =
                script("refuses", CheckpointKind::PreToolUse, &json!({"decision": "block", "reason": "late"}));
            force.lock().unwrap().as_ref().unwrap().add(refuses);
        }
    });
    *rules.lock().unwrap() = Some(Rules::of(&test_agents.engine));
    let mut conversation = Conversation::new("s");
    test_agents.turn(&mut conversation, "go").await;
    let results: Vec<String> = said(&conversation).into_iter().filter(|line| line.starts_with('c')).collect();
    let refused = |id: &str| format!("{id}: Hook blocked: pre_tool_use: refuses: late");
    assert_eq!(results, ["c0: worked".to_owned(), refused("c1"), refused("c2")]);
    let id = rules.lock().unwrap().as_ref().unwrap().store.rules().unwrap().hooks[0].id.clone();
    rules.lock().unwrap().as_ref().unwrap().change(RuleChange::delete(id));
    let mut conversation = Conversation::new("t");
    let report = test_agents.turn(&mut conversation, "go").await;
    assert_eq!(report.reply, "done after 7 messages");
    assert!(!said(&conversation).concat().contains("Hook blocked"), "it is gone");
}
