//! What is written of command hooks, in the shape that coding agents have for them, and the hooks that it becomes.

use std::time::Duration;

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::fault::Fault;
use pintle_domain::hook::{Family, Hook, HookState, OnFailure, Scope, Stage, Stages};
use pintle_domain::id::HookName;
use pintle_domain::json::Value;
use pintle_domain::matcher::{Matcher, RespondTools};
use schemars::JsonSchema;
use serde::Deserialize;

use super::condition::PermissionRule;
use super::event::ClaudeEvent;
use super::tools;
use crate::command::{CommandForm, FilesBeside, form};
use crate::process::config::problem::EntryProblem;

/// Commands that are run for each event, as coding agents run theirs: a document on standard input, an answer by exit
/// code and standard output.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawClaudeHooks {
    /// Secret variables that these commands see, by exact name.
    pub inherit_env: Option<Vec<String>>,
    /// When a session begins. Told; what they answer decides nothing.
    #[serde(rename = "SessionStart")]
    pub session_start: Option<Vec<RawClaudeGroup>>,
    /// Before a message reaches the model.
    #[serde(rename = "UserPromptSubmit")]
    pub user_prompt_submit: Option<Vec<RawClaudeGroup>>,
    /// Before a tool runs.
    #[serde(rename = "PreToolUse")]
    pub pre_tool_use: Option<Vec<RawClaudeGroup>>,
    /// After a tool ran well.
    #[serde(rename = "PostToolUse")]
    pub post_tool_use: Option<Vec<RawClaudeGroup>>,
    /// After a tool failed.
    #[serde(rename = "PostToolUseFailure")]
    pub post_tool_use_failure: Option<Vec<RawClaudeGroup>>,
    /// Before a sub-agent begins.
    #[serde(rename = "SubagentStart")]
    pub subagent_start: Option<Vec<RawClaudeGroup>>,
    /// When a sub-agent has ended. Told; what they answer decides nothing.
    #[serde(rename = "SubagentStop")]
    pub subagent_stop: Option<Vec<RawClaudeGroup>>,
    /// When a turn has ended. Told; what they answer decides nothing.
    #[serde(rename = "Stop")]
    pub stop: Option<Vec<RawClaudeGroup>>,
}

/// Commands with one matcher.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawClaudeGroup {
    /// A name of a tool, several with `|` between them, or a regular expression, unanchored; Claude's names of tools.
    /// Default: all. At `SubagentStart` and `SubagentStop` it is compared with the agent.
    pub matcher: Option<String>,
    /// The commands, in order.
    pub hooks: Option<Vec<RawClaudeCommand>>,
}

/// A command.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawClaudeCommand {
    /// `command`; there are no others here.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// A text for `sh -c`; with `args`, a program.
    pub command: Option<String>,
    /// The arguments of the program; then there is no shell.
    pub args: Option<Vec<String>>,
    /// How long it may take, in seconds. Default 600; 30 at `UserPromptSubmit`.
    #[schemars(range(min = 1))]
    pub timeout: Option<i64>,
    /// One permission rule, such as `Bash(git *)`: other calls are none of its business.
    #[serde(rename = "if")]
    pub condition: Option<String>,
    /// What a fault becomes: `block` (default before something happens) or `continue`.
    #[serde(rename = "onFailure")]
    pub on_failure: Option<String>,
    /// The shell: `bash`; `sh` where nothing is said.
    pub shell: Option<String>,
    /// What an agent shows while it runs; not used here.
    #[serde(rename = "statusMessage")]
    pub status_message: Option<String>,
}

impl RawClaudeHooks {
    /// What is written for `event`.
    pub fn groups(&self, event: ClaudeEvent) -> Option<&[RawClaudeGroup]> {
        let groups = match event {
            ClaudeEvent::SessionStart => &self.session_start,
            ClaudeEvent::UserPromptSubmit => &self.user_prompt_submit,
            ClaudeEvent::PreToolUse => &self.pre_tool_use,
            ClaudeEvent::PostToolUse => &self.post_tool_use,
            ClaudeEvent::PostToolUseFailure => &self.post_tool_use_failure,
            ClaudeEvent::SubagentStart => &self.subagent_start,
            ClaudeEvent::SubagentStop => &self.subagent_stop,
            ClaudeEvent::Stop => &self.stop,
        };
        groups.as_deref()
    }
}

/// How a command is run, and for what.
#[derive(Clone, Debug)]
pub struct CommandEntry {
    /// For which event.
    pub event: ClaudeEvent,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The keys that lead to it, from its list.
    pub path: Vec<String>,
    /// Which calls it is about, beside its matcher.
    pub condition: Option<PermissionRule>,
    /// Which agents or beginnings it is about, at events of no tool.
    pub about: Option<Matcher>,
    /// Secret variables that it sees, by exact name.
    pub inherit_env: Vec<String>,
}

