//! Files of hosts with our entries put in and taken out.

use std::path::Path;

use pintle_domain::json::{self, Value};
use pintle_guard::host::{ConfigForm, InstallScope, RowPosition};
use pintle_guard::settings::{self, KeptFile, NotEdited, Theirs, install, install_event, uninstall};
use pintle_guard::{ClientEntry, EntryDaemon, GuardHost, HOSTS, host, in_scope};
use proptest::prelude::*;

pub(super) fn hook(host: &'static GuardHost, program: &'static str) -> ClientEntry<'static> {
    ClientEntry {
        host: host.id,
        program,
        daemon: EntryDaemon::Named {
            socket: "/run/user/1000/pintle/guard.sock",
            key_file: "/run/user/1000/pintle/guard.key",
        },
        timeout_s: host.deadline.installed_s,
        allows_away: false,
        events: None,
    }
}

/// Where somebody else's executable lies.
fn beside(kept: Option<&KeptFile>) -> Theirs<'_> {
    Theirs { file: Path::new("/h/PreToolUse.before-pintle"), kept }
}

pub(super) const PROGRAM: &str = "/usr/lib/pintle/pintle-hook";
const OTHER_PROGRAM: &str = "/u/ann o'neill/bin/pintle-hook";

/// What a fresh file is for each host.
#[test]
fn a_fresh_file_has_our_entries() {
    for host in HOSTS {
        let hook = hook(host, PROGRAM);
        let text = match host.config.form {
            ConfigForm::Executables { .. } => {
                let row = host.event("PreToolUse").unwrap();
                install_event(host, (&hook, row), None, beside(None)).unwrap()
            }
            ConfigForm::Json { .. }
            | ConfigForm::Toml { .. }
            | ConfigForm::Requirements { .. }
            | ConfigForm::WholeFile { .. } => install(host, &hook, None, None).unwrap(),
        };
        insta::with_settings!({ omit_expression => true }, {
            insta::assert_snapshot!(format!("fresh_{}", host.id), text.text);
        });
        assert_eq!(uninstall(host, Some(&text.text), Some(&text.kept)), Ok(None), "{}", host.id);
    }
}

/// One file before and after, for the eye.
#[test]
fn the_rest_of_a_file_stays_as_it_is() {
    let claude = host("claude").unwrap();
    let old = "{\n\t\"model\": \"x\",\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{ \"hooks\": [{ \"type\": \"command\", \"command\": \"say done\" }] }\n\t\t]\n\t}\n}";
    let edited = install(claude, &hook(claude, PROGRAM), Some(old), None).unwrap();
    insta::assert_snapshot!("kept_claude", edited.text);
    assert_eq!(edited.others.len(), 1);
    assert_eq!(edited.others[0].runs, "say done");
    assert_eq!(uninstall(claude, Some(&edited.text), None), Ok(Some(old.to_owned())));
    let gemini = host("gemini").unwrap();
    let old = "// mine\n{\n  \"ui\": {}, // bare\n  /* hooks */\n  \"hooks\": {\n    \"BeforeTool\": [\n      { \"hooks\": [{ \"command\": \"x\" }] }, // the first\n    ],\n  },\n}\n";
    let edited = install(gemini, &hook(gemini, PROGRAM), Some(old), None).unwrap();
    insta::assert_snapshot!("kept_gemini", edited.text);
    assert_eq!(uninstall(gemini, Some(&edited.text), None), Ok(Some(old.to_owned())));
}

