//! What people read besides lists: hints that can be pasted, questions that are over, turns that failed, and lines that
//! fit.

use super::env::{PINTLE, TestEnv};
use super::run::{DONE, GUARD, LISTS, scripted};

/// A call that a person is asked about, and what comes when another message is sent instead.
const ASKS: &str = r#"
    {"when": {"contains": "write"}, "tool_calls": [{"name": "exec", "arguments": {"command": "echo once"}}]},
    {"text": "Fine.", "repeat": true}"#;

#[test]
fn a_question_whose_turn_is_over_waits_no_more() {
    let env = scripted(ASKS, "tools = ['exec']\nask = ['exec']\n");
    assert_eq!(env.pintle(&["run", "--quiet", "--session", "s", "write it"]).code, Some(75));
    let of_turn = |args: &[&str]| env.pintle(args).out;
    assert!(of_turn(&["why"]).contains("1 waiting for a person"), "{}", of_turn(&["why"]));
    assert!(of_turn(&["why", "--list"]).contains("1 waiting"));
    assert_eq!(env.pintle(&["run", "--quiet", "--session", "s", "never mind"]).code, Some(0));
    let list = of_turn(&["why", "--list"]);
    assert!(list.lines().count() >= 2 && !list.contains("waiting"), "{list}");
    let denied = of_turn(&["why", "--denied"]);
    assert!(denied.contains("a person was asked, and the question is over: it did not run"), "{denied}");
    let turns: pintle_domain::json::Value = serde_json::from_str(&env.raw(&["why", "--list", "--json"])).unwrap();
    let first = turns.as_array().unwrap().last().unwrap()["turn_id"].as_str().unwrap().to_owned();
    let why = of_turn(&["why", &first]);
    assert!(why.contains("1 no longer waiting") && !why.contains("waiting for a person"), "{why}");
}

#[test]
fn a_turn_that_failed_says_why_and_nothing_secret() {
    let failing = r#"{"error": {"kind": "final", "message": "out of order, password=hunter2"}}"#;
    let env = scripted(failing, "");
    assert_eq!(env.pintle(&["run", "--quiet", "hello"]).code, Some(1));
    for args in [&["why"][..], &["why", "-v"]] {
        let why = env.pintle(args);
        assert!(why.code == Some(0) && why.out.contains("out of order"), "{why}");
        assert!(!why.out.contains("hunter2"), "{why}");
        assert!(!why.out.contains("continue"), "nobody ruled on an error: {why}");
    }
    assert!(env.pintle(&["why"]).out.contains("✗ the turn failed: "));
    let list = env.pintle(&["why", "--list"]).out;
    assert!(list.contains("0 calls, ended with an error\n"), "{list}");
    let listed = env.raw(&["why", "--list", "--json"]);
    assert!(
        listed.contains("\"error\": ") && listed.contains("out of order") && !listed.contains("hunter2"),
        "{listed}"
    );
}

#[test]
fn hints_lead_to_the_configuration_and_the_state_that_were_given() {
    let env = TestEnv::new();
    env.write("here/other.json", &format!("{{\"replies\": [{LISTS}, {DONE}]}}"));
    env.write("here/refuses.sh", "exit 1\n");
    env.write(
        "here/own.toml",
        &format!(
            "[providers.scripted]\nkind = 'scripted'\nscript = 'other.json'\n[agents.main]\nmodel = 'scripted/test'\n{GUARD}"
        ),
    );
    let given = |words: &[&str]| env.pintle(&[&["-c", "own.toml", "--home", "state"][..], words].concat());
    let strict = given(&["run", "--strict", "hello"]);
    assert!(strict.code == Some(5) && strict.err.contains("`pintle doctor -c own.toml --home state`"), "{strict}");
    let none = given(&["sessions", "show", "nobody"]);
    assert!(none.code == Some(2) && none.err.contains("`pintle sessions list -c own.toml --home state`"), "{none}");
    let history = given(&["hooks", "history", "guard"]);
    assert!(history.code == Some(2) && history.err.contains("is a process hook"), "{history}");
    assert!(history.err.contains("`pintle why --hook guard -c own.toml --home state`"), "{history}");
    given(&["run", "--quiet", "--session", "s", "hello"]);
    given(&["run", "--quiet", "--session", "t", "hello"]);
    let more = given(&["sessions", "list", "--limit", "1"]);
    let next = more.err.split('`').nth(1).unwrap_or_else(|| panic!("{more}"));
    assert_eq!(next, "pintle -c own.toml --home state sessions list --limit 1 --after t");
    let next: Vec<&str> = next.split(' ').skip(1).collect();
    assert!(env.pintle(&next).out.starts_with("s\n"), "the hint does what it says");
}

