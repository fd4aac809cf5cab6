//! What rules are sent: commands, servers, scripts and judges.

use pintle_domain::json::{Value, json};
use pintle_testkit::http::{HttpStub, StubAnswer};
use tokio::runtime::Runtime;

use super::stage::{calls, check, command, commands, process, request, requests, stage};
use crate::env::{PINTLE, TestEnv};
use crate::rules_in_turns::stage as rules;

/// The events, in the order in which a turn comes to them.
const EVENTS: [&str; 7] =
    ["session_start", "user_prompt_submit", "subagent_start", "pre_tool_use", "post_tool_use", "subagent_stop", "stop"];

/// More answers than a rule needs.
const ANSWERS: usize = 8;

/// A rule that is a server; `config` goes on with its table.
fn http(name: &str, event: &str, more: &str, config: &str) -> String {
    format!(
        "[[hook]]\nname = '{name}'\nevent = '{event}'\nhandler_type = 'http'\nscope = 'tenant'\n{more}\n\
         [hook.config]\n{config}\n"
    )
}

/// What a rule of a gate answers, so that the next one sees what it changed.
fn says(event: &str) -> &'static str {
    match event {
        "user_prompt_submit" => r#"{"decision":"allow","additionalContext":"a note, ü"}"#,
        "pre_tool_use" => r#"{"decision":"allow","additionalContext":"another note"}"#,
        _ => r#"{"decision":"allow"}"#,
    }
}

/// The agents, and what lets rules reach servers on loopback.
const AGENTS: &str = "default = true\ntools = ['delegate', 'list_dir']\n\
                      [agents.helper]\nmodel = 'scripted/helper'\ntools = ['exec']\n\
                      [agent_hooks]\ndir = 'hooks.d'\n[[agent_hooks.http.allow]]\nhost = '127.0.0.1'\n";

