//! A reader who does what a page says.

use std::fmt;
use std::fs;
use std::process::Command;

use pintle_domain::json::{Value, json};
use pintle_testkit::http::StubAnswer;
use pintle_testkit::postgres;

use super::page::{Block, Commands, Step, Use};
use super::{root, same};
use crate::env::{PINTLE, TestEnv};
use crate::rules_in_turns::stage::{Model, calls, says};

/// A terminal with a person at it.
const TERMINAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/terminal.py");

/// The address of a model, as pages write it.
const MODEL_ADDRESS: &str = "127.0.0.1:8000";

/// How many answers a collector has: more than a page needs.
const ANSWERS: usize = 20;

/// The folder in which a reader begins.
const HERE: &str = "here";

/// How many of each ran.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    commands: usize,
    files: usize,
    configurations: usize,
    elsewhere: usize,
    shown: usize,
    not_here: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { commands, files, configurations, elsewhere, shown, not_here } = self;
        write!(
            f,
            "{commands} commands, {files} files, {configurations} configurations, {elsewhere} tested elsewhere, \
             {shown} only shown, {not_here} not here"
        )
    }
}

/// A reader with a home, a folder and a shell.
pub(crate) struct Walk<'a> {
    page: &'a str,
    env: TestEnv,
    /// Where the reader stands, below the surroundings.
    folder: String,
    /// What the page writes, and what it is in this run.
    ids: Vec<(String, String)>,
    variables: Vec<(String, String)>,
    /// What was started for the page, and where the page says so: somebody has to ask it.
    servers: Vec<(usize, Model)>,
    databases: Vec<postgres::Server>,
    counts: Counts,
    pub(crate) findings: Vec<String>,
}

/// How a command ended, and what the terminal showed: as it was, and as the page would write it.
struct Ran {
    code: Option<i32>,
    raw: String,
    shown: String,
}

/// Surroundings with the program in the folder and on the path.
fn surroundings() -> TestEnv {
    let env = TestEnv::new();
    fs::create_dir(env.path("bin")).unwrap();
    for place in ["bin/pintle", "here/pintle"] {
        std::os::unix::fs::symlink(PINTLE, env.path(place)).unwrap();
    }
    env
}

impl<'a> Walk<'a> {
    /// Somebody at the beginning of the page at the path `page`.
    pub(crate) fn of(page: &'a str) -> Self {
        Self {
            page,
            env: surroundings(),
            ids: Vec::new(),
            variables: Vec::new(),
            servers: Vec::new(),
            databases: Vec::new(),
            folder: HERE.to_owned(),
            counts: Counts::default(),
            findings: Vec::new(),
        }
    }

    /// The end of the page.
    pub(crate) fn end(mut self) -> Counts {
        for (line, server) in std::mem::take(&mut self.servers) {
            if server.requests().is_empty() {
                self.found(line, "nobody asked it");
            }
        }
        assert!(self.findings.is_empty(), "{}\n{}", self.findings.join("\n"), self.counts);
        self.counts
    }

    pub(crate) fn take(&mut self, step: &Step) {
        match step {
            Step::First { line, script } => {
                self.expect(*line, script, 0, &Ways { strict: true, ..Ways::default() });
            }
            Step::Anew => {
                self.env = surroundings();
                self.folder = HERE.to_owned();
                self.ids.clear();
                self.variables.clear();
            }
            Step::In { folder } => {
                self.folder = place(HERE, folder);
                fs::create_dir_all(self.env.path(&self.folder)).unwrap();
            }
            Step::Model { line, replies } => match replies.lines().map(reply).collect() {
                Some(replies) => self.server(*line, MODEL_ADDRESS, replies),
                None => self.found(*line, "a reply has a `text`, or a `tool` and its `arguments`"),
            },
            Step::Collector { line, address } => {
                self.server(*line, address, vec![StubAnswer::new(200, Vec::new()); ANSWERS]);
            }
            Step::Database { shown } => {
                let server = postgres::Server::start();
                self.ids.push((shown.clone(), server.fresh_database()));
                self.databases.push(server);
            }
            Step::Variable { name, value } => self.variables.push((name.clone(), value.clone())),
            Step::Id { line, shown, command } => self.id(*line, shown, command),
            Step::Block(block) => self.block(block),
        }
    }

