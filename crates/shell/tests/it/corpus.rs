//! Two collections of texts: harmless ones that speak of danger, and dangerous ones that go round a naive guard.

use crate::judge::dangers;
use pintle_domain::shell::ShellKind;

use crate::{SHELLS, WORKSPACE, facts_as, facts_in};

/// One text of a collection.
pub(crate) struct Entry<'c> {
    pub(crate) line: usize,
    want: &'c str,
    pub(crate) cwd: &'c str,
    pub(crate) text: String,
}

pub(crate) fn entries(collection: &str) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    let mut lines = collection.lines().enumerate().skip_while(|(_, line)| *line != "---").skip(1).peekable();
    while lines.peek().is_some() {
        let block: Vec<(usize, &str)> = lines.by_ref().take_while(|(_, line)| *line != "---").collect();
        let mut entry = Entry {
            line: block.first().map_or(0, |(line, _)| line + 1),
            want: "",
            cwd: WORKSPACE,
            text: String::new(),
        };
        let mut head = true;
        for (_, line) in block {
            if let (true, Some(want)) = (head, line.strip_prefix("# want: ")) {
                entry.want = want;
            } else if let (true, Some(cwd)) = (head, line.strip_prefix("# cwd: ")) {
                entry.cwd = cwd;
            } else {
                head = false;
                entry.text.push_str(line);
                entry.text.push('\n');
            }
        }
        entries.push(entry);
    }
    entries
}

#[test]
fn harmless_texts_are_known_and_not_dangerous() {
    let entries = entries(include_str!("../corpus/harmless.txt"));
    assert!(entries.len() >= 300, "{} harmless texts, 300 are wanted", entries.len());
    let mut report = String::new();
    for (shell, entry) in SHELLS.iter().flat_map(|shell| entries.iter().map(move |entry| (*shell, entry))) {
        let facts = facts_as(shell, &entry.text, entry.cwd);
        let found = dangers(&facts);
        if !found.is_empty() {
            report.push_str(&format!("line {}, {shell:?}: {:?}\n{}\n", entry.line, found, entry.text));
        }
    }
    assert!(report.is_empty(), "{report}{} texts", report.matches("line ").count());
}

#[test]
fn dangerous_texts_show_their_danger_or_are_unknown() {
    let entries = entries(include_str!("../corpus/ways_round.txt"));
    assert!(entries.len() >= 300, "{} dangerous texts, 300 are wanted", entries.len());
    let mut report = String::new();
    for (shell, entry) in
        [ShellKind::Bash, ShellKind::Unknown].iter().flat_map(|shell| entries.iter().map(move |entry| (*shell, entry)))
    {
        let facts = facts_as(shell, &entry.text, entry.cwd);
        let found = dangers(&facts);
        let shown = found
            .iter()
            .any(|(kind, _)| *kind == entry.want || *kind == "unknown" || (entry.want == "destroy" && *kind == "disk"));
        if !shown {
            report.push_str(&format!(
                "line {}, {shell:?}, {}: {:?}\n{}{:?}\n\n",
                entry.line, entry.want, found, entry.text, facts
            ));
        }
    }
    assert!(report.is_empty(), "{report}{} texts", report.matches("line ").count());
}

/// A guard that is right by calling everything unknown would be of no use.
#[test]
fn most_dangerous_texts_are_read_not_only_refused() {
    let entries = entries(include_str!("../corpus/ways_round.txt"));
    let known = entries.iter().filter(|entry| !facts_in(&entry.text, entry.cwd).unknown).count();
    assert!(known * 2 > entries.len(), "only {known} of {} dangerous texts are read whole", entries.len());
}
