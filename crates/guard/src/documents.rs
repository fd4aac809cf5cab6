//! What a text writes into documents, which nothing in it runs. Pure.

use std::str::Lines;

use pintle_domain::shell::{ShellCommand, ShellFacts};

/// How the names of documents end.
const ENDINGS: [&str; 5] = [".adoc", ".md", ".mdx", ".rst", ".txt"];

/// Programs that run nothing of what they are told or given.
const QUIET: [&str; 20] = [
    "[", "basename", "cat", "cd", "date", "dirname", "echo", "grep", "head", "ls", "mkdir", "mktemp", "printf", "pwd",
    "tail", "tee", "test", "touch", "true", "wc",
];

/// Commands of git that do neither.
const QUIET_GIT: [&str; 6] = ["add", "commit", "diff", "log", "rev-parse", "status"];

/// `text`, of which `facts` tell, without what it writes into documents word by word, if it runs nothing that could run that.
pub(crate) fn without_documents(text: &str, facts: &ShellFacts) -> String {
    if !facts.commands.iter().all(is_quiet) {
        return text.to_owned();
    }
    let (mut plain, mut lines) = (String::new(), text.lines());
    while let Some(line) = lines.next() {
        let mark = mark_of_document(line).filter(|_| is_closed(&plain));
        plain.push_str(line);
        plain.push('\n');
        if let Some(mark) = mark {
            lines = after(lines, mark);
        }
    }
    plain
}

/// What of `lines` follows the line `mark`.
fn after<'t>(mut lines: Lines<'t>, mark: &str) -> Lines<'t> {
    while lines.next().is_some_and(|line| line != mark) {}
    lines
}

fn is_quiet(command: &ShellCommand) -> bool {
    let verb = command.argv.get(1).map(String::as_str).unwrap_or_default();
    QUIET.contains(&command.name.as_str()) || (command.name == "git" && QUIET_GIT.contains(&verb))
}

/// Whether no quote is open at the end of `text`.
fn is_closed(text: &str) -> bool {
    ['\'', '"', '`'].into_iter().all(|quote| text.matches(quote).count() % 2 == 0)
}

/// The line that ends what `line` writes into documents, where it does that word by word: `cat > x.md <<'END'`.
fn mark_of_document(line: &str) -> Option<&str> {
    let command = line.rsplit(['&', ';']).next().unwrap_or(line);
    let mut words = command.split_whitespace();
    if !matches!(words.next(), Some("cat" | "tee")) {
        return None;
    }
    let (marks, files): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with("<<"));
    let mut files =
        files.into_iter().map(|word| word.trim_start_matches('>')).filter(|word| !matches!(*word, "" | "-a"));
    let is_document = |word: &str| ENDINGS.iter().any(|ending| word.trim_end_matches(['"', '\'']).ends_with(ending));
    let [mark] = marks.as_slice() else { return None };
    let mark = mark.strip_prefix("<<'")?.strip_suffix('\'')?;
    let is_plain = !mark.is_empty() && mark.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_');
    let is_first = files.next().is_some_and(is_document);
    (is_plain && is_first && files.all(is_document)).then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taken::tests::commands;

    #[test]
    fn a_document_is_known_by_its_line() {
        for (line, mark) in [
            ("cat > \"$d/x.md\" <<'END'", Some("END")),
            ("mkdir -p x && cat <<'E' >> x/a.txt", Some("E")),
            ("tee -a $d/x.rst <<'E'", Some("E")),
            ("tee x.md y.sh <<'E'", None),
            ("cat > x.sh <<'E'", None),
            ("cat > x.md <<E", None),
            ("cat <<'E' | sh > x.md", None),
            ("cat <<'E'", None),
            ("sh > x.md <<'E'", None),
            ("cat > x.md <<'A' <<'B'", None),
        ] {
            assert_eq!(mark_of_document(line), mark, "{line}");
        }
    }

    #[test]
    fn what_is_written_into_a_document_is_left_out_where_nothing_runs_it() {
        let text = "cat > \"$d/x.md\" <<'E'\na\nE\necho b";
        for (ran, is_left_out) in [("echo b", true), ("git add x.md", true), ("git x y", false), ("sh x.md", false)] {
            let facts = ShellFacts { commands: commands(&["cat", ran]), ..ShellFacts::default() };
            assert_eq!(!without_documents(text, &facts).contains("\na\n"), is_left_out, "{ran}");
        }
        let open = "echo \"\ncat > x.md <<'E'\na\"";
        let facts = ShellFacts { commands: commands(&["echo"]), ..ShellFacts::default() };
        assert!(without_documents(open, &facts).contains("\na\""), "in quotes nothing is a document");
    }
}