    /// Starts what answers at `address`, as the page writes it.
    fn server(&mut self, line: usize, address: &str, answers: Vec<StubAnswer>) {
        let server = Model::giving(answers);
        self.ids.push((address.to_owned(), server.address()));
        self.servers.push((line, server));
    }

    /// From here on `shown` means what `command` prints.
    fn id(&mut self, line: usize, shown: &str, command: &str) {
        self.ids.retain(|(known, _)| known != shown);
        let ran = self.run(command, &Ways::default());
        match ran.code {
            Some(0) => self.ids.push((shown.to_owned(), ran.raw.trim().to_owned())),
            _ => self.found(line, &format!("`{command}` failed:\n{}", ran.raw)),
        }
    }

    fn found(&mut self, line: usize, finding: &str) {
        self.findings.push(format!("{}:{line}: {finding}", self.page));
    }

    fn block(&mut self, block: &Block) {
        match &block.used {
            Use::File { name, adds } => self.file(block, &self.real(name), *adds),
            Use::Config { before } => {
                let name = format!("printed.{}", block.language);
                let file = self.env.write(&place(&self.folder, &name), &self.real(&format!("{before}{}", block.text)));
                self.lint(block.line, &name);
                fs::remove_file(file).unwrap();
            }
            Use::Commands(commands) => self.commands(block, commands),
            Use::Script { exit } => {
                self.counts.commands += 1;
                self.expect(block.line, &block.text, *exit, &Ways::default());
            }
            Use::StandsIn(file) => {
                self.counts.elsewhere += 1;
                if !stands_in(&block.text, file) {
                    self.found(block.line, &format!("{file} does not have it"));
                }
            }
            Use::RunBy(test) => {
                self.counts.elsewhere += 1;
                if !fs::read_to_string(root().join(test)).is_ok_and(|test| test.contains(self.page)) {
                    self.found(block.line, &format!("{test} does not name {}", self.page));
                }
            }
            Use::Shown(_) => self.counts.shown += 1,
            Use::NotHere(_) => self.counts.not_here += 1,
        }
    }

    /// Writes a file, and looks at it if it is a configuration.
    fn file(&mut self, block: &Block, name: &str, adds: bool) {
        self.counts.files += 1;
        let place = place(&self.folder, name);
        let before = if adds { fs::read_to_string(self.env.path(&place)).unwrap_or_default() } else { String::new() };
        self.env.write(&place, &format!("{before}{}", self.real(&block.text)));
        if ["pintle.toml", "pintle.json"].iter().any(|config| name.ends_with(config)) {
            self.lint(block.line, name);
        }
    }

    /// A configuration loads without an error and without a warning.
    fn lint(&mut self, line: usize, file: &str) {
        self.counts.configurations += 1;
        let said = self.expect(line, &format!("pintle -c {file} hooks lint"), 0, &Ways::default());
        if said.as_deref().is_some_and(|said| said.contains("warning")) {
            self.found(line, &said.unwrap_or_default());
        }
    }

    fn commands(&mut self, block: &Block, how: &Commands) {
        let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in block.text.lines() {
            match (line.strip_prefix("$ "), all.last_mut()) {
                (Some(command), _) => all.push((command, Vec::new())),
                (None, Some((_, shown))) => shown.push(line),
                (None, None) => return self.found(block.line, &format!("`{line}` stands before the first command")),
            }
        }
        if !how.exits.is_empty() && how.exits.len() != all.len() {
            return self.found(block.line, &format!("{} exit codes for {} commands", how.exits.len(), all.len()));
        }
        for (at, (command, shown)) in all.iter().enumerate() {
            if how.without.as_ref().is_some_and(|(without, _)| command.starts_with(without)) {
                self.counts.not_here += 1;
                continue;
            }
            self.counts.commands += 1;
            let typed = shown.iter().filter_map(|line| line.strip_prefix("> ")).collect();
            let exit = how.exits.get(at).copied().unwrap_or_default();
            let printed =
                self.expect(block.line, command, exit, &Ways { typed, stdin: how.stdin.as_deref(), ..Ways::default() });
            let printed = printed.unwrap_or_default();
            if let Some(missing) = same::missing(shown, &printed) {
                let finding = format!("`{command}` does not print `{missing}` there, but:\n{printed}");
                self.found(block.line, &finding);
            }
        }
    }

