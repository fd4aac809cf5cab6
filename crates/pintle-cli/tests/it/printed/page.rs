//! A page, as the steps that a reader takes: what blocks are for, in comments, and the blocks.

/// A page.
#[derive(Debug)]
pub(crate) struct Page {
    /// Where it stands in the repository.
    pub(crate) path: String,
    pub(crate) steps: Vec<Step>,
    /// What stands outside of blocks and comments, each line with its number.
    pub(crate) prose: Vec<(usize, String)>,
}

/// One thing that is done.
#[derive(Debug)]
pub(crate) enum Step {
    /// What readers have done already, or look at, without being told how.
    First {
        line: usize,
        script: String,
    },
    /// Another reader, with an empty home.
    Anew,
    /// The reader goes to another folder.
    In {
        folder: String,
    },
    /// A model at the address that the page gives to it, with its replies, one in each line.
    Model {
        line: usize,
        replies: String,
    },
    /// A collector at the address that the page gives to it.
    Collector {
        line: usize,
        address: String,
    },
    /// A database of PostgreSQL at the address that the page gives to it.
    Database {
        shown: String,
    },
    /// A variable of the reader's shell.
    Variable {
        name: String,
        value: String,
    },
    /// A text that differs from run to run: as the page has it, and the command that prints the real one.
    Id {
        line: usize,
        shown: String,
        command: String,
    },
    Block(Block),
}

/// What stands between two lines of three backticks.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) line: usize,
    pub(crate) language: String,
    pub(crate) text: String,
    pub(crate) used: Use,
}

/// What a block is for.
#[derive(Debug)]
pub(crate) enum Use {
    /// Written into the file `name`, behind what is there if it `adds`.
    File {
        name: String,
        adds: bool,
    },
    /// A configuration, which loads behind `before`.
    Config {
        before: String,
    },
    Commands(Commands),
    /// The whole block is one script, and ends with `exit`.
    Script {
        exit: i32,
    },
    /// A file of the repository has it, and is tested there.
    StandsIn(String),
    /// A test reads it out of the page.
    RunBy(String),
    /// Nothing that anybody could run, for this reason.
    Shown(String),
    /// It cannot run here, for this reason.
    NotHere(String),
}

/// How the commands of a block run.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    /// How each ends; all with 0 where it is empty.
    pub(crate) exits: Vec<i32>,
    /// What they read, where they do not run on a terminal.
    pub(crate) stdin: Option<String>,
    /// The beginning of one that cannot run here, and why.
    pub(crate) without: Option<(String, String)>,
}

/// How a comment begins.
const COMMENT: &str = "<!-- test:";
const COMMENT_END: &str = "-->";
const FENCE: &str = "```";

impl Page {
    /// Reads a page; or says where it cannot be read, and why.
    pub(crate) fn read(path: &str, text: &str) -> Result<Self, String> {
        let mut page = Self { path: path.to_owned(), steps: Vec::new(), prose: Vec::new() };
        let mut lines = (1..).zip(text.lines());
        let mut words = Vec::new();
        while let Some((line, text)) = lines.next() {
            let at = |wrong: String| format!("{path}:{line}: {wrong}");
            let trimmed = text.trim_start();
            if let Some(begun) = trimmed.strip_prefix(COMMENT) {
                let comment = comment(begun, text.len() - trimmed.len(), lines.by_ref())
                    .ok_or_else(|| at("the comment does not end".into()))?;
                match step(line, &comment) {
                    Some(step) => page.steps.push(step),
                    None => words.push((line, comment)),
                }
            } else if let Some(language) = trimmed.strip_prefix(FENCE) {
                let indent = text.len() - trimmed.len();
                let body = body(indent, lines.by_ref()).ok_or_else(|| at("the block does not end".into()))?;
                let used = used(path, std::mem::take(&mut words), language)?;
                let used = used.ok_or_else(|| at("say what this block is for, in a comment before it".into()))?;
                page.steps.push(Step::Block(Block { line, language: language.to_owned(), text: body, used }));
            } else if let Some((line, _)) = words.first().filter(|_| !trimmed.is_empty()) {
                return Err(format!("{path}:{line}: no block follows"));
            } else {
                page.prose.push((line, text.to_owned()));
            }
        }
        match words.first() {
            Some((line, _)) => Err(format!("{path}:{line}: no block follows")),
            None => Ok(page),
        }
    }
}

