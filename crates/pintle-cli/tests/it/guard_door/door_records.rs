//! The model door: what it does by itself passes the hooks and stands in the record.

use serde_json::{Value, json};

use super::door::{Door, refusal, refusing, wait_for};
use super::models::{ANTHROPIC, GEMINI, OPENAI, RESPONSES, asked_of, guarded_with};
use super::upstream::Came;
use crate::env::{TestEnv, answering};

/// The lines about a request in which a model is told of a refusal.
const RETRY: &str = r#"*'"method":"hook.before_llm"'*'did not run'*"#;

#[test]
fn what_the_door_tells_a_model_by_itself_passes_the_hooks_on_every_wire() {
    let stop = r#"{"action":"abort_turn","reason":"not told to any model"}"#;
    let guarded = guarded_with("", &[("mute", "before_llm", answering(RETRY, stop))]);
    for line in [ANTHROPIC, OPENAI, RESPONSES, GEMINI] {
        let before = guarded.vendor.came().len();
        let (status, _, answer) = guarded.send(line, "", &asked_of(line, "call forbidden").to_string());
        assert!(status == 502 && answer.contains("not told to any model"), "{line} {status} {answer}");
        // The client's own request left, and the one with the refusal did not.
        let came = guarded.vendor.came().split_off(before);
        assert!(came.len() == 1 && !came[0].body.contains("did not run"), "{line} {came:?}");
    }
    wait_for(|| guarded.door.env.pintle(&["why", "--denied"]).out.contains("not told to any model").then_some(()));
}

#[test]
fn a_list_of_turns_names_the_agent_under_guard_and_its_call() {
    let env = TestEnv::new();
    refusing(&env, "*--force*");
    let door = Door::open(env);
    let told = door.told(&door.shell("toolu_1", "git push --force"));
    assert!(refusal(&told).contains("history is not ours"), "{told}");
    let listed = || Some(door.env.pintle(&["why", "--list"]).out).filter(|list| list.contains("(claude)"));
    let list = wait_for(listed);
    assert!(list.contains(r#"exec {"command":"git push --f"#), "{list}");
}

#[test]
fn what_a_hook_makes_of_such_a_request_is_what_leaves() {
    let change = r#"{"action":"modify","request":{"model":"another"}}"#;
    let guarded = guarded_with("", &[("switch", "before_llm", answering(RETRY, change))]);
    let (status, _, answer) = guarded.send(OPENAI, "", &asked_of(OPENAI, "call forbidden").to_string());
    assert_eq!(status, 200, "{answer}");
    let model = |came: Came| serde_json::from_str::<Value>(&came.body).unwrap()["model"].clone();
    let models: Vec<Value> = guarded.vendor.came().into_iter().map(model).collect();
    assert_eq!(models, [json!("m"), json!("another")]);
}

#[test]
fn a_call_whose_arguments_cannot_be_read_is_refused_and_the_record_says_so() {
    let guarded = guarded_with("", &[]);
    for streams in [false, true] {
        let mut body = asked_of(OPENAI, "call unreadable");
        body["stream"] = streams.into();
        let (status, _, answer) = guarded.send(OPENAI, "", &body.to_string());
        assert!(status == 200 && answer.contains("was refused and did not run"), "{status} {answer}");
        assert!(!answer.contains(r#""tool_calls":["#), "{answer}");
    }
    let why = "`unreadable`: its arguments are not one whole JSON object";
    wait_for(|| guarded.door.env.pintle(&["why", "--denied"]).out.contains(why).then_some(()));
}

#[test]
fn what_answers_cost_is_counted_on_every_wire_and_a_budget_that_is_spent_refuses() {
    let guarded = guarded_with("budget = { session_tokens = 20 }", &[]);
    for line in [ANTHROPIC, OPENAI, RESPONSES, GEMINI] {
        for (number, expected) in [(1, 200), (2, 200), (3, 429)] {
            let before = guarded.vendor.came().len();
            let (status, head, answer) = guarded.send(line, "", &asked_of(line, "hello").to_string());
            assert_eq!(status, expected, "{line} {number} {answer}");
            // Each is 10 tokens read and 5 written.
            let is_refused = answer.contains("the budget is spent: this session has spent 30 of 20 tokens");
            assert_eq!(
                (is_refused, guarded.vendor.came().len() - before),
                (expected == 429, usize::from(expected == 200))
            );
            assert!(expected == 200 || head.contains("x-should-retry: false"), "{head}");
        }
    }
    // Another session goes on.
    let (status, _, _) = guarded.send(OPENAI, "X-Pintle-Session: other\n", &asked_of(OPENAI, "hello").to_string());
    assert_eq!(status, 200);
    let shown = wait_for(|| {
        let shown = guarded.door.env.pintle(&["why", "--denied"]).out;
        shown.contains("the budget is spent").then_some(shown)
    });
    assert!(shown.contains("30 of 20 tokens"), "{shown}");
}

#[test]
fn a_budget_in_dollars_counts_what_streams_cost_and_guesses_where_nothing_is_said() {
    let prices = "prices = { \"m*\" = { input_usd = 1000, output_usd = 2000 } }\nbudget = { day_usd = 0.03 }";
    let guarded = guarded_with(prices, &[]);
    // 10 tokens read and 5 written are two cents here, whatever session they are of.
    let ask = |line: &str, session: &str, prompt: &str| {
        let mut body = asked_of(line, prompt);
        body["stream"] = true.into();
        guarded.send(line, &format!("X-Pintle-Session: {session}\n"), &body.to_string())
    };
    assert_eq!(ask(ANTHROPIC, "one", "hello").0, 200);
    assert_eq!(ask(ANTHROPIC, "two", "hello").0, 200);
    let (status, _, answer) = ask(ANTHROPIC, "three", "hello");
    let why = "this key has spent $0.040 of $0.030 today, until midnight UTC";
    assert!(status == 429 && answer.contains(why), "{status} {answer}");
    // At another vendor there is another budget; what does not say its price has none.
    let mut body = asked_of(OPENAI, "hello");
    body["model"] = "other".into();
    let (status, _, answer) = guarded.send(OPENAI, "", &body.to_string());
    assert!(status == 403 && answer.contains("`other` has no price"), "{status} {answer}");
    assert!(!answer.contains("the budget is spent"), "{answer}");
    // A stream that does not say what it cost is guessed by its length.
    assert_eq!(ask(OPENAI, "one", "uncounted").0, 200);
    assert_eq!(ask(OPENAI, "two", "hello").0, 429);
}
