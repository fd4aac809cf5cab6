//! What hooks are sent, byte for byte, as it was written down before.
//!
//! Each scenario is a conversation with the real program whose hooks keep what reaches them. What they kept stands in
//! `tests/fixtures/transcripts`, a line a message; only what differs from run to run has placeholders there. A
//! difference is a change of the wire: hooks that worked yesterday have to work tomorrow.
//!
//! `cargo xtask gen` writes the transcripts anew: it runs these tests with `PINTLE_GENERATE=1`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pintle_domain::checkpoint::runtime::RUNTIME_KINDS;
use pintle_domain::checkpoint::{CHECKPOINTS, CheckpointKind, Duty};

mod asked;
mod normal;
mod ruled;
mod stage;
mod told;

/// Where the transcripts stand.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/transcripts")
}

/// Compares the parts of the scenario `name` with its transcripts, or writes these.
#[track_caller]
fn check(name: &str, parts: &[(String, String)]) {
    let folder = folder().join(name);
    if std::env::var_os("PINTLE_GENERATE").is_some() {
        if folder.exists() {
            std::fs::remove_dir_all(&folder).unwrap();
        }
        std::fs::create_dir_all(&folder).unwrap();
        for (part, text) in parts {
            std::fs::write(folder.join(format!("{part}.txt")), text).unwrap();
        }
        return;
    }
    for (part, text) in parts {
        let kept = std::fs::read_to_string(folder.join(format!("{part}.txt"))).unwrap_or_default();
        if let Some(difference) = difference(&kept, text) {
            panic!(
                "{name}/{part}.txt: hooks are sent something else than before\n{difference}\n\
                 if that is meant, run `cargo xtask gen` and say so in the protocol"
            );
        }
    }
    let written: BTreeSet<String> = parts.iter().map(|(part, _)| format!("{part}.txt")).collect();
    let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(written, entries.collect(), "the transcripts of `{name}`");
}

/// The first line in which `now` differs from `before`, from shortly before the difference on.
fn difference(before: &str, now: &str) -> Option<String> {
    if before == now {
        return None;
    }
    let (mut old, mut new) = (before.split('\n'), now.split('\n'));
    let mut line = 1;
    loop {
        let (was, is) = (old.next(), new.next());
        if was != is {
            let (was, is) = (was.unwrap_or("(nothing)"), is.unwrap_or("(nothing)"));
            let same = was.chars().zip(is.chars()).take_while(|(was, is)| was == is).count();
            let shown = |text: &str| text.chars().skip(same.saturating_sub(SHOWN)).take(3 * SHOWN).collect::<String>();
            return Some(format!(
                "line {line}, character {}, was\n  {}\nand is\n  {}",
                same + 1,
                shown(was),
                shown(is)
            ));
        }
        line += 1;
    }
}

/// How many characters are shown before a difference, and twice as many behind it.
const SHOWN: usize = 60;

/// All transcripts whose name ends in `ending`, as one text.
fn all(ending: &str) -> String {
    let mut texts = String::new();
    for scenario in std::fs::read_dir(folder()).unwrap().map(Result::unwrap) {
        for file in std::fs::read_dir(scenario.path()).unwrap().map(|entry| entry.unwrap().path()) {
            if file.to_string_lossy().ends_with(ending) {
                texts += &std::fs::read_to_string(file).unwrap();
            }
        }
    }
    texts
}

/// What of `wanted` occurs nowhere in `texts`.
fn missing<'a>(texts: &str, wanted: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    wanted.into_iter().filter(|wanted| !texts.contains(wanted)).collect()
}

#[test]
fn every_checkpoint_occurs() {
    let (calls, events) = (all(".calls.txt"), all(".events.txt"));
    for row in &CHECKPOINTS {
        let method =
            pintle_dialects::process::wire::method(row.kind).map(|method| format!(r#""method":"{method}","params""#));
        let is_sent = method.is_some_and(|method| calls.contains(&method));
        // One event reaches all kinds of rules, or it is of no concern to any.
        let ruled = [".command.txt", ".http.txt"]
            .map(|kind| all(kind).contains(&format!(r#""HookEvent":"{0}","hook_event_name":"{0}""#, row.name)));
        let scripted = all(".script.txt").contains(&format!(r#""hookEvent":"{}""#, row.name));
        let is_ruled = ruled == [true; 2] && scripted;
        let told = events.contains(r#""method":"hook.event""#) && events.contains(r#""method":"hook.runtime_event""#);
        let occurs = match row.duty {
            Duty::Injector => calls.contains(&format!("a text at {}", row.name)),
            Duty::Observer | Duty::Gate | Duty::Rewriter | Duty::Approver if row.kind == CheckpointKind::Runtime => {
                told
            }
            Duty::Observer | Duty::Gate | Duty::Rewriter | Duty::Approver => is_sent || is_ruled,
        };
        assert!(occurs, "no transcript has {}", row.name);
    }
}

#[test]
fn every_runtime_event_occurs_in_both_forms() {
    let events = all(".events.txt");
    let kinds = RUNTIME_KINDS.map(|(_, hook, runtime)| {
        [format!(r#""params":{{"Kind":"{hook}","#), format!(r#","kind":"agent.{runtime}","time":"#)]
    });
    assert_eq!(missing(&events, kinds.iter().flatten().map(String::as_str)), Vec::<&str>::new());
}

#[test]
fn every_method_and_kind_of_answer_occurs() {
    let calls = all(".calls.txt");
    let lines = |mark: &str| calls.lines().filter(|line| line.starts_with(mark)).collect::<Vec<_>>().join("\n");
    let (sent, answered) = (lines("> "), lines("< "));
    let methods = [
        r#""method":"hook.hello""#,
        r#""method":"hook.before_llm""#,
        r#""method":"hook.after_llm""#,
        r#""method":"hook.before_tool""#,
        r#""method":"hook.approve_tool""#,
        r#""method":"hook.after_tool""#,
        r#""method":"hook.cancel""#,
    ];
    let answers = [
        r#""action":"continue""#,
        r#""action":"modify""#,
        r#""action":"respond""#,
        r#""action":"deny_tool""#,
        r#""action":"abort_turn""#,
        r#""action":"hard_abort""#,
        r#""approved":true"#,
        r#""approved":false"#,
        r#""error":{"code""#,
    ];
    // Who is asked has the modes that it asked for, in this order, in every combination that a hook can have.
    let modes = [
        r#""modes":["observe","llm","tool","approve"]"#,
        r#""modes":["observe"]"#,
        r#""modes":["llm"]"#,
        r#""modes":["tool"]"#,
        r#""modes":["approve"]"#,
    ];
    let numbers = [":12345678901234567890.10,", ":1.0,", ":1e+2,", ":-0,", ":1e-400,", ":0.50,"];
    let wanted = methods.into_iter().chain(modes).chain(numbers);
    assert_eq!(missing(&sent, wanted), Vec::<&str>::new());
    assert_eq!(missing(&answered, answers), Vec::<&str>::new());
}
