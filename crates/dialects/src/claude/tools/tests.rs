//! What commands are told of calls, and what of that gets back.

use pintle_domain::json::json;

use super::*;

const CWD: &str = "/w";

fn call(tool: &str, raw: &str, arguments: &Value) -> ToolCall {
    let arguments = arguments.as_object().unwrap().clone();
    ToolCall { id: "c1".into(), tool: tool.into(), raw_tool: raw.into(), arguments }
}

fn matcher(pattern: &str) -> Matcher {
    Matcher::compile(pattern).unwrap()
}

/// What is told of a call: the names and the arguments of each part.
fn parts(call: &ToolCall, pattern: Option<&str>) -> Vec<(String, Value)> {
    let matcher = pattern.map(matcher);
    let told = told(call, matcher.as_ref(), Path::new(CWD)).unwrap();
    told.into_iter().map(|part| (part.name, Value::Object(part.input))).collect()
}

#[test]
fn calls_of_every_agent_have_claudes_words() {
    let rows: [(&str, &str, Value, &str, Value); 12] = [
        ("exec", "exec", json!({"command": "ls"}), "Bash", json!({"command": "ls"})),
        (
            "exec",
            "Bash",
            json!({"command": "ls", "description": "x"}),
            "Bash",
            json!({"command": "ls", "description": "x"}),
        ),
        ("exec", "run_commands", json!({"commands": ["ls", "pwd"]}), "Bash", json!({"command": "ls\npwd"})),
        (
            "write_file",
            "write_file",
            json!({"path": "a.txt", "content": "x"}),
            "Write",
            json!({"file_path": "/w/a.txt", "content": "x"}),
        ),
        (
            "write_file",
            "create",
            json!({"path": "/b", "file_text": "x"}),
            "Write",
            json!({"file_path": "/b", "content": "x"}),
        ),
        (
            "edit_file",
            "edit_file",
            json!({"path": "a", "old_text": "1", "new_text": "2"}),
            "Edit",
            json!({"file_path": "/w/a", "old_string": "1", "new_string": "2"}),
        ),
        (
            "edit_file",
            "MultiEdit",
            json!({"file_path": "/a", "edits": []}),
            "MultiEdit",
            json!({"file_path": "/a", "edits": []}),
        ),
        ("read_file", "read_file", json!({"absolute_path": "/x"}), "Read", json!({"file_path": "/x"})),
        (
            "search_text",
            "search_text",
            json!({"pattern": "a", "path": "./src"}),
            "Grep",
            json!({"pattern": "a", "path": "/w/src"}),
        ),
        (
            "delegate",
            "delegate",
            json!({"agent": "helper", "task": "look"}),
            "Agent",
            json!({"prompt": "look", "subagent_type": "helper"}),
        ),
        ("mcp_rig_touch", "mcp__rig__touch", json!({"text": "x"}), "mcp__rig__touch", json!({"text": "x"})),
        ("send_file", "send_file", json!({"path": "a"}), "send_file", json!({"path": "a"})),
    ];
    for (tool, raw, arguments, name, input) in rows {
        let told = parts(&call(tool, raw, &arguments), None);
        let [(told_name, told_input)] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!(told_name, name, "{raw}");
        assert!(same_value(told_input, &input), "{raw}: {told_input}");
    }
}

#[test]
fn nothing_is_put_beside_what_a_call_is_about_to_please_a_command() {
    let check = |tool: &str, raw: &str, arguments: &Value, expected: Option<&str>| {
        let told = told(&call(tool, raw, arguments), None, Path::new(CWD));
        match expected {
            Some(why) => assert!(told.as_ref().is_err_and(|error| error.contains(why)), "{arguments}: {told:?}"),
            None => assert!(told.is_ok(), "{arguments}: {told:?}"),
        }
    };
    let twice = Some("`file_path` and `path`");
    check("write_file", "write", &json!({"path": "/etc/x", "file_path": "/w/ok", "content": ""}), twice);
    check("write_file", "write", &json!({"path": "/w/x", "file_path": "/w/x", "content": ""}), None);
    check("write_file", "write", &json!({"path": "/w/x", "file_path": null, "content": ""}), None);
    check("exec", "exec_command", &json!({"cmd": "rm -rf x", "command": "ls"}), Some("`command` and `cmd`"));
    check("exec", "run_commands", &json!({"commands": ["rm -rf x"], "command": "ls"}), Some("`commands`"));
    // A file beside a patch is not the one that is changed.
    let patch = "*** Begin Patch\n*** Delete File: secret\n*** End Patch";
    let decoy = call("edit_file", "apply_patch", &json!({"patchText": patch, "file_path": "/w/ok"}));
    let files = parts(&decoy, Some("^Edit$"));
    assert_eq!(files[0].1["file_path"], "/w/secret", "{files:?}");
}

