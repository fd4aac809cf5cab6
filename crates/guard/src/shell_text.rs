//! What hosts run as a text for `sh`: the client, and around it what refuses in its place where it cannot.
//!
//! A host takes a hook that cannot be started, or that a signal ends, for one without an objection. So the shell waits
//! for the client's whole output, and says it only if the client ended well; else it says the refusal of the event. Two
//! documents would let the call run: there is never more than one.
//!
//! No `$NAME` stands anywhere here: Gemini CLI and Qwen Code put variables of their environment, which a project can
//! set, into every text of their settings.

use crate::host::ClientEntry;

/// The name of the client's program: by it our entries are known.
pub const CLIENT: &str = "pintle-hook";

/// The shell itself outlives every signal that can be ignored: the client hears them too, and answers. A tab behind the
/// output says that the client ended well: JSON has none but those that somebody lays it out with. Nothing but the tab is
/// silence.
const HEAD: &str = concat!(
    "trap \"\" 1 2 3 10 12 13 14 15;set -- \"$(\"$@\"&&printf \"\t\")\";",
    "case \"$*\" in \"\t\");;*\"\t\")printf %s \"$*\";;*)printf %s "
);

/// Behind the refusal.
const TAIL: &str = ";;esac";

/// What comes before the frame and the words: some hosts run texts by the shell of the person, which may be any.
const SHELL: [&str; 2] = ["/bin/sh", "-c"];

/// How a script begins.
pub(crate) const SCRIPT: &str = "#!/bin/sh\n";

impl ClientEntry<'_> {
    /// Program and arguments.
    fn words(&self, event: &str) -> Vec<String> {
        std::iter::once(self.program.to_owned()).chain(self.arguments(event)).collect()
    }

    /// What the host runs at `event`, as a text for any shell; `deny` is the refusal there, empty where there is none.
    pub fn shell_text(&self, event: &str, deny: &str) -> String {
        let words = self.words(event);
        match deny {
            "" => joined(&words),
            deny => {
                let shell = SHELL.map(str::to_owned).into_iter().chain([frame(deny), CLIENT.to_owned()]);
                joined(&shell.chain(words).collect::<Vec<_>>())
            }
        }
    }

    /// The same as a file that the host executes.
    pub fn script(&self, event: &str, deny: &str) -> String {
        let words = joined(&self.words(event));
        match deny {
            "" => format!("{SCRIPT}exec {words}\n"),
            deny => format!("{SCRIPT}set -- {words}\n{}\n", frame(deny)),
        }
    }
}

fn frame(deny: &str) -> String {
    format!("{HEAD}{}{TAIL}", quoted(deny))
}

pub(crate) fn joined(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// Whether `text` runs our client, as an installation wrote it: it alone, or in our frame. What merely names it is
/// somebody else's.
pub(crate) fn is_ours(text: &str) -> bool {
    let Some(words) = words(text) else { return false };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [sh, c, script, name, rest @ ..] if [*sh, *c] == SHELL => {
            *name == CLIENT && is_frame(script) && starts_client(rest)
        }
        words => starts_client(words),
    }
}

/// Whether `text` is a script of ours.
pub(crate) fn is_our_script(text: &str) -> bool {
    let Some(text) = text.strip_prefix(SCRIPT) else { return false };
    let lines: Vec<&str> = text.lines().collect();
    let starts = |line: &str, begin: &str| line.strip_prefix(begin).is_some_and(is_ours);
    match lines.as_slice() {
        [line] => starts(line, "exec "),
        [line, frame] => starts(line, "set -- ") && is_frame(frame),
        _ => false,
    }
}

fn is_frame(script: &str) -> bool {
    let deny = script.strip_prefix(HEAD).and_then(|rest| rest.strip_suffix(TAIL));
    deny.and_then(words).is_some_and(|words| words.len() == 1)
}

pub(crate) fn starts_client(words: &[&str]) -> bool {
    words.first().is_some_and(|program| is_client(program))
}

/// Whether `program` is a path to the client.
pub(crate) fn is_client(program: &str) -> bool {
    program.starts_with('/') && program.rsplit('/').next() == Some(CLIENT)
}

const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | '%' | '+' | '=' | ',')
}

