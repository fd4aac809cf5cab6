//! Commands within sentences: `pintle hooks lint` is one, with the flags that it has.

use std::collections::BTreeMap;

use regex::Regex;

use crate::env::TestEnv;

/// What stands within the sentences of a page and is not a command of the program.
pub(crate) fn wrong(path: &str, prose: &[(usize, String)]) -> Vec<String> {
    let code = Regex::new(r"`(?:\./)?pintle ([^`…][^`]*)`").unwrap();
    let mut program = Program { env: TestEnv::new(), known: BTreeMap::new() };
    let mut wrong = Vec::new();
    for (line, text) in prose {
        for found in code.captures_iter(text) {
            if let Some(word) = program.unknown(&found[1]) {
                wrong.push(format!("{path}:{line}: `pintle {}`: there is no `{word}`", &found[1]));
            }
        }
    }
    wrong
}

/// The program, and what it says of its commands.
struct Program {
    env: TestEnv,
    known: BTreeMap<String, Option<String>>,
}

impl Program {
    /// The help of a command, if it is one.
    fn help(&mut self, command: &str) -> Option<String> {
        let ask = || {
            let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
            let help = self.env.pintle(&words).out;
            let is_one =
                Regex::new(&format!(r"Usage: pintle {}( |\n|$)", regex::escape(command))).unwrap().is_match(&help);
            is_one.then_some(help)
        };
        self.known.get(command).cloned().unwrap_or_else(ask)
    }

    /// The first word of `words` that is neither a command, nor a flag of it, nor something that a person chooses.
    fn unknown(&mut self, words: &str) -> Option<String> {
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut command = String::new();
        let mut help = None;
        for word in words.iter().filter(|word| word.starts_with(|first: char| first.is_ascii_lowercase())) {
            let longer = format!("{command} {word}").trim().to_owned();
            let Some(found) = self.help(&longer) else { break };
            self.known.insert(longer.clone(), Some(found.clone()));
            (command, help) = (longer, Some(found));
        }
        let Some(help) = help else { return words.first().map(|word| (*word).to_owned()) };
        let flags = words.iter().filter(|word| word.starts_with('-') && word.len() > 1);
        let flag = |word: &&str| word.split('=').next().unwrap_or_default().to_owned();
        flags.map(flag).find(|flag| {
            !help.split(|end: char| " ,\n[]".contains(end)).any(|known| known.trim_end_matches('.') == flag)
        })
    }
}
