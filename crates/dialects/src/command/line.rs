//! A command line of which a shell makes words and nothing else.

use std::ops::Range;

/// A word of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LineWord {
    /// Where it stands in the line, quotes included.
    pub(super) at: Range<usize>,
    /// The word, without its quotes.
    pub(super) text: String,
    /// Whether it begins with the home folder of a person: that is where it leads, whoever runs it.
    pub(super) from_home: bool,
}

/// What a shell reads more into than a letter, outside of quotes.
const SIGNS: &str = ";|&<>()$`\\*?[]{}!\n\r";

/// What it reads more into within double quotes.
const QUOTED_SIGNS: &str = "$`\\!";

/// How a word begins that leads to the home folder, beside `~/`.
const HOME: [&str; 2] = ["$HOME/", "${HOME}/"];

/// Words at the beginning of a line that are no programs: what follows is read in another way.
const KEYWORDS: [&str; 14] = [
    "if", "for", "while", "until", "case", "select", "function", "time", "eval", "trap", "alias", "cd", "pushd",
    "coproc",
];

/// The words of `line`; none where a shell reads more into it than words, or where it goes elsewhere first.
pub(super) fn words(line: &str) -> Option<Vec<LineWord>> {
    let mut reader = LineReader { line, at: 0 };
    let mut words = Vec::new();
    while let Some(word) = reader.word()? {
        words.push(word);
    }
    let first = words.first()?;
    let is_more = KEYWORDS.contains(&first.text.as_str()) || first.text.contains('=');
    (!is_more).then_some(words)
}

struct LineReader<'a> {
    line: &'a str,
    at: usize,
}

impl LineReader<'_> {
    fn rest(&self) -> &str {
        &self.line[self.at..]
    }

    /// The next word, if there is one; nothing at all where a sign stands in it.
    fn word(&mut self) -> Option<Option<LineWord>> {
        self.at = self.line.len() - self.rest().trim_start_matches([' ', '\t']).len();
        let start = self.at;
        if self.rest().is_empty() {
            return Some(None);
        }
        if self.rest().starts_with('#') {
            return None;
        }
        let mut word = LineWord { at: start..start, text: String::new(), from_home: false };
        let mut quote = None;
        while let Some(letter) = self.rest().chars().next() {
            let is_first = word.text.is_empty() && !word.from_home;
            match (quote, letter) {
                (None, ' ' | '\t') => break,
                (None, '\'' | '"') => quote = Some(letter),
                (Some(open), _) if letter == open => quote = None,
                (None | Some('"'), '$') if is_first => {
                    let name = HOME.iter().find(|name| self.rest().starts_with(**name))?;
                    self.begin_at_home(&mut word, name);
                    continue;
                }
                (None, '~') if is_first && self.at == start => {
                    // The home folder of another person is theirs to say.
                    self.rest().strip_prefix("~/")?;
                    self.begin_at_home(&mut word, "~/");
                    continue;
                }
                (None, _) if SIGNS.contains(letter) => return None,
                (Some('"'), _) if QUOTED_SIGNS.contains(letter) => return None,
                (None | Some(_), _) => word.text.push(letter),
            }
            self.at += letter.len_utf8();
        }
        word.at.end = self.at;
        quote.is_none().then_some(Some(word))
    }

    fn begin_at_home(&mut self, word: &mut LineWord, name: &str) {
        word.from_home = true;
        word.text.push_str(name);
        self.at += name.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_signs_is_its_words() {
        let check = |line: &str, expected: &[&str]| {
            let words = words(line).unwrap_or_default();
            let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            assert_eq!(texts, expected, "{line}");
        };
        check("python3 guard.py", &["python3", "guard.py"]);
        check("  python3\t'my guard.py'  ", &["python3", "my guard.py"]);
        check("sh \"a b\"'c d'.sh ''", &["sh", "a bc d.sh", ""]);
        check("g 'a|b;$c' --x=y a~b", &["g", "a|b;$c", "--x=y", "a~b"]);
        check("sh ~/g.sh", &["sh", "~/g.sh"]);
        check("\"$HOME/.x/g.sh\" a", &["$HOME/.x/g.sh", "a"]);
        check("${HOME}/g.sh", &["${HOME}/g.sh"]);
    }

    #[test]
    fn what_a_shell_reads_more_into_has_no_words() {
        for line in [
            "",
            "a; b",
            "a | b",
            "a && b",
            "a > b",
            "a $B",
            "a \"$B\"",
            "a `b`",
            "a *.py",
            "a \\b",
            "A=1 b",
            "cd x",
            "eval b",
            "a # b",
            "a\nb",
            "a 'b",
            "sh ~other/g.sh",
            "$HOME",
            "! a",
            "$HOMELESS/g.sh",
            "{ a",
        ] {
            assert_eq!(words(line), None, "{line}");
        }
    }

    #[test]
    fn a_word_knows_where_it_stands() {
        let line = "a  'b c' ~/d";
        let words = words(line).unwrap();
        let said: Vec<&str> = words.iter().map(|word| &line[word.at.clone()]).collect();
        assert_eq!((said, words[2].from_home), (vec!["a", "'b c'", "~/d"], true));
    }
}