/// `word` as every shell takes it, without a `$NAME` in it. No backslash stands within the quotes: there fish reads it as
/// an escape, and others do not.
pub(crate) fn quoted(word: &str) -> String {
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if word.is_empty() {
        return "''".to_owned();
    }
    let (mut text, mut is_open, mut before) = (String::new(), false, None);
    for c in word.chars() {
        let is_apart = matches!(c, '\'' | '\\');
        let is_name = before == Some('$') && (c == '{' || c == '_' || c.is_alphanumeric());
        if is_open && (is_apart || is_name) {
            text.push('\'');
            is_open = false;
        }
        if is_apart {
            text.push('\\');
        } else if !is_open {
            text.push('\'');
            is_open = true;
        }
        text.push(c);
        before = Some(c);
    }
    if is_open {
        text.push('\'');
    }
    text
}

/// The words of `text`, if it is nothing but words as [`quoted`] writes them, or wrote them when backslashes stood within
/// the quotes.
pub(crate) fn words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next().filter(|c| matches!(c, '\'' | '\\'))?),
            c if is_plain(c) => word.get_or_insert_default().push(c),
            _ => return None,
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Output, Stdio};

    use super::*;
    use crate::host::EntryDaemon;

    const HOSTILE: [&str; 6] =
        ["plain", "a b", "o'neill's", "$HOME/${PATH}$(touch x)`touch x`$", "\"\\\n;|&<>*?~#!{}", "läden-\u{1f980}"];

    #[test]
    fn words_are_read_as_they_were_written() {
        let all: Vec<String> = HOSTILE.map(str::to_owned).to_vec();
        assert_eq!(words(&joined(&all)), Some(all.clone()));
        let nested = vec![joined(&all), joined(&[joined(&all)])];
        assert_eq!(words(&joined(&nested)), Some(nested));
        for not_ours in ["a;b", "a | b", "a \"b\"", "a $b", "'a", "a \\b", "a#b"] {
            assert_eq!(words(not_ours), None, "{not_ours}");
        }
    }

    /// Whether a backslash stands within single quotes.
    fn is_read_in_two_ways(text: &str) -> bool {
        let (mut is_quoted, mut chars) = (false, text.chars());
        while let Some(c) = chars.next() {
            match (c, is_quoted) {
                ('\'', _) => is_quoted = !is_quoted,
                ('\\', true) => return true,
                ('\\', false) => {
                    chars.next();
                }
                _ => {}
            }
        }
        false
    }

    /// The words that `shell` reads in `text`; none where there is no such shell.
    fn read_by(shell: &str, text: &str) -> Option<Vec<String>> {
        let output = Command::new(shell).args(["-c", &format!("printf '%s\\0' {text}")]).output().ok()?;
        let said = String::from_utf8(output.stdout).unwrap();
        Some(said.split_terminator('\0').map(str::to_owned).collect())
    }

    #[test]
    fn every_shell_reads_the_same_words() {
        let backslashes = ["\\", "\\\\'", "'\\''", "a\\'b\\\\c\\", "$\\HOME", "\\$HOME", "''", "$'x'", ""];
        let all: Vec<String> = HOSTILE.iter().chain(&backslashes).map(|&word| word.to_owned()).collect();
        let once = joined(&all);
        let twice = vec![once.clone(), frame(&once), "x".to_owned()];
        let thrice = vec![joined(&twice), frame(&joined(&twice))];
        for all in [all, twice, thrice] {
            let text = joined(&all);
            assert!(!is_read_in_two_ways(&text), "{text}");
            assert_eq!(words(&text).as_ref(), Some(&all), "{text}");
            for shell in ["sh", "bash"] {
                assert_eq!(read_by(shell, &text).as_ref(), Some(&all), "{shell}: {text}");
            }
            for shell in ["dash", "zsh", "fish", "ksh", "mksh", "yash"] {
                assert!(read_by(shell, &text).is_none_or(|read| read == all), "{shell}: {text}");
            }
        }
    }

    #[test]
    fn the_form_with_backslashes_within_quotes_is_ours() {
        let deny = r#"'\''{"deny":"Pintle'\''\'\'''\''s guard did not answer."}'\''"#;
        let older = format!("/bin/sh -c '{HEAD}{deny}{TAIL}' {CLIENT} /b/{CLIENT} --host codex --event PreToolUse");
        assert!(is_ours(&older) && is_read_in_two_ways(&older), "{older}");
        assert!(!is_ours(&format!("{older}; touch x")));
    }

    const DENY: &str = r#"{"deny":"Pintle's guard did not answer."}"#;

    fn entry<'a>(host: &'a str, program: &'a str) -> ClientEntry<'a> {
        ClientEntry {
            host,
            program,
            daemon: EntryDaemon::Named { socket: "/run/$USER's/s", key_file: "/k e y" },
            timeout_s: 600,
            allows_away: false,
            events: None,
        }
    }

    #[test]
    fn only_what_an_installation_writes_is_ours() {
        for program in ["/b/pintle-hook", "/u/ann o'neill $x/pintle-hook"] {
            let entry = entry("codex", program);
            let (deny, bare) = (entry.shell_text("PreToolUse", DENY), entry.shell_text("SessionEnd", ""));
            assert!(deny.starts_with("/bin/sh -c '") && !bare.starts_with("/bin/sh"), "{deny}\n{bare}");
            for text in [deny.as_str(), &bare, &joined(&entry.words("PreToolUse"))] {
                assert!(is_ours(text), "{text}");
                for theirs in [
                    format!("/opt/wrapper {text}"),
                    format!("{text}; touch x"),
                    format!("{text} | tee log"),
                    format!("X=1 {text} # ours"),
                    format!("/bin/sh -c {}", quoted(text)),
                    text.replace("pintle-hook", "pintle-hook-2"),
                ] {
                    assert!(!is_ours(&theirs), "{theirs}");
                }
            }
            let mut name = deny.clone();
            name = name.replacen("printf", "true;printf", 1);
            assert!(!is_ours(&name), "another frame: {name}");
        }
        let cline = entry("cline", "/b c/pintle-hook");
        for (event, deny) in [("PreToolUse", DENY), ("TaskStart", "")] {
            let script = cline.script(event, deny);
            assert!(is_our_script(&script), "{script}");
            for theirs in [format!("{script}true\n"), script.replacen("\n", "\ntrue\n", 1), script.replace("sh", "zsh")]
            {
                assert!(!is_our_script(&theirs), "{theirs}");
            }
        }
        assert!(is_our_script("#!/bin/sh\nexec /b/pintle-hook --host cline --event PreToolUse\n"), "the older form");
        assert!(!is_ours("pintle-hook --host codex"), "whichever one is on the path");
    }

    /// What `shell` makes of the entry for `program`, which is told `stdin`.
    fn ran(shell: &str, program: &str) -> Output {
        let text = entry("codex", program).shell_text("PreToolUse", DENY);
        let mut child = Command::new(shell)
            .args(["-c", &text])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"told").ok();
        child.wait_with_output().unwrap()
    }

    /// Writes a client that does `what`.
    fn client(folder: &std::path::Path, what: &str) -> String {
        use std::os::unix::fs::PermissionsExt as _;
        let program = folder.join(CLIENT);
        std::fs::write(&program, format!("#!/bin/sh\n{what}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program.to_str().unwrap().to_owned()
    }

    /// What a client does, and what the host reads at an event that can be refused: none is the refusal.
    const CLIENTS: &[(&str, Option<&str>)] = &[
        ("cat", Some("told\t")),
        ("printf '{\"a\": \"%s\"}' \"$4\"", Some("{\"a\": \"PreToolUse\"}\t")),
        ("true", Some("")),
        ("kill -9 $$", None),
        ("kill -11 $$", None),
        ("printf '{}'; kill -9 $$", None),
        ("printf '{\"half\": '; exit 1", None),
        ("echo text >&2; exit 2", None),
        ("exit 126", None),
    ];

    #[test]
    fn a_client_that_cannot_answer_leaves_one_refusal() {
        let folder = std::env::temp_dir().join(format!("pintle's frame $HOME {}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let check = |program: &str, expected: &str, what: &str| {
            for shell in ["sh", "bash"] {
                let output = ran(shell, program);
                assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{shell} {what}: {output:?}");
                assert_eq!(output.status.code(), Some(0), "{shell} {what}: {output:?}");
            }
        };
        for (what, said) in CLIENTS {
            check(&client(&folder, what), said.unwrap_or(DENY), what);
        }
        let program = client(&folder, "true");
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        // Root may execute nothing that nobody may.
        check(&program, DENY, "not executable");
        std::fs::remove_file(&program).unwrap();
        check(&program, DENY, "gone");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