/// Where a list of commands stands.
#[derive(Clone, Copy)]
pub struct ListContext<'a> {
    /// Its event.
    pub event: ClaudeEvent,
    /// Its place, such as `pintle.toml:12:1`.
    pub origin: &'a str,
    /// How many commands of this event stand before it.
    pub before: usize,
    /// Secret variables that its commands see.
    pub inherit_env: &'a [String],
    /// Where the files of its commands stand; none where they are looked up at every run.
    pub files: Option<FilesBeside<'a>>,
}

/// The shell of a command that names none.
const SHELL: &str = "/bin/sh";

/// The longest time of a command, in seconds: a week. Longer ones are typing mistakes.
const MAX_TIMEOUT_S: i64 = 7 * 24 * 3600;

/// What `onFailure` takes.
const ON_FAILURE: [&str; 2] = ["block", "continue"];

/// A time of `value` seconds.
///
/// # Errors
/// What is wrong with the number.
fn seconds(value: i64) -> Result<Duration, String> {
    match u64::try_from(value) {
        Ok(0) | Err(_) => Err("must be greater than 0".to_owned()),
        Ok(_) if value > MAX_TIMEOUT_S => Err(format!("must be at most {MAX_TIMEOUT_S}")),
        Ok(value) => Ok(Duration::from_secs(value)),
    }
}

impl CommandEntry {
    /// Whether a shell makes more of it than words, so that what it runs depends on where it runs.
    pub fn is_shell_text(&self) -> bool {
        form(&self.argv) == CommandForm::ShellText
    }
}

