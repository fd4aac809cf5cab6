//! The files that a command names, made absolute beside the configuration that it stands in.
//!
//! A command runs in a folder that is not always that of its configuration: often an agent works there, and may write
//! what it likes. So what a command is made of is looked up once, when its configuration is read, beside that, and from
//! then on is called by its whole path. That is the same for every kind of entry, and stands here alone:
//!
//! - a program with a slash in its name, the script that an interpreter is to run, and what it loads before, have to be
//!   there; without them the entry is bad;
//! - a module of Python (`-m`) that stands there is run from there, and none is looked for in the working directory;
//! - any other word that is the name of a file that stands there means that file;
//! - of a text for a shell the words count where it has nothing but words. In any other text nothing is looked up: it is
//!   a [`CommandForm::ShellText`], and whoever runs it has to say where.

mod interpreter;
mod line;

use std::fmt;
use std::path::{Component, Path, PathBuf};

use pintle_domain::shell_word::shell_word;

use self::interpreter::{Inner, Told, inner, interpreter, is_script, is_shell};

/// Where the files of a command stand.
#[derive(Clone, Copy)]
pub struct FilesBeside<'a> {
    /// The folder that relative words start from; absolute.
    pub folder: &'a Path,
    /// Whether there is a file at a path.
    pub is_file: &'a dyn Fn(&Path) -> bool,
}

/// What a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandForm {
    /// A program and its words, each of them known.
    Words,
    /// A text that a shell makes more of than words: what it runs depends on where it runs.
    ShellText,
}

/// A command whose files were looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// What it is.
    pub form: CommandForm,
}

/// A file that a command runs and that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingFile {
    /// The number of its word in the argument vector; of a text for a shell, that of the text.
    pub word: usize,
    /// The word.
    pub name: String,
    /// The folder in which it was looked for.
    pub folder: PathBuf,
}

/// What was expected, what is there and what is to be done.
impl fmt::Display for MissingFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "expected a file that is there, got `{}`, which does not exist in {}; what a command runs is looked up there \
             alone, not where an agent works: put the file there, or write its absolute path",
            self.name,
            self.folder.display()
        )
    }
}

/// Why a command cannot be placed.
enum Unplaced {
    /// A file is missing, by the number of its word.
    Missing(usize),
    /// It goes elsewhere before it runs what it names.
    Unread,
}

/// Words in the place of some of a command's.
struct Replacement {
    at: usize,
    count: usize,
    with: Vec<String>,
}

