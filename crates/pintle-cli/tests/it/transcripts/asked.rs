//! What process hooks are asked.

use super::stage::{answers, calls, chat, check, environments, events, process, stage};
use super::told::{OBSERVERS, observers};
use crate::env::{PINTLE, TestEnv};

/// Arguments with every spelling of a number, members in no order, and characters that are written in several ways.
const ODD: &str = r#"{"z":12345678901234567890.10,"one":1.0,"hundred":1e2,"nothing":-0,"more":1E+2,"tiny":1e-400,"a":{"y":{},"x":[],"deep":[[{"":null}]]},"text":"Grüße, 世界 🙂 \u2028 \u0085 \u0000 \u007f \/ \"\\ \n\t </script>","t":true,"f":false}"#;

/// One white dot.
const DOT: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A tool that a hook brings.
const TOOL: &str = r#"tools {"type":"function","function":{"name":"weather","description":"The weather, \"now\"","parameters":{"type":"object","properties":{"city":{"type":"string","maxLength":1e2}},"x-none":{}}}}"#;

/// An agent of whom everything is asked, and told.
fn agent() -> String {
    let all = "intercept = ['before_llm', 'after_llm', 'before_tool', 'after_tool', 'approve_tool']\n";
    [
        "system = 'You are \"Pintle\".'\ntools = ['exec', 'list_dir']\n\
         options = { temperature = 1.0, max_tokens = 512, top_p = 1e-1, seed = 9007199254740993, stop = [], extra = {} }\n",
        &process("first", &format!("priority = 10\nobserve = ['turn_end']\n{all}env = {{ MORE = 'ä b' }}")),
        &process("second", &format!("priority = 20\n{all}")),
        &process("owner", "priority = 30\nintercept = ['before_llm', 'before_tool']\npair = false"),
        &observers(),
    ]
    .concat()
}

fn calling(when: &str, tools: &str) -> String {
    format!(
        r#"{{"when": {{"contains": "{when}"}}, "text": "I look.", "reasoning": "hm ü", "usage": {{"prompt_tokens": 9, "completion_tokens": 4}}, "tool_calls": [{tools}]}}"#
    )
}

