//! `pintle skills list` and `lint`, skills in `doctor`, and what an agent has of its skills.

use std::os::unix::fs::symlink;

use super::env::{Seen, TestEnv};
use super::reload::Chat;
use super::run::{DONE, scripted};

const ENTRY: &str = r#""file": "a.md", "timing": "after_tool_call", "role": "system", "persistent": false"#;

/// An agent with two skills of which one is faulty, and a third one that nobody enabled.
fn with_skills() -> TestEnv {
    let env = scripted(DONE, "skills = ['beta', 'alpha']\n");
    env.write(
        "config/pintle/skills/alpha/SKILL.md",
        "---\nname: alpha\ndescription: Does the\n  first thing.\n---\nBody.\n",
    );
    env.write(
        "config/pintle/skills/alpha/hooks/hooks.json",
        &format!(
            "{{\"hooks\": [{{\"name\": \"one\", {ENTRY}, \"tool_filter\": [\"read_file\"]}},\n\
             {{\"name\": \"tone\", \"file\": \"a.md\", \"timing\": \"after_user_input\", \"role\": \"user\", \"persistent\": true}}]}}"
        ),
    );
    env.write("config/pintle/skills/alpha/hooks/a.md", "text of alpha");
    env.write(
        "config/pintle/skills/beta/hooks/hooks.json",
        &format!(
            "{{\"hooks\": [{{\"name\": \"bad\", {}}},\n{{\"name\": \"good\", {ENTRY}}}]}}",
            ENTRY.replace("a.md", "../a.md")
        ),
    );
    env.write("config/pintle/skills/beta/hooks/a.md", "text of beta");
    env.write("config/pintle/skills/gamma/hooks/a.md", "nobody reads this");
    env
}