    /// What `command` shows, as the page would write it; a finding, if it does not end with `exit`.
    fn expect(&mut self, line: usize, command: &str, exit: i32, ways: &Ways<'_>) -> Option<String> {
        let ran = self.run(command, ways);
        if ran.code == Some(exit) {
            return Some(ran.shown);
        }
        let ended = ran.code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
        let finding = format!("`{}` ended with {ended} and not with {exit}:\n{}", command.trim(), ran.shown);
        self.found(line, &finding);
        None
    }

    /// Runs a command line, or a script, in the reader's shell.
    fn run(&self, command: &str, ways: &Ways<'_>) -> Ran {
        let typed = json!(ways.typed).to_string();
        let (program, before) = match ways.stdin {
            Some(_) => ("sh", vec![]),
            None => ("python3", vec![TERMINAL, &typed, "sh"]),
        };
        let mut reader: Command = self.env.command(program);
        reader.args(before).args([if ways.strict { "-ec" } else { "-c" }, &self.real(command)]);
        reader.current_dir(self.env.path(&self.folder));
        reader.env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME").env("TERM", "xterm").env("NO_COLOR", "1");
        let path = std::env::var("PATH").unwrap();
        reader.env("PATH", format!("{}:{path}", self.env.path("bin").display())).env("REPOSITORY", root());
        reader.envs(self.variables.iter().map(|(name, value)| (name, self.real(value))));
        let output = TestEnv::output(&mut reader, ways.stdin.unwrap_or_default());
        let raw = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        Ran { code: output.status.code(), shown: self.as_on_the_page(&raw), raw }
    }

    /// A text of the page, with what its ids are in this run.
    fn real(&self, text: &str) -> String {
        self.ids.iter().fold(text.to_owned(), |text, (shown, real)| text.replace(shown, real))
    }

    /// What was printed, with the ids of the page.
    fn as_on_the_page(&self, printed: &str) -> String {
        let printed = self.ids.iter().fold(printed.to_owned(), |text, (shown, real)| text.replace(real, shown));
        let (home, here) = (self.env.path("home"), self.env.path(""));
        let printed = printed.replace(home.to_str().unwrap(), "~");
        printed.replace(here.to_str().unwrap().trim_end_matches('/'), "")
    }
}

/// How a command runs, and what a person does meanwhile.
#[derive(Default)]
struct Ways<'a> {
    /// Whether it ends with the first command in it that fails.
    strict: bool,
    typed: Vec<&'a str>,
    /// Instead of a terminal.
    stdin: Option<&'a str>,
}

/// The path below the surroundings of `name`, for somebody who stands in `folder`.
fn place(folder: &str, name: &str) -> String {
    match name.strip_prefix("~/") {
        Some(below) => format!("home/{below}"),
        // One whose folder is an id of the page.
        None if name.starts_with('/') => name.to_owned(),
        None => format!("{folder}/{name}"),
    }
}

/// What a model says, as a page has it.
fn reply(line: &str) -> Option<StubAnswer> {
    let reply: Value = serde_json::from_str(line).ok()?;
    match reply["text"].as_str() {
        Some(text) => Some(says(text)),
        None => Some(calls(&[("call-1", reply["tool"].as_str()?, reply["arguments"].clone())])),
    }
}

/// Whether the lines of `text` stand in a file of the repository, in a row, however far in.
fn stands_in(text: &str, file: &str) -> bool {
    let trimmed =
        |text: &str| text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    fs::read_to_string(root().join(file)).is_ok_and(|file| trimmed(&file).contains(&trimmed(text)))
}
