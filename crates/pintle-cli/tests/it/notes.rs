//! What hooks want the model to read: where it stands, how it is marked, how long it stays.

use std::process::Stdio;

use pintle_domain::id::TenantId;
use pintle_domain::json::{Value, json};
use pintle_domain::session::JournalEntry;
use pintle_domain::store::SessionKey;
use pintle_domain::turn::Fact;
use pintle_testkit::http::{HttpStub, StubAnswer};
use tokio::runtime::Runtime;

use crate::env::{PINTLE, TestEnv};
use crate::rules_in_turns::stage::{Model, calls, command, runs, says, script, turn, whole_turn};

/// The text `text` of the hook `hook` as a model reads it.
fn note(hook: &str, text: &str) -> String {
    format!("<system-reminder>\n[hook \"{hook}\"] {text}\n</system-reminder>")
}

/// What the model read, in one text, of the messages behind number `n`.
fn behind(request: &Value, n: usize) -> String {
    let text = |content: &Value| match content {
        Value::Array(parts) => parts.iter().map(|part| part["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n"),
        content @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            content.as_str().unwrap_or_default().to_owned()
        }
    };
    let messages = request["messages"].as_array().unwrap();
    let behind = messages.iter().skip(n);
    behind
        .map(|message| format!("{}: {}", message["role"].as_str().unwrap(), text(&message["content"])))
        .collect::<Vec<_>>()
        .join("\n")
}

/// A rule that is sent to a server on loopback.
fn http(name: &str, event: &str, more: &str, url: &str) -> String {
    format!(
        "[[hook]]\nname = '{name}'\nevent = '{event}'\nhandler_type = 'http'\nscope = 'tenant'\n{more}\n\
         [hook.config]\nurl = '{url}'\n"
    )
}

/// A rule that asks the same model for its judgement.
fn judge(name: &str, event: &str, more: &str) -> String {
    format!(
        "[[hook]]\nname = '{name}'\nevent = '{event}'\nhandler_type = 'prompt'\nscope = 'tenant'\nif_expr = 'true'\n{more}\n\
         [hook.config]\nprompt_template = 'Allow everything.'\nprovider = 'here'\nmodel = 'm'\n"
    )
}

/// A judge's answer.
fn judged(text: &str) -> StubAnswer {
    let said = json!({"decision": "allow", "reason": "harmless", "additional_context": text});
    calls(&[("d", "decide", said)])
}

/// One rule of each kind for a message and for a call.
fn of_each_kind(url: &str) -> String {
    let asks = "printf '{\"additionalContext\": \"of the command, on the message\"}'";
    let asks_of_call =
        "sed 's/.*\"tool_call_id\":\"\\([^\"]*\\)\".*/{\"additionalContext\": \"of the command, on \\1\"}/'";
    [
        script(
            "s",
            "user_prompt_submit",
            "priority = 40",
            "return { decision: 'allow', additionalContext: 'of the script, on the message' };",
        ),
        command("c", "user_prompt_submit", "priority = 30", asks),
        http("h", "user_prompt_submit", "priority = 20", url),
        judge("j", "user_prompt_submit", "priority = 10"),
        script(
            "s2",
            "pre_tool_use",
            "priority = 40",
            "return { decision: 'allow', additionalContext: `of the script, on ${event.toolCallId}` };",
        ),
        command("c2", "pre_tool_use", "priority = 30", asks_of_call),
        http("h2", "pre_tool_use", "priority = 20", url),
        judge("j2", "pre_tool_use", "priority = 10"),
    ]
    .concat()
}

