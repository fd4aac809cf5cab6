//! Programs that run a file which one of their words names, and programs that run another program.

use std::path::Path;

/// How an interpreter reads its words.
#[derive(Debug)]
pub(super) struct Interpreter {
    names: &'static [&'static str],
    /// Short options behind which code stands, or nothing is run at all: there is no script.
    code: &'static str,
    /// Short options that take a value.
    valued: &'static str,
    /// Long options that take a value as the next word.
    valued_long: &'static [&'static str],
    /// The short option whose value is a module.
    pub(super) module: Option<char>,
    /// Short and long options whose value is loaded before the script.
    preload: &'static [&'static str],
    /// The short option whose value is the script.
    script: Option<char>,
    /// What a script may leave out of its name, or the file that stands for a folder.
    pub(super) endings: &'static [&'static str],
}

const PLAIN: Interpreter = Interpreter {
    names: &[],
    code: "",
    valued: "",
    valued_long: &[],
    module: None,
    preload: &[],
    script: None,
    endings: &[""],
};

const NODE: Interpreter = Interpreter {
    names: &["node", "nodejs", "tsx", "ts-node"],
    code: "ep",
    valued: "C",
    valued_long: &["--conditions", "--title", "--stack-trace-limit", "--env-file"],
    preload: &["-r", "--require", "--import", "--loader", "--experimental-loader"],
    endings: &["", ".js", ".cjs", ".mjs", ".json", ".node", "/index.js", "/package.json"],
    ..PLAIN
};

/// The interpreters. `.` and `source` run a file in the shell itself.
const INTERPRETERS: [Interpreter; 9] = [
    Interpreter {
        names: &["python", "pypy"],
        code: "c",
        valued: "WXQ",
        valued_long: &["--check-hash-based-pycs"],
        module: Some('m'),
        endings: &["", "/__main__.py"],
        ..PLAIN
    },
    NODE,
    Interpreter { names: &["deno", "bun"], code: "ep", valued: "c", valued_long: &["--config", "--cwd"], ..NODE },
    Interpreter { names: &["ruby"], code: "e", valued: "ICE", preload: &["-r"], ..PLAIN },
    Interpreter { names: &["perl"], code: "eE", valued: "IM", ..PLAIN },
    Interpreter { names: &["php"], code: "rRBE", valued: "dcSzt", script: Some('f'), ..PLAIN },
    Interpreter { names: &["lua", "luajit", "Rscript"], code: "e", valued: "l", ..PLAIN },
    Interpreter {
        names: &["sh", "bash", "dash", "zsh", "ksh", "ash"],
        code: "cs",
        valued: "oO",
        valued_long: &["--rcfile", "--init-file"],
        ..PLAIN
    },
    Interpreter { names: &[".", "source"], ..PLAIN },
];

/// The last part of a path.
pub(super) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// The interpreter that `program` is, whichever version its name ends with.
pub(super) fn interpreter(program: &str) -> Option<&'static Interpreter> {
    let name = base_name(program);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let plain = if plain.is_empty() { name } else { plain };
    INTERPRETERS.iter().find(|interpreter| interpreter.names.contains(&plain) || interpreter.names.contains(&name))
}

/// Whether `program` is a shell.
pub(super) fn is_shell(program: &str) -> bool {
    interpreter(program).is_some_and(|interpreter| interpreter.names.contains(&"sh"))
}

/// Something that an interpreter is told to run, by the number of its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// A file.
    Script(usize),
    /// A file that is loaded before: a part of the word where that has an option before `=`.
    Preload(usize),
    /// A module, and whether it stands in the word of the option itself.
    Module {
        /// The word of the option.
        option: usize,
        /// Where the name of the module begins in that word, if it is there; else it is the next one.
        attached: Option<usize>,
    },
    /// A text for a shell.
    Text(usize),
}

impl Interpreter {
    /// What the words from `at` on, behind the program, tell it to run.
    pub(super) fn told(&self, words: &[&str], mut at: usize) -> Vec<Told> {
        let is_shell = self.names.contains(&"sh");
        let has_verbs = self.names.contains(&"deno");
        if has_verbs && words.get(at) == Some(&"run") {
            at += 1;
        }
        let (mut told, mut takes_text) = (Vec::new(), false);
        while let Some(word) = words.get(at).filter(|word| word.starts_with(['-', '+']) && word.len() > 1) {
            let here = at;
            at += 1;
            if *word == "--" {
                break;
            }
            let long = word.split_once('=').map_or(*word, |(name, _)| name);
            if self.preload.contains(&long) {
                let attached = long.len() < word.len();
                told.push(Told::Preload(if attached { here } else { at }));
                at += usize::from(!attached);
            } else if word.starts_with("--") {
                if ["--eval", "--print", "--version", "--help"].contains(&long) {
                    return told;
                }
                at += usize::from(self.valued_long.contains(word));
            } else {
                match self.short(word) {
                    Short::Code if is_shell && word.contains('c') => takes_text = true,
                    Short::Code => return told,
                    Short::Valued { attached } => at += usize::from(!attached),
                    Short::Script => break,
                    Short::Module { attached } => {
                        return told.into_iter().chain([Told::Module { option: here, attached }]).collect();
                    }
                    Short::Other => {}
                }
            }
        }
        // What looks like no file is a verb of theirs, or the name of a task.
        let is_verb = |word: &str| has_verbs && !is_script(word) && !word.contains('/');
        if words.get(at).is_some_and(|word| *word != "-" && !is_verb(word)) {
            told.push(if takes_text { Told::Text(at) } else { Told::Script(at) });
        }
        told
    }

