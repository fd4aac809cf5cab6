//! `pintle skills explain`: dry runs, turns that were worked, requests as they would leave.

use std::fs;

use pintle_domain::json::{Value, json};
use pintle_testkit::http::{HttpStub, StubAnswer};

use super::env::{PINTLE, Seen, TestEnv};
use super::run::{GUARD, MODEL, scripted};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/skills");

/// The skills of the worked traces, and an agent that has them.
fn traced(flow: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("config/pintle/replies.json", "{\"replies\": []}");
    let entry = |name: &str, timing: &str, role: &str, rest: &str| {
        format!(
            "{{\"name\": \"{name}\", \"file\": \"{name}.md\", \"timing\": \"{timing}\", \"role\": \"{role}\", {rest}}}"
        )
    };
    let skills = [
        ("alpha", "tone", "after_user_input", "system", "\"persistent\": true"),
        ("alpha", "plan-tip", "before_planning", "system", "\"persistent\": false"),
        ("alpha", "goal", "before_first_agent", "system", "\"persistent\": false"),
        ("beta", "check", "before_each_agent", "user", "\"persistent\": false"),
        (
            "beta",
            "trunc",
            "after_tool_call",
            "system",
            "\"persistent\": false, \"tool_filter\": [\"read_file\", \"search_text\"]",
        ),
        ("beta", "cite", "after_tool_call", "system", "\"persistent\": false"),
    ];
    for skill in ["alpha", "beta"] {
        let own = skills.iter().filter(|(of, ..)| *of == skill);
        let entries: Vec<String> = own.map(|(_, name, timing, role, rest)| entry(name, timing, role, rest)).collect();
        env.write(
            &format!("config/pintle/skills/{skill}/hooks/hooks.json"),
            &format!("{{\"hooks\": [{}]}}", entries.join(",\n")),
        );
    }
    for (skill, name, ..) in skills {
        env.write(&format!("config/pintle/skills/{skill}/hooks/{name}.md"), name);
    }
    env.user_config(&format!(
        "{MODEL}system = 'S0'\nflow = '{flow}'\ntools = ['read_file', 'web_fetch']\nskills = ['alpha', 'beta']\n\
         planning = {{ planning_prompt = 'PLAN', first_step_prompt = 'FIRST', agent_loop_prompt = 'LOOP' }}\n"
    ));
    env
}

fn explained(env: &TestEnv, columns: usize, args: &[&str]) -> Seen {
    let all = [&["skills", "explain"], args].concat();
    env.run(env.command(PINTLE).args(all).env("COLUMNS", columns.to_string()), "")
}

fn calls(env: &TestEnv, args: &[&str]) -> Value {
    let out = env.raw(&[&["skills", "explain", "--json"], args].concat());
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {}", explained(env, 80, args)))
}

/// The lists of the calls as the worked traces write them.
fn traces(calls: &Value) -> Vec<String> {
    let mut said = (0, 0);
    let mut numbers: Vec<String> = Vec::new();
    let mut name = |message: &Value| match message["origin"].as_str().unwrap() {
        "hook" | "builtin" if message["msg_id"].is_u64() => {
            format!("{}#{}", message["content"].as_str().unwrap(), message["msg_id"])
        }
        "model" if message["tool_calls"].is_null() => "P0".to_owned(),
        "model" | "tool" if message["new"] == true => {
            let letter = if message["role"] == "tool" { "T" } else { "A" };
            let count = if letter == "T" { &mut said.1 } else { &mut said.0 };
            *count += 1;
            numbers.push(format!("{letter}{count}"));
            format!("{letter}{count}")
        }
        _ => String::new(),
    };
    let mut lists = Vec::new();
    let mut kept: Vec<String> = Vec::new();
    for call in calls.as_array().unwrap() {
        let mut list = Vec::new();
        let mut old = kept.iter().filter(|name| name.starts_with(['A', 'T'])).cloned().collect::<Vec<_>>().into_iter();
        for message in call["messages"].as_array().unwrap() {
            let known = ["model", "tool"].contains(&message["origin"].as_str().unwrap()) && message["new"] == false;
            let plan = message["origin"] == "model" && message["tool_calls"].is_null();
            let written = match (known && !plan, message["origin"].as_str().unwrap(), message["msg_id"].is_u64()) {
                (true, ..) => old.next().unwrap(),
                (false, "builtin", false) => "S0".to_owned(),
                (false, "user", false) => "U1".to_owned(),
                (false, ..) => name(message),
            };
            list.push(written);
        }
        lists.push(list.join(" "));
        kept = list;
    }
    lists
}

