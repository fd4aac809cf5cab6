//! Gates: what they refuse, ask and rewrite, what their silence means, and when their breaker opens.

use pintle_domain::json::{Value, json};

use super::TWO_AGENTS;
use super::stage::{Model, calls, command, dumped, dumps, history, runs, says, script, turn, whole_turn};
use crate::env::TestEnv;

/// A rule that refuses whatever holds the word `forbidden`.
fn refuses(event: &str, more: &str) -> String {
    let handle = "return JSON.stringify(event).includes('forbidden') ? { decision: 'block', reason: 'not here' } \
                  : { decision: 'allow' };";
    script("guard", event, more, handle)
}

fn ran(env: &TestEnv) -> String {
    std::fs::read_to_string(env.path("here/ran")).unwrap_or_default()
}

/// The result of the last call, as the model read it in its last request.
fn result(model: &Model) -> String {
    model.asked(model.requests().len() - 1).pop().unwrap()
}

#[test]
fn a_blocked_prompt_goes_no_further() {
    let model = Model::giving(vec![says("Hello.")]);
    let env = model.env("tools = []\n", &(refuses("user_prompt_submit", "") + &dumps("stop", "stop", "")));
    let seen = turn(&env, "the forbidden word");
    assert_eq!((seen.code, seen.out.as_str()), (Some(4), ""));
    let said: Vec<&str> = seen.err.lines().filter(|line| !line.contains("replaceable by the agent")).collect();
    assert_eq!(said, ["hook blocked user_prompt_submit: guard: not here"]);
    assert_eq!((model.requests().len(), dumped(&env, "stop").len()), (0, 0));
    assert_eq!(whole_turn(&env, "good morning"), "Hello.\n");
    assert_eq!(model.asked(0), ["user: good morning"]);
}

#[test]
fn a_blocked_call_runs_nothing_and_both_are_told_why() {
    let model = Model::giving(vec![runs("c1", "echo forbidden >>ran"), says("Then not.")]);
    let rules = refuses("pre_tool_use", "matcher = '^exec$'") + &dumps("post", "post_tool_use", "");
    let env = model.env("tools = ['exec']\n", &rules);
    let seen = env.pintle(&["run", "--session", "s", "go"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "Then not.\n"), "{seen}");
    assert_eq!(result(&model), "tool: Hook blocked: pre_tool_use: guard: not here");
    assert!(seen.err.contains("guard") && seen.err.contains("not here"), "{seen}");
    assert_eq!((ran(&env).as_str(), dumped(&env, "post").len()), ("", 0));
}

#[test]
fn a_blocked_spawn_starts_no_agent() {
    let task = json!({"agent": "helper", "task": "a forbidden thing"});
    let model = Model::giving(vec![calls(&[("c1", "delegate", task)]), says("Alone, then.")]);
    let env = model.env(TWO_AGENTS, &(refuses("subagent_start", "") + &dumps("stop", "subagent_stop", "")));
    assert_eq!(whole_turn(&env, "go"), "Alone, then.\n");
    assert_eq!(result(&model), "tool: delegation to \"helper\" blocked by hook policy: guard: not here");
    assert_eq!((model.requests().len(), dumped(&env, "stop").len()), (2, 0));
}

#[test]
fn what_a_rule_asks_waits_for_a_person_and_runs_once() {
    let model = Model::giving(vec![runs("c1", "echo once >>ran; echo written"), says("It is written.")]);
    let env = model.env(
        "tools = ['exec']\n",
        &script("asks", "pre_tool_use", "", "return { decision: 'ask', reason: 'is it meant?' };"),
    );
    let seen = turn(&env, "go");
    assert_eq!((seen.code, ran(&env).as_str()), (Some(75), ""), "{seen}");
    assert!(seen.err.contains("hook \"asks\" asks: is it meant?"), "{seen}");
    let list: Value = serde_json::from_str(&env.raw(&["approvals", "list", "--json"])).unwrap();
    let id = list[0]["id"].as_str().unwrap();
    assert_eq!(env.on_terminal("", &["approvals", "approve", id]).code, Some(0));
    let seen = env.pintle(&["sessions", "resume", "--quiet", "s"]);
    assert_eq!((seen.code, seen.out.as_str(), ran(&env).as_str()), (Some(0), "It is written.\n", "once\n"), "{seen}");
    assert_eq!(env.pintle(&["sessions", "resume", "--quiet", "s"]).code, Some(1));
    assert_eq!(ran(&env), "once\n");
}