/// A turn that hands work on, and one that goes on in the same session.
fn replies() -> String {
    let odd = serde_json::to_string(
        r#"{"timeout_ms":1e3,"command":"printf '%s' 'ü \u2028 \"x\"'","z":12345678901234567890.10,"one":1.0,"nothing":-0,"a":{"y":{},"x":[]}}"#,
    )
    .unwrap();
    [
        format!(r#"{{"when": {{"model": "helper", "anywhere": "look at"}}, "usage": {{"prompt_tokens": 9, "completion_tokens": 4}}, "tool_calls": [{{"id": "c2", "name": "exec", "arguments": {odd}}}, {{"id": "c3", "name": "bash", "arguments": {{"command": "printf 'ü \"x\"'"}}}}]}}"#),
        r#"{"when": {"model": "helper"}, "text": "I looked.", "usage": {"prompt_tokens": 9, "completion_tokens": 4}}"#
            .to_owned(),
        r#"{"when": {"contains": "a note"}, "tool_calls": [{"id": "c1", "name": "delegate", "arguments": {"task": "look at ü", "agent": "helper"}}]}"#
            .to_owned(),
        r#"{"when": {"anywhere": "I looked"}, "text": "All done."}"#.to_owned(),
        r#"{"text": "Again."}"#.to_owned(),
    ]
    .join(",")
}

/// What a script `name` in `env` sees when it is tested.
fn script_sees(env: &TestEnv, name: &str, args: &[&str]) -> String {
    let shown = env.raw(&[&["hooks", "test", name, "--json"], args].concat());
    let result: Value = serde_json::from_str(&shown).unwrap_or_else(|error| panic!("{name}: {error}: {shown}"));
    result["stderr"].as_str().unwrap_or_else(|| panic!("{name}: {result}")).to_owned()
}

#[test]
fn every_event_reaches_commands_servers_and_scripts() {
    let runtime = Runtime::new().unwrap();
    let stubs = EVENTS.map(|event| runtime.block_on(HttpStub::start(vec![StubAnswer::json(says(event)); ANSWERS])));
    let mut text = String::new();
    for (event, stub) in EVENTS.iter().zip(&stubs) {
        text += &rules::command(&format!("c-{event}"), event, "priority = 20", &command(event, says(event)));
        text += &http(&format!("h-{event}"), event, "priority = 10", &format!("url = '{}/{event}?a=%20b'", stub.url()));
        text += &rules::script(
            &format!("s-{event}"),
            event,
            "enabled = false",
            "console.log(JSON.stringify(event)); return { decision: 'allow' };",
        );
    }
    let asks = process("asks", "intercept = ['before_llm']");
    let env = stage(&replies(), &format!("{AGENTS}{asks}"));
    env.write("config/pintle/hooks.d/rules.toml", &text);
    for message in ["Grüße, \"du\" \u{2028}", "again"] {
        let seen = env.pintle(&["run", "--quiet", "--session", "s", message]);
        assert_eq!(seen.code, Some(0), "{seen}");
    }
    let mut parts = [commands(&env, &EVENTS), calls(&env, &["asks"])].concat();
    parts.extend(EVENTS.iter().zip(&stubs).map(|(event, stub)| requests(event, stub)));
    for event in EVENTS {
        let input = r#"{"z":1.5,"command":"ls -l >out \"ü\"","a":{"y":{},"x":[]}}"#;
        let args: &[&str] = match event {
            "pre_tool_use" | "post_tool_use" => &["--tool", "exec", "--input", input],
            "user_prompt_submit" => &["--prompt", "Grüße, \"du\""],
            _ => &[],
        };
        parts.push((format!("{event}.script"), script_sees(&env, &format!("s-{event}"), args)));
    }
    check(&env, "rules", parts);
}

#[test]
fn servers_that_are_told_who_asks() {
    let runtime = Runtime::new().unwrap();
    let rewrites = StubAnswer::json(r#"{"updatedInput":{"rawInput":"said again, ü"}}"#);
    let answers = vec![StubAnswer::new(503, "busy"), rewrites.clone(), rewrites];
    let stub = runtime.block_on(HttpStub::start(answers));
    let config = format!(
        "url = '{}/signed'\nsigning_secret = 'whsec_AAECAwQFBgcICQoLDA0ODw=='\nsecret_headers = ['X-Key']\n\
         [hook.config.headers]\nX-Key = 'k'\nAuthorization = 'Bearer t'\nContent-Type = 'application/x+json'\n\
         X-Second = 'ü'\n",
        stub.url()
    );
    let env = stage(r#"{"text": "Done."}"#, AGENTS);
    let rule = http("signed", "user_prompt_submit", "may_rewrite = true\npriority = 2", &config);
    let says = r#"{"decision":"allow"}"#;
    let behind = rules::command("behind", "user_prompt_submit", "priority = 1", &command("behind", says));
    env.write("config/pintle/hooks.d/rules.toml", &(rule + &behind));
    let seen = env.pintle(&["run", "--quiet", "--session", "s", "go"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "Done.\n"), "{seen}");
    assert_eq!(stub.seen().len(), 2, "it was tried again");
    let seen = env.pintle(&["hooks", "test", "signed", "--prompt", "try"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    check(&env, "signed", [vec![requests("signed", &stub)], commands(&env, &["behind"])].concat());
}

#[test]
fn commands_that_are_given_variables() {
    let more = "command_env = ['MY_TOKEN']\n";
    let env = stage(r#"{"text": "Done."}"#, &AGENTS.replace("dir = 'hooks.d'\n", &format!("dir = 'hooks.d'\n{more}")));
    let allowed = "allowed_env_vars = ['PLAIN', 'MY_TOKEN', 'OTHER_TOKEN', 'PINTLE_HOME', 'LANG']\ncwd = 'below'\n";
    let says = r#"{"decision":"allow"}"#;
    let rule = rules::command("given", "user_prompt_submit", "", &command("given", says).replace("../", "../../"));
    env.write("config/pintle/hooks.d/rules.toml", &format!("{rule}{allowed}"));
    std::fs::create_dir(env.path("here/below")).unwrap();
    let mut program = env.command(PINTLE);
    program.args(["run", "--quiet", "--session", "s", "go"]);
    program.env("MY_TOKEN", "t").env("OTHER_TOKEN", "u").env("PLAIN", "ü v").env("LANG", "de_DE").env("ELSE", "e");
    let seen = env.run(&mut program, "");
    assert_eq!(seen.code, Some(0), "{seen}");
    check(&env, "variables", commands(&env, &["given"]));
}

#[test]
fn a_call_that_waits_for_a_person_and_goes_on() {
    let replies = r#"{"when": {"tool_result": "written"}, "text": "It is written."},
        {"tool_calls": [{"id": "c1", "name": "exec", "arguments": {"command": "echo written", "timeout_s": 3}}]}"#;
    let hook = process("asks", "intercept = ['before_tool', 'after_tool', 'approve_tool']");
    let env = stage(replies, &format!("tools = ['exec']\n[agent_hooks]\ndir = 'hooks.d'\n{hook}"));
    let says = r#"{"decision":"ask","reason":"sure, ü?"}"#;
    let rule = rules::command("asking", "pre_tool_use", "matcher = '^exec$'", &command("asking", says));
    env.write("config/pintle/hooks.d/rules.toml", &rule);
    let seen = env.pintle(&["run", "--quiet", "--session", "s", "write it"]);
    assert_eq!(seen.code, Some(75), "{seen}");
    let list: Value = serde_json::from_str(&env.raw(&["approvals", "list", "--json"])).unwrap();
    let id = list[0]["id"].as_str().unwrap();
    assert_eq!(env.on_terminal("", &["approvals", "approve", id]).code, Some(0));
    let seen = env.pintle(&["sessions", "resume", "--quiet", "s"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "It is written.\n"), "{seen}");
    check(&env, "asked", [calls(&env, &["asks"]), commands(&env, &["asking"])].concat());
}

#[test]
fn a_judge_is_asked() {
    let said = json!({"decision": "allow", "reason": "harmless"});
    let model = rules::Model::giving(vec![
        rules::calls(&[("c1", "list_dir", json!({"path": "."}))]),
        rules::calls(&[("d", "decide", said)]),
        rules::says("Done."),
    ]);
    let judge = "[[hook]]\nname = 'judge'\nevent = 'pre_tool_use'\nhandler_type = 'prompt'\nscope = 'tenant'\n\
                 if_expr = 'true'\n[hook.config]\nprompt_template = 'Allow \"ü\".'\nprovider = 'here'\nmodel = 'm'\n";
    let env = model.env("tools = ['list_dir']\n", judge);
    let seen = env.pintle(&["run", "--quiet", "--session", "s", "go"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "Done.\n"), "{seen}");
    let judged = model.request(1);
    check(&env, "judged", vec![("judge.request".to_owned(), request(&judged))]);
}
