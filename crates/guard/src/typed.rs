//! What programs type into a terminal, as the text that a shell there reads, and programs that take what is typed as code.
//! Pure.

use pintle_domain::shell::{ShellCommand, ShellFacts};

use crate::program_name::pieces;

/// Programs that type, and the word behind which they are told what; none where all their words are.
const TYPES: [(&str, Option<&str>); 9] = [
    ("dotool", Some("type")),
    ("kitten", Some("send-text")),
    ("kitty", Some("send-text")),
    ("screen", Some("stuff")),
    ("wezterm", Some("send-text")),
    ("wtype", None),
    ("xdotool", Some("type")),
    ("ydotool", Some("type")),
    ("zellij", Some("write-chars")),
];

/// How `tmux` is told to type, and its options that take the next word.
const SENDS: [&str; 2] = ["send", "send-keys"];
const VALUED: [&str; 3] = ["-c", "-N", "-t"];

/// The keys that end a line, and the names of some that are letters.
const ENDS: [&str; 8] = ["Enter", "KPEnter", "C-c", "C-d", "C-j", "C-m", "C-u", "^M"];
const LETTERS: [(&str, &str); 3] = [("Space", " "), ("Tab", "\t"), ("BTab", "\t")];

/// How the end of a line is written in a text that is typed.
const WRITTEN_ENDS: [&str; 9] = ["^M", "^J", "\\r", "\\n", "\\015", "\\012", "\\x0d", "\\x0a", "\r"];

/// Programs that take what is typed as code, and the options with which they do so all the same.
const INTERACTIVE: [&str; 19] = [
    "bash", "sh", "zsh", "dash", "fish", "ksh", "python", "python3", "ipython", "node", "deno", "bun", "irb", "ruby",
    "perl", "psql", "mysql", "sqlite3", "ssh",
];
const STILL_INTERACTIVE: [&str; 6] = ["-i", "-l", "-s", "--login", "--interactive", "-il"];

/// Whether `text` has a program type something.
pub(crate) fn types(text: &str) -> bool {
    let has = |word: &str| pieces(text).any(|piece| piece == word);
    let is_typing = |(program, word): &(&str, Option<&str>)| has(program) && word.is_none_or(has);
    TYPES.iter().any(is_typing) || (has("tmux") && SENDS.iter().any(|word| has(word)))
}

/// The text that `command` types into a terminal; none if it types nothing.
pub(crate) fn typed(command: &ShellCommand) -> Option<String> {
    let words: Vec<&str> = command.argv.iter().skip(1).map(String::as_str).collect();
    if command.name == "tmux" {
        // Commands of its own stand behind one another.
        let texts = words.split(|word| *word == ";").filter_map(sent);
        let text: String = texts.collect();
        return (!text.is_empty()).then_some(text);
    }
    let (_, verb) = TYPES.iter().find(|(program, _)| *program == command.name)?;
    let begin = match verb {
        Some(verb) => words.iter().position(|word| word == verb)? + 1,
        None => 0,
    };
    let told: Vec<&str> = words[begin..].iter().copied().filter(|word| !word.starts_with('-')).collect();
    Some(WRITTEN_ENDS.iter().fold(told.join(" "), |text, end| text.replace(*end, "\n")))
}

/// Codex can type into a program that it left open, and no hook sees that: so none is opened that would run it.
pub(crate) fn left_open(text: &str, facts: &ShellFacts) -> Option<String> {
    if text.contains(['<', '|']) {
        return None;
    }
    let opened = facts.commands.iter().find(|command| {
        INTERACTIVE.contains(&command.name.as_str())
            && command.argv.iter().skip(1).all(|word| STILL_INTERACTIVE.contains(&word.as_str()))
    })?;
    Some(format!("`{}` without a script would run what is typed into it, which no hook sees", opened.name))
}

/// What `tmux` sends, whose words are these: it puts nothing between them.
fn sent(words: &[&str]) -> Option<String> {
    let at = words.iter().position(|word| SENDS.contains(word))?;
    let (mut text, mut words) = (String::new(), words[at + 1..].iter().copied().peekable());
    let (mut is_literal, mut is_code) = (false, false);
    while let Some(option) = words.next_if(|word| word.starts_with('-') && word.len() > 1) {
        is_literal |= option.contains('l');
        is_code |= option.contains('H');
        if VALUED.contains(&option) {
            words.next();
        }
    }
    for word in words {
        let letter = LETTERS.iter().find(|(name, _)| *name == word).map(|(_, letter)| *letter);
        match letter {
            _ if is_literal => text.push_str(word),
            _ if is_code => text.extend(u8::from_str_radix(word, 16).ok().map(char::from)),
            _ if ENDS.contains(&word) => text.push('\n'),
            _ if word == "BSpace" => {
                text.pop();
            }
            Some(letter) => text.push_str(letter),
            None if is_key(word) => {}
            None => text.push_str(word),
        }
    }
    Some(text.replace('\r', "\n"))
}

/// Whether `word` is the name of a key that is no letter.
fn is_key(word: &str) -> bool {
    const NAMES: [&str; 9] = ["Up", "Down", "Left", "Right", "Escape", "Home", "End", "PageUp", "PageDown"];
    let with_others = word.strip_prefix("M-").or_else(|| word.strip_prefix("C-")).or_else(|| word.strip_prefix("S-"));
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|digit| digit.is_ascii_digit());
    with_others.is_some_and(|rest| rest.chars().count() == 1)
        || word.strip_prefix('F').is_some_and(is_number)
        || NAMES.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_one_text() {
        for (words, text) in [
            (&["tmux", "send-keys", "rm ../.cl", "a*/s*", "Enter"][..], Some("rm ../.cla*/s*\n")),
            (&["tmux", "send", "-t", "x:0", "rm", "Space", "x", "C-m"], Some("rm x\n")),
            (&["tmux", "send-keys", "-l", "Enter"], Some("Enter")),
            (&["tmux", "send-keys", "-H", "72", "6d"], Some("rm")),
            (&["tmux", "send-keys", "rmx", "BSpace", "Up", "M-x"], Some("rm")),
            (&["tmux", "new", "-d", ";", "send-keys", "ls"], Some("ls")),
            (&["tmux", "ls"], None),
            (&["screen", "-S", "s", "-X", "stuff", "rm x^M"], Some("rm x\n")),
            (&["screen", "-ls"], None),
            (&["zellij", "action", "write-chars", "rm x"], Some("rm x")),
            (&["xdotool", "type", "rm x"], Some("rm x")),
        ] {
            let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let command = ShellCommand { name: argv[0].clone(), argv, ..ShellCommand::default() };
            assert_eq!(typed(&command).as_deref(), text, "{words:?}");
        }
        assert!(types("tmux send-keys ls") && types("wtype x") && !types("tmux ls; send-keys.sh"));
    }
}