#[test]
fn every_kind_of_hook_adds_behind_the_message_and_behind_the_batch() {
    let runtime = Runtime::new().unwrap();
    let says_so =
        |what: &str| StubAnswer::json(&json!({"additionalContext": format!("of the server, on {what}")}).to_string());
    let server = runtime.block_on(HttpStub::start(["the message", "c1", "c2"].map(says_so).to_vec()));
    let batch =
        calls(&[("c1", "exec", json!({"command": "echo one"})), ("c2", "exec", json!({"command": "echo two"}))]);
    let judgements = ["the message", "c1", "c2"].map(|what| judged(&format!("of the judge, on {what}")));
    let [of_message, of_one, of_two] = judgements;
    let model = Model::giving(vec![of_message, batch, of_one, of_two, says("Done.")]);
    let allowed = "tools = ['exec']\n[[agent_hooks.http.allow]]\nhost = '127.0.0.1'\n";
    let env = model.env(allowed, &of_each_kind(&server.url()));
    assert_eq!(whole_turn(&env, "hello"), "Done.\n");
    let requests = model.requests();
    assert_eq!(requests.len(), 5);
    let of = |hooks: [&str; 4], what: &str| {
        let kinds = ["script", "command", "server", "judge"];
        let notes = hooks.iter().zip(kinds).map(|(hook, kind)| note(hook, &format!("of the {kind}, on {what}")));
        notes.collect::<Vec<_>>().join("\n\n")
    };
    let message = of(["s", "c", "h", "j"], "the message");
    assert_eq!(behind(&requests[1], 0), format!("user: hello\n\n{message}"));
    let (one, two) = (of(["s2", "c2", "h2", "j2"], "c1"), of(["s2", "c2", "h2", "j2"], "c2"));
    let last = behind(&requests[4], 0);
    let expected = format!("user: hello\n\n{message}\nassistant: \ntool: one\n\ntool: two\n\nuser: {one}\n\n{two}");
    assert_eq!(last, expected);
    let kept = kept(&env);
    assert_eq!(kept.len(), 12, "{kept:?}");
    assert_eq!(
        (kept[0].as_str(), kept[11].as_str()),
        ("[hook \"s\"] of the script, on the message", "[hook \"j2\"] of the judge, on c2")
    );
}

/// What the session `s` keeps of hooks, in order.
fn kept(env: &TestEnv) -> Vec<String> {
    let session: Value = serde_json::from_str(&env.raw(&["sessions", "show", "s", "--json"])).unwrap();
    let messages = session["messages"].as_array().unwrap();
    let of_hooks = messages.iter().filter(|message| message["origin"] == "hook");
    of_hooks
        .map(|message| {
            assert_eq!(message["role"], "system");
            message["content"].as_str().unwrap().to_owned()
        })
        .collect()
}

#[test]
fn a_kill_takes_none_of_it() {
    let model = Model::giving(vec![runs("c1", "echo one"), StubAnswer::silence(), says("Here again.")]);
    let on_message =
        script("m", "user_prompt_submit", "", "return { decision: 'allow', additionalContext: 'on the message' };");
    let on_call = script("t", "pre_tool_use", "", "return { decision: 'allow', additionalContext: 'on the call' };");
    let env = model.env("tools = ['exec']\n", &(on_message + &on_call));
    let mut program = env.command(PINTLE);
    program.args(["run", "--quiet", "--session", "s", "hello"]).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = program.spawn().unwrap();
    // The call's result is written down, and the model asked for the next step.
    let store =
        pintle_store::open("sqlite://pintle.db", &env.path("data/pintle"), pintle_store::Durability::Commit).unwrap();
    let key = SessionKey { tenant: TenantId::default_tenant(), session: "s".into() };
    let has_answer =
        || store.journal(&key).unwrap().iter().any(|entry| matches!(entry, JournalEntry::Turn(Fact::Answered { .. })));
    while model.requests().len() < 2 || !has_answer() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let seen = env.pintle(&["sessions", "resume", "--quiet", "s"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "Here again.\n"), "{seen}");
    let requests = model.requests();
    let expected = format!(
        "user: hello\n\n{}\nassistant: \ntool: one\n\nuser: {}",
        note("m", "on the message"),
        note("t", "on the call")
    );
    let asked = behind(requests.last().unwrap(), 0);
    assert_eq!(asked, expected);
    assert_eq!(kept(&env), ["[hook \"m\"] on the message", "[hook \"t\"] on the call"]);
}

#[test]
fn what_a_block_follows_is_dropped() {
    let adds = |name: &str, event: &str| {
        script(name, event, "priority = 10", "return { decision: 'allow', additionalContext: 'SAID BEFORE' };")
    };
    let refuses = |name: &str, event: &str| {
        let handle = "const it = JSON.stringify(event); \
                      return it.includes('forbidden') ? { decision: 'block', reason: 'no' } : { decision: 'allow' };";
        script(name, event, "", handle)
    };
    let rules = ["user_prompt_submit", "pre_tool_use"]
        .map(|event| adds(&format!("adds-{event}"), event) + &refuses(&format!("refuses-{event}"), event))
        .concat();
    let model = Model::giving(vec![runs("c1", "echo forbidden"), says("Then not.")]);
    let env = model.env("tools = ['exec']\n", &rules);
    let seen = turn(&env, "forbidden");
    assert_eq!((seen.code, seen.out.as_str()), (Some(4), ""), "{seen}");
    assert_eq!(model.requests().len(), 0);
    assert_eq!(whole_turn(&env, "hello"), "Then not.\n");
    let requests = model.requests();
    let expected = format!(
        "user: hello\n\n{}\nassistant: \ntool: Hook blocked: pre_tool_use: refuses-pre_tool_use: no",
        note("adds-user_prompt_submit", "SAID BEFORE")
    );
    assert_eq!(behind(&requests[1], 0), expected);
    assert_eq!(kept(&env), ["[hook \"adds-user_prompt_submit\"] SAID BEFORE"]);
}

