//! What counts towards the cap of a judge, and what becomes of what it says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use pintle_domain::checkpoint::{CheckpointKind, PreToolUse};
use pintle_domain::id::{DEFAULT_TENANT, HookId, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::llm::{LlmReply, Usage};
use pintle_domain::message::CallPart;
use pintle_domain::rule::{HandlerType, Rule};
use pintle_domain::ruling::Ruling;
use pintle_domain::store::{Actor, BudgetChange, BudgetStore as _, RuleChange};
use pintle_domain::tool::ToolCall;
use pintle_engine::Clock as _;
use pintle_rules::handler::{Evaluator, JudgeChoice, Judgement, QuestionSent};
use pintle_rules::judge::JudgeQuestion;
use pintle_testkit::log::Log;

use super::stage::{Host, Plan, World};

/// A judge that allows whatever it is asked.
#[derive(Default)]
struct Mild(AtomicUsize);

impl Evaluator for Mild {
    fn judge<'a>(
        &'a self,
        _wanted: JudgeChoice<'a>,
        _question: JudgeQuestion,
        _sent: &'a QuestionSent,
    ) -> BoxFuture<'a, Result<Judgement, String>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let reply = called("decide", r#"{"decision":"allow","reason":"fine"}"#);
        Box::pin(async move { Ok(Judgement { reply, model: "fake/judge".into() }) })
    }
}

/// A judge that says what a test wants it to.
#[derive(Default)]
struct Says(Mutex<Option<LlmReply>>, AtomicUsize);

impl Says {
    fn say(&self, reply: LlmReply) {
        *self.0.lock().unwrap() = Some(reply);
    }

    fn asked(&self) -> usize {
        self.1.load(Ordering::SeqCst)
    }
}

impl Evaluator for Says {
    fn judge<'a>(
        &'a self,
        _wanted: JudgeChoice<'a>,
        _question: JudgeQuestion,
        _sent: &'a QuestionSent,
    ) -> BoxFuture<'a, Result<Judgement, String>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        let reply = self.0.lock().unwrap().clone().unwrap();
        Box::pin(async move { Ok(Judgement { reply, model: "fake/judge".into() }) })
    }
}

/// A judge that fails, or never answers, before its question leaves or after.
struct Fails {
    leaves: bool,
    hangs: bool,
}

impl Evaluator for Fails {
    fn judge<'a>(
        &'a self,
        _wanted: JudgeChoice<'a>,
        _question: JudgeQuestion,
        sent: &'a QuestionSent,
    ) -> BoxFuture<'a, Result<Judgement, String>> {
        Box::pin(async move {
            if self.leaves {
                sent.mark();
            }
            if self.hangs {
                std::future::pending::<()>().await;
            }
            Err("no answer".to_owned())
        })
    }
}

/// An answer that calls the tool `name`, for a hundred tokens.
fn called(name: &str, arguments: &str) -> LlmReply {
    let usage = Usage { prompt_tokens: 90, completion_tokens: 10, total_tokens: 100 };
    LlmReply { usage: Some(usage), ..LlmReply::calls(vec![CallPart::new("call_1", name, arguments)]) }
}

impl World {
    /// A judge in front of `exec` that may be called so often in a turn. Says its id.
    fn judged(&self, most: u32) -> HookId {
        let config = json!({"prompt_template": "be kind", "max_invocations_per_turn": most});
        let hook = Rule {
            event: CheckpointKind::PreToolUse,
            handler_type: HandlerType::Prompt,
            matcher: "exec".into(),
            config: config.as_object().unwrap().clone(),
            ..self.hook(DEFAULT_TENANT, "ok")
        };
        let id = hook.id.clone();
        self.change(RuleChange::Update { hook: Box::new(hook), if_version: None, action: "updated" });
        id
    }
}

fn by(host: &Host) -> Actor {
    Actor { name: "owner".into(), at: host.clock.now(), reason: String::new() }
}

async fn gate(host: &Host, turn: &TurnId, command: &str) -> String {
    let who = Identity::top("main", "s", turn.clone());
    let arguments = Object::from_iter([("cmd".to_owned(), json!(command))]);
    let call = ToolCall { id: "c1".into(), tool: "exec".into(), raw_tool: "exec".into(), arguments };
    match host.engine.dispatcher(who).check(PreToolUse { call }).await.1 {
        Ruling::Proceed => "allow".into(),
        Ruling::Deny(denied) => denied.reason.to_string(),
        Ruling::Ask { .. } | Ruling::Respond { .. } | Ruling::Abort(_) => "something else".into(),
    }
}

