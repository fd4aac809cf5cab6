//! Manifests, good and bad: what is in force, and what is said.

use std::fmt::Write as _;

use pintle_domain::skill::finding::Severity;

use super::*;

const GOOD: &str = r#""file": "a.md", "timing": "after_tool_call", "role": "system", "persistent": false"#;

fn manifest_context<'a>() -> ManifestContext<'a> {
    ManifestContext { skill: "alpha", file: Path::new("hooks.json"), agent: None }
}

/// The names of the hooks that are in force, and what is wrong, a line each.
fn check(text: &str) -> String {
    let manifest = read(manifest_context(), text.as_bytes());
    let names: Vec<&str> = manifest.entries.iter().map(|entry| entry.name.as_str()).collect();
    let mut said = format!("{}[{}]\n", if manifest.broken { "broken " } else { "" }, names.join(" "));
    for found in &manifest.findings {
        assert_eq!(found.severity, found.code.severity());
        assert!(!found.message.contains('\n') && found.message.len() < 400, "{found}");
        writeln!(said, "{found}").unwrap();
    }
    said
}

fn entry(rest: &str) -> String {
    check(&format!("{{\"hooks\": [\n{{{rest}}}]}}"))
}

/// The codes that a text has.
fn codes(text: &str) -> String {
    read(manifest_context(), text.as_bytes())
        .findings
        .iter()
        .map(|found| found.code.to_string())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn a_good_manifest_says_what_goes_in_when() {
    let text = r#"{"hooks": [{"name": "cite-sources", "file": "cite.md", "timing": "after_tool_call",
        "role": "system", "persistent": false, "tool_filter": ["web_fetch"]},
        {"name": "tone", "file": "cite.md", "timing": "after_user_input", "role": "user", "persistent": true}],
        "description": "x", "version": 1, "$schema": "y"}"#;
    let manifest = read(manifest_context(), format!("\u{feff}{text}").as_bytes());
    assert_eq!((manifest.findings.as_slice(), manifest.broken), (&[][..], false));
    let [cite, tone] = manifest.entries.as_slice() else { panic!("two entries") };
    assert_eq!(
        *cite,
        ManifestEntry {
            name: "cite-sources".into(),
            file: "cite.md".into(),
            timing: Timing::AfterToolCall,
            role: Voice::System,
            persistent: false,
            tool_filter: vec!["web_fetch".into()],
            name_at: ManifestPlace { at: (1, 21), pointer: "/hooks/0/name".into() },
            file_at: ManifestPlace { at: (1, 45), pointer: "/hooks/0/file".into() },
        }
    );
    assert_eq!((tone.timing, tone.role, tone.persistent), (Timing::AfterUserInput, Voice::User, true));
    assert_eq!(check(r#"{"hooks": []}"#), "[]\n");
}

#[test]
fn a_file_that_is_no_manifest() {
    let all = [
        "",
        "{\"hooks\": [1,]}",
        "// x\n{\"hooks\": []}",
        "{\"hooks\": [{\"name\": \"a\",}]}",
        "{\"hooks\": [NaN]}",
        "{\n \"hooks\": []} x",
        "[]",
        "\"hooks\"",
        "{\"hook\": []}",
        "{}",
        "{\"hooks\": null}",
        "{\"hooks\": \"x\"}",
        "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"rm -rf /\"}]}]}}",
        "{\"hooks\": [], \"hooks\": []}",
        "{\"hooks\": [], \"hokos\": 1, \"x\": 2}",
    ];
    insta::assert_snapshot!(all.map(|text| format!("{text}\n{}", check(text))).join("\n"));
}

#[test]
fn bytes_that_are_no_text_are_no_manifest() {
    let manifest = read(manifest_context(), b"{\"hooks\":\n [\"\xff\"]}");
    assert!(manifest.broken);
    assert_eq!(manifest.findings[0].to_string(), "hooks.json:2:4: error F3: it is not valid UTF-8");
    for depth in [100, 100_000] {
        let deep = format!("{{\"hooks\": {}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(codes(&deep), "F3", "{depth}");
    }
}

#[test]
fn an_entry_falls_alone_and_says_why() {
    let all = [
        r#""name": "a", "role": "system""#.to_owned(),
        format!("\"name\": 1, {GOOD}"),
        r#""name": "a", "file": null, "timing": true, "role": [], "persistent": "true""#.to_owned(),
        r#""name": "a", "file": "a.md", "timing": "before_planning", "role": "user", "persistent": 1"#.to_owned(),
        format!("\"name\": \"\", {GOOD}"),
        format!("\"name\": \"a\\u0007\", {GOOD}"),
        format!("\"name\": \"{}\", {GOOD}", "x".repeat(129)),
        format!("\"name\": \"a\", {GOOD}, \"name\": \"b\""),
        format!("\"name\": \"a\", {GOOD}, \"when\": {{\"x\": [{{\"y\": 1, \"y\": 2}}]}}"),
        r#""name": "a", "file": "../a.md", "timing": "before_planing", "role": "System", "persistent": false"#
            .to_owned(),
        r#""name": "a", "file": "a.txt", "timing": "AfterToolCall", "role": "assistant", "persistent": false"#
            .to_owned(),
        r#""name": "a", "file": "a.md", "timing": "after_tool", "role": "u", "persistent": false"#.to_owned(),
        format!("\"name\": \"a\", {GOOD}, \"tool_filter\": \"web_fetch\""),
        format!("\"name\": \"a\", {GOOD}, \"tool_filter\": [\"x\", \"\"]"),
        format!("\"name\": \"a\", {GOOD}, \"tool_filter\": [1]"),
    ];
    insta::assert_snapshot!(all.map(|rest| format!("{rest}\n{}", entry(&rest))).join("\n"));
}

#[test]
fn an_entry_that_is_kept_and_probably_not_meant() {
    let at = |timing: &str, persistent: bool, rest: &str| {
        entry(&format!(
            "\"name\": \"a\", \"file\": \"a.md\", \"timing\": \"{timing}\", \"role\": \"user\", \"persistent\": {persistent}{rest}"
        ))
    };
    let all = [
        at("before_planning", false, ", \"tool_filter\": 7"),
        at("after_user_input", false, ", \"tool_filter\": []"),
        at("after_tool_call", false, ", \"tool_filter\": []"),
        at("after_tool_call", false, ", \"tool_filter\": null"),
        at("after_tool_call", false, ", \"tool_filer\": [\"x\"], \"priority\": 1, \"zzz\": {}"),
        at("before_each_agent", true, ""),
        at("after_tool_call", true, ""),
        at("before_planning", true, ""),
        at("before_first_agent", true, ""),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn keys_that_are_kept_for_later_are_said_to_be() {
    let later = "priority on_duplicate when every first_after max_fires once_per cooldown max_tokens overflow required \
                 template position audience requires";
    for key in later.split_whitespace() {
        let said = entry(&format!("\"name\": \"a\", {GOOD}, \"{key}\": 1"));
        let warning = format!("warning W4: the key \"{key}\" is reserved for later and has no effect yet\n");
        assert!(said.starts_with("[a]\n") && said.ends_with(&warning) && said.lines().count() == 2, "{said}");
    }
}

#[test]
fn the_others_keep_their_order() {
    let one = |name: &str| format!("{{\"name\": \"{name}\", {GOOD}}}");
    let text = format!(
        "{{\"hooks\": [{}, 7, {}, {}, {{}}, {}]}}",
        one("c"),
        one("a"),
        one("c"),
        one("b").replace("system", "sistem")
    );
    assert_eq!(codes(&text), "E1 E5 E2 E7");
    assert!(check(&text).starts_with("[c a]\n"));
    let many: Vec<String> = (0..300).map(|number| one(&format!("h{number}"))).collect();
    let manifest = read(manifest_context(), format!("{{\"hooks\": [{}]}}", many.join(",")).as_bytes());
    assert_eq!((manifest.entries.len(), manifest.findings.len()), (MAX_ENTRIES, 1));
    assert_eq!((manifest.findings[0].code, manifest.findings[0].path.as_str()), (FindingCode::F8, "/hooks/256"));
}

#[test]
fn what_is_known_of_the_agent_is_used() {
    let text = format!(
        "{{\"hooks\": [{{\"name\": \"a\", {GOOD}, \"tool_filter\": [\"read_file\", \"web_fech\"]}},\n\
         {{\"name\": \"b\", \"file\": \"a.md\", \"timing\": \"before_planning\", \"role\": \"user\", \"persistent\": false}}]}}"
    );
    let tools = ["read_file", "web_fetch"];
    let said = |plans: bool| {
        let agent = AgentView { knows: &|name| tools.contains(&name), tools: &tools, plans };
        let manifest = read(ManifestContext { agent: Some(agent), ..manifest_context() }, text.as_bytes());
        assert_eq!(manifest.entries.len(), 2);
        manifest.findings.iter().map(|found| format!("{found} {}\n", found.path)).collect::<String>()
    };
    assert_eq!(
        said(false),
        "hooks.json:1:139: warning W9: this agent has no tool \"web_fech\"; the hook waits for it in vain; did you mean `web_fetch`? /hooks/0/tool_filter/1\n\
         hooks.json:2:41: warning W10: this agent's flow is `direct`, which has no planning call: the text never goes in /hooks/1/timing\n"
    );
    assert_eq!(said(true).lines().count(), 1);
    assert_eq!(codes(&text), "");
}

#[test]
fn a_flood_of_keys_is_told_shortly() {
    let keys: String = (0..20_000).map(|number| format!(",\"k{number}\":{number}")).collect();
    let text = format!("{{\"hooks\": [{{\"name\": \"a\", {GOOD}{keys}}}]{keys}}}");
    let manifest = read(manifest_context(), text.as_bytes());
    assert_eq!((manifest.entries.len(), manifest.findings.len()), (1, 2 * MAX_KEYS_NAMED));
    assert!(manifest.findings.iter().all(|found| found.severity == Severity::Warning));
    let last = &manifest.findings[MAX_KEYS_NAMED - 1].message;
    assert!(last.ends_with("nor have 19984 further unknown keys"), "{last}");
}

proptest::proptest! {
    #[test]
    fn whatever_stands_there_is_read(text in r#"[{}\[\]":, a-c\\01ntruefals]{0,80}"#, cut in 0_usize..200) {
        let good = format!("{{\"hooks\": [{{\"name\": \"a\", {GOOD}}}, {{\"name\": \"b\", {GOOD}}}]}}");
        let cut = cut.min(good.len());
        for text in [text.clone(), format!("{}{text}{}", &good[..cut], &good[cut..])] {
            let manifest = read(manifest_context(), text.as_bytes());
            // Nothing is lost in silence.
            proptest::prop_assert!(!manifest.broken || !manifest.findings.is_empty());
        }
    }
}
