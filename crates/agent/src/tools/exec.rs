//! `exec`: a shell command in a session of its own, of which nothing is left when the call ends.

mod capture;
mod confined;
mod leader;
mod session;
mod shell;

use std::ffi::OsString;
use std::io::PipeWriter;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use domain::json::{Object, json};
use domain::llm::ToolDef;
use domain::shell::{ShellKind, ShellText};
use domain::tool::ToolOutput;
use process_wrap::tokio::{CommandWrap, ProcessSession};
use serde::Deserialize;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use self::capture::Capture;
pub use self::confined::exec_helper_main;
pub(super) use self::confined::helper_args;
use self::session::{Exit, Session};
pub use self::shell::ExecShell;
use super::BuiltinTool;
use super::protected::Protected;

/// A variable that every command finds in its environment, with the value `1`: commands of an operator that must not
/// come from inside the agent look for it.
pub const INSIDE_EXEC: &str = "PINTLE_INSIDE_EXEC";

/// How long a command may take unless asked otherwise, in seconds: longer than most builds and tests step by step.
const DEFAULT_TIMEOUT_S: u64 = 60;

/// The longest that can be asked for, in seconds: a turn should not stand still for longer without a word.
const MAX_TIMEOUT_S: u64 = 600;

/// How long a command has to end by itself once it was told to, before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// How long the rest of the output is waited for after the command ended; only a process that has left the session
/// and kept the pipe can make this pass.
const DRAIN: Duration = Duration::from_millis(500);

/// The program that confines itself and then runs the command: our own binary with its hidden command. It also ends
/// the command when the host is gone, however that came about.
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
                 stopped."
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
        let (mut session, output) = match self.start(asked.command) {
            Ok(started) => started,
            Err(e) => return ToolOutput::error(format!("the command could not be started: {e}")),
        };
        let mut capture = Capture::new();
        let over = {
            let running = async {
                // The output is read all the time, or a full pipe would stop the command.
                tokio::select! {
                    () = session.ended() => {}
                    () = async { capture.fill(&output).await; std::future::pending().await } => {}
                }
            };
            tokio::select! {
                () = running => Over::Ended,
                () = cancel.cancelled() => Over::Cancelled,
                () = tokio::time::sleep(asked.timeout) => Over::TimedOut,
            }
        };
        let exit = {
            let mut stopping = std::pin::pin!(session.stop(asked.grace));
            tokio::select! {
                exit = &mut stopping => exit,
                () = async { capture.fill(&output).await; std::future::pending().await } => Exit::Unknown,
            }
        };
        // An error is the clock's: somebody outside the session holds the pipe, and is not waited for.
        drop(tokio::time::timeout(DRAIN, capture.fill(&output)).await);
        report(capture, &over, &exit, asked.timeout)
    }

    fn start(&self, command: &str) -> std::io::Result<(Session, Receiver)> {
        let (reader, writer) = std::io::pipe()?;
        let output = Receiver::from_owned_fd(reader.into())?;
        let (program, args) = self.command_line(command);
        let (stdin, lifeline) = self.lifeline()?;
        let mut wrap = CommandWrap::from({
            let mut spawned = Command::new(program);
            spawned
                .args(args)
                .current_dir(&self.workspace)
                .env_clear()
                .envs(self.env.iter().map(|(name, value)| (name, value)))
                // A bare `cd -` or `cd NAME` must not lead to where whoever started the host has been.
                .env_remove("OLDPWD")
                .env_remove("CDPATH")
                .env(INSIDE_EXEC, "1")
                .stdin(stdin)
                .stdout(Stdio::from(writer.try_clone()?))
                .stderr(Stdio::from(writer))
                .kill_on_drop(true);
            spawned
        });
        wrap.wrap(ProcessSession);
        let child = wrap.spawn()?;
        Ok((Session::new(child, lifeline)?, output))
    }

    /// What is the standard input of the process that is started, and the end of it that stays here. A shell gets
    /// nothing to read; the helper waits there for the end of the host.
    fn lifeline(&self) -> std::io::Result<(Stdio, Option<PipeWriter>)> {
        if self.guard.is_none() {
            return Ok((Stdio::null(), None));
        }
        let (theirs, ours) = std::io::pipe()?;
        Ok((theirs.into(), Some(ours)))
    }

    fn command_line(&self, command: &str) -> (PathBuf, Vec<OsString>) {
        match &self.guard {
            None => (self.shell.program().to_owned(), vec!["-c".into(), command.into()]),
            Some(guard) => {
                let confined = helper_args(&self.protected, &self.shell, command);
                (guard.program.clone(), guard.args.iter().cloned().chain(confined).collect())
            }
        }
    }
}

fn report(capture: Capture, over: &Over, exit: &Exit, timeout: Duration) -> ToolOutput {
    let mut text = capture.into_text();
    let note = match (over, exit) {
        (Over::Cancelled, _) => Some("[cancelled; the command was stopped]".to_owned()),
        (Over::TimedOut, _) => Some(format!("[not done after {} s; the command was stopped]", timeout.as_secs_f64())),
        (Over::Ended, Exit::Code(0)) => None,
        (Over::Ended, Exit::Code(code)) => Some(format!("[exit code {code}]")),
        (Over::Ended, Exit::Signal(signal)) => Some(format!("[killed by signal {signal}]")),
        (Over::Ended, Exit::Unknown) => Some("[it is not known how the command ended]".to_owned()),
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