#[tokio::test(start_paused = true)]
async fn only_calls_of_the_judge_count() {
    let world = World::new();
    world.judged(2);
    let judge = Arc::new(Mild::default());
    let host = world.host(Plan { durable: false, judge: Some(judge.clone()), ..Plan::default() });
    let (turn, tenant) = (TurnId::fresh(), TenantId::default_tenant());
    world.store.set_budget(&tenant, &BudgetChange::to(0, by(&host))).unwrap();
    for _ in 0..3 {
        let said = gate(&host, &turn, "a").await;
        assert!(said.starts_with("tenant budget exceeded: ") && said.contains(", 0 of 0 left to tenant "), "{said}");
    }
    world.store.break_down("the disk is gone");
    assert!(gate(&host, &turn, "a").await.contains("failed"));
    world.store.mend();
    world.store.set_budget(&tenant, &BudgetChange::to(1_000_000, by(&host))).unwrap();
    assert_eq!(judge.0.load(Ordering::SeqCst), 0);
    for (command, said) in
        [("a", "allow"), ("a", "allow"), ("b", "allow"), ("c", "max_invocations_per_turn (2) reached"), ("a", "allow")]
    {
        assert_eq!(gate(&host, &turn, command).await, said, "{command}");
    }
    assert_eq!(judge.0.load(Ordering::SeqCst), 2, "an answer that is known is not a call");
    let used = world.store.budget(&tenant, host.clock.now()).unwrap().used;
    assert_eq!(used, 200, "what was reserved and not spent is given back");
}