    /// What the short options of one word are.
    fn short(&self, word: &str) -> Short {
        for (at, letter) in word.char_indices().skip(1) {
            let end = at + letter.len_utf8();
            let attached = end < word.len();
            if self.module == Some(letter) {
                return Short::Module { attached: attached.then_some(end) };
            }
            if self.script == Some(letter) && !attached {
                return Short::Script;
            }
            if self.code.contains(letter) {
                return Short::Code;
            }
            // What is loaded before has its own place where it is a word of its own.
            let loads =
                self.preload.iter().any(|option| option.strip_prefix('-') == Some(letter.encode_utf8(&mut [0; 4])));
            if loads || self.valued.contains(letter) {
                return Short::Valued { attached };
            }
        }
        Short::Other
    }
}

enum Short {
    Code,
    Valued { attached: bool },
    Script,
    Module { attached: Option<usize> },
    Other,
}

/// A program that runs the one which its words name.
struct Wrapper {
    name: &'static str,
    /// Options that take a value as the next word.
    valued: &'static str,
    /// How many words stand before the program.
    operands: usize,
}

const WRAPPERS: [Wrapper; 13] = [
    Wrapper { name: "env", valued: "-u --unset", operands: 0 },
    Wrapper { name: "timeout", valued: "-k -s --kill-after --signal", operands: 1 },
    Wrapper { name: "nice", valued: "-n --adjustment", operands: 0 },
    Wrapper { name: "ionice", valued: "-c -n --class --classdata", operands: 0 },
    Wrapper { name: "nohup", valued: "", operands: 0 },
    Wrapper { name: "setsid", valued: "", operands: 0 },
    Wrapper { name: "stdbuf", valued: "-i -o -e", operands: 0 },
    Wrapper { name: "time", valued: "-f -o", operands: 0 },
    Wrapper { name: "exec", valued: "-a", operands: 0 },
    Wrapper { name: "command", valued: "", operands: 0 },
    Wrapper { name: "sudo", valued: "-u -g -h -p -U", operands: 0 },
    Wrapper { name: "doas", valued: "-u -C", operands: 0 },
    Wrapper { name: "flock", valued: "-w -E --timeout", operands: 1 },
];

/// Programs that run a program of a package, or an interpreter, and the word before it.
const RUNNERS: [(&str, Option<&str>); 9] = [
    ("uv", Some("run")),
    ("poetry", Some("run")),
    ("pipenv", Some("run")),
    ("pdm", Some("run")),
    ("hatch", Some("run")),
    ("pnpm", Some("exec")),
    ("npx", None),
    ("bunx", None),
    ("uvx", None),
];

/// What stands behind a wrapper.
pub(super) enum Inner {
    /// A program, by the number of its word.
    Program(usize),
    /// A program of a package, an interpreter or a script.
    OfPackage(usize),
    /// It goes elsewhere first, or makes words of a text.
    Unread,
}

/// What the program at `at` runs, if it is there to run another one.
pub(super) fn inner(words: &[&str], at: usize) -> Option<Inner> {
    let name = base_name(words.get(at)?);
    if let Some((_, verb)) = RUNNERS.iter().find(|(runner, _)| *runner == name) {
        let mut next = at + 1;
        if let Some(verb) = verb {
            next = words.iter().skip(next).position(|word| word == verb)? + next + 1;
        }
        next += words.iter().skip(next).take_while(|word| word.starts_with('-')).count();
        return (next < words.len()).then_some(Inner::OfPackage(next));
    }
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name)?;
    let mut next = at + 1;
    while let Some(word) = words.get(next).filter(|word| word.starts_with('-') && word.len() > 1) {
        next += 1;
        let long = word.split_once('=').map_or(*word, |(name, _)| name);
        if name == "env" && (["--chdir", "--split-string"].contains(&long) || is_elsewhere(word)) {
            return Some(Inner::Unread);
        }
        if *word == "--" {
            break;
        }
        next += usize::from(wrapper.valued.split(' ').any(|valued| valued == *word));
    }
    next += wrapper.operands;
    if name == "env" {
        next += words.iter().skip(next).take_while(|word| word.contains('=')).count();
    }
    (next < words.len()).then_some(Inner::Program(next))
}

/// Whether short options of `env` change the folder or make words of a text.
fn is_elsewhere(word: &str) -> bool {
    !word.starts_with("--")
        && word.chars().skip(1).take_while(|letter| *letter != 'u').any(|letter| "CS".contains(letter))
}

/// Endings of files that are handed to an interpreter.
const SCRIPTS: [&str; 10] = ["py", "js", "mjs", "cjs", "ts", "sh", "rb", "pl", "php", "lua"];

/// Whether `word` of a command is, by its name, a file that is handed to an interpreter.
pub(super) fn is_script(word: &str) -> bool {
    let ending = Path::new(word).extension().and_then(std::ffi::OsStr::to_str);
    !word.starts_with('-') && ending.is_some_and(|ending| SCRIPTS.contains(&ending))
}