#[test]
fn the_second_answer_of_a_hook_replaces_its_first() {
    let sees = script(
        "sees",
        "pre_tool_use",
        "priority = 20",
        "return { decision: 'allow', additionalContext: event.toolInput.command };",
    );
    let rewrites = script(
        "rewrites",
        "pre_tool_use",
        "priority = 10\nmay_rewrite = true",
        "return { decision: 'allow', updatedInput: { toolInput: { command: 'echo new' } } };",
    );
    let model = Model::giving(vec![runs("c1", "echo old"), says("Done.")]);
    let env = model.env("tools = ['exec']\n", &(sees + &rewrites));
    assert_eq!(whole_turn(&env, "hello"), "Done.\n");
    let expected = format!("tool: new\n\nuser: {}", note("sees", "echo new"));
    assert_eq!(behind(&model.requests()[1], 2), expected);
    assert_eq!(kept(&env), ["[hook \"sees\"] echo new"]);
}

#[test]
fn a_long_text_is_cut() {
    let long = "return { decision: 'allow', additionalContext: 'ü'.repeat(event.rawInput.length) };";
    let model = Model::giving(vec![says("Done."), says("Done.")]);
    let env = model.env("tools = []\n", &script("long", "user_prompt_submit", "", long));
    whole_turn(&env, &"x".repeat(10_000));
    whole_turn(&env, &"x".repeat(10_001));
    let whole = "ü".repeat(10_000);
    assert_eq!(kept(&env), [format!("[hook \"long\"] {whole}"), format!("[hook \"long\"] {whole}…[truncated]")]);
    assert!(behind(&model.requests()[1], 0).contains(&note("long", &format!("{whole}…[truncated]"))));
}

#[test]
fn the_context_of_a_session_is_injected_once() {
    let first = "if_expr = 'first_prompt'";
    let rules = script(
        "context",
        "user_prompt_submit",
        first,
        "return { decision: 'allow', additionalContext: 'it is Sunday' };",
    );
    let model = Model::giving(vec![says("One."), says("Two."), says("Other.")]);
    let env = model.env("tools = []\n", &rules);
    whole_turn(&env, "first");
    whole_turn(&env, "second");
    let expected = format!("user: first\n\n{}\nassistant: One.\nuser: second", note("context", "it is Sunday"));
    assert_eq!(behind(&model.requests()[1], 0), expected);
    let other = env.pintle(&["run", "--quiet", "--session", "other", "first"]);
    assert_eq!(other.code, Some(0), "{other}");
    assert_eq!(behind(&model.requests()[2], 0), format!("user: first\n\n{}", note("context", "it is Sunday")));
}

#[test]
fn notes_stand_before_the_texts_of_skills_at_both_points() {
    let notes = [
        script("m", "user_prompt_submit", "", "return { decision: 'allow', additionalContext: 'on the message' };"),
        script("c", "pre_tool_use", "", "return { decision: 'allow', additionalContext: 'on the call' };"),
    ];
    let batch = calls(&[("c1", "exec", json!({"command": "echo one"}))]);
    let model = Model::giving(vec![batch, says("Done.")]);
    let env = model.env("tools = ['exec']\nskills = ['alpha']\n", &notes.concat());
    let entry = |timing: &str| json!({"name": timing, "file": format!("{timing}.md"), "timing": timing, "role": "user", "persistent": false});
    let timings = ["after_user_input", "after_tool_call"];
    let hooks = json!({"hooks": timings.map(entry)});
    env.write("config/pintle/skills/alpha/hooks/hooks.json", &hooks.to_string());
    for timing in timings {
        env.write(&format!("config/pintle/skills/alpha/hooks/{timing}.md"), &format!("text {timing}"));
    }
    assert_eq!(whole_turn(&env, "hello"), "Done.\n");
    let requests = model.requests();
    let message = format!("user: hello\n\n{}\n\ntext after_user_input", note("m", "on the message"));
    assert_eq!(behind(&requests[0], 0), message);
    // This model takes no message of the user's behind a result, so everything is joined to that.
    let last = behind(&requests[1], 2);
    let (result, rest) = last.split_once("\n\n").expect("something follows the result");
    assert!(result.starts_with("tool: ") && result.contains("one"), "{last}");
    assert_eq!(rest.trim_start(), format!("{}\n\ntext after_tool_call", note("c", "on the call")));
}