#[test]
fn the_name_that_is_told_is_one_that_the_matcher_means() {
    let delegate = call("delegate", "delegate", &json!({}));
    assert_eq!(parts(&delegate, Some("^Task$"))[0].0, "Task");
    assert_eq!(parts(&delegate, Some("^(Agent|Task)$"))[0].0, "Agent");
    let mcp = call("mcp_git_hub_new_issue", "mcp_git_hub_new_issue", &json!({}));
    assert_eq!(parts(&mcp, Some("^mcp__git_hub__.*"))[0].0, "mcp__git_hub__new_issue");
    assert_eq!(parts(&mcp, Some("^mcp__git__"))[0].0, "mcp__git__hub_new_issue");
    let own = matcher("^(Bash)$").spelled("Bash", spelling);
    let facts = |tool| pintle_domain::checkpoint::Facts::of_tool(tool);
    assert!(own.matches(&facts("exec")) && !own.matches(&facts("read_file")));
}

#[test]
fn a_notebook_is_meant_by_its_own_name_alone() {
    let facts = |raw| pintle_domain::checkpoint::Facts { tool: Some(("edit_file", raw)), ..Default::default() };
    for (pattern, is_meant) in
        [("Write|Edit", false), ("Edit|MultiEdit", false), ("NotebookEdit", true), ("Edit|NotebookEdit", true)]
    {
        // A list is of exact names.
        let matcher = matcher(&format!("^({pattern})$")).spelled(pattern, spelling);
        assert_eq!(matcher.matches(&facts("NotebookEdit")), is_meant, "{pattern}");
        assert_eq!(matcher.matches(&facts("Edit")), pattern != "NotebookEdit", "{pattern}");
    }
    let notebook = call("edit_file", "NotebookEdit", &json!({"notebook_path": "/w/a.ipynb", "new_source": "x"}));
    let told = json!({"notebook_path": "/w/a.ipynb", "new_source": "x"});
    for pattern in [None, Some("NotebookEdit")] {
        assert_eq!(parts(&notebook, pattern), [("NotebookEdit".to_owned(), told.clone())]);
    }
}

#[test]
fn a_patch_is_told_file_by_file_and_as_it_is() {
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+x\n+y\n*** Update File: src/a.rs\n@@\n one\n-two\n+2\n*** End Patch\n";
    let call = call("edit_file", "apply_patch", &json!({"command": patch}));
    let raw = ("apply_patch".to_owned(), json!({"command": patch}));
    let new = ("Write".to_owned(), json!({"file_path": "/w/new.txt", "content": "x\ny"}));
    let edit =
        ("Edit".to_owned(), json!({"file_path": "/w/src/a.rs", "old_string": "one\ntwo", "new_string": "one\n2"}));
    assert_eq!(parts(&call, None), [raw.clone(), new.clone(), edit.clone()]);
    assert_eq!(parts(&call, Some("^(Edit|Write)$")), [new, edit.clone()]);
    assert_eq!(parts(&call, Some("^apply_patch$")), [raw]);
    let edits = parts(&call, Some("^Edit$"));
    assert_eq!(edits.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["Edit", "Edit"]);
    assert_eq!(edits[1], edit);
    let many: String = (0..=MAX_PATCHED_FILES).map(|n| format!("*** Delete File: {n}\n")).collect();
    let many = self::call("edit_file", "apply_patch", &json!({"command": many}));
    assert!(told(&many, None, Path::new(CWD)).unwrap_err().contains("33 files at once"));
}

#[test]
fn what_a_command_changes_gets_back_under_the_names_of_the_call() {
    let back = |call: &ToolCall, changed: Value| {
        let told = told(call, None, Path::new(CWD)).unwrap().remove(0);
        told.back(call, changed.as_object().unwrap().clone()).map(Value::Object)
    };
    let write = call("write_file", "write_file", &json!({"path": "a.txt", "content": "x"}));
    let same = json!({"file_path": "/w/a.txt", "content": "y"});
    assert_eq!(back(&write, same), Ok(json!({"path": "a.txt", "content": "y"})), "its path as it was written");
    let moved = json!({"file_path": "/w/b.txt", "content": "x"});
    assert_eq!(back(&write, moved), Ok(json!({"path": "/w/b.txt", "content": "x"})));
    let many = call("exec", "run_commands", &json!({"commands": ["ls", "pwd"]}));
    assert_eq!(back(&many, json!({"command": "ls\npwd"})), Ok(json!({"commands": ["ls", "pwd"]})));
    assert!(back(&many, json!({"command": "ls"})).is_err());
    let bash = call("exec", "Bash", &json!({"command": "ls", "timeout": 5}));
    assert_eq!(back(&bash, json!({"command": "ls -a"})), Ok(json!({"command": "ls -a"})));
}