impl ListContext<'_> {
    /// The hook number `at` of this list, from 0, with no stage yet.
    fn hook(&self, at: usize, state: HookState) -> Hook {
        let number = self.before + at + 1;
        Hook {
            name: HookName::new(format!("claude.{}.{number}", self.event.name())),
            family: Family::Command,
            origin: self.origin.to_owned(),
            // They run in the order in which they are written.
            priority: i32::try_from(number).unwrap_or(i32::MAX),
            state,
            matcher: None,
            respond: RespondTools::none(),
            events: None,
            scope: Scope::Everyone,
            media_dir: None,
            stages: Stages::default(),
            stored: None,
        }
    }

    /// The hooks of `groups`.
    ///
    /// # Errors
    /// Everything that is wrong with them; paths start inside the list.
    pub fn hooks(&self, groups: &[RawClaudeGroup]) -> Result<Vec<(Hook, CommandEntry)>, Vec<EntryProblem>> {
        let mut problems = Vec::new();
        let mut hooks = Vec::new();
        for (g, group) in groups.iter().enumerate() {
            let group_at = g.to_string();
            let matcher = self.matcher(group.matcher.as_deref()).unwrap_or_else(|why| {
                problems.push(EntryProblem::new(&[&group_at, "matcher"], why));
                None
            });
            let Some(commands) = &group.hooks else {
                problems.push(EntryProblem::new(&[&group_at], "`hooks` is missing: the commands of this matcher"));
                continue;
            };
            for (c, command) in commands.iter().enumerate() {
                let command_at = c.to_string();
                let path = [group_at.as_str(), "hooks", &command_at];
                let (argv, condition, stage) = match self.command(command) {
                    Ok(read) => read,
                    Err(found) => {
                        problems.extend(found.into_iter().map(|it| it.under(&path)));
                        continue;
                    }
                };
                let mut hook = self.hook(hooks.len(), HookState::Armed);
                hook.stages.set(self.event.checkpoint(), stage);
                let about_tool = self.event.is_about_a_tool();
                hook.matcher = matcher.clone().filter(|_| about_tool);
                let about = matcher.clone().filter(|_| !about_tool);
                let inherit_env = self.inherit_env.to_vec();
                let path = path.map(str::to_owned).to_vec();
                hooks.push((hook, CommandEntry { event: self.event, argv, path, condition, about, inherit_env }));
            }
        }
        if problems.is_empty() { Ok(hooks) } else { Err(problems) }
    }

    /// The matcher of a group; nothing where it is about everything.
    fn matcher(&self, written: Option<&str>) -> Result<Option<Matcher>, String> {
        let Some(text) = written.map(str::trim).filter(|text| !text.is_empty() && *text != "*") else {
            return Ok(None);
        };
        if matches!(self.event, ClaudeEvent::UserPromptSubmit | ClaudeEvent::Stop) {
            // These have nothing to compare it with, so it is about all of them.
            return Ok(None);
        }
        let is_list = text.chars().all(|c| c.is_ascii_alphanumeric() || "_-,| ".contains(c));
        let compiled = if is_list {
            let names: Vec<&str> = text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty()).collect();
            Matcher::compile(&format!("^({})$", names.join("|")))
        } else {
            Matcher::compile(text)
        };
        let matcher = compiled.map_err(|why| format!("invalid matcher `{text}`: {why}"))?;
        Ok(Some(matcher.spelled(text, tools::spelling)))
    }

    /// What one command is.
    fn command(
        &self,
        raw: &RawClaudeCommand,
    ) -> Result<(Vec<String>, Option<PermissionRule>, Stage), Vec<EntryProblem>> {
        let mut problems = Vec::new();
        if let Some(kind) = raw.kind.as_deref().filter(|kind| *kind != "command") {
            let message = format!("unsupported type \"{kind}\": only commands run here");
            problems.push(EntryProblem::new(&["type"], message));
        }
        let command = raw.command.as_deref().unwrap_or_default();
        if command.trim().is_empty() {
            problems.push(EntryProblem::new(&["command"], "command is required"));
        }
        let nul = |text: &str| text.contains('\0');
        if nul(command) || raw.args.iter().flatten().any(|word| nul(word)) {
            problems.push(EntryProblem::new(&["command"], "must not hold a NUL character"));
        }
        let shell = match (raw.shell.as_deref(), &raw.args) {
            (Some(_), Some(_)) => {
                problems.push(EntryProblem::new(&["shell"], "with `args` there is no shell: leave one of them out"));
                SHELL
            }
            (None, _) => SHELL,
            (Some("bash"), None) => "bash",
            (Some(other), None) => {
                problems
                    .push(EntryProblem::new(&["shell"], format!("unsupported shell \"{other}\": expected \"bash\"")));
                SHELL
            }
        };
        let timeout = raw.timeout.map(seconds);
        let timeout = timeout.unwrap_or_else(|| Ok(self.event.timeout())).unwrap_or_else(|why| {
            problems.push(EntryProblem::new(&["timeout"], why));
            Duration::ZERO
        });
        let condition = raw.condition.as_deref().and_then(|text| match PermissionRule::read(text) {
            Ok(rule) => Some(rule),
            Err(why) => {
                problems.push(EntryProblem::new(&["if"], why));
                None
            }
        });
        if condition.is_some() && !self.event.is_about_a_tool() {
            problems.push(EntryProblem::new(&["if"], format!("`{}` is about no tool", self.event.name())));
        }
        let on_failure = self.on_failure(raw.on_failure.as_deref()).unwrap_or_else(|problem| {
            problems.push(problem);
            OnFailure::Close
        });
        if !problems.is_empty() {
            return Err(problems);
        }
        let argv = match &raw.args {
            Some(args) => std::iter::once(command.to_owned()).chain(args.iter().cloned()).collect(),
            None => vec![shell.to_owned(), "-c".to_owned(), command.to_owned()],
        };
        let argv = self.placed(argv, raw.args.is_some()).map_err(|missing| vec![missing])?;
        Ok((argv, condition, Stage { timeout, on_failure, paired: false }))
    }

    /// `argv` with the files that it names where they stand.
    fn placed(&self, argv: Vec<String>, has_args: bool) -> Result<Vec<String>, EntryProblem> {
        let Some(files) = &self.files else { return Ok(argv) };
        files.place(&argv).map(|placed| placed.argv).map_err(|missing| match missing.word {
            word if has_args && word > 0 => EntryProblem::new(&["args", &(word - 1).to_string()], missing.to_string()),
            _ => EntryProblem::new(&["command"], missing.to_string()),
        })
    }

    /// What a fault becomes. Before something happens it is a refusal unless the entry says otherwise.
    fn on_failure(&self, word: Option<&str>) -> Result<OnFailure, EntryProblem> {
        let kind = self.event.checkpoint();
        match word {
            None => Ok(OnFailure::default_at(kind)),
            Some("continue") => Ok(OnFailure::Continue),
            // A result cannot be taken back, but nothing has to follow from it.
            Some("block") if kind == CheckpointKind::AfterTool => Ok(OnFailure::AbortTurn),
            Some("block") => Ok(OnFailure::default_at(kind)),
            Some(other) => {
                let message = format!("unsupported onFailure \"{other}\"");
                Err(EntryProblem::new(&["onFailure"], message).meant(other, ON_FAILURE))
            }
        }
    }

    /// The hooks of a list that is not in force: as many as can be seen in it, with their stage, so that records say why
    /// they did not run.
    pub fn idle(&self, list: &Value, state: &HookState) -> Vec<Hook> {
        let groups = list.as_array().map(Vec::as_slice).unwrap_or_default();
        let commands = groups.iter().map(|group| group.get("hooks").and_then(Value::as_array).map_or(0, Vec::len));
        let kind = self.event.checkpoint();
        (0..commands.sum::<usize>())
            .map(|at| {
                let mut hook = self.hook(at, state.clone());
                hook.stages.set(kind, Stage { timeout: self.event.timeout(), ..Stage::default_at(kind) });
                hook
            })
            .collect()
    }

    /// The stub of a list that cannot be read: where something can be stopped, all of it is.
    pub fn broken(&self, detail: &str) -> Hook {
        let kind = self.event.checkpoint();
        let state = HookState::Broken(Fault::CannotStart { cause: detail.to_owned().into() });
        let mut hook = self.hook(0, state);
        hook.stages.set(kind, Stage::default_at(kind));
        hook
    }
}
