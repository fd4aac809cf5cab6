//! `exec`: a shell command in a session of its own, of which nothing is left when the call ends.

mod capture;
mod confined;
mod shell;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use pintle_domain::json::{Object, json};
use pintle_domain::llm::ToolDef;
use pintle_domain::shell::{ShellKind, ShellText};
use pintle_domain::tool::{CallPlace, ToolOutput};
use pintle_process::INSIDE_EXEC;
use pintle_process::child::{Child, Launch};
use serde::Deserialize;
use tokio::net::unix::pipe::Receiver;
use tokio_util::sync::CancellationToken;

use self::capture::Capture;
use self::confined::UNCONFINED_HINT;
pub use self::confined::exec_helper_main;
pub(super) use self::confined::helper_args;
pub use self::shell::ExecShell;
use super::BuiltinTool;
use super::protected::Protected;

/// How long a command may take unless asked otherwise, in seconds: longer than most builds and tests step by step.
const DEFAULT_TIMEOUT_S: u64 = 60;

/// The longest that can be asked for, in seconds: a turn should not stand still for longer without a word.
const MAX_TIMEOUT_S: u64 = 600;

/// How long a command has to end by itself once it was told to, before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// How long the rest of the output is waited for after the command ended; only a process that the kernel does not let
/// go and that kept the pipe can make this pass.
const DRAIN: Duration = Duration::from_millis(500);

/// How many protected paths are named to a model.
const SHOWN_PATHS: usize = 12;

/// The program that confines itself and then becomes the command: our own binary with its hidden command.
#[derive(Clone, Debug)]
pub struct ExecGuard {
    /// What is run.
    pub program: PathBuf,
    /// What comes before the arguments that [`exec_helper_main`] reads.
    pub args: Vec<OsString>,
}

#[derive(Clone)]
pub(super) struct Exec {
    pub(super) workspace: PathBuf,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) guard: Option<ExecGuard>,
    pub(super) protected: Protected,
    pub(super) shell: ExecShell,
    /// Whether commands run where nothing confines them.
    pub(super) unconfined: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Args {
    pub(super) command: String,
    pub(super) timeout_s: Option<u64>,
}

impl BuiltinTool for Exec {
    type Args = Args;
    const READ_ONLY: bool = false;

    fn definition(&self) -> ToolDef {
        let shell = self.shell.name();
        ToolDef::new(
            "exec",
            &format!(
                "Runs a command with `{shell} -c` in the workspace and returns what it printed, standard output and \
                 error in one. There is no terminal and no input. When the call ends, all that the command started is \
                 stopped.{}",
                self.limits().map(|limits| format!(" {limits}")).unwrap_or_default(),
            ),
            json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "minLength": 1, "description": format!("The command, as given to `{shell} -c`.")},
                    "timeout_s": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MAX_TIMEOUT_S,
                        "description": "Seconds until it is stopped; 60 by default.",
                    },
                },
                "required": ["command"],
                "additionalProperties": false,
            }),
        )
    }

    fn shell_text<'a>(&'a self, arguments: &'a Object) -> Option<ShellText<'a>> {
        shell_text(arguments, &self.workspace, self.shell.kind())
    }

    fn place(&self) -> CallPlace {
        let shell = Some(self.shell.program().display().to_string());
        CallPlace { shell, ..CallPlace::in_folder(self.workspace.display()) }
    }

    async fn run(&self, args: Args, cancel: &CancellationToken) -> ToolOutput {
        let timeout = Duration::from_secs(args.timeout_s.unwrap_or(DEFAULT_TIMEOUT_S).min(MAX_TIMEOUT_S));
        let asked = RunningExec { command: &args.command, timeout, grace: GRACE };
        self.exec(&asked, cancel).await
    }
}

/// Its name.
pub(super) const NAME: &str = "exec";

/// The text that a shell would run for a call with `arguments`.
pub(super) fn shell_text<'a>(arguments: &'a Object, workspace: &'a Path, shell: ShellKind) -> Option<ShellText<'a>> {
    let text = arguments.get("command")?.as_str()?;
    Some(ShellText { text, cwd: workspace, workspace, shell })
}

/// One command and its clocks.
pub(super) struct RunningExec<'a> {
    pub(super) command: &'a str,
    pub(super) timeout: Duration,
    pub(super) grace: Duration,
}

/// Why a command is over.
enum Over {
    Ended,
    TimedOut,
    Cancelled,
}