#[test]
fn the_worked_traces_come_out_to_the_letter() {
    let env = traced("planned");
    let planned = calls(&env, &[]);
    assert_eq!(
        traces(&planned),
        [
            "S0 U1 tone#1 plan-tip#2 PLAN#3",
            "S0 U1 tone#1 P0 check#4 goal#5 FIRST#6",
            "S0 U1 tone#1 P0 goal#5 A1 T1 trunc#7 cite#8 check#9 LOOP#10",
            "S0 U1 tone#1 P0 goal#5 A1 T1 A2 T2 cite#11 check#12 LOOP#13",
        ]
    );
    let column = |key: &str| planned.as_array().unwrap().iter().map(|call| call[key].clone()).collect::<Value>();
    assert_eq!(column("cache_boundary"), json!([2, 3, 6, 8]));
    assert_eq!(column("call"), json!([0, 1, 2, 3]));
    let tools = json!(["read_file", "web_fetch"]);
    assert_eq!(column("tools"), json!([[], tools, tools, tools]));
    insta::assert_snapshot!("trace_planned", explained(&env, 100, &[]));
    insta::assert_snapshot!("trace_planned_narrow", explained(&env, 80, &[]));
    insta::assert_snapshot!("trace_json", explained(&env, 80, &["--json", "--wire", "openai/gpt-5"]));

    let env = traced("direct");
    assert_eq!(
        traces(&calls(&env, &[])),
        [
            "S0 U1 tone#1 check#2 goal#3",
            "S0 U1 tone#1 goal#3 A1 T1 trunc#4 cite#5 check#6",
            "S0 U1 tone#1 goal#3 A1 T1 A2 T2 cite#7 check#8",
        ]
    );
    insta::assert_snapshot!("trace_direct", explained(&env, 100, &["--message", "What is new?"]));
}

/// What the body of `call` marks last: the text of a message, or of a result.
fn marked_last(call: &Value) -> String {
    let messages = call["wire"]["body"]["messages"].as_array().unwrap();
    let mut blocks = messages.iter().flat_map(|message| message["content"].as_array().unwrap());
    let last = blocks.rfind(|block| block["cache_control"].is_object()).expect("a mark");
    last["text"].as_str().or(last["content"].as_str()).unwrap_or_default().to_owned()
}

#[test]
fn the_boundary_is_the_one_on_the_wire() {
    let rounds = 10;
    let calls_of = |env: &TestEnv| {
        let call = |n: usize| json!({"tool_calls": [{"name": "read_file", "arguments": {"path": n.to_string()}}]});
        let replies: Vec<Value> = (0..rounds).map(call).chain([json!({"text": "done"})]).collect();
        env.write("here/script.json", &json!({"replies": replies}).to_string());
        let wire = "anthropic/claude-haiku-4-5";
        calls(env, &["--script", "script.json", "--message", "hello", "--wire", wire])
    };
    let plain = TestEnv::new();
    plain.write("config/pintle/replies.json", "{\"replies\": []}");
    plain.user_config(&format!("{MODEL}system = 'S0'\ntools = ['read_file']\n"));
    for env in [plain, traced("direct")] {
        let calls = calls_of(&env);
        let calls = calls.as_array().unwrap();
        assert_eq!(calls.len(), rounds + 1);
        for call in calls {
            let at = usize::try_from(call["cache_boundary"].as_u64().unwrap()).unwrap();
            let message = &call["messages"][at];
            assert!(message["role"] != "system" || at > 0, "more than the system prompt is held");
            let said = message["content"].as_str().unwrap();
            assert!(marked_last(call).contains(said), "{said:?} in {:?}", marked_last(call));
        }
    }
}