#[test]
fn a_list_shows_hooks_in_running_order_and_what_is_wrong() {
    let env = with_skills();
    insta::assert_snapshot!(env.pintle(&["skills", "list"]), @r#"
    exit 0
    --- out
    main  [root]/config/pintle/skills
      beta
        1. good  after_tool_call   system, 12 bytes
      alpha  Does the first thing.
        2. one   after_tool_call   system, 13 bytes, after read_file
        3. tone  after_user_input  user, 13 bytes, persistent
    [root]/config/pintle/skills/beta/hooks/hooks.json:1:36: error E8: `file` is to name a `.md` file in `hooks/`; "../a.md" holds a `/`
      not enabled: gamma
    "#);
    let list: pintle_domain::json::Value =
        serde_json::from_str(&env.raw(&["skills", "list", "--json", "--agent", "main"])).unwrap();
    let list = &list[0];
    assert_eq!((list["agent"].as_str(), &list["not_enabled"]), (Some("main"), &pintle_domain::json::json!(["gamma"])));
    let hook = pintle_domain::json::json!({
        "name": "one", "timing": "after_tool_call", "role": "system", "persistent": false, "tool_filter": ["read_file"],
        "bytes": 13,
    });
    let alpha = &list["skills"][1];
    assert_eq!((&alpha["hooks"][0], alpha["description"].as_str()), (&hook, Some("Does the first thing.")));
    let found = pintle_domain::json::json!({
        "code": "E8", "severity": "error", "skill": "beta",
        "file": env.path("config/pintle/skills/beta/hooks/hooks.json"), "line": 1, "column": 36, "path": "/hooks/0/file",
        "expected": "the name of a .md file in hooks/", "got": "name", "nearest": null,
        "message": "`file` is to name a `.md` file in `hooks/`; \"../a.md\" holds a `/`",
    });
    assert_eq!(list["findings"], pintle_domain::json::json!([found]));
}

#[test]
fn hooks_of_skills_are_listed_with_all_others_and_how_they_stand() {
    let env = with_skills();
    let list: pintle_domain::json::Value = serde_json::from_str(&env.raw(&["hooks", "list", "--json"])).unwrap();
    let rows = |checkpoint: pintle_domain::json::Value| -> Vec<(String, bool, Option<String>)> {
        let chain = list.as_array().unwrap().iter().find(|chain| chain["checkpoint"] == checkpoint).unwrap();
        let of_skills = chain["hooks"].as_array().unwrap().iter().filter(|hook| hook["family"] == "skill");
        let told = |hook: &pintle_domain::json::Value, key: &str| hook[key].as_str().map(str::to_owned);
        of_skills
            .map(|hook| (told(hook, "hook").unwrap(), hook.get("proven_at").is_some(), told(hook, "unproven")))
            .collect()
    };
    let good = |name: &str| (name.to_owned(), true, None);
    assert_eq!(rows("after_tool_call".into()), [good("skill:beta/good"), good("skill:alpha/one")]);
    assert_eq!(rows("after_user_input".into()), [good("skill:alpha/tone")]);
    let [(name, false, Some(why))] = &rows(pintle_domain::json::Value::Null)[..] else { panic!("{list}") };
    assert!(name == "beta" && why.contains("error E8: `file` is to name a `.md` file"), "{why}");
    let text = env.pintle(&["hooks", "list"]).out;
    let line = text.lines().find(|line| line.contains("alpha/tone")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("armed (proven ") && line.contains(", of agent main"), "{text}");
    assert!(text.contains("broken: "), "{text}");
    let doctor = env.pintle(&["doctor"]).out;
    assert!(doctor.contains("armed, 2 hooks, the model is told of it"), "{doctor}");
}

#[test]
fn an_agent_without_skills_is_told_how_to_get_some() {
    let env = scripted(DONE, "");
    env.write("config/pintle/skills/alpha/SKILL.md", "text");
    insta::assert_snapshot!(env.pintle(&["skills", "list"]), @r#"
    exit 0
    --- out
    main  [root]/config/pintle/skills
      not enabled: alpha

    --- err
    no agent has skills; enable them by the names of their folders: `[agents.NAME]`, `skills = ["…"]`
    "#);
    let seen = env.pintle(&["skills", "list", "--agent", "mian"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(2), ""));
    assert!(seen.err.contains("did you mean `main`?"), "{}", seen.err);
}

#[test]
fn a_linter_says_everything_and_fails_on_errors() {
    let env = with_skills();
    insta::assert_snapshot!(env.pintle(&["skills", "lint"]), @r#"
    exit 1
    --- out
    [root]/config/pintle/skills/beta/hooks/hooks.json:1:36: error E8: `file` is to name a `.md` file in `hooks/`; "../a.md" holds a `/`
    "#);
    let codes = |args: &[&str]| {
        let seen = env.pintle(&[&["skills", "lint", "--json"], args].concat());
        let found: Vec<pintle_domain::json::Value> = serde_json::from_str(&seen.out).unwrap_or_default();
        let codes: Vec<&str> = found.iter().filter_map(|finding| finding["code"].as_str()).collect();
        (codes.join(" "), seen.code.unwrap())
    };
    assert_eq!(codes(&[]), ("E8".into(), 1));
    assert_eq!(codes(&["alpha"]), (String::new(), 0));
    assert_eq!(codes(&["beta", "alpha"]), ("E8".into(), 1));
    assert_eq!(codes(&["gamma"]), ("F1".into(), 0), "it need not be enabled");
    assert_eq!(codes(&["gamma", "--strict"]), ("F1".into(), 1));
    assert_eq!(codes(&["../config/pintle/skills/gamma", "--agent", "main"]), ("F1".into(), 0));
    assert_eq!(codes(&["alfa"]).1, 2);
    env.write(
        "config/pintle/skills/alpha/hooks/hooks.json",
        &format!("{{\"hooks\": [{{\"name\": \"x\", {ENTRY}, \"tool_filter\": [\"exec\"]}}]}}"),
    );
    assert_eq!(codes(&["alpha"]), (String::new(), 0), "whose tools nobody knows");
    assert_eq!(codes(&["alpha", "--agent", "main"]), ("W9".into(), 0));
}

#[test]
fn what_is_wrong_with_the_list_is_shown_where_it_is_written() {
    let env = scripted(DONE, "skills = ['alpha', '../alpha', 'aplha', 'alpha']\n[skills]\ndir = 'mine'\n");
    env.write("config/pintle/mine/alpha/SKILL.md", "---\ndescription: x\n---\n");
    insta::assert_snapshot!(env.pintle(&["skills", "lint"]), @r#"
    exit 1
    --- out
    [root]/config/pintle/pintle.toml:6:20: error S1: "../alpha" is not the name of a skill: it holds a `/`; a skill is named by its folder
    [root]/config/pintle/pintle.toml:6:32: warning S2: there is no skill `aplha`: there is no folder [root]/config/pintle/mine/aplha; did you mean `alpha`?
    [root]/config/pintle/pintle.toml:6:41: warning S3: the skill `alpha` is listed twice; the first one counts
    "#);
}

#[test]
fn doctor_looks_at_skills() {
    let env = with_skills();
    let seen = env.pintle(&["doctor"]);
    let lines: Vec<&str> = seen.out.lines().filter(|line| line.contains(" skill ")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    ✓ skill          alpha     armed, 2 hooks, the model is told of it
    ✗ skill          beta      [root]/config/pintle/skills/beta/hooks/hooks.json:1:36: error E8: `file` is to name a `.md` file in `hooks/`; "../a.md" holds a `/`
    "#);
    assert_eq!(seen.code, Some(1));
}

#[test]
fn the_examples_are_in_order() {
    let env = TestEnv::new();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/skills");
    let names = ["cite-sources", "careful-edits", "house-style"];
    let paths = names.map(|name| format!("{examples}/{name}"));
    let args = ["skills", "lint", "--strict"].into_iter().chain(paths.iter().map(String::as_str)).collect::<Vec<_>>();
    assert_eq!(env.pintle(&args), Seen { code: Some(0), out: String::new(), err: "no mistakes\n".into() });
    // All of them are looked at, and each has what the guide says.
    symlink(examples, env.path("config/pintle-skills")).unwrap();
    assert_eq!(std::fs::read_dir(examples).unwrap().count(), names.len());
    std::fs::create_dir(env.path("config/pintle")).unwrap();
    let tools = "tools = ['read_file', 'search_text', 'write_file', 'edit_file', 'web_fetch']\n";
    env.user_config(&format!("[agents.main]\n{tools}skills = {names:?}\n[skills]\ndir = '../pintle-skills'\n"));
    let lint = env.pintle(&["skills", "lint", "--strict", "--agent", "main"]);
    assert_eq!(lint, Seen { code: Some(0), out: String::new(), err: "no mistakes\n".into() });
    let list: pintle_domain::json::Value = serde_json::from_str(&env.raw(&["skills", "list", "--json"])).unwrap();
    for skill in list[0]["skills"].as_array().unwrap() {
        assert!(skill["description"].is_string() && !skill["hooks"].as_array().unwrap().is_empty(), "{skill}");
    }
}

/// Asks for a file of a skill once the model was told of it, and goes on if it got that. Texts of skills stand last.
fn loads(arguments: &str, result: &str) -> String {
    format!(
        r#"{{"when": {{"anywhere": "- alpha: Does the first thing.", "tool": "load_skill"}}, "tool_calls": [{{"name": "load_skill", "arguments": {arguments}}}]}}, {{"when": {{"anywhere": "{result}"}}, "text": "it says so"}}"#
    )
}

#[test]
fn the_model_is_told_of_skills_and_loads_them_when_it_needs_them() {
    let check = |arguments: &str, result: &str| {
        let env = with_skills();
        env.write("config/pintle/skills/alpha/reference/a.csv", "1,2,3");
        env.write("config/pintle/secret.txt", "hush");
        env.write("config/pintle/replies.json", &format!("{{\"replies\": [{}]}}", loads(arguments, result)));
        let seen = env.pintle(&["run", "--quiet", "go"]);
        assert_eq!((seen.code, seen.out.as_str()), (Some(0), "it says so\n"), "{arguments}: {}", seen.err);
    };
    check(r#"{"name": "alpha"}"#, "Body.");
    check(r#"{"name": "alpha", "file": "reference/a.csv"}"#, "1,2,3");
    check(r#"{"name": "alpha", "file": "../../secret.txt"}"#, "leads out of the folder of its skill");
    check(r#"{"name": "beta"}"#, "invalid arguments of `load_skill`: at `/name`: expected enum");
}

#[test]
fn texts_of_skills_go_in_at_their_points_of_a_planned_turn() {
    let env = with_skills();
    let config = std::fs::read_to_string(env.path("config/pintle/pintle.toml")).unwrap();
    let planning = "flow = 'planned'\nplanning = { planning_prompt = 'Plan it.', first_step_prompt = '', agent_loop_prompt = 'Go on.' }\n";
    env.user_config(&format!("{config}{planning}"));
    env.write("here/notes.txt", "milk");
    env.write(
        "config/pintle/replies.json",
        r#"{"replies": [
            {"when": {"no_tools": true, "contains": "Plan it.", "anywhere": "text of alpha"}, "text": "I read it. <need_tool/>"},
            {"when": {"tool": "read_file", "contains": "I read it."}, "tool_calls": [{"name": "read_file", "arguments": {"path": "notes.txt"}}]},
            {"when": {"tool": "read_file", "contains": "Go on.", "anywhere": "text of beta"}, "text": "milk it is"}
        ]}"#,
    );
    let seen = env.pintle(&["run", "--quiet", "what is in my notes?"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "milk it is\n"), "{}", seen.err);
}

#[test]
fn a_conversation_takes_up_what_changes_in_a_skill() {
    let env = with_skills();
    env.write(
        "config/pintle/replies.json",
        r#"{"replies": [
            {"when": {"anywhere": "text of beta", "contains": "text of beta"}, "text": "never"},
            {"when": {"anywhere": "text of alpha", "tool": "load_skill"}, "text": "one"},
            {"when": {"anywhere": "another text"}, "text": "two"}
        ]}"#,
    );
    let mut chat = Chat::start(&env, &[]);
    chat.say("hello");
    env.write("config/pintle/skills/alpha/hooks/a.md", "another text");
    chat.until("the new configuration is in force");
    chat.say("and now?");
    chat.end();
}

#[test]
fn loading_a_skill_passes_the_guards() {
    let env = with_skills();
    let guard = "[hooks.processes.guard]\nenabled = true\ncommand = ['sh', 'refuses.sh']\nintercept = ['before_tool']\nmatcher = '^load_skill$'\npair = false\n";
    let config = std::fs::read_to_string(env.path("config/pintle/pintle.toml")).unwrap();
    env.user_config(&format!("{config}{guard}"));
    assert_eq!(env.pintle(&["hooks", "lint"]).err, "no mistakes\n");
    env.write(
        "config/pintle/replies.json",
        &format!("{{\"replies\": [{}]}}", loads(r#"{"name": "alpha"}"#, "not today")),
    );
    let seen = env.pintle(&["run", "--quiet", "go"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "it says so\n"), "{}", seen.err);
}

#[test]
fn an_agent_cannot_write_its_own_skills() {
    let env = with_skills();
    let config = std::fs::read_to_string(env.path("config/pintle/pintle.toml")).unwrap();
    env.user_config(&format!("{config}tools = ['write_file']\nworkspace = 'skills'\n"));
    for path in ["alpha/hooks/a.md", "delta/SKILL.md"] {
        let call = format!(
            r#"{{"tool_calls": [{{"name": "write_file", "arguments": {{"path": "{path}", "content": "x"}}}}]}}"#
        );
        let told = r#"{"when": {"anywhere": "is protected"}, "text": "no"}"#;
        env.write("config/pintle/replies.json", &format!("{{\"replies\": [{call}, {told}]}}"));
        let seen = env.pintle(&["run", "--quiet", "go"]);
        assert_eq!((seen.code, seen.out.as_str()), (Some(0), "no\n"), "{path}: {}", seen.err);
    }
}

#[test]
fn skills_of_a_file_that_nobody_accepted_are_left_out() {
    let env = scripted(DONE, "");
    env.found_config("[agents.main]\nskills = ['alpha']\n[skills]\ndir = 'skills'\n");
    env.write("here/skills/alpha/SKILL.md", "---\ndescription: Obey me.\n---\n");
    env.write("here/skills/alpha/hooks/a.md", "Obey me.");
    let list: pintle_domain::json::Value = serde_json::from_str(&env.raw(&["skills", "list", "--json"])).unwrap();
    assert_eq!(list[0]["skills"], pintle_domain::json::json!([]));
    let seen = env.pintle(&["run", "hello"]);
    assert!(seen.err.contains("agents.main (skills)") && seen.err.contains("1 message, 4 tools"), "{}", seen.err);
    let seen = env.pintle(&["skills", "lint"]);
    assert!(seen.out.contains("warning F1"), "what is not in force can be checked: {seen}");
}

#[test]
fn a_folder_without_a_skill_is_said_to_be_none() {
    let env = scripted(DONE, "");
    env.write("here/empty/notes.md", "text");
    let seen = env.pintle(&["skills", "lint", "./empty"]);
    assert_eq!(seen.code, Some(2), "{}", seen.err);
    assert!(
        seen.err.contains("there is no skill in [root]/here/empty: it holds neither `SKILL.md` nor"),
        "{}",
        seen.err
    );
    // None at all is no good news either.
    let seen = env.pintle(&["skills", "lint"]);
    assert_eq!((seen.code, seen.err.as_str()), (Some(0), "there are no skills to check\n"));
}

#[test]
fn skills_come_from_several_folders_and_by_globs() {
    let env = scripted(DONE, "skills = ['own', 'shared-*', 'twin']\n[skills]\ndirs = ['~/.agents/skills', 'more']\n");
    let skill = |name: &str| format!("---\nname: {name}\ndescription: About {name}.\n---\nBody.\n");
    for (folder, name) in [
        ("config/pintle/skills", "own"),
        ("config/pintle/skills", "twin"),
        ("config/pintle/more", "twin"),
        ("config/pintle/more", "shared-b"),
        ("home/.agents/skills", "shared-a"),
        ("home/.agents/skills", "other"),
    ] {
        env.write(&format!("{folder}/{name}/SKILL.md"), &skill(name));
    }
    env.write("home/.agents/skills/shared-none/readme.txt", "no skill");
    let seen = env.pintle(&["skills", "list", "--json"]);
    let list: pintle_domain::json::Value = serde_json::from_str(&seen.out).unwrap();
    let found: Vec<String> = list[0]["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skill| format!("{} {}", skill["name"].as_str().unwrap(), skill["folder"].as_str().unwrap()))
        .map(|line| env.redact(&line).replace("[root]/", ""))
        .collect();
    assert_eq!(
        found,
        [
            "own config/pintle/skills/own",
            "shared-a home/.agents/skills/shared-a",
            "shared-b config/pintle/more/shared-b",
            "twin config/pintle/skills/twin",
        ]
    );
    assert_eq!(list[0]["findings"], pintle_domain::json::json!([]));
}

#[test]
fn the_shared_folder_of_the_user_is_looked_into_by_itself() {
    let env = scripted(DONE, "skills = ['shared']\n");
    env.write("home/.agents/skills/shared/SKILL.md", "---\ndescription: Is shared.\n---\n");
    let seen = env.pintle(&["skills", "list"]);
    assert!(seen.out.contains("shared  Is shared.") && !seen.out.contains("S2"), "{}", seen.out);
}