impl Exec {
    pub(super) async fn exec(&self, asked: &RunningExec<'_>, cancel: &CancellationToken) -> ToolOutput {
        if asked.command.contains('\0') {
            return ToolOutput::error("the command holds a zero byte, which no shell can be given");
        }
        let (mut child, output) = match self.start(asked.command).await {
            Ok(started) => started,
            Err(why) => return ToolOutput::error(why),
        };
        let mut capture = Capture::new();
        let over = {
            let running = async {
                // The output is read all the time, or a full pipe would stop the command.
                tokio::select! {
                    () = child.ended() => {}
                    () = async { capture.fill(&output).await; std::future::pending().await } => {}
                }
            };
            tokio::select! {
                () = running => Over::Ended,
                () = cancel.cancelled() => Over::Cancelled,
                () = tokio::time::sleep(asked.timeout) => Over::TimedOut,
            }
        };
        let status = {
            let mut ending = std::pin::pin!(child.end_all_within(asked.grace));
            tokio::select! {
                status = &mut ending => status,
                () = async { capture.fill(&output).await; std::future::pending().await } => None,
            }
        };
        // An error is the clock's: somebody whom nobody can end holds the pipe, and is not waited for.
        drop(tokio::time::timeout(DRAIN, capture.fill(&output)).await);
        let output = report(capture, &over, status, asked.timeout);
        let is_refusal =
            ["Permission denied", "Read-only file system", "Operation not permitted", "Device or resource busy"]
                .iter()
                .any(|words| output.for_llm.contains(words));
        match self.limits().filter(|_| output.is_error && is_refusal) {
            Some(limits) => ToolOutput { for_llm: format!("{}\n[{limits}]", output.for_llm), ..output },
            None => output,
        }
    }

    /// What commands cannot change in the workspace, in words for a model; nothing where they can change all.
    fn limits(&self) -> Option<String> {
        self.guard.as_ref()?;
        let protected = self.protected.resolved();
        let inside = |path: &&PathBuf| path.starts_with(&self.workspace) && path.exists();
        let shown = |path: &PathBuf| path.strip_prefix(&self.workspace).unwrap_or(path).display().to_string();
        // The workspace itself stays open, whatever stands in it.
        let beside = protected.beside.keys().filter(|folder| **folder != self.workspace);
        let all = beside.chain(&protected.files).chain(&protected.dirs);
        let paths: BTreeSet<String> = all.filter(inside).map(shown).take(SHOWN_PATHS).collect();
        let paths: Vec<String> = paths.into_iter().collect();
        (!paths.is_empty()).then(|| {
            format!(
                "These belong to the program that runs you, and commands cannot change them: {}. On a system that \
                 cannot keep single files unwritable, they also create, rename and remove nothing directly in the \
                 folders of these; work in folders below then.",
                paths.join(", ")
            )
        })
    }

    async fn start(&self, command: &str) -> Result<(Child, Receiver), String> {
        let mut vars = self.env.clone();
        // A bare `cd -` or `cd NAME` must not lead to where whoever started the host has been.
        vars.retain(|(name, _)| name != "OLDPWD" && name != "CDPATH");
        // The last one of a name counts, so nothing above takes it away.
        vars.push((INSIDE_EXEC.into(), "1".into()));
        let launch = Launch { argv: self.command_line(command)?, dir: Some(self.workspace.clone()), vars };
        let started = Child::start_apart(&launch).await;
        started.map_err(|why| format!("the command could not be started: {why}"))
    }

    fn command_line(&self, command: &str) -> Result<Vec<OsString>, String> {
        match &self.guard {
            Some(guard) => {
                let confined = helper_args(&self.protected, &self.shell, self.unconfined, command);
                Ok(std::iter::once(guard.program.clone().into())
                    .chain(guard.args.iter().cloned())
                    .chain(confined)
                    .collect())
            }
            None if self.unconfined => Ok(vec![self.shell.program().into(), "-c".into(), command.into()]),
            None => Err(format!(
                "the command was not run, because the program that would confine it is not known; {UNCONFINED_HINT}"
            )),
        }
    }
}

fn report(capture: Capture, over: &Over, status: Option<ExitStatus>, timeout: Duration) -> ToolOutput {
    let mut text = capture.into_text();
    let note = match (over, status.map(|status| (status.code(), status.signal()))) {
        (Over::Cancelled, _) => Some("[cancelled; the command was stopped]".to_owned()),
        (Over::TimedOut, _) => Some(format!("[not done after {} s; the command was stopped]", timeout.as_secs_f64())),
        (Over::Ended, Some((Some(0), _))) => None,
        (Over::Ended, Some((Some(code), _))) => Some(format!("[exit code {code}]")),
        (Over::Ended, Some((None, Some(signal)))) => Some(format!("[killed by signal {signal}]")),
        (Over::Ended, Some((None, None)) | None) => Some("[it is not known how the command ended]".to_owned()),
    };
    let is_error = note.is_some();
    if let Some(note) = note.or_else(|| text.is_empty().then(|| "[no output]".to_owned())) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&note);
    }
    ToolOutput { is_error, ..ToolOutput::ok(text) }
}
