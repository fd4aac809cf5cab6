//! What counts towards the cap of a judge.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dialects::agent::judge::Question;
use domain::agent_hook::{AgentHook, HandlerType};
use domain::checkpoint::{CheckpointKind, PreToolUse};
use domain::id::{DEFAULT_TENANT, TenantId, TurnId};
use domain::identity::Identity;
use domain::json::Object;
use domain::llm::{LlmReply, Usage};
use domain::message::CallPart;
use domain::ruling::Ruling;
use domain::store::{BudgetStore as _, HookChange};
use domain::tool::ToolCall;
use futures_util::future::BoxFuture;
use pintle_engine::handlers::agent::{Evaluator, Judged, Wanted};
use pintle_engine::{Clock as _, TurnCx, domain};
use serde_json::json;

use super::stage::{Host, Plan, World};

/// A judge that allows whatever it is asked.
#[derive(Default)]
struct Mild(AtomicUsize);

impl Evaluator for Mild {
    fn judge<'a>(&'a self, _wanted: Wanted<'a>, _question: Question) -> BoxFuture<'a, Result<Judged, String>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let decide = json!({
            "id": "call_1", "type": "function",
            "function": {"name": "decide", "arguments": "{\"decision\":\"allow\",\"reason\":\"fine\"}"},
        });
        let call: CallPart = serde_json::from_value(decide).unwrap();
        let usage = Usage { prompt_tokens: 90, completion_tokens: 10, total_tokens: 100 };
        let reply = LlmReply { usage: Some(usage), ..LlmReply::calls(vec![call]) };
        Box::pin(async move { Ok(Judged { reply, model: "fake/judge".into() }) })
    }
}

async fn gate(host: &Host, turn: &TurnId, command: &str) -> String {
    let who = Identity::top("main", "s", turn.clone());
    let arguments = Object::from_iter([("cmd".to_owned(), json!(command))]);
    let call = ToolCall { id: "c1".into(), tool: "exec".into(), raw_tool: "exec".into(), arguments };
    match host.engine.dispatcher().check(&TurnCx::new(who), PreToolUse { call }).await.1 {
        Ruling::Proceed => "allow".into(),
        Ruling::Deny(denied) => denied.reason.to_string(),
        Ruling::Ask { .. } | Ruling::Respond { .. } | Ruling::Abort(_) => "something else".into(),
    }
}

#[tokio::test(start_paused = true)]
async fn only_calls_of_the_judge_count() {
    let world = World::new();
    let hook = AgentHook {
        event: CheckpointKind::PreToolUse,
        handler_type: HandlerType::Prompt,
        matcher: "exec".into(),
        config: json!({"prompt_template": "be kind", "max_invocations_per_turn": 2}).as_object().unwrap().clone(),
        ..world.hook(DEFAULT_TENANT, "ok")
    };
    world.change(HookChange::Update { hook: Box::new(hook), if_version: None, action: "updated" });
    let judge = Arc::new(Mild::default());
    let host = world.host(Plan { durable: false, judge: Some(judge.clone()), ..Plan::default() });
    let (turn, tenant) = (TurnId::fresh(), TenantId::default_tenant());
    world.store.set_budget(&tenant, 0, host.clock.now()).unwrap();
    for _ in 0..3 {
        assert_eq!(gate(&host, &turn, "a").await, "tenant budget exceeded");
    }
    world.store.break_down("the disk is gone");
    assert!(gate(&host, &turn, "a").await.contains("failed"));
    world.store.mend();
    world.store.set_budget(&tenant, 1_000_000, host.clock.now()).unwrap();
    assert_eq!(judge.0.load(Ordering::SeqCst), 0);
    for (command, said) in
        [("a", "allow"), ("a", "allow"), ("b", "allow"), ("c", "max_invocations_per_turn (2) reached"), ("a", "allow")]
    {
        assert_eq!(gate(&host, &turn, command).await, said, "{command}");
    }
    assert_eq!(judge.0.load(Ordering::SeqCst), 2, "an answer that is known is no call");
    let used = world.store.budget(&tenant, host.clock.now()).unwrap().used;
    assert_eq!(used, 200, "what was reserved and not spent is given back");
}
