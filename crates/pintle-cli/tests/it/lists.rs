//! Lists on narrow and wide terminals: nothing is lost on the way from one to the other, and no word is broken.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use super::env::{PINTLE, TestEnv};

/// A hook that answers everything with `{}`.
const OPEN: &str = r#"while read -r line; do id=${line#*\"id\":}; echo "{\"id\":${id%%,*},\"result\":{}}"; done"#;

/// A guard that blocks every call.
const BLOCK: &str = r#"while read -r line; do id=${line#*\"id\":}
case $line in *hook.before_tool*) r='{"action":"deny_tool","reason":"lists are read by people, who may ask for them by name at any time"}';; *) r='{}';; esac
echo "{\"id\":${id%%,*},\"result\":$r}"; done"#;

/// Thirty hooks: some blind, some broken, some that answer, with names of all lengths; a skill with texts; a turn with a
/// blocked call, in a session with a name.
fn thirty_hooks() -> TestEnv {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    // Its path stands in lines, so it is always as long.
    let name = format!("pintle-lists-{:08}-{}-", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let env = TestEnv::at(Path::new("/tmp"), &name);
    let mut hooks = String::new();
    for number in 1..=30 {
        let (name, more) = match number {
            1 => ("blind-guard".to_owned(), "matcher = '^writefile$'"),
            2 => ("a-guard-whose-name-somebody-took-a-lot-of-time-to-think-about".to_owned(), ""),
            3..=6 => (format!("approver-{number}"), "intercept = ['approve_tool']"),
            7..=9 => (format!("off-{number}"), "enabled = false"),
            _ => (format!("guard-{number}"), "matcher = '^(exec|delegate|spawn)$'"),
        };
        let intercept = if more.contains("intercept") { "" } else { "intercept = ['before_tool']" };
        let enabled = if more.contains("enabled") { "" } else { "enabled = true" };
        let _infallible = writeln!(
            hooks,
            "[hooks.processes.{name}]\n{enabled}\ncommand = ['sh', 'open.sh']\npriority = {number}\n{intercept}\n{more}"
        );
    }
    env.write("config/pintle/open.sh", OPEN);
    env.write("config/pintle/block.sh", BLOCK);
    let _infallible = writeln!(
        hooks,
        "[hooks.processes.blocks]\nenabled = true\ncommand = ['sh', 'block.sh']\npriority = 99\nintercept = ['before_tool']\npair = false"
    );
    env.write(
        "config/pintle/replies.json",
        r#"{"replies": [{"tool_calls": [{"name": "list_dir", "arguments": {"path": "."}}]}, {"text": "Done.", "repeat": true}]}"#,
    );
    env.write(
        "config/pintle/skills/alpha/SKILL.md",
        "---\nname: alpha\ndescription: A skill that is described in so many words that they do not fit\n---\n",
    );
    env.write(
        "config/pintle/skills/alpha/hooks/hooks.json",
        r#"{"hooks": [{"name": "only-after-reading", "file": "a.md", "timing": "after_tool_call", "role": "system", "persistent": false, "tool_filter": ["read_file", "list_dir", "write_file"]}]}"#,
    );
    env.write("config/pintle/skills/alpha/hooks/a.md", "text");
    env.user_config(&format!(
        "[providers.play]\nkind = 'scripted'\nscript = 'replies.json'\n\
         [agents.main]\nmodel = 'play/any'\nskills = ['alpha', 'beta']\n{hooks}"
    ));
    env
}

/// What `args` print for so many columns, without what differs from run to run. No line is wider, but one of a single
/// word.
fn printed(env: &TestEnv, args: &[&str], columns: &str, colour: bool) -> String {
    let mut command = env.command(PINTLE);
    command.args(args).env("COLUMNS", columns);
    if colour {
        command.args(["--color", "always"]);
    } else {
        command.env("NO_COLOR", "1");
    }
    let output = TestEnv::output(&mut command, "");
    // Of a turn the timeline; warnings of other commands are no list.
    let shown = if args[0] == "run" { output.stderr } else { output.stdout };
    let text = String::from_utf8(shown).unwrap();
    let plain = anstream::adapter::strip_str(&text).to_string();
    assert!(colour || plain == text, "{args:?}: {text}");
    // One hook is shown in words alone.
    assert!(!colour || plain != text || args.contains(&"show"), "{args:?}: {text}");
    let is_long = |line: &&str| line.chars().count() > columns.parse().unwrap() && words(line).len() > 1;
    let long: Vec<&str> = plain.lines().filter(is_long).collect();
    assert!(args[0] == "run" || long.is_empty(), "{args:?} at {columns}: {long:#?}");
    env.redact(&plain)
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[test]
fn lists_fit_80_and_120_columns_and_lose_no_word() {
    let env = thirty_hooks();
    let run = ["run", "--session", "work", "look at everything that is here"];
    let mut seen = printed(&env, &run, "80", false);
    for args in [
        &["hooks", "list"][..],
        &["doctor"],
        &["why"],
        &["why", "-v"],
        &["why", "--list"],
        &["why", "--denied"],
        &["skills", "list"],
        &["sessions", "list"],
        &["hooks", "show", "blind-guard"],
    ] {
        let wide = printed(&env, args, "1000", false);
        for columns in ["80", "120"] {
            let narrow = printed(&env, args, columns, false);
            assert_eq!(narrow, printed(&env, args, columns, true), "colours change nothing else: {args:?}");
            assert_eq!(words(&narrow), words(&wide), "{args:?} at {columns}");
            if columns == "80" && args.len() == 2 {
                let _infallible = write!(seen, "\n$ pintle {}\n{narrow}", args.join(" "));
            }
        }
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn what_goes_to_a_file_keeps_its_lines_and_ids_are_for_whoever_asks() {
    let env = thirty_hooks();
    env.pintle(&["run", "--quiet", "hello"]);
    let list = env.pintle(&["hooks", "list"]);
    assert!(list.out.lines().any(|line| line.contains("blind-guard") && line.contains("did you mean write_file?")));
    assert!(!list.out.contains("[id]") && env.pintle(&["-v", "hooks", "list"]).out.contains("[id]"), "{list}");
    let why = env.pintle(&["why"]);
    assert!(!why.out.contains("[id]") && env.pintle(&["-v", "why"]).out.contains("[id]"), "{why}");
}

#[test]
fn a_blind_matcher_is_named_once_and_with_its_place() {
    let env = thirty_hooks();
    let doctor = env.pintle(&["doctor"]);
    let named: Vec<&str> = doctor.out.lines().filter(|line| line.contains("^writefile$")).collect();
    let [only] = named.as_slice() else { panic!("{doctor}") };
    assert!(only.contains("✗ guard") && only.contains("did you mean `write_file`? ([root]/config/pintle/pintle.toml:"));
    assert!(!env.raw(&["doctor", "--json"]).contains('\u{a0}'), "JSON keeps no widths");
}

#[test]
fn a_hook_that_ran_and_was_changed_is_not_said_to_have_never_answered() {
    let env = thirty_hooks();
    env.pintle(&["run", "--quiet", "hello"]);
    let line = || {
        let list = env.pintle(&["hooks", "list"]).out;
        list.lines().find(|line| line.contains(" blocks ")).unwrap().to_owned()
    };
    assert!(line().contains("armed (proven [time] ago)") && line().contains("1 run,"), "{}", line());
    let script = env.path("config/pintle/block.sh");
    std::fs::write(&script, std::fs::read_to_string(&script).unwrap() + "# changed\n").unwrap();
    assert!(
        line().contains("unproven: answered before, but not as it is now") && line().contains("1 run,"),
        "{}",
        line()
    );
}

#[test]
fn hooks_without_records_are_told_from_hooks_that_nobody_knows() {
    let env = thirty_hooks();
    env.pintle(&["run", "--quiet", "hello"]);
    let seen = env.pintle(&["why", "--hook", "block"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(2), ""));
    assert!(
        seen.err.contains("no hook \"block\" has records") && seen.err.contains("`pintle why --hook blocks`"),
        "{seen}"
    );
    assert_eq!(env.pintle(&["why", "--hook", "blocks"]).code, Some(0));
}

#[test]
fn another_model_in_the_place_of_one_that_is_down_is_shown() {
    let env = TestEnv::new();
    env.write(
        "config/pintle/down.json",
        r#"{"replies": [{"error": {"kind": "final", "message": "out of order"}, "repeat": true}]}"#,
    );
    env.write("config/pintle/up.json", r#"{"replies": [{"text": "Here."}]}"#);
    env.user_config(
        "[providers.down]\nkind = 'scripted'\nscript = 'down.json'\n[providers.up]\nkind = 'scripted'\nscript = 'up.json'\n\
         [agents.main]\nmodel = 'down/a'\nfallbacks = ['up/b']\n",
    );
    let seen = env.pintle(&["run", "hello"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "Here.\n"), "{seen}");
    let line = seen.err.lines().find(|line| line.contains('↻')).unwrap_or_else(|| panic!("{seen}"));
    assert!(line.contains("up/b") && line.contains("instead of down/a: ") && line.contains("out of order"), "{line}");
}

#[test]
fn names_in_snapshots_are_those_of_the_hooks() {
    let env = thirty_hooks();
    let json: pintle_domain::json::Value = serde_json::from_str(&env.raw(&["hooks", "list", "--json"])).unwrap();
    let chains = json.as_array().unwrap();
    let names: BTreeSet<&str> = chains
        .iter()
        .flat_map(|chain| chain["hooks"].as_array().unwrap())
        .map(|hook| hook["hook"].as_str().unwrap())
        .collect();
    // Thirty, one that blocks, what is shipped, and one of a skill.
    assert_eq!(names.len(), 33, "{names:?}");
}