impl FilesBeside<'_> {
    /// `argv` with the files that it names by their whole paths.
    ///
    /// # Errors
    /// A file that it runs is not there.
    pub fn place(&self, argv: &[String]) -> Result<PlacedCommand, MissingFile> {
        if argv.is_empty() {
            return Ok(PlacedCommand { argv: Vec::new(), form: CommandForm::Words });
        }
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        let missing = |word: usize, name: &str| MissingFile {
            word,
            name: name.to_owned(),
            folder: self.folder.components().collect(),
        };
        let mut placed = argv.to_vec();
        match self.replacements(&words, &|_| false) {
            Ok(found) => {
                for Replacement { at, count, with } in found.into_iter().rev() {
                    placed.splice(at..at + count, with);
                }
            }
            Err(Unplaced::Missing(word)) => return Err(missing(word, words[word])),
            Err(Unplaced::Unread) => return Ok(PlacedCommand { argv: placed, form: CommandForm::ShellText }),
        }
        // No word of a shell becomes more or fewer, so its text is where it was.
        let Some(at) = text_of(&words) else { return Ok(PlacedCommand { argv: placed, form: CommandForm::Words }) };
        let (text, form) = self.text(&argv[at]).map_err(|name| missing(at, &name))?;
        placed[at] = text;
        Ok(PlacedCommand { argv: placed, form })
    }

    /// A text for a shell with the files that it names by their whole paths, where it has nothing but words.
    ///
    /// # Errors
    /// The file that is not there.
    fn text(&self, text: &str) -> Result<(String, CommandForm), String> {
        let Some(words) = line::words(text) else { return Ok((text.to_owned(), CommandForm::ShellText)) };
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        if text_of(&texts).is_some() {
            // A text within a text is not looked into.
            return Ok((text.to_owned(), CommandForm::ShellText));
        }
        match self.replacements(&texts, &|at| words[at].from_home) {
            Ok(found) => {
                let mut placed = text.to_owned();
                for Replacement { at, count, with } in found.iter().rev() {
                    let span = words[*at].at.start..words[at + count - 1].at.end;
                    let with: Vec<String> = with.iter().map(|word| shell_word(word)).collect();
                    placed.replace_range(span, &with.join(" "));
                }
                Ok((placed, CommandForm::Words))
            }
            Err(Unplaced::Missing(word)) => Err(texts[word].to_owned()),
            Err(Unplaced::Unread) => Ok((text.to_owned(), CommandForm::ShellText)),
        }
    }

    /// What stands in the place of some of `words`, in their order.
    fn replacements(&self, words: &[&str], from_home: &dyn Fn(usize) -> bool) -> Result<Vec<Replacement>, Unplaced> {
        let mut found: Vec<Replacement> = Vec::new();
        let one = |at: usize, with: String| Replacement { at, count: 1, with: vec![with] };
        let is_fixed = |at: usize| from_home(at) || is_elsewhere(words[at]);
        let (program, script) = program_of(words)?;
        // Each of these is a file, and nothing else will do.
        let mut needed: Vec<(usize, &[&str])> = Vec::new();
        let mut programs = wrapped(words, program);
        needed.extend(programs.iter().filter(|at| words[**at].contains('/')).map(|at| (*at, &[""][..])));
        // What a runner of packages runs is looked up where packages are.
        programs.extend(match inner(words, program) {
            Some(Inner::OfPackage(at)) => Some(at),
            Some(Inner::Program(_) | Inner::Unread) | None => None,
        });
        if let Some(at) = script {
            needed.push((at, &[""]));
        }
        let runs = interpreter(words[program]);
        for told in runs.map(|runs| runs.told(words, program + 1)).unwrap_or_default() {
            let endings = runs.map_or(&[""][..], |runs| runs.endings);
            match told {
                Told::Script(at) => needed.push((at, endings)),
                // A package of that name is looked up where packages are.
                Told::Preload(at) => match words.get(at).map(|word| value_of(word)) {
                    Some(value) if value.starts_with('.') => {
                        let file = self.file(value, endings).ok_or(Unplaced::Missing(at))?;
                        found.push(one(at, words[at].replace(value, &file)));
                    }
                    Some(_) | None => {}
                },
                Told::Module { option, attached } => found.extend(self.module(words, (option, attached))),
                // It is read by itself.
                Told::Text(at) => programs.push(at),
            }
        }
        for (at, endings) in needed {
            if !is_fixed(at) {
                found.push(one(at, self.file(words[at], endings).ok_or(Unplaced::Missing(at))?));
            }
        }
        let taken = |at: usize| found.iter().any(|it| (it.at..it.at + it.count).contains(&at));
        let others = (0..words.len()).filter(|at| !programs.contains(at) && !taken(*at) && !is_fixed(*at));
        let others: Vec<Replacement> = others.filter_map(|at| Some(one(at, self.named(words[at])?))).collect();
        found.extend(others);
        found.sort_by_key(|it| it.at);
        Ok(found)
    }

    /// The file that `word` has to be, with one of `endings` if not by its own name.
    fn file(&self, word: &str, endings: &[&str]) -> Option<String> {
        let path = self.at(word)?;
        let is_there = |ending: &&str| (self.is_file)(Path::new(&format!("{path}{ending}")));
        endings.iter().any(is_there).then_some(path)
    }

    /// The word with the file that it, or the value of its option, is the name of.
    fn named(&self, word: &str) -> Option<String> {
        let (option, value) = match word.strip_prefix('-').and_then(|_| word.split_once('=')) {
            Some((option, value)) => (format!("{option}="), value),
            None if word.starts_with('-') => return None,
            None => (String::new(), word),
        };
        let is_relative = !value.is_empty() && !is_elsewhere(value);
        let path = self.at(value).filter(|path| is_relative && (self.is_file)(Path::new(path)))?;
        Some(format!("{option}{path}"))
    }

    /// Runs the module that `-m` names: as a script where it is one, and else without the working directory, in which
    /// Python would look first.
    fn module(&self, words: &[&str], (option, attached): (usize, Option<usize>)) -> Option<Replacement> {
        let (name, count) = match attached {
            Some(begin) => (&words[option][begin..], 1),
            None => (*words.get(option + 1)?, 2),
        };
        // What stands before the letter are other options, such as the `u` of `-um`.
        let letters = words[option][..attached.unwrap_or(words[option].len())].trim_end_matches('m');
        let before = (letters.len() > 1).then(|| letters.to_owned());
        let path = self.at(&name.replace('.', "/"))?;
        let is_there = |ending: &str| (self.is_file)(Path::new(&format!("{path}{ending}")));
        let is_plain = !name.contains('.');
        if is_plain && is_there(".py") && !is_there("/__init__.py") {
            return Some(Replacement {
                at: option,
                count,
                with: before.into_iter().chain([format!("{path}.py")]).collect(),
            });
        }
        let is_beside = is_there(".py") || is_there("/__main__.py") || is_there("/__init__.py");
        let folder = is_beside.then(|| self.at(".")).flatten();
        let code = run_module(name, folder.as_deref());
        Some(Replacement { at: option, count, with: before.into_iter().chain(["-c".to_owned(), code]).collect() })
    }

    /// The path of `word` below the folder, with no dots but those that lead up.
    fn at(&self, word: &str) -> Option<String> {
        let plain = |path: PathBuf| path.components().filter(|part| *part != Component::CurDir).collect::<PathBuf>();
        plain(self.folder.join(word)).to_str().map(str::to_owned)
    }
}