fn saying(when: &str, text: &str) -> String {
    format!(r#"{{"when": {{"contains": "{when}"}}, "text": "{text}"}}"#)
}

fn lists(id: &str) -> String {
    format!(r#"{{"id": "{id}", "name": "list_dir", "arguments": {{"path": "."}}}}"#)
}

/// The conversation, a message a turn.
const MESSAGES: [&str; 8] = [
    "Grüße, 世界 🙂 \u{2028}\u{85} \"quoted\" \\ </script>",
    "refuse it",
    "deny it",
    "fail there",
    "end it",
    "a picture",
    "stop everything",
    "goodbye",
];

fn replies() -> String {
    let odd = serde_json::to_string(ODD).unwrap();
    [
        calling("Grüße", &format!(r#"{{"id": "c1", "name": "weather", "arguments": {odd}}}, {}"#, lists("c2"))),
        saying("[redacted", "Warm."),
        calling("refuse it", &lists("c3")),
        saying("denied by approval", "Then not."),
        calling("deny it", r#"{"id": "c4", "name": "exec", "arguments": "{\"command\": \"echo ü\", \"timeout_ms\": 1e3}"}"#),
        saying("denied by hook", "Not that either."),
        calling("fail there", r#"{"id": "c5", "name": "nonsense", "arguments": "{\"broken"}, {"id": "c6", "name": "nothing", "arguments": {}}"#),
        saying("unreadable", "Well."),
        saying("end it", "Never seen."),
        calling("a picture", r#"{"id": "c7", "name": "weather", "arguments": {"city": "Köln"}}"#),
        saying("a dot", "Seen."),
        calling("stop everything", &lists("c8")),
        saying("goodbye", "Bye."),
    ]
    .join(",\n")
}

fn write_answers(env: &TestEnv) {
    answers(
        env,
        "first",
        &[
            ("hello", "", r#"{"ok":true,"name":"first"}"#),
            (
                "before_llm",
                "Grüße",
                r#"{"action":"modify","request":{"options":{"temperature":0.50,"seed":12345678901234567890.10,"one":1.0,"hundred":1e2,"nothing":-0,"z":{},"a":[]}}}"#,
            ),
            (
                "before_tool",
                r#""c1""#,
                r#"{"action":"modify","call":{"arguments":{"z":12345678901234567890.10,"one":1.0,"hundred":1e2,"nothing":-0,"more":1E+2,"a":{"y":{},"x":[]},"city":"Zürich \u2028"}}}"#,
            ),
            (
                "after_tool",
                r#""c2""#,
                r#"{"action":"modify","result":{"result":{"for_llm":"[redacted ü]","for_user":"","silent":true,"media":[],"artifact_tags":["x y"]}}}"#,
            ),
            ("before_tool", r#""c4""#, r#"{"action":"deny_tool","reason":"no ü today"}"#),
            ("before_tool", "nothing", r#"raw {"jsonrpc":"2.0","id":ID,"result":[]}"#),
            ("after_llm", "Well.", r#"{"code":-32000,"message":"out of ink"}"#),
            ("after_llm", "Never seen.", r#"{"action":"abort_turn","reason":"enough"}"#),
            ("before_tool", r#""c8""#, r#"{"action":"hard_abort","reason":"all of it"}"#),
        ],
    );
    answers(
        env,
        "second",
        &[
            (
                "after_llm",
                "Warm.",
                r#"{"action":"modify","response":{"response":{"content":"Sehr wärm.","finish_reason":"stop"}}}"#,
            ),
            ("approve_tool", r#""c3""#, r#"{"approved":false,"reason":"not by me"}"#),
        ],
    );
    let responds = r#"{"action":"respond","call":{"tool":"weather","arguments":{"n":1.10}},"result":{"for_llm":"15 °C","for_user":"warm","silent":false,"is_error":false,"media":[],"artifact_tags":["a.txt"],"response_handled":false}}"#;
    let pictures =
        format!(r#"{{"action":"respond","result":{{"for_llm":"a dot","media":["{DOT}"],"response_handled":false}}}}"#);
    let mut rows = vec![("before_llm", "", TOOL); 16];
    rows.extend([("before_tool", r#""c1""#, responds), ("before_tool", r#""c7""#, &pictures)]);
    answers(env, "owner", &rows);
}

#[test]
fn a_conversation_with_every_kind_of_answer() {
    let env = stage(&replies(), &agent());
    write_answers(&env);
    let seen = chat(&env, &MESSAGES);
    assert!(seen.out.ends_with("Bye.\n"), "{seen}");
    let names = ["first", "second", "owner"];
    let parts =
        [calls(&env, &names), events(&env, &["first"]), events(&env, &OBSERVERS), environments(&env, &["first"])]
            .concat();
    check(&env, "conversation", parts);
}

#[test]
fn a_call_that_is_waited_for_no_longer_is_cancelled() {
    let slow = process("slow", "intercept = ['before_tool']\npair = false\ntimeout_ms = 300\non_failure = 'continue'");
    let env = stage(&format!("{{\"tool_calls\": [{}]}}, {{\"text\": \"Done.\"}}", lists("c1")), &slow);
    answers(&env, "slow", &[("before_tool", "", "(nothing)")]);
    let seen = env.pintle(&["run", "--quiet", "--session", "s", "go"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    check(&env, "cancelled", calls(&env, &["slow"]));
}

#[test]
fn hooks_of_each_mode() {
    let entries = [
        ("observes", "observe = ['turn_end', 'agent.tool.exec_start']"),
        ("observes_runtime", "observe = ['tool.exec_end', 'llm_request']\nevents = 'runtime'"),
        ("before_llm_pair", "intercept = ['before_llm']"),
        ("after_llm_alone", "intercept = ['after_llm']\npair = false"),
        ("before_tool_pair", "intercept = ['before_tool']"),
        ("after_tool_alone", "intercept = ['after_tool']\npair = false\nmatcher = '^list_dir$'"),
        ("approves", "intercept = ['approve_tool']\ninherit_env = ['MY_TOKEN']"),
        ("elsewhere", "intercept = ['before_tool']\nmatcher = '^exec$'"),
    ];
    let hooks: String = entries.iter().map(|(name, entry)| process(name, entry)).collect();
    let replies = format!("{{\"tool_calls\": [{}]}}, {{\"text\": \"Done.\"}}", lists("c1"));
    let env = stage(&replies, &format!("tools = ['list_dir']\n{hooks}"));
    let mut program = env.command(PINTLE);
    program.args(["run", "--quiet", "--session", "s", "go"]);
    program.env("MY_TOKEN", "t").env("OTHER_TOKEN", "u").env("PLAIN", "ü v").env("DB", "postgres://me:pw@host/db");
    let seen = env.run(&mut program, "");
    assert_eq!(seen.code, Some(0), "{seen}");
    let names: Vec<&str> = entries.iter().map(|(name, _)| *name).collect();
    let parts =
        [calls(&env, &names), events(&env, &names[..2]), environments(&env, &["observes", "approves"])].concat();
    check(&env, "modes", parts);
}