#[test]
fn two_files_in_one_folder_are_a_mistake_wherever_mistakes_are_shown() {
    let env = TestEnv::new();
    env.found_config("[agents.main]\n");
    env.write("here/pintle.json", "{}");
    let lint = env.pintle(&["hooks", "lint"]);
    assert!(lint.code == Some(2) && lint.out.contains("are there; keep one of them"), "{lint}");
    let doctor = env.pintle(&["doctor"]);
    assert!(doctor.code == Some(1) && doctor.out.contains("✗ configuration"), "{doctor}");
    // Nor is a file in order that does not parse, though nobody accepted it.
    std::fs::remove_file(env.path("here/pintle.json")).unwrap();
    env.found_config("[agents.main\n");
    let doctor = env.pintle(&["doctor"]);
    assert!(doctor.code == Some(1) && doctor.out.contains("✗ configuration"), "{doctor}");
}

/// A home in which everything happened that has lines of its own: hooks of all kinds that do and do not work, calls that
/// were blocked, failed turns, sessions, an approval, a broken rule, a skill.
fn busy() -> TestEnv {
    let env = scripted(
        &format!(
            r#"{{"when": {{"contains": "write"}}, "tool_calls": [{{"name": "exec", "arguments": {{"command": "echo once and for all, whatever anybody says about it in how many words"}}}}]}},
               {{"when": {{"contains": "fail"}}, "error": {{"kind": "final", "message": "the model server is out of order and will be for some time, they say"}}, "repeat": true}},
               {LISTS}, {{"text": "Done.", "repeat": true}}"#
        ),
        "tools = ['exec', 'list_dir']\nask = ['exec']\n[agent_hooks]\ndir = 'hooks.d'\n",
    );
    let config = env.path("config/pintle/pintle.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let hook = |name: &str, more: &str| GUARD.replace("processes.guard", &format!("processes.{name}")) + more;
    let hooks = GUARD.to_owned()
        + "matcher = '^list_dir$'\n"
        + &hook("blind", "matcher = '^exce$'\n")
        + &hook("gone", "matcher = '^web_fetch$'\n").replace("'refuses.sh'", "'no-such-file.sh'")
        + &hook("off", "").replace("enabled = true", "enabled = false")
        + &hook("wrong", "priorty = 3\nmatcher = '^web_fetch$'\n");
    std::fs::write(&config, text + &hooks).unwrap();
    let rule = "[[hook]]\nname = 'filed'\nevent = 'stop'\nhandler_type = 'script'\nscope = 'tenant'\n\
                config.source = 'function handle() { return { decision: \"allow\" }; }'\n";
    env.write(
        "config/pintle/hooks.d/team.toml",
        &format!(
            "{rule}{}",
            rule.replace("filed", "blind-rule").replace("'stop'", "'pre_tool_use'\nmatcher = '^exce$'")
        ),
    );
    env.write(
        "config/pintle/hooks.d/bad.toml",
        &rule.replace("filed", "broken").replace("scope", "priorty = 3\nscope"),
    );
    for (session, message) in [("a", "hello"), ("b", "write it"), ("c", "fail")] {
        env.pintle(&["run", "--quiet", "--session", session, message]);
    }
    env
}

/// The commands that print something for people, in a home where all of them have something to say.
const OUTPUTS: [&[&str]; 30] = [
    &["run", "hello"],
    &["run", "--strict", "hello"],
    &["hooks", "list"],
    &["hooks", "show", "guard"],
    &["hooks", "show", "blind"],
    &["hooks", "show", "filed"],
    &["hooks", "show", "broken"],
    &["hooks", "show", "nobody"],
    &["hooks", "history"],
    &["hooks", "history", "guard"],
    &["hooks", "test", "guard", "--tool", "exce"],
    &["hooks", "test", "blind", "--tool", "exce"],
    &["hooks", "lint"],
    &["hooks", "add", "nowhere.toml"],
    &["doctor"],
    &["why"],
    &["why", "-v"],
    &["why", "--list"],
    &["why", "--denied"],
    &["why", "--hook", "guard"],
    &["why", "--hook", "gaurd"],
    &["sessions", "list"],
    &["sessions", "show", "b"],
    &["sessions", "show", "nobody"],
    &["sessions", "resume", "b"],
    &["approvals", "list"],
    &["approvals", "approve", "1"],
    &["skills", "list"],
    &["audit", "verify"],
    &["import", "goclaw", "export.json", "--dry-run"],
];

/// An export with something to say of each of its hooks.
const EXPORT: &str = r#"[
    {"event": "pre_tool_use", "handler_type": "script", "scope": "tenant", "name": "one", "matcher": "^exce$",
     "config": {"source": "function handle() { return { decision: \"allow\" }; }"}},
    {"event": "nowhere", "handler_type": "script", "scope": "tenant", "name": "a hook whose event nobody knows"}]"#;