/// What a command is, as far as its words alone say it.
pub fn form(argv: &[String]) -> CommandForm {
    let nowhere = FilesBeside { folder: Path::new("/"), is_file: &|_| true };
    nowhere.place(argv).map_or(CommandForm::Words, |placed| placed.form)
}

/// Whether `argv` runs a file that is looked up where it runs, or a text that a shell makes more of than words.
pub fn depends_on_folder(argv: &[String]) -> bool {
    let nowhere = FilesBeside { folder: Path::new("/"), is_file: &|_| false };
    nowhere.place(argv).map_or(true, |placed| placed.form == CommandForm::ShellText || placed.argv != argv)
}

/// The words of `argv`, and those of its text for a shell where that has nothing but words: what it names stands among them.
pub fn all_words(argv: &[String]) -> Vec<String> {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let text = (!words.is_empty()).then(|| text_of(&words)).flatten().and_then(|at| line::words(&argv[at]));
    argv.iter().cloned().chain(text.into_iter().flatten().map(|word| word.text)).collect()
}

/// The code that runs a module and looks for it in `folder`, and not in the working directory.
fn run_module(name: &str, folder: Option<&str>) -> String {
    let quoted = |text: &str| pintle_domain::json::Value::from(text).to_string();
    let first = folder.map(|folder| format!("[{}] + ", quoted(folder))).unwrap_or_default();
    let name = quoted(name);
    format!(
        "import sys; sys.path = {first}[p for p in sys.path if p]; import runpy; \
         runpy.run_module({name}, run_name=\"__main__\", alter_sys=True)"
    )
}

/// The word of `words` that is a text for a shell.
fn text_of(words: &[&str]) -> Option<usize> {
    let (program, _) = program_of(words).ok()?;
    let program_word = words.get(program).filter(|word| is_shell(word))?;
    let told = interpreter(program_word)?.told(words, program + 1);
    told.iter().find_map(|told| match told {
        Told::Text(at) => Some(*at),
        Told::Script(_) | Told::Preload(_) | Told::Module { .. } => None,
    })
}

/// The program that is run in the end, behind those that only run another one, and its script where it is given none.
fn program_of(words: &[&str]) -> Result<(usize, Option<usize>), Unplaced> {
    let mut at = 0;
    loop {
        match inner(words, at) {
            Some(Inner::Program(next)) => at = next,
            Some(Inner::OfPackage(next)) if interpreter(words[next]).is_some() => at = next,
            Some(Inner::OfPackage(next)) => return Ok((at, is_script(words[next]).then_some(next))),
            Some(Inner::Unread) => return Err(Unplaced::Unread),
            None => return Ok((at, None)),
        }
    }
}

/// The programs among `words`, up to the one at `last`.
fn wrapped(words: &[&str], last: usize) -> Vec<usize> {
    let mut all = vec![0];
    while let Some(Inner::Program(next) | Inner::OfPackage(next)) = inner(words, *all.last().unwrap_or(&0)) {
        if next > last {
            break;
        }
        all.push(next);
    }
    all
}

/// The value of an option in one word, or the word.
fn value_of(word: &str) -> &str {
    match word.starts_with('-') {
        true => word.split_once('=').map_or(word, |(_, value)| value),
        false => word,
    }
}

/// Whether a word leads somewhere by itself: an absolute path, or an address.
fn is_elsewhere(word: &str) -> bool {
    word.starts_with('/')
        || word.contains("://")
        || ["npm:", "jsr:", "node:"].iter().any(|scheme| word.starts_with(scheme))
}