#[test]
fn a_gate_that_is_silent_does_what_it_says_of_that() {
    // Waits for ever for a line that nobody writes.
    let silent = |on_timeout: &str| {
        let more = format!("timeout_ms = 200\non_timeout = '{on_timeout}'");
        command("silent", "pre_tool_use", &more, "mkfifo never; read line <never")
    };
    let cases = [
        ("block", "tool: Hook blocked: pre_tool_use: silent: hook \"silent\" did not answer within 200ms", ""),
        ("allow", "tool: hi\n", "hi\n"),
    ];
    for (word, result_is, ran_is) in cases {
        let model = Model::giving(vec![runs("c1", "echo hi >>ran; cat ran"), says("Done.")]);
        let env = model.env("tools = ['exec']\n", &silent(word));
        assert_eq!(whole_turn(&env, "go"), "Done.\n");
        assert_eq!((result(&model).as_str(), ran(&env).as_str()), (result_is, ran_is));
        assert_eq!(history(&env)[0]["decision"], "timeout");
    }
}

#[test]
fn a_rewrite_takes_the_right_to_it() {
    let rewrites = |more: &str| {
        let handle = "return { decision: 'allow', updatedInput: { toolInput: { command: 'echo new >>ran' } } };";
        script("rewrites", "pre_tool_use", more, handle)
    };
    let dropped = "dropped: it may not change command";
    for (may, ran_is, said) in [("may_rewrite = false", "old\n", dropped), ("may_rewrite = true", "new\n", "applied")] {
        let model = Model::giving(vec![runs("c1", "echo old >>ran"), says("Done.")]);
        let env = model.env("tools = ['exec']\n", &(rewrites(may) + &dumps("post", "post_tool_use", "")));
        let seen = env.pintle(&["run", "-v", "--session", "s", "go"]);
        assert_eq!((seen.code, ran(&env).as_str()), (Some(0), ran_is), "{seen}");
        assert_eq!(seen.err.contains("hooks.script_mutation_denied"), ran_is == "old\n", "{seen}");
        let command = format!("echo {} >>ran", ran_is.trim());
        assert_eq!(dumped(&env, "post")[0]["ToolInput"], json!({ "command": command }));
        assert!(
            model.asked(1)[1].ends_with(&format!("[exec({})]", json!({ "command": command }))),
            "{:?}",
            model.asked(1)
        );
        let rows = history(&env);
        let row = rows.iter().find(|row| row["hook_name"] == "rewrites").unwrap();
        assert_eq!((&row["decision"], &row["metadata"]["rewrite"]), (&json!("allow"), &json!(said)));
    }
}

#[test]
fn what_a_command_wrote_is_kept_for_a_person_unless_a_hook_took_something_out() {
    let handle =
        "return { decision: 'allow', updatedInput: { rawInput: event.rawInput.replace('sesame', '[a word]') } };";
    let model = Model::giving(vec![runs("c1", "true"), says("Done.")]);
    let rules = command("early", "user_prompt_submit", "priority = 100", "cat >&2")
        + &script("redacts", "user_prompt_submit", "may_rewrite = true", handle)
        + &command("talks", "pre_tool_use", "", "echo '{}'; echo 'looked at it' >&2");
    let env = model.env("tools = ['exec']\n", &rules);
    assert_eq!(whole_turn(&env, "open sesame"), "Done.\n");
    let rows = history(&env);
    let details = |name: &str| -> Vec<String> {
        let own = rows.iter().filter(|row| row["hook_name"] == name);
        let detail = |row: &Value| env.on_terminal("", &["hooks", "history", "--detail", row["id"].as_str().unwrap()]);
        own.map(|row| detail(row).to_string()).collect()
    };
    let talks = details("talks");
    assert!(
        talks.len() == 1 && talks[0].contains("stdout: {}") && talks[0].contains("stderr: looked at it"),
        "{talks:?}"
    );
    let early = details("early");
    assert_eq!(early.len(), 2, "it was asked again");
    assert!(early.iter().all(|seen| seen.contains("nothing more is kept") && !seen.contains("sesame")), "{early:?}");
    assert!(rows.iter().any(|row| row["hook_name"] == "early" && row["metadata"]["stderr_len"].as_u64() > Some(0)));
}

