//! What differs from run to run, replaced by placeholders; equal ids have equal placeholders.

use std::collections::HashMap;

use regex::{Captures, Regex};

use crate::env::TestEnv;

/// Ids that stand for something wherever they occur, and are the same in every run.
const FIXED: [&str; 2] = ["0193a5b0-7000-", "00000000-0000-"];

/// Each part of a scenario with placeholders, numbered through all of them in order.
pub(super) fn parts(env: &TestEnv, parts: Vec<(String, String)>) -> Vec<(String, String)> {
    let root = env.path("").display().to_string();
    let path = std::env::var("PATH").unwrap();
    let mut names = Names::default();
    let one = |(part, text): (String, String)| {
        let text = text.replace(root.trim_end_matches('/'), "[root]");
        let text = text.replace(&format!("PATH={path}\n"), "PATH=[path]\n");
        let text = text.replace(concat!("pintle-hooks/", env!("CARGO_PKG_VERSION")), "pintle-hooks/[version]");
        let text = text.replace(concat!("pintle/", env!("CARGO_PKG_VERSION")), "pintle/[version]");
        let text = times(&text);
        (part, names.name(&text))
    };
    parts.into_iter().map(one).collect()
}

/// Times, durations, ports, and what is made of them. The digits of a time show that it has nanoseconds.
fn times(text: &str) -> String {
    let rules = [
        // Messages and payloads of rules have as many digits as a time needs.
        (r#"("occurred_?[aA]t":")\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z","#, r#"$1[time]","#),
        (r#"("created_at":")\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z""#, r#"$1[time]""#),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", "0000-00-00T00:00:00.000000000Z"),
        (r#"("(?:duration|Duration|duration_ms|durationMs|Backoff)":)\d+\b"#, "${1}0"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:[port]"),
        (r"(webhook-timestamp: )\d+\r", "$1[time]\r"),
        (r"(webhook-signature: v1,)[A-Za-z0-9+/]{43}=\r", "$1[signature]\r"),
        (r"<<<[0-9a-f]{32}\\n", r"<<<[nonce]\n"),
        (r"\\n[0-9a-f]{32}>>>", r"\n[nonce]>>>"),
    ];
    let replace = |text: String, (pattern, with): (&str, &str)| {
        Regex::new(pattern).unwrap().replace_all(&text, with).into_owned()
    };
    rules.into_iter().fold(text.to_owned(), replace)
}

/// The placeholders of ids, by id.
#[derive(Default)]
struct Names(HashMap<String, String>);

impl Names {
    fn name(&mut self, text: &str) -> String {
        let ids = r"media://[A-Za-z0-9_-]+|\b[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{32}\b";
        let name = |found: &Captures<'_>| {
            let id = &found[0];
            // Version 5 is made of what it names.
            let is_made = found.get(1).is_some_and(|version| version.as_str() == "5");
            if is_made || FIXED.iter().any(|fixed| id.starts_with(fixed)) {
                return id.to_owned();
            }
            let next = self.0.len() + 1;
            let name =
                || if id.starts_with("media:") { format!("media://[id {next}]") } else { format!("[id {next}]") };
            self.0.entry(id.to_owned()).or_insert_with(name).clone()
        };
        Regex::new(ids).unwrap().replace_all(text, name).into_owned()
    }
}

#[test]
fn equal_ids_stay_equal_and_made_ones_stay() {
    let env = TestEnv::new();
    let id = |n: u32| format!("0197aaaa-0000-7000-8000-00000000000{n}");
    let made = "adf28f53-17ef-5f64-9290-9bfa14940397";
    let text = format!("{} {} {} {made} 2026-01-02T03:04:05.000000006Z 2026-01-02T03:04:05.6Z", id(1), id(2), id(1));
    let parts = parts(&env, vec![("a".into(), text), ("b".into(), format!("{}\"duration\":12,", id(2)))]);
    let expected = format!("[id 1] [id 2] [id 1] {made} 0000-00-00T00:00:00.000000000Z 2026-01-02T03:04:05.6Z");
    assert_eq!(parts, [("a".to_owned(), expected), ("b".to_owned(), "[id 2]\"duration\":0,".to_owned())]);
}
