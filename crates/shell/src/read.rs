//! Walks a tree and gathers facts.

mod compound;
mod files;
mod redirects;
mod shown;
mod simple;

use std::collections::BTreeSet;
use std::path::Path;

use pintle_domain::shell::{ShellCommand, ShellFacts, ShellKind, ShellText};

use crate::bounds;
use crate::parse;
use crate::paths;
use crate::state::{Field, Flow, Output, State};
use crate::syntax::{Connector, Dialect, Pipeline, Script, Statement};

use files::Files;

pub(crate) use files::Content;
pub(crate) use shown::shows;
pub(crate) use simple::quote;

/// Most reasons that are told; more help nobody.
const REASONS: usize = 5;

/// A text while it is being read.
pub(crate) struct Reading<'a> {
    workspace: &'a str,
    facts: ShellFacts,
    reasons: Vec<String>,
    seen: BTreeSet<(List, String)>,
    seen_commands: BTreeSet<(Vec<String>, String, u32)>,
    files: Files,
    /// What held where a `return`, `break` or `continue` left the row of commands.
    jumps: Vec<State>,
    processes: u32,
    steps: usize,
    /// Whether something that would run was not read, because there is more than is read.
    is_cut: bool,
    pub(crate) level: u32,
    /// Whether the text changes where programs are looked for.
    pub(crate) path_changed: bool,
    /// Whether anything that was read depends on the dialect.
    told_apart: bool,
    /// What `trap` is to run later.
    pub(crate) traps: Vec<String>,
}

/// The lists of paths and URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum List {
    Reads,
    Writes,
    Deletes,
    Urls,
    Outside,
}

/// Reads `text` whole.
pub(crate) fn facts(text: ShellText<'_>) -> ShellFacts {
    let (Some(cwd), Some(workspace)) = (text.cwd.to_str(), text.workspace.to_str()) else {
        return refused("the folder of the command is not text");
    };
    let (Some(cwd), Some(workspace)) = (paths::resolve(cwd, Some("/")), paths::resolve(workspace, Some("/"))) else {
        return refused("the folder of the command is not named");
    };
    if text.text.len() > bounds::TEXT_BYTES {
        return refused(&format!("the shell text is longer than {} bytes", bounds::TEXT_BYTES));
    }
    let mut reading = Reading {
        workspace: &workspace,
        facts: ShellFacts::default(),
        reasons: Vec::new(),
        seen: BTreeSet::new(),
        seen_commands: BTreeSet::new(),
        files: Files::default(),
        jumps: Vec::new(),
        processes: 0,
        steps: bounds::STEPS,
        is_cut: false,
        level: 0,
        path_changed: false,
        told_apart: false,
        traps: Vec::new(),
    };
    let dialects = match text.shell {
        ShellKind::Bash => &[Dialect::Bash],
        ShellKind::Dash => Dialect::DASH,
        ShellKind::Unknown => Dialect::ALL,
    };
    reading.text_in(text.text, dialects, &State::new(&cwd, Dialect::Bash));
    reading.finish()
}

/// The facts of a tool that writes `files` and runs no text.
pub(crate) fn written(files: &[&str], cwd: &Path, workspace: &Path) -> ShellFacts {
    let folder = |folder: &Path| folder.to_str().and_then(|folder| paths::resolve(folder, Some("/")));
    let (Some(cwd), Some(workspace)) = (folder(cwd), folder(workspace)) else {
        return refused("the folder of the tool is not text");
    };
    if files.len() > bounds::PATHS {
        return refused(&format!("more than {} paths would be touched", bounds::PATHS));
    }
    let mut facts = ShellFacts::default();
    for file in files.iter().filter(|file| !file.is_empty()) {
        let Some(path) = paths::resolve(file, Some(&cwd)) else {
            return refused("a file that the tool names has no path that can be read");
        };
        if paths::is_harmless_device(&path, true) || facts.writes.contains(&path) {
            continue;
        }
        if !paths::is_inside(&path, &workspace) {
            facts.outside.push(path.clone());
        }
        facts.writes.push(path);
    }
    facts
}

fn refused(why: &str) -> ShellFacts {
    ShellFacts { unknown: true, unknown_why: why.to_owned(), is_cut: true, ..ShellFacts::default() }
}

