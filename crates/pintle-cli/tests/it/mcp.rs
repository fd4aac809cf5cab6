//! Tools of MCP servers in turns: of servers of others, as they come from their registries, and of a small one of our own.

use std::path::{Path, PathBuf};

use pintle_domain::json::Value;

use super::env::{PINTLE, TestEnv};
use super::reload::Chat;
use super::run::{DONE, GUARD, LISTS, MODEL, scripted};

const TIME: &str = "venv/bin/mcp-server-time";
const EVERYTHING: &str = "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js";

const NOON: &str = r#"{"name": "mcp_time_convert_time", "arguments":
    {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}}"#;

/// A server whose tools are named on its command line; each answers with a variable of its environment. It notes each
/// start in a file called `starts`, and dies where it finds one called `dead`.
const OWN: &str = r#"import json, os, sys
with open("starts", "a") as starts:
    print(*sys.argv[1:], file=starts)
for line in sys.stdin:
    message = json.loads(line)
    method, answer = message.get("method"), None
    if os.path.exists("dead"):
        sys.exit(3)
    if method == "initialize":
        answer = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "own", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        answer = {"tools": [{"name": name, "inputSchema": schema} for name in sys.argv[1:]]}
    elif method == "tools/call":
        name = message["params"]["arguments"].get("name", "")
        answer = {"content": [{"type": "text", "text": f"{name} is {os.environ.get(name)}"}]}
    if answer is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
"#;

/// A part of `./pintle test`'s installation.
pub(crate) fn installed(path: &str) -> PathBuf {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/mcp").join(path);
    assert!(found.exists(), "{} is not installed: run `./pintle test --install` once, which does it", found.display());
    found.canonicalize().unwrap()
}

fn time() -> String {
    // A link leads out of the environment that it belongs to.
    let folder = installed("venv/bin");
    assert!(folder.join("mcp-server-time").exists(), "{TIME} is not installed: run `./pintle test --install` once");
    format!("[mcp.servers.time]\ncommand = ['{}']\n", folder.join("mcp-server-time").display())
}

pub(crate) fn everything() -> String {
    format!("[mcp.servers.all]\ncommand = ['node', '{}', 'stdio']\n", installed(EVERYTHING).display())
}

/// Surroundings with a server `name` of our own that has `tools`, and whatever `more` says.
fn with_own(replies: &str, servers: &[(&str, &str)], more: &str) -> TestEnv {
    let server =
        |(name, tools): &(&str, &str)| format!("[mcp.servers.{name}]\ncommand = ['python3', 'own.py', {tools}]\n");
    let env = scripted(replies, &format!("{more}{}", servers.iter().map(server).collect::<String>()));
    env.write("config/pintle/own.py", OWN);
    env
}

/// The contents of the tool messages of the session `key`.
pub(crate) fn results(env: &TestEnv, key: &str) -> Vec<String> {
    let seen = env.pintle(&["sessions", "show", key, "--json"]);
    let shown: Value = serde_json::from_str(&seen.out).unwrap_or_else(|why| panic!("{why}: {seen}"));
    let messages = shown["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool");
    messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

/// How many tools the model was offered in the first call of `pintle run --json`.
fn offered(env: &TestEnv, args: &[&str]) -> u64 {
    let seen = env.pintle(&[&["run", "--json", "hello"], args].concat());
    let events = seen.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let request = events.into_iter().find(|event| event["Kind"] == "llm_request");
    request.unwrap_or_else(|| panic!("{seen}"))["Payload"]["ToolsCount"].as_u64().unwrap()
}

#[test]
fn servers_of_others_work_in_a_turn_and_leave_nothing_behind() {
    let calls = format!(
        r#"{{"tool_calls": [{NOON}, {{"name": "mcp_all_get-sum", "arguments": {{"a": 1.25, "b": 2}}}},
            {{"name": "mcp_all_get-tiny-image"}}, {{"name": "mcp_time_get_current_time", "arguments": {{"timezone": "Mars/Base"}}}}]}}"#
    );
    let env = scripted(&format!("{calls},{DONE}"), &format!("{}{}", time(), everything()));
    let mut command = env.command(PINTLE);
    command.args(["run", "--session", "s", "hello"]).env("PINTLE_TEST_MARK", env.path("here"));
    let seen = env.run(&mut command, "");
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "All done.\n"), "{}", seen.err);
    assert!(!seen.err.contains("warning"), "{}", seen.err);
    let results = results(&env, "s");
    assert_eq!(results.len(), 4);
    let converted: Value = serde_json::from_str(&results[0]).unwrap();
    assert_eq!(converted["target"]["timezone"], "Asia/Tokyo");
    assert!(results[1].contains("3.25") && results[3].contains("Mars/Base"), "{results:?}");
    assert_eq!(marked(&env), 0, "processes stay behind");
}