/// A comment: its first line, and the lines below it.
type Comment = (String, String);

/// Goes on with a comment of which `begun` was read, to its end; its lines stand `indent` further in.
fn comment<'a>(begun: &str, indent: usize, lines: impl Iterator<Item = (usize, &'a str)>) -> Option<Comment> {
    if let Some(whole) = begun.trim_end().strip_suffix(COMMENT_END) {
        return Some((whole.trim().to_owned(), String::new()));
    }
    let mut text = String::new();
    for (_, line) in lines {
        if line.trim() == COMMENT_END {
            return Some((begun.trim().to_owned(), text));
        }
        text.push_str(line.get(indent..).unwrap_or_default());
        text.push('\n');
    }
    None
}

/// The text of a block whose lines stand `indent` further in.
fn body<'a>(indent: usize, lines: impl Iterator<Item = (usize, &'a str)>) -> Option<String> {
    let mut text = String::new();
    for (_, line) in lines {
        if line.trim() == FENCE {
            return Some(text);
        }
        text.push_str(line.get(indent..).unwrap_or_default());
        text.push('\n');
    }
    None
}

/// The step that a comment is by itself; none for one that says what a block is for.
fn step(line: usize, (head, text): &Comment) -> Option<Step> {
    let text = text.clone();
    match head.as_str() {
        "first" => Some(Step::First { line, script: text }),
        "anew" => Some(Step::Anew),
        "model" => Some(Step::Model { line, replies: text }),
        head => {
            if let Some((name, value)) = head.strip_prefix("environment ").and_then(|rest| rest.split_once('=')) {
                return Some(Step::Variable { name: name.to_owned(), value: value.to_owned() });
            }
            if let Some(folder) = head.strip_prefix("in ") {
                return Some(Step::In { folder: folder.to_owned() });
            }
            if let Some(address) = head.strip_prefix("collector ") {
                return Some(Step::Collector { line, address: address.to_owned() });
            }
            if let Some(shown) = head.strip_prefix("database ") {
                return Some(Step::Database { shown: shown.to_owned() });
            }
            let (shown, command) = head.strip_prefix("id ")?.split_once(" = ")?;
            Some(Step::Id { line, shown: shown.to_owned(), command: command.to_owned() })
        }
    }
}

/// What a block in `language` is for, by the comments before it; none where nothing says so.
fn used(path: &str, comments: Vec<(usize, Comment)>, language: &str) -> Result<Option<Use>, String> {
    let mut used = None;
    let mut commands = Commands::default();
    for (line, (head, text)) in comments {
        if let Some(exits) = head.strip_prefix("exits ") {
            let codes: Result<Vec<i32>, _> = exits.split_whitespace().map(str::parse).collect();
            commands.exits = codes.map_err(|_| format!("{path}:{line}: an exit code is a number"))?;
        } else if head == "stdin" {
            commands.stdin = Some(text);
        } else if let Some((command, reason)) =
            head.strip_prefix("not here (").and_then(|rest| rest.split_once("): ")).filter(|_| language == "console")
        {
            commands.without = Some((command.to_owned(), reason.to_owned()));
        } else {
            let word = whole(&head, text).ok_or_else(|| format!("{path}:{line}: `{head}` is not a word of pages"))?;
            used = Some(word);
        }
    }
    Ok(match used {
        Some(Use::Script { .. }) => Some(Use::Script { exit: commands.exits.first().copied().unwrap_or_default() }),
        None if language == "console" => Some(Use::Commands(commands)),
        used => used,
    })
}

/// Makes what a block is for of the words behind the first one.
type Made = fn(String) -> Use;

/// What a whole block is for.
fn whole(head: &str, text: String) -> Option<Use> {
    let words: [(&str, Made); 6] = [
        ("file ", |name| Use::File { name, adds: false }),
        ("adds to ", |name| Use::File { name, adds: true }),
        ("stands in ", Use::StandsIn),
        ("run by ", Use::RunBy),
        ("only shown: ", Use::Shown),
        ("not here: ", Use::NotHere),
    ];
    match head {
        "config" => Some(Use::Config { before: text }),
        "script" => Some(Use::Script { exit: 0 }),
        head => words.iter().find_map(|(word, made)| Some(made(head.strip_prefix(word)?.to_owned()))),
    }
}