impl Reading<'_> {
    fn finish(mut self) -> ShellFacts {
        self.facts.unknown = !self.reasons.is_empty();
        self.facts.unknown_why = self.reasons.join("; ");
        self.facts.is_cut = self.is_cut || self.is_spent();
        self.facts
    }

    /// Notes that something cannot be known, and why.
    pub(crate) fn unknown(&mut self, why: String) {
        let why: String = why.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(200).collect();
        if self.reasons.len() < REASONS && !self.reasons.contains(&why) {
            self.reasons.push(why);
        }
    }

    /// Notes that something that would run is not read, and why.
    pub(crate) fn cut(&mut self, why: String) {
        self.is_cut = true;
        self.unknown(why);
    }

    /// Notes that something that is not written down would be run.
    pub(crate) fn pipes(&mut self, why: String) {
        self.facts.pipes_to_interpreter = true;
        self.unknown(why);
    }

    /// Pays for work; false if there is nothing left, which is unknown then.
    pub(crate) fn spend(&mut self, steps: usize) -> bool {
        if self.steps > 0 {
            self.steps = self.steps.saturating_sub(steps);
            if self.steps == 0 {
                self.unknown("the shell text takes too much work to read".to_owned());
            }
        }
        self.steps > 0
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.steps == 0
    }

    /// Ends the reading; what was found so far is told.
    pub(crate) fn stop(&mut self) {
        self.steps = 0;
    }

    /// Reads another text where `state` stands, such as that of `eval`.
    pub(crate) fn text(&mut self, text: &str, state: &mut State) -> Output {
        if !self.spend(text.len() / 16 + 1) {
            return Output::Unknown;
        }
        if text.len() > bounds::TEXT_BYTES {
            self.cut(format!("a text to be run is longer than {} bytes", bounds::TEXT_BYTES));
            return Output::Unknown;
        }
        if text.contains('\0') {
            self.unknown("the shell text has a zero byte".to_owned());
            return Output::Unknown;
        }
        let parsed = parse::parse(text, 0, state.dialect);
        self.told_apart |= parsed.told_apart;
        self.is_cut |= parsed.is_cut;
        // Shells read line by line: what stands before a line that they do not understand is run.
        let output = self.script(&parsed.script, state);
        match parsed.problem {
            None => output,
            Some(_) if parsed.refused => {
                // The shell ends here. What was meant is told all the same.
                let mut meant = state.clone();
                meant.dialect = Dialect::Bash;
                self.text(text, &mut meant);
                Output::Unknown
            }
            // Bash may understand the line, and those after it. What it does understand is told, whatever others make of it.
            Some(problem) if state.dialect.is_bash() => {
                self.cut(problem);
                Output::Unknown
            }
            Some(problem) => {
                self.unknown(problem);
                Output::Unknown
            }
        }
    }

    /// Reads `text` as a shell that is not known would, where `state` stands.
    pub(crate) fn text_anywhere(&mut self, text: &str, state: &State) -> Output {
        self.text_in(text, Dialect::ALL, state)
    }

    /// Reads `text` as a shell of each of `dialects` would, where `state` stands; the output is that of all of them.
    pub(crate) fn text_in(&mut self, text: &str, dialects: &[Dialect], state: &State) -> Output {
        let told_apart = std::mem::take(&mut self.told_apart);
        let (traps, jumps) = (std::mem::take(&mut self.traps), self.jumps());
        let before = (dialects.len() > 1).then(|| self.files.clone());
        let mut all: Option<Output> = None;
        for dialect in dialects {
            let files = all.is_some().then(|| std::mem::replace(&mut self.files, before.clone().unwrap_or_default()));
            let mut inner = state.clone();
            inner.dialect = *dialect;
            let output = self.text(text, &mut inner);
            self.late(inner);
            self.landed(jumps);
            if let Some(files) = files {
                self.files.add(files);
            }
            let same = all.as_ref().is_none_or(|all| *all == output);
            all = Some(if same { output } else { Output::Unknown });
            if !self.told_apart || self.is_spent() {
                break;
            }
        }
        self.told_apart = told_apart;
        self.traps = traps;
        all.unwrap_or(Output::Unknown)
    }

    /// Reads what the text has put off until its end, where `state` stands then.
    fn late(&mut self, mut state: State) {
        state.settle();
        state.depth += 1;
        for trap in std::mem::take(&mut self.traps) {
            let mut state = state.clone();
            state.flow = Flow::Straight;
            self.text(&trap, &mut state);
        }
        self.traps.clear();
    }

    /// Whether bash reads. Asked only where it makes a difference.
    pub(crate) fn is_bash(&mut self, state: &State) -> bool {
        self.told_apart = true;
        state.dialect.is_bash()
    }

    /// Reads `script`; the result is what it writes to its standard output.
    pub(crate) fn script(&mut self, script: &Script, state: &mut State) -> Output {
        if state.depth > bounds::DEPTH || self.level >= bounds::LEVELS {
            self.cut(format!("commands nest more than {} levels deep", bounds::DEPTH));
            return Output::Unknown;
        }
        self.level += 1;
        let mut output = Output::nothing();
        for statement in &script.statements {
            if self.is_spent() {
                output = Output::Unknown;
                break;
            }
            state.settle();
            // What follows an `exit` is read all the same: something may call it off.
            let next = if statement.background {
                let mut aside = state.clone();
                self.statement(statement, &mut aside)
            } else {
                self.statement(statement, state)
            };
            // A list that fails before its end does not end the shell.
            if state.failing.ends && !state.failing.tested && statement.rest.is_empty() && !statement.first.negated {
                state.failing.place = None;
            }
            output = output.then(next);
        }
        if state.flow != Flow::Straight && !output.is_nothing() {
            output = Output::Unknown;
        }
        self.level -= 1;
        output
    }

    fn statement(&mut self, statement: &Statement, state: &mut State) -> Output {
        if statement.rest.is_empty() {
            return self.pipeline(&statement.first, state);
        }
        let tested = std::mem::replace(&mut state.failing.tested, true);
        let mut output = self.pipeline(&statement.first, state);
        // What holds if all went well so far, and if something did not.
        let (mut well, mut ill) = state.clone().parted();
        for (connector, pipeline) in &statement.rest {
            let mut branch = match connector {
                Connector::And => well.clone(),
                Connector::Or => ill.clone(),
            };
            // What follows an `exit` is read all the same.
            branch.flow = branch.flow.min(Flow::Jumped);
            output = output.maybe(&self.pipeline(pipeline, &mut branch));
            let (good, bad) = branch.parted();
            match connector {
                Connector::And => {
                    ill.join(bad);
                    well = good;
                }
                Connector::Or => {
                    well.join(good);
                    ill = bad;
                }
            }
        }
        *state = well;
        state.part(ill);
        state.failing.tested = tested;
        output
    }

    fn pipeline(&mut self, pipeline: &Pipeline, state: &mut State) -> Output {
        if let [command] = pipeline.commands.as_slice() {
            if !pipeline.negated {
                return self.command(command, state);
            }
            let tested = std::mem::replace(&mut state.failing.tested, true);
            let output = self.command(command, state);
            state.settle();
            state.failing.tested = tested;
            return output;
        }
        let mut output = Output::nothing();
        for (index, command) in pipeline.commands.iter().enumerate() {
            let mut aside = state.clone();
            if index > 0 {
                aside.stdin = output.into();
            }
            output = self.command(command, &mut aside);
        }
        output
    }

    /// Leaves the row of commands where `state` holds.
    pub(crate) fn jump(&mut self, state: &mut State) {
        if self.jumps.len() >= bounds::JUMPS {
            self.unknown("the shell text jumps too often".to_owned());
            self.stop();
            return;
        }
        self.jumps.push(state.clone());
        state.flow = state.flow.max(Flow::Jumped);
    }

    /// How many jumps there were so far.
    pub(crate) fn jumps(&self) -> usize {
        self.jumps.len()
    }

    /// Goes on from any of the jumps since `start` too.
    pub(crate) fn land(&mut self, start: usize, state: &mut State) {
        for jump in self.jumps.get(start..).unwrap_or_default().to_vec() {
            let depth = state.depth;
            state.join(jump);
            state.depth = depth;
            self.spend(1);
        }
    }

    /// Forgets the jumps since `start`, which lead no further.
    pub(crate) fn landed(&mut self, start: usize) {
        self.jumps.truncate(start);
    }

    /// Notes a command that would run.
    pub(crate) fn told(&mut self, argv: &[Field], state: &State) {
        if self.facts.commands.len() >= bounds::COMMANDS {
            self.unknown(format!("more than {} commands would run", bounds::COMMANDS));
            self.stop();
            return;
        }
        let argv: Vec<String> = argv.iter().map(|field| field.text.clone()).collect();
        let size = argv.iter().map(String::len).sum::<usize>();
        self.spend(size / 16 + argv.len() / 4 + 1);
        let depth = state.depth.min(bounds::DEPTH);
        let mut folders: Vec<String> = state.place.cwd.iter().map(str::to_owned).collect();
        if folders.is_empty() {
            folders.push(String::new());
        }
        for cwd in folders {
            self.spend(cwd.len() / 16);
            if self.seen_commands.insert((argv.clone(), cwd.clone(), depth)) {
                let name = argv.first().map(|name| paths::base_name(name).to_owned()).unwrap_or_default();
                self.facts.commands.push(ShellCommand { name, argv: argv.clone(), cwd, depth });
            }
        }
    }

    /// Notes a resolved path or a URL.
    pub(crate) fn note(&mut self, list: List, text: &str) {
        if !self.spend(text.len() / 64 + 1) || !self.seen.insert((list, text.to_owned())) {
            return;
        }
        let into = match list {
            List::Reads => &mut self.facts.reads,
            List::Writes => &mut self.facts.writes,
            List::Deletes => &mut self.facts.deletes,
            List::Urls => &mut self.facts.urls,
            List::Outside => &mut self.facts.outside,
        };
        if into.len() >= bounds::PATHS {
            self.unknown(format!("more than {} paths would be touched", bounds::PATHS));
            self.stop();
            return;
        }
        into.push(text.to_owned());
        match list {
            List::Reads | List::Writes | List::Deletes => {
                if !paths::is_inside(text, self.workspace) {
                    self.note(List::Outside, text);
                }
                if let Some(real) = self.behind_link(text) {
                    self.note(list, &real);
                }
            }
            List::Urls | List::Outside => {}
        }
    }

    /// Whether `folder`, which is resolved, is the workspace or holds it.
    pub(crate) fn holds_workspace(&self, folder: &str) -> bool {
        paths::is_inside(self.workspace, folder)
    }

    /// Whether `path`, which is resolved, lies in the workspace.
    pub(crate) fn is_inside(&self, path: &str) -> bool {
        paths::is_inside(path, self.workspace)
    }
}