/// How many processes carry the mark of these surroundings.
fn marked(env: &TestEnv) -> usize {
    let mark = format!("PINTLE_TEST_MARK={}", env.path("here").display());
    let folders = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let vars = folders.filter_map(|folder| std::fs::read(folder.join("environ")).ok());
    vars.filter(|vars| vars.split(|byte| *byte == 0).any(|var| var == mark.as_bytes())).count()
}

#[test]
fn a_hook_denies_the_tools_of_every_server() {
    let calls = format!(r#"{{"tool_calls": [{NOON}]}},{LISTS}"#);
    let guard = format!("{GUARD}matcher = '^mcp_.*'\n{}", time());
    let env = scripted(&format!("{calls},{DONE}"), &guard);
    let seen = env.pintle(&["run", "--quiet", "--session", "s", "hello"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "All done.\n"), "{}", seen.err);
    let results = results(&env, "s");
    assert_eq!(results[0], "Tool execution denied by hook: not today (hook \"guard\")");
    assert!(!results[1].contains("denied"), "{results:?}");
}

#[test]
fn a_server_that_is_killed_in_a_turn_is_used_again_in_it() {
    let kill = r#"{"tool_calls": [{"name": "exec", "arguments": {"command": "kill -9 $(cat pid)"}}]}"#;
    let call = format!(r#"{{"tool_calls": [{NOON}]}}"#);
    let server = installed("venv/bin").join("mcp-server-time");
    let env = TestEnv::new();
    let more = format!(
        "tools = ['exec', 'mcp_time_*']\n[mcp.servers.time]\ncommand = ['sh', '-c', 'echo $$ > {}; exec {}']\n",
        env.path("here/pid").display(),
        server.display()
    );
    env.write("config/pintle/replies.json", &format!("{{\"replies\": [{call},{kill},{call},{call},{DONE}]}}"));
    env.user_config(&format!("{MODEL}{more}"));
    let seen = env.pintle(&["run", "--session", "s", "hello"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "All done.\n"), "{}", seen.err);
    let results = results(&env, "s");
    assert!(results[0].contains("Asia/Tokyo") && results[3].contains("Asia/Tokyo"), "{results:#?}");
    // A call that comes before the end was noticed may be lost with it, and says so.
    assert!(results[2].contains("Asia/Tokyo") || results[2].contains("it was killed by signal 9"), "{results:#?}");
    assert!(seen.err.contains("was killed by signal 9"), "{}", seen.err);
}

#[test]
fn an_agent_is_offered_what_it_names_or_everything_that_is_harmless() {
    let own = [("a", "'x_one', 'x_two', 'other'"), ("b", "'x_one'")];
    assert_eq!(offered(&with_own(DONE, &own, ""), &[]), 4 + 4);
    let check = |tools: &str, count: u64| {
        let env = with_own(DONE, &own, &format!("tools = [{tools}]\n"));
        assert_eq!(offered(&env, &[]), count, "{tools}");
    };
    check("'read_file', 'mcp_a_x_*'", 3);
    check("'mcp_*_one'", 2);
    check("'mcp_a_other'", 1);
    check("'exec'", 1);
    check("", 0);
}

#[test]
fn what_is_not_there_is_a_warning_and_the_turn_goes_on() {
    let gone = "tools = ['read_file', 'mcp_a_*', 'mcp_gone_*']\n[mcp.servers.gone]\ncommand = ['no-such-program']\n";
    let env = with_own(DONE, &[("a", "'one'")], gone);
    let seen = env.pintle(&["run", "--quiet", "hello"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "All done.\n"));
    let expected = "warning: MCP server \"gone\" cannot be used: program `no-such-program` was not found through PATH\n\
                    warning: agents.main.tools: \"mcp_gone_*\" means no tool\n";
    assert_eq!(seen.err, expected);
}

#[test]
fn a_name_that_two_servers_give_is_nobodys() {
    let env = with_own(DONE, &[("a", "'b_c', 'd'"), ("a_b", "'c'")], "");
    let seen = env.pintle(&["run", "--quiet", "hello"]);
    let expected = "warning: the tool \"mcp_a_b_c\" is left out: the MCP servers a and a_b have one of that name\n";
    assert_eq!((seen.code, seen.err.as_str()), (Some(0), expected));
    assert_eq!(offered(&env, &[]), 4 + 1);
}

#[test]
fn a_server_sees_no_secret_but_those_that_are_named() {
    let ask = |name: &str| format!(r#"{{"name": "mcp_a_env", "arguments": {{"name": "{name}"}}}}"#);
    let calls = ["A_TOKEN", "B_TOKEN", "PLAIN", "OWN"].map(ask).join(",");
    let server = "[mcp.servers.a]\ncommand = ['python3', 'own.py', 'env']\ninherit_env = ['B_TOKEN']\n\
                  env = { OWN = 'laid over' }\n";
    let env = with_own(&format!(r#"{{"tool_calls": [{calls}]}},{DONE}"#), &[], server);
    let mut command = env.command(PINTLE);
    command.args(["run", "--quiet", "--session", "s", "hello"]);
    command.env("A_TOKEN", "1").env("B_TOKEN", "2").env("PLAIN", "3").env("OWN", "4");
    assert_eq!(env.run(&mut command, "").code, Some(0));
    assert_eq!(results(&env, "s"), ["A_TOKEN is None", "B_TOKEN is 2", "PLAIN is 3", "OWN is laid over"]);
}

#[test]
fn a_strangers_server_does_not_start_before_it_is_accepted() {
    let env = scripted(DONE, "");
    env.found_config("[mcp.servers.x]\ncommand = ['touch', 'ran']\n");
    let seen = env.pintle(&["run", "--quiet", "hello"]);
    assert_eq!(seen.code, Some(0), "{}", seen.err);
    assert!(seen.err.contains("left out: mcp.servers.x"), "{}", seen.err);
    assert!(!env.path("here/ran").exists());
    // What a stranger says of an agent changes nothing of the user's own.
    let env = with_own(DONE, &[("a", "'one'")], "");
    let own = offered(&env, &[]);
    env.found_config("[agents.main]\nsystem = 'x'\ntools = []\n");
    assert_eq!((offered(&env, &[]), own), (5, 5));
}

#[test]
fn a_reload_keeps_what_did_not_change_and_shakes_what_did() {
    let one = r#"{"tool_calls": [{"name": "mcp_a_one", "arguments": {"name": "HOME"}}]}"#;
    let env = with_own(&[one, DONE].repeat(4).join(","), &[("a", "'one'")], "");
    let server = |name: &str, tools: &str| format!("[mcp.servers.{name}]\ncommand = ['python3', 'own.py', {tools}]\n");
    let write = |servers: &[String]| env.user_config(&format!("{MODEL}{}", servers.concat()));
    let mut chat = Chat::start(&env, &[]);
    assert!(chat.say("look").contains("5 tools"));
    write(&[server("a", "'one'"), server("b", "'two', 'three'")]);
    chat.until("the new configuration is in force");
    assert!(chat.say("look").contains("7 tools"));
    assert_eq!(std::fs::read_to_string(env.path("config/pintle/starts")).unwrap(), "one\ntwo three\n");
    write(&[server("a", "'one'"), "[mcp.servers.b]\ncommand = ['no-such-program']\n".to_owned()]);
    assert!(chat.until("is not in force").contains("MCP server \"b\": program `no-such-program` was not found"));
    let shown = chat.say("look");
    assert!(shown.contains("7 tools") && shown.contains("◂ tool         mcp_a_one      ok"), "{shown}");
    write(&[]);
    chat.until("the new configuration is in force");
    assert!(chat.say("look").contains("4 tools"));
    assert_eq!(std::fs::read_to_string(env.path("config/pintle/starts")).unwrap(), "one\ntwo three\n");
    chat.end();
}

#[test]
fn a_server_that_comes_up_later_is_met_in_the_next_turn() {
    let env = with_own(&DONE.to_owned().replace('}', r#", "repeat": true}"#), &[("a", "'one'")], "");
    env.write("config/pintle/dead", "");
    let mut chat = Chat::start(&env, &[]);
    assert!(chat.say("look").contains("4 tools"));
    std::fs::remove_file(env.path("config/pintle/dead")).unwrap();
    // It is started again with growing pauses.
    while !chat.say("look").contains("5 tools") {}
    chat.end();
}

#[test]
fn an_address_where_nobody_listens_is_a_warning() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let env = scripted(DONE, &format!("[mcp.servers.away]\nurl = 'http://127.0.0.1:{port}/mcp'\n"));
    let seen = env.pintle(&["run", "--quiet", "hello"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "All done.\n"));
    assert!(seen.err.starts_with("warning: MCP server \"away\" cannot be used: "), "{}", seen.err);
    assert!(seen.err.contains("Connection refused") && seen.err.lines().count() == 1, "{}", seen.err);
}

#[test]
fn a_listing_knows_that_hooks_meet_at_the_tools_of_a_server() {
    let hook = |name: &str, priority: u32| {
        format!(
            "[hooks.processes.{name}]\nenabled = true\ncommand = ['sh', 'refuses.sh']\nintercept = ['before_tool']\n\
                 pair = false\nmatcher = '^mcp_a_'\npriority = {priority}\n"
        )
    };
    let env = with_own(DONE, &[("a", "'one'")], &(hook("answers", 1) + &hook("guards", 2)));
    let warning = "warning: `answers` may answer for a tool before others that also match it are asked: guards; `respond = []` in the \
                   entry of a hook says that it never answers\n";
    assert!(env.pintle(&["hooks", "list"]).out.ends_with(warning));
    assert_eq!(env.pintle(&["hooks", "lint"]).code, Some(0));
}

#[test]
fn doctor_reaches_every_server_and_knows_its_tools() {
    let guard = format!("{GUARD}matcher = '^mcp_a_one$'\n");
    let env = with_own(DONE, &[("a", "'one', 'two'")], &guard);
    let seen = env.pintle(&["doctor"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    assert!(seen.out.contains("it shook hands and listed 2 tools"), "{}", seen.out);
    assert!(seen.out.contains("guards armed 1/1"), "{}", seen.out);
    env.write("config/pintle/dead", "");
    let seen = env.pintle(&["doctor", "--json"]);
    assert_eq!(seen.code, Some(5), "the guard guards nothing that is there: {seen}");
    let found: Value = serde_json::from_str(&seen.out).unwrap();
    let server = found["checks"].as_array().unwrap().iter().find(|check| check["what"] == "mcp").unwrap();
    assert_eq!((&server["state"], &server["step"]), (&"failed".into(), &"start".into()));
    assert!(server["message"].as_str().unwrap().contains("exited with status 3"), "{server}");
    assert_eq!(env.pintle(&["hooks", "lint"]).code, Some(0));
}

#[test]
fn doctor_shows_what_a_server_that_does_not_come_up_wrote() {
    let servers = "[mcp.servers.shop]\ncommand = ['sh', '-c', 'echo starting >&2; echo no licence key >&2; exit 3']\n";
    let env = scripted(DONE, servers);
    let seen = env.pintle(&["doctor"]);
    let lines: Vec<&str> = seen.out.lines().skip_while(|line| !line.contains("shop")).collect();
    assert!(lines.len() > 2 && lines[1..3] == ["    starting", "    no licence key"], "{seen}");
}