#[test]
fn what_is_explained_of_a_worked_turn_is_what_was_sent() {
    let block = |block: Value, reason: &str| {
        StubAnswer::json(&json!({"type": "message", "content": [block], "stop_reason": reason}).to_string())
    };
    let reads = |n: usize| {
        let id = format!("toolu_{n}");
        block(json!({"type": "tool_use", "id": id, "name": "read_file", "input": {"path": "notes.txt"}}), "tool_use")
    };
    let answers = (1..=3).map(reads).chain([block(json!({"type": "text", "text": "milk"}), "end_turn")]).collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let stub = runtime.block_on(HttpStub::start(answers));
    let env = traced("direct");
    env.write("here/notes.txt", "milk");
    let config = fs::read_to_string(env.path("config/pintle/pintle.toml")).unwrap();
    let provider = format!("[providers.mine]\nkind = 'anthropic'\nbase_url = '{}'\n", stub.url());
    env.user_config(&format!("{config}{provider}"));
    let model = "mine/claude-haiku-4-5";
    assert_eq!(env.pintle(&["run", "--quiet", "--model", model, "what is in my notes?"]).out, "milk\n");
    let (told, sent) = (calls(&env, &["--last", "--wire", model]), stub.seen());
    assert_eq!((told.as_array().unwrap().len(), sent.len()), (4, 4), "{told}");
    for (told, sent) in told.as_array().unwrap().iter().zip(&sent) {
        // With the marks of what the provider's cache holds, where they stood.
        assert_eq!(told["wire"]["body"], sent.json());
    }
}

#[test]
fn the_shipped_skills_are_explained() {
    for skill in ["cite-sources", "careful-edits", "house-style"] {
        let env = TestEnv::new();
        std::os::unix::fs::symlink(EXAMPLES, env.path("config/skills")).unwrap();
        fs::create_dir(env.path("config/pintle")).unwrap();
        for flow in ["planned", "direct"] {
            env.user_config(&format!(
                "[agents.main]\nflow = '{flow}'\ntools = ['read_file', 'edit_file', 'web_fetch']\nskills = ['{skill}']\n\
                 [skills]\ndir = '../skills'\n"
            ));
            insta::assert_snapshot!(format!("{skill}_{flow}"), explained(&env, 100, &[]));
        }
        let seen = explained(&env, 120, &["--wire", "anthropic/claude-opus-5-1"]);
        insta::assert_snapshot!(format!("{skill}_wire"), seen.out);
    }
}

/// What was left behind by a command: every file, and the bytes in the store.
fn left(env: &TestEnv) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    let mut folders = vec![env.path("")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path.display().to_string()) }
        }
    }
    files.sort();
    files
}

