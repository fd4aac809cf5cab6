//! `pintle import goclaw`.

use pintle_domain::json::{Value, json};

use super::env::TestEnv;

const ID: &str = "0193a5b0-7000-7000-8000-0000000000";
const SENTINEL: &str = "0193a5b0-7000-7000-8000-000000000001";

/// Makes a database of SQLite from a script.
fn database(env: &TestEnv, name: &str, sql: &str) {
    let script = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.stdin.read())";
    let seen = env.run(env.command("python3").args(["-c", script, name]), sql);
    assert_eq!(seen.code, Some(0), "{seen}");
}

fn with_agents() -> TestEnv {
    let env = TestEnv::new();
    env.user_config("[agents.main]\n[agents.writer]\n");
    env
}

/// The older layout, as SQLite has it: texts and numbers.
fn older(env: &TestEnv) {
    let sql = format!(
        "CREATE TABLE agent_hooks (id TEXT, tenant_id TEXT, agent_ids TEXT, event TEXT, handler_type TEXT, scope TEXT,
           config TEXT, matcher TEXT, if_expr TEXT, timeout_ms INT, on_timeout TEXT, priority INT, enabled INT,
           version INT, source TEXT, name TEXT, created_at TEXT);
         CREATE TABLE agents (id TEXT, agent_key TEXT, tenant_id TEXT, other_config TEXT);
         CREATE TABLE hook_executions (id TEXT); INSERT INTO hook_executions VALUES ('1'), ('2');
         INSERT INTO agents VALUES ('{ID}a1', 'main', '{SENTINEL}',
           '{{\"quality_gates\":[{{\"event\":\"delegation.completed\",\"type\":\"command\",\"command\":\"make test\",\"block_on_failure\":true,\"max_retries\":2}},{{\"event\":\"run.done\",\"type\":\"command\"}}]}}');
         INSERT INTO agents VALUES ('{ID}a2', 'gone', '{SENTINEL}', NULL);
         INSERT INTO agent_hooks VALUES
          ('{ID}01', '{SENTINEL}', '[]', 'pre_tool_use', 'command', 'tenant', '{{\"command\":\"exit 0\"}}', '^exec$', NULL, 5000, 'block', 7, 1, 3, 'ui', 'shell', '2026-01-02T03:04:05Z'),
          ('{ID}02', '{SENTINEL}', '[]', 'pre_tool_use', 'prompt', 'global', '{{\"prompt_template\":\"Is it safe?\",\"model\":\"haiku\"}}', '^exec$', '', 5000, 'block', 0, 0, 1, 'api', 'judge', NULL),
          ('{ID}03', '{SENTINEL}', '[\"{ID}a1\",\"{ID}a2\"]', 'stop', 'http', 'agent', '{{\"url\":\"https://example.com/hook\",\"method\":\"POST\",\"headers\":{{\"Authorization\":\"Bearer secret\"}}}}', NULL, NULL, 0, 'allow', 0, 1, 1, 'ui', 'told', NULL),
          ('{ID}04', '{SENTINEL}', '[\"{ID}a2\"]', 'stop', 'command', 'agent', '{{\"command\":\"true\"}}', NULL, NULL, 0, 'allow', 0, 1, 1, 'ui', 'lost', NULL),
          ('{ID}05', '{ID}ac', '[]', 'stop', 'command', 'tenant', '{{\"command\":\"true\"}}', NULL, NULL, 0, 'allow', 0, 1, 1, 'ui', 'theirs', NULL),
          ('{ID}06', '{SENTINEL}', '[]', 'pre_tool_use', 'http', 'tenant', '{{\"url\":\"http://127.0.0.1:8080/x\"}}', NULL, NULL, 0, 'block', 0, 1, 1, 'ui', 'near', NULL),
          ('{ID}07', '{SENTINEL}', '[]', 'user_prompt_submit', 'script', 'global', '{{}}', NULL, NULL, 0, 'block', 0, 1, 2, 'builtin', 'pii-redactor', NULL),
          ('{ID}08', '{SENTINEL}', '[]', 'pre_tool_use', 'http', 'tenant', '{{\"url\":\"https://example.com/x\",\"headers\":{{\"Authorization\":\"aes-gcm:AAECAwQFBgcICQoLBWe3aaCX4mjoIuXuxdoJHgf6If3v7F79jcaI6NE=\"}}}}', NULL, NULL, 0, 'block', 0, 1, 1, 'ui', 'sealed', NULL);"
    );
    database(env, "upstream.db", &sql);
}