/// What is wrong with the lines of `text`, which were to fit `columns`.
fn faults(text: &str, columns: usize) -> Vec<String> {
    let units = ["ms", "µs", "s", "bytes", "tokens", "min"];
    let is_number = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(|c| c.is_ascii_digit() || c == '.')
    };
    let lines: Vec<&str> = text.lines().collect();
    let mut faults = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        if line.ends_with(' ') {
            faults.push(format!("a blank at the end: {line:?}"));
        }
        let next = lines.get(number + 1).and_then(|next| next.split_whitespace().next()).unwrap_or_default();
        let last = line.split_whitespace().next_back().unwrap_or_default();
        if is_number(last) && units.contains(&next.trim_end_matches([',', '.', ';', ')'])) {
            faults.push(format!("{last} and {next} are torn: {line:?}"));
        }
        // A path or a command has no place to break, nor has a line of one word.
        let whole = line.trim_start().trim_start_matches(['`', '"']);
        let is_whole = whole.starts_with("pintle ") || whole.starts_with('/') || !whole.contains(' ');
        if line.chars().count() > columns && !is_whole {
            faults.push(format!("{} columns: {line:?}", line.chars().count()));
        }
        // Between two words of a sentence stands one blank: what is padded is a cell.
        if [" after  ", " in  ", " within  ", " p50  ", " p95  ", " took  "].iter().any(|padded| line.contains(padded))
        {
            faults.push(format!("padded: {line:?}"));
        }
    }
    faults
}

#[test]
fn no_line_is_too_wide_torn_or_ends_in_blanks() {
    let env = busy();
    env.write("here/export.json", EXPORT);
    let mut wrong = Vec::new();
    for args in OUTPUTS {
        for columns in [80, 120] {
            for colour in ["always", "never"] {
                let mut command = env.command(PINTLE);
                command.args(args).args(["--color", colour]).env("COLUMNS", columns.to_string());
                let output = TestEnv::output(&mut command, "");
                for text in [output.stdout, output.stderr] {
                    let text = String::from_utf8(text).unwrap();
                    let plain = anstream::adapter::strip_str(&text).to_string();
                    let found = faults(&plain, columns).into_iter();
                    wrong.extend(found.map(|fault| format!("{} at {columns}, {colour}: {fault}", args.join(" "))));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