#[test]
fn a_dry_run_leaves_nothing_and_runs_nothing() {
    let env = traced("planned");
    let config = fs::read_to_string(env.path("config/pintle/pintle.toml")).unwrap();
    env.user_config(&format!("{config}{GUARD}[mcp.servers.files]\ncommand = ['touch', 'started']\n"));
    env.write("config/pintle/refuses.sh", "touch started");
    env.write("here/script.json", r#"{"replies": [{"text": "<need_tool/>"}, {"tool_calls": [{"name": "Read", "arguments": {"path": "x"}}], "delay_ms": 600000}, {"text": "done"}]}"#);
    let before = left(&env);
    let seen = explained(&env, 100, &["--script", "script.json", "--message", "go"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    assert!(seen.out.contains("Read({\"path\":\"x\"})") && seen.out.contains("result of Read"), "{seen}");
    assert!(seen.out.contains("beta/trunc"), "the filter holds for the tool that is meant: {seen}");
    assert_eq!(left(&env), before);
}

#[test]
fn hooks_that_never_fire_say_why() {
    let env = traced("direct");
    let config = fs::read_to_string(env.path("config/pintle/pintle.toml")).unwrap();
    let with = |tools: &str| env.user_config(&config.replace("['read_file', 'web_fetch']", tools));
    let absent = |env: &TestEnv| {
        let all = calls(env, &[]);
        let lines = all[0]["absent"].as_array().unwrap().iter().map(|absent| {
            format!("{} {} {}", absent["hook"].as_str().unwrap(), absent["never"], absent["reason"].as_str().unwrap())
        });
        lines.collect::<Vec<_>>()
    };
    let planning = "plan-tip true the flow is `direct`: nothing is planned";
    assert_eq!(absent(&env), [planning]);
    with("['list_dir']");
    assert_eq!(absent(&env), [planning, "trunc true the agent has no tool of its filter: read_file, search_text"]);
    with("['list_dir', 'find_files', 'search_text']");
    assert_eq!(absent(&env), [planning, "trunc false no call of read_file, search_text"]);
    with("[]");
    let single = "the agent has no tools of its own: there is a single call";
    let all: Vec<String> =
        ["goal", "check", "trunc", "cite"].iter().map(|name| format!("{name} true {single}")).collect();
    assert_eq!(absent(&env), [&[planning.to_owned()], &all[..]].concat());
    insta::assert_snapshot!("single_call", explained(&env, 100, &[]));
}

#[test]
fn a_turn_that_was_worked_is_shown_as_it_was() {
    let env = traced("planned");
    let script = r#"{"replies": [
        {"text": "I look first. <need_tool/>"},
        {"tool_calls": [{"name": "read_file", "arguments": {"path": "notes.txt"}}]},
        {"text": "milk"},
        {"text": "never <need_tool/>"}
    ]}"#;
    env.write("config/pintle/replies.json", script);
    env.write("here/notes.txt", "milk");
    assert_eq!(env.pintle(&["run", "--quiet", "--session", "s", "what is in my notes?"]).out, "milk\n");
    let before = left(&env);
    let last = explained(&env, 100, &["--last"]);
    assert_eq!(left(&env), before);
    insta::assert_snapshot!("recorded", last);
    let all = calls(&env, &["--last", "--wire", "local/m"]);
    let turn = all[0]["turn_id"].as_str().unwrap().to_owned();
    assert_eq!((all[0]["session_id"].as_str(), all.as_array().unwrap().len()), (Some("s"), 3));
    for name in [&turn, &turn[..13]] {
        assert_eq!(calls(&env, &[name, "--wire", "local/m"]), all, "{name}");
    }
    // The same script dry says the same, but for the results of tools.
    env.write("here/script.json", script);
    let dry = calls(&env, &["--script", "script.json", "--message", "what is in my notes?"]);
    assert_eq!(traces(&dry), traces(&all));
    let never = r#"{"replies": [{"text": "It is still milk. <no_tool/>"}]}"#;
    env.write("config/pintle/replies.json", never);
    assert_eq!(env.pintle(&["run", "--quiet", "--session", "s", "and now?"]).out, "It is still milk.\n");
    // What persistent hooks said in the first turn came back as history, and is there once more.
    insta::assert_snapshot!("recorded_second", explained(&env, 100, &["--last", "--agent", "main"]));
    let prefix = &turn[..1];
    let seen = explained(&env, 80, &[prefix]);
    assert!(seen.err.starts_with(&format!("error: `{prefix}` is ambiguous: 2 turns begin with it\n")), "{seen}");
    let seen = explained(&env, 80, &["--last", "--agent", "other"]);
    assert!(seen.err.starts_with("error: there is no record of any turn of the agent `other`\n"), "{seen}");
    // Without the agent, what the journal has is there all the same.
    env.user_config(&MODEL.replace("agents.main", "agents.other"));
    let gone = calls(&env, &[turn.as_str()]);
    assert_eq!(gone[1]["messages"][0]["content"], "what is in my notes?");
    assert_eq!((gone[1]["flow"].as_str(), &gone[1]["tools"]), (Some("planned"), &json!([])));
}

#[test]
fn what_cannot_be_explained_is_said_in_one_message() {
    let env = traced("direct");
    let says = |args: &[&str]| {
        let seen = explained(&env, 1000, args);
        format!("{} {}", seen.code.unwrap(), seen.err.trim_end())
    };
    assert_eq!(says(&["--last"]), "1 error: there is no record of any turn\n  hint: start one: `pintle run \"hello\"`");
    assert_eq!(
        says(&["0199"]),
        "2 error: there is no record of a turn `0199`\n  \
         hint: `pintle why` shows the id of the newest turn, --last explains it"
    );
    let entries = "  hint: entries of the capability table: anthropic/claude-opus-4-8*, anthropic/claude-opus-5*, \
                   anthropic/*, openai/*, local/*";
    assert_eq!(
        says(&["--wire", "mine/big"]),
        format!(
            "2 error: --wire: there is no provider \"mine\", and no entry of the capability table fits \"mine/big\"\n{entries}"
        )
    );
    assert_eq!(says(&["--wire", "big"]), format!("2 error: --wire: expected PROVIDER/MODEL, got \"big\"\n{entries}"));
    assert_eq!(
        says(&["--wire", "scripted/test"]),
        format!("2 error: --wire: the provider \"scripted\" plays a script, so nothing of it is ever sent\n{entries}")
    );
    env.write("here/bad.json", "{\"replies\": [{\"tekst\": 1}]}");
    let said = says(&["--script", "bad.json"]);
    assert!(
        said.starts_with("2 error: the script `bad.json` is not a list of replies: unknown field `tekst`"),
        "{said}"
    );
    let said = says(&["--script", "none.json"]);
    assert!(said.starts_with("2 error: cannot read the script `none.json`"), "{said}");
    assert_eq!(
        says(&["--agent", "mian"]).lines().next(),
        Some("2 error: there is no agent `mian`; did you mean `main`?")
    );
    env.write("here/short.json", "{\"replies\": [{\"tool_calls\": [{\"name\": \"read_file\"}]}]}");
    let seen = explained(&env, 1000, &["--script", "short.json"]);
    assert_eq!(seen.code, Some(1));
    assert!(
        seen.out.contains("call R2")
            && seen.err.contains("the dry run ended early: the script `short.json` has no reply left: all 1 are used"),
        "{seen}"
    );
}

#[test]
fn no_key_stands_in_what_would_be_sent() {
    let env = traced("direct");
    let config = fs::read_to_string(env.path("config/pintle/pintle.toml")).unwrap();
    env.user_config(&format!(
        "{config}[providers.mine]\nkind = 'anthropic'\nbase_url = 'http://127.0.0.1:9'\napi_key_env = 'MY_KEY'\n\
         [providers.mine.capabilities]\nmid_system = 'free'\n"
    ));
    let args = ["skills", "explain", "--wire", "mine/big", "--json"];
    let seen = env.run(env.command(PINTLE).args(args).env("MY_KEY", "sk-very-secret"), "");
    assert!(!seen.out.contains("sk-very-secret") && !seen.err.contains("sk-very-secret"), "{seen}");
    let all: Value = serde_json::from_str(&seen.out).unwrap();
    let sent = &all[0]["wire"]["body"];
    assert_eq!((sent["model"].as_str(), sent["stream"].as_bool()), (Some("big"), Some(true)));
    assert_eq!(sent["messages"][1], json!({"role": "system", "content": [{"type": "text", "text": "tone"}]}), "{sent}");
}

#[test]
fn a_request_says_by_which_entry_it_was_lowered_and_whether_the_configuration_says_otherwise() {
    let env = traced("direct");
    let config = fs::read_to_string(env.path("config/pintle/pintle.toml")).unwrap();
    let provider = |name: &str, more: &str| {
        format!("[providers.{name}]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:9/v1'\n{more}")
    };
    let says = |name: &str| format!("[providers.{name}.capabilities]\nmid_system = 'free'\n");
    env.user_config(&format!(
        "{config}{}{}{}{}",
        provider("local", ""),
        provider("openai", &says("openai")),
        provider("mine", ""),
        provider("yours", &says("yours"))
    ));
    for (model, by, entry, overridden) in [
        ("local/m", "entry local/* ·", "local/*", false),
        ("openai/m", "entry openai/* and the configuration ·", "openai/*", true),
        ("mine/m", "no entry ·", "", false),
        ("yours/m", "no entry and the configuration ·", "", true),
    ] {
        let seen = explained(&env, 120, &["--wire", model]);
        assert!(seen.out.contains(&format!("wire {model} · {by} ")), "{seen}");
        let wire = &calls(&env, &["--wire", model])[0]["wire"];
        assert_eq!((wire["entry"].as_str(), wire["overridden"].as_bool()), (Some(entry), Some(overridden)), "{model}");
    }
}

#[test]
fn messages_that_a_server_wants_as_one_are_shown_as_one() {
    let replies = r#"{"when": {"contains": "first"}, "error": {"kind": "final", "message": "gone"}}, {"text": "ok", "repeat": true}"#;
    let provider = |name: &str| format!("[providers.{name}]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:9/v1'\n");
    let env = scripted(replies, &format!("{}{}", provider("local"), provider("openai")));
    // The first turn fails, so two messages of the user stand beside each other.
    for (message, code) in [("first", 1), ("second", 0)] {
        assert_eq!(env.pintle(&["run", "--quiet", "--session", "s", message]).code, Some(code));
    }
    let one = r#""messages":[{"role":"user","content":"first\n\nsecond"}]"#;
    let two = r#""messages":[{"role":"user","content":"first"},{"role":"user","content":"second"}]"#;
    for (model, expected) in [("local/m", one), ("openai/m", two)] {
        let seen = explained(&env, 400, &["--last", "--wire", model]);
        let body: String = seen.out.split_whitespace().collect();
        assert!(body.contains(expected), "{model}: {seen}");
    }
}