#[test]
fn the_older_layout_is_taken_over_once() {
    let env = with_agents();
    older(&env);
    let before = std::fs::read(env.path("here/upstream.db")).unwrap();
    let dry = env.pintle(&["import", "goclaw", "upstream.db", "--dry-run"]);
    insta::assert_snapshot!(dry, @r#"
    exit 1
    --- out
    would be imported: 4 hooks
      shell  pre_tool_use command, scope tenant
      judge  pre_tool_use prompt, scope global, off
      told  stop http, scope agent
      quality gate 1 of main  subagent_start command, scope agent
    not imported:
      agent_hooks "lost": agent "gone" is not configured here
      agent_hooks "theirs": it is of tenant [id], and several tenants need edition standard
      agent_hooks "near": hook: http handler: ssrf check: ssrf: IP 127.0.0.1 is in a blocked range
      agent_hooks "pii-redactor": it was on, and the one that this program ships is off: `pintle hooks enable [id]`
      agent_hooks "sealed": its config.headers.authorization: decrypt failed: the tag does not fit; the value was altered, moved here or sealed with another key; set GOCLAW_ENCRYPTION_KEY, or PINTLE_ENCRYPTION_KEYS_OLD, to the key of the other program
      quality gate 2 of main: its event "run.done" is unknown; gates had "delegation.completed" only
    to know:
      agent_hooks "shell": what it changes counts only as `updatedInput: {toolInput: …}` or `{rawInput: …}`, and with `may_rewrite`
      agent_hooks "judge": it is off, as it was
      agent_hooks "told": it is about fewer agents: agent "gone" is not configured here
      agent_hooks "told": it observes: what it adds (`additionalContext`) lands nowhere, and what it changes neither
      quality gate 1 of main: it is asked before the task is delegated, and no longer about its result
      quality gate 1 of main: nothing is tried again: a block is the end of it
      hook_executions: 2 rows of history stay where they are
    "#);
    let found = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let none = found(&env.raw(&["import", "goclaw", "upstream.db", "--dry-run", "--json"]));
    assert_eq!((none["imported"].as_array().unwrap().len(), none["present"].as_array().unwrap().len()), (4, 0));
    let done = env.on_terminal("", &["import", "goclaw", "upstream.db"]);
    assert!(done.code == Some(1) && done.out.contains("imported: 4 hooks"), "{done}");
    let again = found(&env.raw(&["import", "goclaw", "upstream.db", "--dry-run", "--json"]));
    assert_eq!((again["imported"].as_array().unwrap().len(), again["present"].as_array().unwrap().len()), (0, 4));
    assert_eq!(again["present"][0], format!("{ID}01"));
    assert_eq!(std::fs::read(env.path("here/upstream.db")).unwrap(), before);
}

#[test]
fn what_the_old_key_encrypted_is_taken_as_it_is() {
    let env = with_agents();
    older(&env);
    let key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    let mut command = env.command(super::env::PINTLE);
    command.env("GOCLAW_ENCRYPTION_KEY", key).args(["import", "goclaw", "upstream.db", "--dry-run", "--json"]);
    let seen = env.run(&mut command, "");
    let found: Value = serde_json::from_str(&seen.out).unwrap();
    let names: Vec<&Value> = found["imported"].as_array().unwrap().iter().map(|hook| &hook["name"]).collect();
    assert!(names.contains(&&json!("sealed")), "{seen}");
}

#[test]
fn the_newer_layout_keeps_agents_apart() {
    let env = with_agents();
    let sql = format!(
        "CREATE TABLE hooks (id TEXT, tenant_id TEXT, event TEXT, handler_type TEXT, scope TEXT, config TEXT, enabled INT, name TEXT);
         CREATE TABLE hook_agents (hook_id TEXT, agent_id TEXT);
         CREATE TABLE agents (id TEXT, agent_key TEXT);
         CREATE TABLE agent_hooks (id TEXT, event TEXT, handler_type TEXT, scope TEXT, config TEXT, name TEXT);
         INSERT INTO agents VALUES ('{ID}a1', 'writer');
         INSERT INTO hooks VALUES ('{ID}11', '{SENTINEL}', 'subagent_start', 'command', 'agent', '{{\"command\":\"exit 0\"}}', 1, 'spawn');
         INSERT INTO hook_agents VALUES ('{ID}11', '{ID}a1');
         INSERT INTO agent_hooks VALUES ('{ID}11', 'subagent_start', 'command', 'global', '{{\"command\":\"exit 2\"}}', 'leftover');"
    );
    database(&env, "newer.db", &sql);
    let done = env.on_terminal("", &["import", "goclaw", "sqlite://newer.db"]);
    insta::assert_snapshot!(done, @r#"
    exit 0
    --- out
    imported: 1 hook
      spawn  subagent_start command, scope agent
    to know:
      hooks "spawn": what it changes counts only as `updatedInput: {toolInput: …}` or `{rawInput: …}`, and with `may_rewrite`
    "#);
}

#[test]
fn a_server_is_read_too() {
    let env = with_agents();
    let server = pintle_testkit::postgres::Server::start();
    let url = server.fresh_database();
    let sql = format!(
        "CREATE TABLE agent_hooks (id UUID, tenant_id UUID, agent_ids UUID[], event TEXT, handler_type TEXT, scope TEXT,
           config JSONB, enabled BOOL, name TEXT);
         INSERT INTO agent_hooks VALUES ('{ID}21', '{SENTINEL}', '{{}}', 'pre_tool_use', 'command', 'tenant',
           '{{\"command\": \"exit 0\"}}', true, 'far')"
    );
    server.execute(&url, &sql);
    let seen = env.pintle(&["import", "goclaw", &url, "--dry-run"]);
    insta::assert_snapshot!(seen, @r#"
    exit 0
    --- out
    would be imported: 1 hook
      far  pre_tool_use command, scope tenant
    to know:
      agent_hooks "far": what it changes counts only as `updatedInput: {toolInput: …}` or `{rawInput: …}`, and with `may_rewrite`
    "#);
}

#[test]
fn what_is_no_source_says_what_is() {
    let env = with_agents();
    env.write("here/letter.txt", "Dear Ada,");
    env.write("here/empty.json", "{}");
    env.write("here/table.json", r#"{"agents": [], "hooks": {"name": "guard"}}"#);
    std::fs::write(env.path("here/latin.json"), b"[{\"name\": \"\xe9\"}]").unwrap();
    let check = |source: &str, code: i32, said: &str| {
        let seen = env.pintle(&["import", "goclaw", source, "--dry-run"]);
        assert!(seen.code == Some(code) && seen.err.contains(said), "{source}: {seen}");
    };
    check("none.db", 2, "none.db cannot be read");
    check("letter.txt", 2, "neither a database of SQLite nor JSON");
    check("empty.json", 2, "holds nothing of GoClaw");
    check("table.json", 2, "`hooks` is {\"name\":\"guard\"}; expected a list of rows");
    check("latin.json", 2, "neither a database of SQLite nor JSON: it is not UTF-8");
    check("mysql://ada:secret@db/x", 2, "unknown scheme `mysql`");
    check("sqlite://none.db", 1, "there is no file");
    let seen = env.pintle(&["import", "goclaw", "empty.json"]);
    assert_eq!(seen.code, Some(5), "{seen}");
}

#[test]
fn what_cannot_be_read_is_named_and_no_default_takes_its_place() {
    let env = with_agents();
    let hook = |id: &str, more: Value| {
        let mut hook = json!({"id": format!("{ID}{id}"), "name": id, "event": "stop", "handler_type": "command",
                              "scope": "tenant", "config": {"command": "true"}});
        more.as_object().unwrap().iter().for_each(|(name, value)| hook[name] = value.clone());
        hook
    };
    let gate = json!({"type": "agent", "agent": "qa"});
    let export = json!({
        "hooks": [
            hook("31", json!({"timeout_ms": "soon"})),
            hook("32", json!({"enabled": "maybe"})),
            hook("33", json!({"config": "{\"command\":"})),
            hook("34", json!({"matcher": 7})),
            hook("35", json!({"scope": "agent", "agent_ids": [format!("{ID}a1"), 7]})),
            hook("36", json!({"scope": "planet"})),
            hook("37", json!({"created_at": "x", "retries": 3, "tags": []})),
            hook("37", json!({"name": "copy"})),
            hook("38", json!({"created_at": "2026-01-02 03:04:05", "enabled": 0})),
            {"scope": "tenant"},
            9,
        ],
        "agents": [
            {"id": format!("{ID}a1"), "agent_key": "main", "other_config": {"quality_gates": [gate]}},
            {"id": format!("{ID}a2"), "agent_key": "writer", "other_config": {"quality_gates": gate}},
            {"id": format!("{ID}a3"), "agent_key": "cut", "other_config": "{\"quality_gates\":["},
        ],
        "tenants": [{"id": format!("{ID}ac"), "slug": "acme"}],
        "tenant_hook_budget": [{"tenant_id": format!("{ID}ac"), "budget_total": 5}, {"tenant_id": "", "budget_total": 7}],
    });
    env.write("here/export.json", &format!("\u{feff}{export}"));
    let seen = env.pintle(&["import", "goclaw", "export.json", "--dry-run"]);
    insta::assert_snapshot!(seen, @r#"
    exit 1
    --- out
    would be imported: 3 hooks
      37  stop command, scope tenant
      38  stop command, scope tenant, off
      quality gate 1 of main  subagent_stop prompt, scope agent, off
    not imported:
      hooks "31": its timeout_ms is "soon"; expected a whole number
      hooks "32": its enabled is "maybe"; expected true or false
      hooks "33": its config is "{\"command\":"; expected a JSON object
      hooks "34": its matcher is 7; expected a text
      hooks "35": its agent_ids is 7; expected a text for each of them
      hooks "36": its scope is "planet"; expected global, tenant or agent
      hooks "copy": another record has its id, [id], and was imported first
      hooks row 10: handler_type, event, and scope are required
      hooks row 11: it is not an object with a hook's settings
      quality gates of writer: its quality_gates is {"type":"agent","agent":"qa"}; expected a JSON list
      quality gates of cut: its other_config is "{\"quality_gates\":["; expected a JSON object
    to know:
      hooks "37": it observes: what it adds (`additionalContext`) lands nowhere, and what it changes neither
      hooks "37": its created_at is "x"; expected a time such as "[at]"; among hooks of its priority it comes after those that were made before today
      hooks "38": it observes: what it adds (`additionalContext`) lands nowhere, and what it changes neither
      hooks "38": it is off, as it was
      quality gate 1 of main: it is off: what its agent judged by is not known here; write its prompt_template, then enable it
      hooks: columns that are not used here: retries
      budget of [id]: it is of tenant acme, and several tenants need edition standard
      budget of default: to have the same here: pintle budget set --tenant default 7
    "#);
}

#[test]
fn one_record_is_read_and_what_it_means_otherwise_is_said() {
    let env = with_agents();
    let record = json!({
        "event": "pre_tool_use", "handler_type": "command", "scope": "tenant", "name": "shell", "matcher": "^exec$",
        "if_expr": "tool_input.command.size() > 3", "config": {"command": "exit 0"},
    });
    let request = json!({"type": "req", "id": "1", "method": "hooks.create", "params": record});
    for text in [record.to_string(), request.to_string()] {
        env.write("here/one.json", &text);
        let seen = env.pintle(&["import", "goclaw", "one.json", "--dry-run"]);
        assert_eq!(seen.code, Some(0), "{seen}");
        assert!(seen.out.contains("would be imported: 1 hook\n  shell  pre_tool_use command"), "{seen}");
        assert!(seen.out.contains("its `if_expr` blocks where a member that it names is absent"), "{seen}");
    }
    // Whoever answers may change the input at a gate, and add a text that lands nowhere elsewhere; a judge does neither.
    let (changes, adds) = ("what it changes counts only as `updatedInput", "(`additionalContext`) lands nowhere");
    for (handler, config) in [
        ("command", json!({"command": "exit 0"})),
        ("http", json!({"url": "https://example.com/hook"})),
        ("script", json!({"source": "function handle(event) { return {decision: \"allow\"}; }"})),
        ("prompt", json!({"prompt_template": "Is it safe?"})),
    ] {
        for (event, told) in [("pre_tool_use", changes), ("post_tool_use", adds)] {
            let record = json!({"event": event, "handler_type": handler, "scope": "tenant", "name": "one",
                "matcher": "^exec$", "config": config});
            env.write("here/one.json", &record.to_string());
            let seen = env.pintle(&["import", "goclaw", "one.json", "--dry-run"]);
            let other = if told == changes { adds } else { changes };
            let wanted = handler != "prompt";
            assert_eq!(
                (seen.out.contains(told), seen.out.contains(other)),
                (wanted, false),
                "{handler} {event}: {seen}"
            );
        }
    }
}

#[test]
fn a_shipped_guard_that_was_on_is_left_out_until_it_is_on_here() {
    let env = with_agents();
    let row = json!([{
        "id": "x", "event": "user_prompt_submit", "handler_type": "script", "scope": "global", "name": "pii-redactor",
        "source": "builtin", "enabled": true, "config": {},
    }]);
    env.write("here/export.json", &row.to_string());
    let seen = env.pintle(&["import", "goclaw", "export.json", "--dry-run"]);
    assert!(
        seen.code == Some(1) && seen.out.contains("it was on, and the one that this program ships is off"),
        "{seen}"
    );
    let hint = env.raw(&["import", "goclaw", "export.json", "--dry-run"]);
    let id = hint.split("hooks enable ").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
    env.on_terminal("", &["hooks", "enable", id]);
    assert_eq!(env.pintle(&["import", "goclaw", "export.json", "--dry-run"]).code, Some(0));
}

#[test]
fn what_comes_into_a_store_in_use_is_sealed_as_any_change() {
    let env = with_agents();
    older(&env);
    assert_eq!(env.pintle(&["hooks", "list"]).code, Some(0));
    let done = env.on_terminal("", &["import", "goclaw", "upstream.db"]);
    assert!(done.out.contains("imported: "), "{done}");
    let seen = env.pintle(&["hooks", "list"]);
    assert!(seen.out.contains("shell") && !format!("{seen}").contains("store accept"), "{seen}");
}