#[test]
fn five_blocks_open_a_breaker_and_a_person_closes_it() {
    let push = |id: &str| runs(id, "echo forbidden");
    let (blocked, done) = ("tool: Hook blocked: pre_tool_use: guard: not here", says("Well."));
    let model = Model::giving(vec![
        push("c1"),
        push("c2"),
        push("c3"),
        done.clone(),
        push("c4"),
        push("c5"),
        push("c6"),
        runs("c7", "echo harmless >>ran"),
        done.clone(),
        push("c8"),
        done,
    ]);
    let env = model.env("tools = ['exec']\n", "");
    let rule = env.write("here/guard.toml", &refuses("pre_tool_use", "matcher = '^exec$'"));
    assert_eq!(env.on_terminal("", &["hooks", "add", rule.to_str().unwrap()]).code, Some(0));
    whole_turn(&env, "go");
    let last = |n: usize| env.redact(&model.asked(n).pop().unwrap());
    assert_eq!([1, 2, 3].map(last), [blocked; 3]);
    whole_turn(&env, "go on");
    assert_eq!([5, 6].map(last), [blocked; 2]);
    let off = "tool: Hook blocked: pre_tool_use: guard: hook \"guard\" ([id]) is off since [at]: circuit breaker, 5 blocks/timeouts in \
               [time]; matching calls are refused until an administrator re-enables it (pintle hooks reset [id])";
    // Also what it would have allowed.
    assert_eq!([7, 8].map(last), [off; 2]);
    let why = env.raw(&["why", "-v", "--last"]);
    let lines: Vec<&str> = why.lines().map(str::trim).filter(|line| line.starts_with("guard ")).collect();
    let (asked, not_asked) = lines.split_at(2);
    assert!(asked.iter().all(|line| line.contains(" deny ") && line.ends_with("not here")), "{why}");
    assert_eq!(not_asked, ["guard              rule     skipped: breaker open → deny"; 2]);
    assert_eq!(ran(&env), "");
    assert_eq!(env.on_terminal("", &["hooks", "enable", "guard"]).code, Some(0));
    whole_turn(&env, "once more");
    assert_eq!(last(10), blocked);
}

#[test]
fn a_judge_without_a_budget_is_not_asked_and_refuses() {
    let model = Model::giving(vec![runs("c1", "echo hi >>ran"), says("Well.")]);
    let judge = "[[hook]]\nname = 'judge'\nevent = 'pre_tool_use'\nhandler_type = 'prompt'\nscope = 'tenant'\n\
                 matcher = '^exec$'\n[hook.config]\nprompt_template = 'Be kind.'\n";
    let env = model.env("tools = ['exec']\n", judge);
    assert_eq!(env.on_terminal("", &["budget", "set", "0"]).code, Some(0));
    whole_turn(&env, "go");
    let told = result(&model);
    assert!(told.starts_with("tool: Hook blocked: pre_tool_use: judge: tenant budget exceeded: "), "{told}");
    assert_eq!((ran(&env).as_str(), model.requests().len()), ("", 2), "nobody judged, and nothing ran");
    let why = env.raw(&["why", "-v", "--last"]);
    let line = "judge              rule     skipped: budget spent: ";
    assert!(
        why.contains(line) && why.contains(" tokens needed, ") && why.contains(" left to tenant default until "),
        "{why}"
    );
    let why: Value = serde_json::from_str(&env.raw(&["why", "--last", "--json"])).unwrap();
    let lines = why.as_array().unwrap().iter().flat_map(|event| event["hooks"].as_array().unwrap());
    let judged: Vec<&Value> = lines.filter(|line| line["hook"] == "judge").collect();
    let line = json!({"hook": "judge", "family": "agent", "checkpoint": "pre_tool_use", "ran": false,
                      "reason": "budget spent", "value": judged[0]["value"], "verdict": "deny"});
    assert_eq!(judged, [&line]);
    let row = history(&env).pop().unwrap();
    let need = format!("tenant budget exceeded: {}", judged[0]["value"].as_str().unwrap());
    assert_eq!([&row["decision"], &row["reason"]], ["block", need.as_str()]);
}

#[test]
fn a_rule_of_an_agent_binds_its_helpers() {
    let task = json!({"agent": "helper", "task": "do it"});
    let model = Model::giving(vec![
        calls(&[("c1", "delegate", task)]),
        runs("c2", "echo forbidden >>ran"),
        says("I may not."),
        says("It was not allowed."),
        runs("c3", "echo forbidden >>ran"),
        says("I did it."),
    ]);
    let rule = refuses("pre_tool_use", "matcher = '^exec$'\nagent_ids = ['main']").replace("'tenant'", "'agent'");
    let env = model.env(TWO_AGENTS, &rule);
    assert_eq!(whole_turn(&env, "go"), "It was not allowed.\n");
    assert_eq!(model.asked(2).pop().unwrap(), "tool: Hook blocked: pre_tool_use: guard: not here");
    let denied = model.asked(3).pop().unwrap();
    assert!(denied.contains("not here"), "what a helper was denied is in its result: {denied}");
    assert_eq!(ran(&env), "");
    let seen = env.pintle(&["run", "--quiet", "--agent", "helper", "do it"]);
    assert_eq!((seen.out.as_str(), ran(&env).as_str()), ("I did it.\n", "forbidden\n"), "{seen}");
}
