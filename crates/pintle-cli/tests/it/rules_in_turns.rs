//! Rules at work in whole turns of the real program: the seven events, with what each is sent.

use pintle_domain::json::{Value, json};

use self::stage::{Model, calls, dumped, dumps, history, runs, says, whole_turn};
use crate::env::TestEnv;

mod files;
mod gates;
mod judges;
mod slots;
pub(crate) mod stage;

/// The events, in the order in which a turn comes to them.
const EVENTS: [&str; 7] =
    ["session_start", "user_prompt_submit", "subagent_start", "pre_tool_use", "post_tool_use", "subagent_stop", "stop"];

/// An agent that may hand work to a helper.
const TWO_AGENTS: &str = "default = true\ntools = ['exec', 'delegate']\n\
                          [agents.helper]\nmodel = 'here/m'\ntools = ['exec']\n";

/// The members of every payload, in their order.
const MEMBERS: &str = "EventID SessionID TenantID AgentID ToolName ToolInput RawInput Depth HookEvent hook_event_name \
                       event_id tenant_id agent_id agent_key session_id turn_id parent_turn_id iteration tool_call_id \
                       depth channel chat_id trace_id occurred_at tool_name raw_tool_name tool_input raw_input \
                       first_prompt is_test";

/// A turn in which the agent hands work to its helper, which runs a command; and one without a call.
fn two_turns() -> TestEnv {
    let model = Model::giving(vec![
        calls(&[("c1", "delegate", json!({"agent": "helper", "task": "look"}))]),
        runs("c2", "echo hi"),
        says("I looked."),
        says("All done."),
        says("Again."),
    ]);
    let env = model.env(TWO_AGENTS, &EVENTS.map(|event| dumps(event, event, "")).concat());
    assert_eq!(whole_turn(&env, "go"), "All done.\n");
    assert_eq!(whole_turn(&env, "once more"), "Again.\n");
    env
}

/// The payloads of `event`, without ids and times: the members that `names` says, each of which is there.
fn told(env: &TestEnv, event: &str, names: &str) -> Vec<Value> {
    let names: Vec<&str> = names.split_whitespace().collect();
    let one = |payload: &Value| {
        let wanted = names.iter().map(|name| payload.get(name).unwrap_or_else(|| panic!("{event} has `{name}`")));
        let text = Value::Array(wanted.cloned().collect()).to_string();
        serde_json::from_str(&env.redact(&text)).unwrap()
    };
    let mut sent = dumped(env, event);
    // Observers of different sessions are told side by side.
    sent.sort_by_key(|payload| payload["occurred_at"].to_string());
    sent.iter().map(one).collect()
}

#[test]
fn each_of_the_seven_events_fires_its_hook() {
    let env = two_turns();
    let child = "s/delegate:helper:[id]";
    let starts = "SessionID Depth agent_key RawInput first_prompt";
    assert_eq!(
        told(&env, "session_start", starts),
        [json!(["s", 0, "main", "", false]), json!([child, 1, "helper", "", false])]
    );
    let prompts = "SessionID Depth agent_key RawInput raw_input first_prompt input_kind";
    let expected = [
        json!(["s", 0, "main", "go", "go", true, "first"]),
        json!([child, 1, "helper", "look", "look", true, "first"]),
        json!(["s", 0, "main", "once more", "once more", false, "followup"]),
    ];
    assert_eq!(told(&env, "user_prompt_submit", prompts), expected);
    let tools = "session_id depth agent_key ToolName raw_tool_name ToolInput tool_input tool_call_id iteration";
    let (task, echo) = (json!({"agent": "helper", "task": "look"}), json!({"command": "echo hi"}));
    let expected = [
        json!(["s", 0, "main", "delegate", "delegate", task, task, "c1", 1]),
        json!([child, 1, "helper", "exec", "exec", echo, echo, "c2", 1]),
    ];
    assert_eq!(told(&env, "pre_tool_use", tools), expected);
    let results =
        "agent_key ToolName ToolInput tool_call_id tool_output tool_output_truncated is_error error substituted";
    let expected = [
        json!(["helper", "exec", echo, "c2", "hi\n", false, false, null, false]),
        json!(["main", "delegate", task, "c1", "I looked.", false, false, null, false]),
    ];
    assert_eq!(told(&env, "post_tool_use", results), expected);
    let spawned = "SessionID Depth agent_key ToolName ToolInput subagent";
    let named = |more: Value| {
        let mut subagent = json!({"agent_id": "[id]", "agent_key": "helper", "task": "look"});
        subagent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!(["s", 1, "main", "delegate", task, subagent])
    };
    assert_eq!(told(&env, "subagent_start", spawned), [named(json!({}))]);
    assert_eq!(told(&env, "subagent_stop", spawned), [named(json!({ "session_id": child }))]);
    assert_eq!(told(&env, "subagent_stop", "outcome result error"), [json!(["completed", "I looked.", null])]);
    let stops = "SessionID Depth agent_key status final_text iterations";
    let expected = [
        json!([child, 1, "helper", "completed", "I looked.", 2]),
        json!(["s", 0, "main", "completed", "All done.", 2]),
        json!(["s", 0, "main", "completed", "Again.", 1]),
    ];
    assert_eq!(told(&env, "stop", stops), expected);
}

#[test]
fn every_payload_has_the_published_members_and_the_history_a_row() {
    let env = two_turns();
    let mut count = 0;
    for event in EVENTS {
        let more = match event {
            "user_prompt_submit" => "input_kind",
            "post_tool_use" => "tool_output tool_output_truncated is_error error duration_ms substituted",
            "stop" => "status final_text iterations usage duration_ms",
            "subagent_start" => "subagent",
            "subagent_stop" => "subagent outcome result error duration_ms",
            _ => "",
        };
        let expected: Vec<&str> = MEMBERS.split_whitespace().chain(more.split_whitespace()).collect();
        for payload in dumped(&env, event) {
            let members: Vec<&String> = payload.as_object().unwrap().keys().collect();
            assert_eq!(members, expected, "{event}");
            assert_eq!((&payload["HookEvent"], &payload["hook_event_name"]), (&json!(event), &json!(event)));
            for (one, other) in [("EventID", "event_id"), ("TenantID", "tenant_id"), ("AgentID", "agent_id")] {
                assert_eq!(payload[one], payload[other], "{event}");
            }
            count += 1;
        }
    }
    let rows = history(&env);
    assert_eq!((count, rows.len()), (14, 14), "{rows:#?}");
    assert!(rows.iter().all(|row| row["hook_name"] == row["event"] && row["decision"] == "allow"), "{rows:#?}");
}

#[test]
fn all_that_a_turn_left_is_written_and_signed_as_the_program_ends() {
    let env = two_turns();
    let left: Vec<String> = std::fs::read_dir(env.path("data/pintle"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with("-wal"))
        .collect();
    assert_eq!(left, Vec::<String>::new(), "the store was closed");
    let seen = env.pintle(&["audit", "verify"]);
    assert!(
        seen.code == Some(0) && seen.out.contains("proven up to row") && !seen.out.contains("not proven"),
        "{seen}"
    );
}