#[tokio::test(start_paused = true)]
async fn what_a_judge_should_not_say_is_a_fault_that_the_log_names() {
    let world = World::new();
    let id = world.judged(100);
    let judge = Arc::new(Says::default());
    let host = world.host(Plan { durable: false, judge: Some(judge.clone()), ..Plan::default() });
    let turn = TurnId::fresh();
    let (log, listening) = Log::begin();
    for (reply, cause, injection) in [
        (LlmReply::text("I would allow that."), "evaluator_no_tool_call", false),
        (LlmReply::text(""), "evaluator_empty_response", false),
        (called("run", r#"{"injection_detected":true}"#), "evaluator_wrong_tool: run", true),
        (called("decide", "{"), "evaluator_args_parse_error: EOF while parsing an object at line 1 column 1", false),
        (
            called("decide", r#"{"decision":"ask ann@example.org","reason":"r","injection_detected":true}"#),
            "evaluator_invalid_decision: \"ask [REDACTED]\"",
            true,
        ),
    ] {
        judge.say(reply);
        let lines =
            log.of("prompt_parse_error", async || assert!(gate(&host, &turn, "same").await.contains("failed: "))).await;
        // The log gets the closed words, people the cause.
        let head = format!("security.hook.prompt_parse_error hook_id={id} tenant={DEFAULT_TENANT} err=");
        let end = format!(" injection_detected={injection}");
        let phrases = ["sent an unreadable reply", "broke the protocol"].map(|phrase| format!("{head}{phrase}{end}"));
        assert!(lines.iter().any(|heard| phrases.iter().any(|line| heard.ends_with(line))), "{lines:#?}");
        let row = world.rows().remove(0);
        assert_eq!((row.decision.word(), row.error.as_deref()), ("error", Some(cause)));
    }
    drop(listening);
    // None of that is an answer that counts the next time.
    let before = judge.asked();
    judge.say(called("decide", r#"{"decision":"allow","reason":"fine","injection_detected":true}"#));
    let said = "the evaluated input tries to instruct the evaluator";
    for _ in 0..2 {
        assert_eq!(gate(&host, &turn, "same").await, said);
    }
    assert_eq!(judge.asked(), before + 1);
    let rows: Vec<Value> = world.rows().into_iter().take(2).map(|row| Value::Object(row.metadata)).collect();
    let kept =
        |row: &Value| ["injection_detected", "cached", "prompt_model", "prompt_tokens"].map(|it| row[it].clone());
    assert_eq!(kept(&rows[0]), [json!(true), json!(true), Value::Null, Value::Null]);
    assert_eq!(kept(&rows[1]), [json!(true), Value::Null, json!("fake/judge"), json!(100)]);
}

#[tokio::test(start_paused = true)]
async fn without_a_word_on_what_it_cost_the_estimate_stands() {
    let world = World::new();
    world.judged(5);
    let judge = Arc::new(Says::default());
    let host = world.host(Plan { durable: false, judge: Some(judge.clone()), ..Plan::default() });
    judge.say(LlmReply { usage: None, ..called("decide", r#"{"decision":"allow","reason":"fine"}"#) });
    assert_eq!(gate(&host, &TurnId::fresh(), "a").await, "allow");
    let tenant = TenantId::default_tenant();
    let used = world.store.budget(&tenant, host.clock.now()).unwrap().used;
    // The question alone has some thousand bytes, a third of which is reserved beside the answer's tokens.
    assert!(used > 512 + 300, "{used}");
    // What would not fit is not asked.
    world.store.set_budget(&tenant, &BudgetChange::to(used * 2 - 1, by(&host))).unwrap();
    let said = gate(&host, &TurnId::fresh(), "b").await;
    let left = format!(", {} of {} left to tenant {DEFAULT_TENANT} until ", used - 1, used * 2 - 1);
    assert!(said.starts_with("tenant budget exceeded: ") && said.contains(&left), "{said}");
    world.store.set_budget(&tenant, &BudgetChange::to(used * 2, by(&host))).unwrap();
    assert_eq!(gate(&host, &TurnId::fresh(), "b").await, "allow");
    assert_eq!(judge.asked(), 2);
    // With that nothing is left, which was said: the books say it once a month.
    let (budget, is_first) = world.store.settle(&tenant, 0, host.clock.now()).unwrap();
    assert_eq!((budget.remaining, is_first), (0, false));
}

#[tokio::test(start_paused = true)]
async fn no_claim_of_a_judge_spends_the_month() {
    let world = World::new();
    world.judged(5);
    let judge = Arc::new(Says::default());
    let host = world.host(Plan { durable: false, judge: Some(judge.clone()), ..Plan::default() });
    let tenant = TenantId::default_tenant();
    world.store.set_budget(&tenant, &BudgetChange::to(1_000_000, by(&host))).unwrap();
    let usage = Usage { prompt_tokens: u64::MAX, completion_tokens: u64::MAX, total_tokens: u64::MAX };
    judge.say(LlmReply { usage: Some(usage), ..called("decide", r#"{"decision":"allow","reason":"fine"}"#) });
    assert_eq!(gate(&host, &TurnId::fresh(), "a").await, "allow");
    // The question has some thousand bytes, and no more tokens than these.
    let used = world.store.budget(&tenant, host.clock.now()).unwrap().used;
    assert!((1_000..20_000).contains(&used), "{used}");
    assert_eq!(gate(&host, &TurnId::fresh(), "b").await, "allow", "the month is not spent");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_booked_for_a_question_that_never_left() {
    for (leaves, hangs, cancelled) in [
        (false, false, false),
        (false, true, false),
        (false, true, true),
        (true, false, false),
        (true, true, false),
        (true, true, true),
    ] {
        let world = World::new();
        world.judged(1);
        let judge = Arc::new(Fails { leaves, hangs });
        let host = world.host(Plan { durable: false, judge: Some(judge), ..Plan::default() });
        let turn = TurnId::fresh();
        let asked = gate(&host, &turn, "a");
        if cancelled {
            tokio::time::timeout(std::time::Duration::from_secs(1), asked).await.unwrap_err();
        } else {
            let said = asked.await;
            // What hangs times out, and this rule lets that pass.
            assert!(if hangs { said == "allow" } else { said.contains("failed: ") }, "{said}");
        }
        host.engine.tasks().close();
        host.pool.close();
        host.engine.close().await;
        let used = world.store.budget(&TenantId::default_tenant(), host.clock.now()).unwrap().used;
        assert_eq!(used > 512, leaves, "leaves {leaves}, hangs {hangs}, cancelled {cancelled}: {used}");
        assert!(leaves || used == 0, "{used}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_cap_counts_no_question_that_never_left() {
    for leaves in [false, true] {
        let world = World::new();
        world.judged(1);
        let host = world.host(Plan {
            durable: false,
            judge: Some(Arc::new(Fails { leaves, hangs: false })),
            ..Plan::default()
        });
        let turn = TurnId::fresh();
        assert!(gate(&host, &turn, "a").await.contains("failed: "));
        assert_eq!(gate(&host, &turn, "a").await.contains("max_invocations_per_turn (1) reached"), leaves);
    }
}