#[test]
fn what_cannot_be_edited_is_refused() {
    let claude = host("claude").unwrap();
    let check = |old: &str| install(claude, &hook(claude, PROGRAM), Some(old), None).unwrap_err();
    assert!(matches!(check("{\n  // x\n}"), NotEdited::Unreadable { line: 2, .. }));
    assert!(matches!(check("{\"a\": 1,}"), NotEdited::Unreadable { line: 1, .. }));
    assert_eq!(check("[]"), NotEdited::Shape("the file".to_owned()));
    assert_eq!(check(r#"{"hooks": []}"#), NotEdited::Shape("hooks".to_owned()));
    assert_eq!(check(r#"{"hooks": {"PreToolUse": {}}}"#), NotEdited::Shape("a list of hooks".to_owned()));
    assert_eq!(check(r#"{"hooks": {}, "hooks": {}}"#), NotEdited::Twice("hooks".to_owned()));
    let mixed = r#"{"hooks": {"Stop": [{"hooks": [{"command": "/x/pintle-hook"}, {"command": "x"}]}]}}"#;
    assert_eq!(check(mixed), NotEdited::Mixed("Stop".to_owned()));
    let copilot = host("copilot").unwrap();
    let taken = install(copilot, &hook(copilot, PROGRAM), Some("{\"version\":1}"), None);
    assert_eq!(taken.unwrap_err(), NotEdited::Taken);
    let kimi = host("kimi").unwrap();
    let inline = install(kimi, &hook(kimi, PROGRAM), Some("hooks = []\n"), None);
    assert_eq!(inline.unwrap_err(), NotEdited::Shape("hooks".to_owned()));
    let unmarked = "[[hooks]]\nevent = \"Stop\"\ncommand = \"/x/pintle-hook --host kimi\"\n";
    assert_eq!(install(kimi, &hook(kimi, PROGRAM), Some(unmarked), None).unwrap_err(), NotEdited::Unmarked);
    let cline = host("cline").unwrap();
    let row = cline.event("PreToolUse").unwrap();
    let theirs = install_event(cline, (&hook(cline, PROGRAM), row), Some("#!/bin/sh\ntrue\n"), beside(None)).unwrap();
    assert!(settings::is_wrapping(&theirs.text), "{}", theirs.text);
    assert_eq!(theirs.kept.before.as_deref(), Some("#!/bin/sh\ntrue\n"));
    // Another time it stands before the same one.
    let again = install_event(cline, (&hook(cline, PROGRAM), row), Some(&theirs.text), beside(None)).unwrap();
    assert_eq!(again.text, theirs.text);
}

/// The entry of `host` as installations before this one wrote it: the client's command line, and nothing around it.
fn older(host: &'static GuardHost, event: &str) -> String {
    let hook = hook(host, PROGRAM);
    format!("{} {}", hook.program, hook.arguments(event).join(" "))
}

#[test]
fn an_entry_of_an_older_form_is_updated_in_its_place() {
    for id in ["codex", "gemini", "qwen"] {
        let host = host(id).unwrap();
        let entry = |event: &str| json::json!({"hooks": [{"type": "command", "command": older(host, event)}]});
        let events = settings::installed(host).map(|row| (row.name.to_owned(), json::json!([entry(row.name)])));
        let events: json::Object = events.collect();
        let old = json::json!({"model": "m", "hooks": events}).to_string();
        assert_eq!(settings::has_ours(host, &old), Ok(true), "{id}");
        let edited = install(host, &hook(host, PROGRAM), Some(&old), None).unwrap();
        placed(host, "{\"model\": \"m\"}", &edited.text);
        assert!(edited.others.is_empty(), "{:?}", edited.others);
        assert_eq!(uninstall(host, Some(&edited.text), None), Ok(Some("{\"model\":\"m\"}".to_owned())), "{id}");
    }
    let cline = host("cline").unwrap();
    let row = cline.event("PreToolUse").unwrap();
    let old = format!("#!/bin/sh\nexec {}\n", older(cline, row.name));
    let edited = install_event(cline, (&hook(cline, PROGRAM), row), Some(&old), beside(None)).unwrap();
    assert_ne!(edited.text, old);
    assert_eq!(edited.kept.before, None);
}

#[test]
fn what_merely_names_the_client_is_somebody_elses() {
    for host in HOSTS {
        let wrapped = format!("/opt/log.sh {}", older(host, "PreToolUse"));
        let event = settings::installed(host).find(|row| row.stops).unwrap();
        let text = match host.config.form {
            ConfigForm::Json { .. } => {
                let exec = json::json!({"type": "command", "command": "/opt/log.sh", "args": [PROGRAM, "--host"]});
                let hook = if host.id == "claude" { exec } else { json::json!({"command": wrapped}) };
                json::json!({"hooks": {(event.name): [{"hooks": [hook]}]}}).to_string()
            }
            ConfigForm::Toml { .. } | ConfigForm::Requirements { .. } => {
                format!("# pintle-hook\n[[hooks]]\nevent = \"{}\"\ncommand = \"{wrapped}\"\n", event.name)
            }
            ConfigForm::WholeFile { .. } if host.id == "copilot" => {
                json::json!({"version": 1, "hooks": {"preToolUse": [{"bash": wrapped}]}}).to_string()
            }
            ConfigForm::WholeFile { .. } => format!("// around {PROGRAM}\n"),
            ConfigForm::Executables { .. } => format!("#!/bin/sh\n{wrapped}\n"),
        };
        assert_eq!(settings::has_ours(host, &text), Ok(false), "{}: {text}", host.id);
        assert_eq!(uninstall(host, Some(&text), None), Ok(Some(text.clone())), "{}", host.id);
        let edited = match host.config.form {
            // It is run behind ours.
            ConfigForm::Executables { .. } => continue,
            ConfigForm::Json { .. }
            | ConfigForm::Toml { .. }
            | ConfigForm::Requirements { .. }
            | ConfigForm::WholeFile { .. } => install(host, &hook(host, PROGRAM), Some(&text), None),
        };
        match edited {
            Ok(edited) => {
                assert_eq!(edited.others.len(), 1, "{}", host.id);
                assert_eq!(uninstall(host, Some(&edited.text), None), Ok(Some(text)), "{}", host.id);
            }
            Err(why) => assert_eq!(why, NotEdited::Taken, "{}", host.id),
        }
    }
}

#[test]
fn an_entry_that_drops_all_hooks_is_named_and_nothing_is_installed_beside_it() {
    let kimi = host("kimi").unwrap();
    let good = "[[hooks]]\nevent = \"Stop\"\ncommand = \"x\"\nmatcher = \"a\"\ntimeout = 600\n";
    assert_eq!(settings::wrong_entry(kimi, good), Ok(None));
    assert_eq!(settings::wrong_entry(kimi, "hooks = []\n"), Ok(None));
    for (entry, why) in [
        ("event = \"Nope\"\ncommand = \"x\"", "`event = \"Nope\"` is no event"),
        ("command = \"x\"", "says no `event`"),
        ("event = \"Stop\"", "says no `command`"),
        ("event = \"Stop\"\ncommand = \"\"", "says no `command`"),
        ("event = \"Stop\"\ncommand = \"x\"\nname = \"y\"", "has the key `name`"),
        ("event = \"Stop\"\ncommand = \"x\"\nmatcher = 3", "`matcher` in the entry of `Stop` is no text"),
        ("event = \"Stop\"\ncommand = \"x\"\ntimeout = 601", "`timeout` in the entry of `Stop`"),
        ("event = \"Stop\"\ncommand = \"x\"\ntimeout = 0", "`timeout` in the entry of `Stop`"),
        ("event = \"Stop\"\ncommand = \"x\"\ntimeout = 1.5", "`timeout` in the entry of `Stop`"),
    ] {
        let text = format!("{good}[[hooks]]\n{entry}\n");
        let found = settings::wrong_entry(kimi, &text).unwrap().unwrap();
        assert!(found.contains(why), "{entry}: {found}");
        let edited = install(kimi, &hook(kimi, PROGRAM), Some(&text), None);
        assert_eq!(edited.unwrap_err(), NotEdited::Dropped(found), "{entry}");
    }
    let ours = install(kimi, &hook(kimi, PROGRAM), Some(good), None).unwrap();
    assert_eq!(settings::wrong_entry(kimi, &ours.text), Ok(None));
}

#[test]
fn a_folder_is_trusted_below_one_that_is_listed() {
    let trusted = host("copilot").unwrap().config.trusted_in.unwrap();
    let check = |text: &str, folder: &str| settings::trusts(&trusted, text, folder).unwrap();
    let text = "// written by itself\n{\"trusted_folders\": [\"/u/ann/repo/\", \"\", 3]}";
    assert!(check(text, "/u/ann/repo") && check(text, "/u/ann/repo/deep"));
    for folder in ["/u/ann/repository", "/u/ann", "/"] {
        assert!(!check(text, folder), "{folder}");
    }
    assert!(!check("", "/u") && !check("{}", "/u") && check("{\"trusted_folders\": [\"/\"]}", "/u"));
}

#[test]
fn hooks_of_another_file_are_listed_where_they_could_undo_a_refusal() {
    let qwen = host("qwen").unwrap();
    let entry = |command: &str| json::json!([{"hooks": [{"type": "command", "command": command}]}]);
    let text = json::json!({"hooks": {"PreToolUse": entry("a"), "PostToolUse": entry("b"), "Stop": entry("c")}});
    let found: Vec<_> = settings::others_in(qwen, &text.to_string()).unwrap();
    let found: Vec<_> = found.iter().map(|other| (other.event.as_str(), other.runs.as_str())).collect();
    assert_eq!(found, [("PreToolUse", "a"), ("Stop", "c")]);
    assert_eq!(settings::others_in(qwen, "{}"), Ok(Vec::new()));
}

/// Some hosts put variables of their environment, which a project may set, into every text of their settings.
#[test]
fn no_variable_can_get_into_an_entry() {
    for host in HOSTS {
        let entry = ClientEntry {
            daemon: EntryDaemon::Named { socket: "/$X/s", key_file: "/${X}" },
            ..hook(host, "/u/$USER/pintle-hook")
        };
        for row in host.events {
            let text = entry.shell_text(row.name, pintle_guard::panic_deny(host.id, row.name));
            let named = |(at, _): (usize, &str)| {
                text[at + 1..].starts_with(|c: char| c == '{' || c == '_' || c.is_alphanumeric())
            };
            assert!(!text.match_indices('$').any(named), "{text}");
        }
    }
}

#[test]
fn switches_are_found_where_they_are_thrown() {
    let check = |id: &str, path: &str, text: &str| {
        let switches = host(id).unwrap().config.switches.all.iter().filter(|switch| switch.path == path);
        switches.filter(|switch| settings::is_off(switch, text).unwrap()).count()
    };
    assert_eq!(check("claude", "./.claude/settings.json", r#"{"disableAllHooks": true}"#), 1);
    assert_eq!(check("claude", "./.claude/settings.json", r#"{"disableAllHooks": false}"#), 0);
    assert_eq!(check("gemini", "./.gemini/settings.json", "{\"hooksConfig\": {\"enabled\": false} // x\n}"), 1);
    assert_eq!(
        check("gemini", "./.gemini/settings.json", r#"{"hooksConfig": {"disabled": ["pintle-BeforeTool"]}}"#),
        1
    );
    assert_eq!(check("gemini", "./.gemini/settings.json", r#"{"hooksConfig": {"disabled": ["other"]}}"#), 0);
    assert_eq!(check("codex", "~/.codex/config.toml", "[features]\nhooks = false\n"), 1);
    assert_eq!(check("codex", "~/.codex/config.toml", "model = \"x\"\n"), 0);
    assert_eq!(check("qwen", "./.qwen/settings.json", r#"{"disableAllHooks": true}"#), 1);
    assert_eq!(check("copilot", "./.github/copilot/settings.json", r#"{"disableAllHooks": true}"#), 1);
    assert_eq!(check("copilot", "./.github/hooks/*.json", r#"{"version": 1, "disableAllHooks": true}"#), 1);
}

/// As it was recorded: the policy of a machine holds in Claude Code and Copilot CLI whatever a person or a project says, and
/// that of Qwen Code does not. Codex holds because an installation pins its feature.
#[test]
fn what_a_project_says_turns_no_policy_of_a_machine_off() {
    let turned_off_by = |id: &str, scope: InstallScope| -> Vec<&'static str> {
        in_scope(host(id).unwrap(), scope).config.switches.of(scope).map(|switch| switch.path).collect()
    };
    let project = ["./.claude/settings.json", "./.codex/config.toml", "./.github/hooks/*.json"];
    for (id, path) in ["claude", "codex", "copilot"].into_iter().zip(project) {
        assert!(turned_off_by(id, InstallScope::User).contains(&path), "{id}");
        assert!(turned_off_by(id, InstallScope::Project).contains(&path), "{id}");
    }
    assert_eq!(turned_off_by("claude", InstallScope::System), ["/etc/claude-code/managed-settings.json"]);
    assert_eq!(turned_off_by("codex", InstallScope::System), ["/etc/codex/requirements.toml"]);
    assert!(turned_off_by("copilot", InstallScope::System).is_empty());
    for (id, path) in [("qwen", "./.qwen/settings.json"), ("gemini", "./.gemini/settings.json")] {
        assert!(turned_off_by(id, InstallScope::System).contains(&path), "{id}");
    }
}

/// As it was recorded: what Gemini CLI and Codex read of the machine beats the same switch of a person or a project.
#[test]
fn what_a_machine_pins_no_project_turns_off() {
    let pinned = |id: &str, path: &str, name: &str, machine: &str| {
        let switches = host(id).unwrap().config.switches;
        let switch = switches.all.iter().find(|it| it.path == path && it.names.last() == Some(&name)).unwrap();
        switches.pin_of(switch).map(|pin| settings::is_off(&pin, machine).unwrap())
    };
    let gemini = |name: &str, machine: &str| pinned("gemini", "./.gemini/settings.json", name, machine);
    assert_eq!(gemini("enabled", r#"{"hooksConfig": {"enabled": true}}"#), Some(true));
    assert_eq!(gemini("enabled", r#"{"hooksConfig": {"enabled": false}}"#), Some(false));
    assert_eq!(gemini("enabled", "{}"), Some(false));
    // Lists of all files are merged.
    assert_eq!(gemini("disabled", r#"{"hooksConfig": {"disabled": []}}"#), None);
    let codex = |machine: &str| pinned("codex", "~/.codex/config.toml", "hooks", machine);
    assert_eq!((codex("[features]\nhooks = true\n"), codex("")), (Some(true), Some(false)));
    for (id, path) in [("claude", "./.claude/settings.json"), ("qwen", "./.qwen/settings.json")] {
        assert_eq!(pinned(id, path, "disableAllHooks", r#"{"disableAllHooks": false}"#), None, "{id}");
    }
}

/// How a generated file is written.
#[derive(Clone, Debug)]
pub(super) struct Style {
    unit: &'static str,
    line: &'static str,
    bom: bool,
    last_line: bool,
    comments: bool,
    trailing: bool,
    on_one_line: bool,
}

pub(super) fn style() -> impl Strategy<Value = Style> {
    let unit = prop_oneof![Just("  "), Just("    "), Just("\t"), Just("")];
    let line = prop_oneof![Just("\n"), Just("\r\n")];
    (unit, line, any::<[bool; 5]>()).prop_map(|(unit, line, [bom, last_line, comments, trailing, on_one_line])| Style {
        unit,
        line,
        bom,
        last_line,
        comments,
        trailing,
        on_one_line,
    })
}

/// Some events with hooks of other people, and members beside them.
pub(super) type Content = (Vec<(usize, u8)>, Option<bool>, Vec<(String, u8)>);

pub(super) fn content() -> impl Strategy<Value = Content> {
    let events = proptest::collection::vec((0_usize..12, 1_u8..3), 0..4);
    let others = proptest::collection::vec(("[a-z]{1,8}", any::<u8>()), 0..4);
    (events, proptest::option::of(any::<bool>()), others)
}

pub(super) fn written(host: &GuardHost, content: &Content, style: &Style) -> String {
    let comments = matches!(host.config.form, ConfigForm::Json { comments: true, .. }) && style.comments;
    let trailing = matches!(host.config.form, ConfigForm::Json { comments: true, .. }) && style.trailing;
    let mut members: Vec<String> = Vec::new();
    let (events, has_hooks, others) = content;
    let mut seen = vec!["hooks".to_owned()];
    for (name, number) in others {
        if !seen.contains(name) {
            members.push(format!("\"{name}\": {number}"));
            seen.push(name.clone());
        }
    }
    let list = |elements: &[String], open: char, close: char, depth: usize| {
        if style.on_one_line && !comments {
            return format!("{open}{}{close}", elements.join(", "));
        }
        let indent = style.unit.repeat(depth + 1);
        let remark = if comments { " // a remark, with \"quotes\" and [brackets]" } else { "" };
        let mut text = format!("{open}{}", style.line);
        for (at, element) in elements.iter().enumerate() {
            let is_last = at + 1 == elements.len();
            let comma = if is_last && !trailing { "" } else { "," };
            text.push_str(&format!("{indent}{element}{comma}{remark}{}", style.line));
        }
        format!("{text}{}{close}", style.unit.repeat(depth))
    };
    if has_hooks.is_some() {
        let mut named: Vec<String> = Vec::new();
        let mut lists: Vec<String> = Vec::new();
        for (at, count) in events {
            let name = host.events.get(*at).map_or("Elsewhere", |row| row.name);
            if named.iter().any(|known| known == name) {
                continue;
            }
            named.push(name.to_owned());
            let entry = |at: u8| format!("{{ \"hooks\": [{{\"type\": \"command\",  \"command\": \"theirs {at}\"}}] }}");
            let entries: Vec<String> = (0..*count).map(entry).collect();
            lists.push(format!("\"{name}\": {}", list(&entries, '[', ']', 2)));
        }
        if !lists.is_empty() {
            members.insert(members.len() / 2, format!("\"hooks\": {}", list(&lists, '{', '}', 1)));
        }
    }
    if members.is_empty() {
        members.push("\"a\": {}".to_owned());
    }
    let bom = if style.bom { "\u{feff}" } else { "" };
    let end = if style.last_line { style.line } else { "" };
    format!("{bom}{}{end}", list(&members, '{', '}', 0))
}

/// The file without comments and trailing commas, read.
pub(super) fn read(text: &str) -> Value {
    let mut plain: String = text.trim_start_matches('\u{feff}').to_owned();
    plain = plain.lines().map(|line| line.split(" // a remark").next().unwrap()).collect::<Vec<_>>().join(" ");
    let mut out = String::new();
    let mut chars = plain.chars().peekable();
    while let Some(c) = chars.next() {
        if c == ',' {
            let mut ahead = chars.clone();
            if ahead.find(|c| !c.is_whitespace()).is_some_and(|c| c == '}' || c == ']') {
                continue;
            }
        }
        out.push(c);
    }
    json::parse(&out).unwrap_or_else(|wrong| panic!("{wrong}: {text}"))
}

fn program(entry: &Value) -> &str {
    entry["hooks"][0]["command"].as_str().unwrap_or_default()
}

/// Our entry stands once in each list, in its place, and everything else is as it was.
fn placed(host: &GuardHost, old: &str, new: &str) {
    let (old, new) = (read(old), read(new));
    let mut rest = new.clone();
    for row in settings::installed(host) {
        let list = new["hooks"][row.name].as_array().unwrap().clone();
        let ours: Vec<usize> = (0..list.len()).filter(|at| program(&list[*at]).contains("pintle-hook")).collect();
        assert_eq!(ours.len(), 1, "{}: {new:?}", row.name);
        match host.config.position {
            RowPosition::First => assert_eq!(ours[0], 0, "{new:?}"),
            RowPosition::Last => assert_eq!(ours[0] + 1, list.len(), "{new:?}"),
            RowPosition::Any => {}
        }
        let theirs: Vec<Value> = list.into_iter().filter(|entry| !program(entry).contains("pintle-hook")).collect();
        let lists = rest["hooks"].as_object_mut().unwrap();
        if theirs.is_empty() {
            lists.shift_remove(row.name);
        } else {
            lists.insert(row.name.to_owned(), Value::from(theirs));
        }
    }
    let members = rest.as_object_mut().unwrap();
    if members.get("hooks").and_then(Value::as_object).is_some_and(pintle_domain::json::Object::is_empty) {
        members.shift_remove("hooks");
    }
    assert_eq!(rest, old);
}

/// In, in again, another one in its place, and out.
fn round(host: &'static GuardHost, old: &str) {
    let what = |text: &str| format!("{}:\n{old:?}\n{text:?}", host.id);
    let edited = install(host, &hook(host, PROGRAM), Some(old), None).unwrap();
    let again = install(host, &hook(host, PROGRAM), Some(&edited.text), Some(&edited.kept)).unwrap();
    assert_eq!(again.text, edited.text, "{}", what(&edited.text));
    assert_eq!(again.kept, edited.kept);
    let moved = install(host, &hook(host, OTHER_PROGRAM), Some(&again.text), Some(&again.kept)).unwrap();
    assert_ne!(moved.text, edited.text);
    let kept = KeptFile { before: Some(old.to_owned()), after: moved.text.clone() };
    assert_eq!(moved.kept, kept);
    assert_eq!(uninstall(host, Some(&moved.text), Some(&moved.kept)), Ok(Some(old.to_owned())));
    assert_eq!(uninstall(host, Some(&moved.text), None).unwrap().unwrap(), old, "{}", what(&moved.text));
    assert_eq!(uninstall(host, Some(&edited.text), None).unwrap().unwrap(), old, "{}", what(&edited.text));
    if matches!(host.config.form, ConfigForm::Json { .. }) {
        placed(host, old, &edited.text);
        placed(host, old, &moved.text);
    }
}

fn toml_file() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("# a remark\n".to_owned()),
        Just("\n".to_owned()),
        "[a-z]{1,6}".prop_map(|name| format!("[t_{name}]  # x\n'q' = \"v\"\n")),
        Just("[[hooks]]\nevent = \"Stop\"\ncommand = \"theirs\"   # mine\n".to_owned()),
        Just("[[hooks]]\nevent = \"Notification\"\ncommand = \"theirs\"\ntimeout=3\n".to_owned()),
    ];
    (proptest::collection::vec(part, 0..6), any::<[bool; 3]>()).prop_map(|(parts, [windows, last_line, bom])| {
        let mut seen = Vec::new();
        let mut text = String::from("default_model = 'x'\n");
        for part in parts {
            if part.starts_with("[t_") && seen.contains(&part) {
                continue;
            }
            text.push_str(&part);
            seen.push(part);
        }
        let text = if last_line { text } else { text.trim_end_matches('\n').to_owned() };
        let text = if windows { text.replace('\n', "\r\n") } else { text };
        if bom { format!("\u{feff}{text}") } else { text }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn settings_of_claude_come_back_byte_by_byte(content in content(), style in style()) {
        let host = host("claude").unwrap();
        round(host, &written(host, &content, &style));
    }

    #[test]
    fn settings_of_codex_come_back_byte_by_byte(content in content(), style in style()) {
        let host = host("codex").unwrap();
        round(host, &written(host, &content, &style));
    }

    #[test]
    fn settings_of_gemini_come_back_byte_by_byte(content in content(), style in style()) {
        let host = host("gemini").unwrap();
        round(host, &written(host, &content, &style));
    }

    #[test]
    fn settings_of_qwen_come_back_byte_by_byte(content in content(), style in style()) {
        let host = host("qwen").unwrap();
        round(host, &written(host, &content, &style));
    }

    #[test]
    fn settings_of_kimi_come_back_byte_by_byte(old in toml_file()) {
        round(host("kimi").unwrap(), &old);
    }

    #[test]
    fn files_that_are_ours_alone_come_back_byte_by_byte(blank in "[ \\t\\r\\n]{0,8}", theirs in "[a-z/#! \\n]{1,60}") {
        for host in HOSTS {
            let put = |program, old: Option<&str>, kept: Option<&KeptFile>| match host.config.form {
                ConfigForm::Json { .. } | ConfigForm::Toml { .. } | ConfigForm::Requirements { .. } => None,
                ConfigForm::WholeFile { .. } => Some(install(host, &hook(host, program), old, kept)),
                ConfigForm::Executables { .. } => {
                    let row = settings::installed(host).next().unwrap();
                    let theirs = beside(kept);
                    Some(install_event(host, (&hook(host, program), row), old, theirs))
                }
            };
            for old in [None, Some(blank.as_str())] {
                let Some(edited) = put(PROGRAM, old, None) else { continue };
                let edited = edited.unwrap();
                let moved = put(OTHER_PROGRAM, Some(&edited.text), Some(&edited.kept)).unwrap().unwrap();
                prop_assert_eq!(uninstall(host, Some(&moved.text), Some(&moved.kept)), Ok(old.map(str::to_owned)));
                // Without what was kept, what is ours goes.
                prop_assert_eq!(uninstall(host, Some(&moved.text), None), Ok(None));
            }
            if !theirs.trim().is_empty() && let Some(edited) = put(PROGRAM, Some(&theirs), None) {
                match edited {
                    Ok(edited) => {
                        prop_assert!(settings::is_wrapping(&edited.text));
                        let back = uninstall(host, Some(&edited.text), Some(&edited.kept));
                        prop_assert_eq!(back, Ok(Some(theirs.clone())));
                    }
                    Err(why) => prop_assert_eq!(why, NotEdited::Taken),
                }
                prop_assert_eq!(uninstall(host, Some(&theirs), None), Ok(Some(theirs.clone())));
            }
        }
    }

    #[test]
    fn no_text_breaks_editing(text in any::<String>(), bent in "[\\[\\]{}\",:/* a\n]{0,60}") {
        for host in HOSTS {
            for text in [&text, &bent] {
                if let Ok(edited) = install(host, &hook(host, PROGRAM), Some(text), None) {
                    prop_assert_eq!(uninstall(host, Some(&edited.text), Some(&edited.kept)), Ok(edited.kept.before));
                }
            }
        }
    }
}

#[test]
fn the_administrator_of_codex_pins_its_hooks() {
    let host = in_scope(host("codex").unwrap(), InstallScope::System);
    let entry = ClientEntry { daemon: EntryDaemon::Account, ..hook(host, PROGRAM) };
    for before in [
        None,
        Some(""),
        Some("# mine\r\nallow_managed_hooks_only = true\r\n"),
        Some("[features]\nhooks = true"),
        Some(
            "[hooks]\nmanaged_dir = \"/m\"\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"\ncommand = \"x\"\n",
        ),
    ] {
        let edited = install(host, &entry, before, None).unwrap();
        let read: toml::Table = toml::from_str(&edited.text).unwrap();
        assert_eq!(read["features"]["hooks"].as_bool(), Some(true), "{before:?}");
        let groups = read["hooks"]["PreToolUse"].as_array().unwrap();
        let command = groups[0]["hooks"][0]["command"].as_str().unwrap();
        assert!(command.contains("--daemon account") && !command.contains("--socket"), "{command}");
        assert!(settings::has_ours(host, &edited.text).unwrap(), "{before:?}");
        assert_eq!(settings::own_events(host, &edited.text).unwrap().len(), settings::installed(host).count());
        let again = install(host, &entry, Some(&edited.text), Some(&edited.kept)).unwrap();
        assert_eq!(again.text, edited.text);
        let others = usize::from(before.is_some_and(|text| text.contains("Stop")));
        assert_eq!(edited.others.len(), others, "{before:?}");
        // With and without what was kept.
        assert_eq!(uninstall(host, Some(&edited.text), Some(&edited.kept)).unwrap().as_deref(), before);
        assert_eq!(uninstall(host, Some(&edited.text), None).unwrap().as_deref(), before.or(Some("")));
    }
    for before in ["[features]\nhooks = false\n", "[features]\nweb = true\n", "hooks = 3\n", "hooks = {}\n"] {
        assert!(install(host, &entry, Some(before), None).is_err(), "{before}");
    }
}

#[test]
fn an_installation_is_at_the_events_that_it_is_wanted_at() {
    for host in HOSTS {
        let rows: Vec<_> = settings::installed(host).collect();
        let events: Vec<String> = rows.iter().filter(|row| row.stops).map(|row| row.name.to_owned()).collect();
        let entry = ClientEntry { events: Some(&events), ..hook(host, PROGRAM) };
        if matches!(host.config.form, ConfigForm::Executables { .. }) {
            continue;
        }
        let edited = install(host, &entry, None, None).unwrap();
        let mut found = settings::own_events(host, &edited.text).unwrap();
        let mut expected = match host.id {
            // A plugin asks at each of them.
            "opencode" | "pi" => rows.iter().map(|row| row.name.to_owned()).collect(),
            _ => events,
        };
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{}", host.id);
    }
}
