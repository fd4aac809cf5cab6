//! The children: this program, started again with a variable set. And the least that talks to one: pipes that block.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};

/// The variable that makes this program a child; its value says how it answers.
pub(crate) const VARIABLE: &str = "PINTLE_BENCH_CHILD";
/// The variable with the file that a child writes its process id to.
pub(crate) const PID_FILE: &str = "PINTLE_BENCH_PID_FILE";
/// The mark of calls that a guard refuses.
pub(crate) const UNWANTED: &str = "unwanted-by-the-guard";

/// What every call begins with; what has no number is a notification.
const CALL_HEAD: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";
/// What is in the line of a handshake.
const HELLO: &str = "\"hook.hello\"";

/// How a child answers.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Answers {
    /// `continue`, whatever it is asked.
    Continue,
    /// Refuses what is [`UNWANTED`].
    Guard,
    /// Refuses, with the number of notifications that it has heard as its reason.
    Count,
    /// The same, but hangs for a while at the first of them.
    Hang,
}

/// How long a child hangs: longer than what is told may wait at the head of a queue.
const HANGING: Duration = Duration::from_secs(1);

impl Answers {
    /// The value of [`VARIABLE`].
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Guard => "guard",
            Self::Count => "count",
            Self::Hang => "hang",
        }
    }

    /// What this program is to do, if it was started as a child.
    pub(crate) fn wanted() -> Option<Self> {
        let word = std::env::var(VARIABLE).ok()?;
        [Self::Continue, Self::Guard, Self::Count, Self::Hang].into_iter().find(|answers| answers.word() == word)
    }

    /// Answers every call on standard input until it ends.
    pub(crate) fn serve(self) -> anyhow::Result<()> {
        if let Some(file) = std::env::var_os(PID_FILE) {
            std::fs::write(file, std::process::id().to_string())?;
        }
        let mut lines = BufReader::with_capacity(64 << 10, io::stdin().lock());
        let mut out = io::stdout().lock();
        let (mut line, mut heard) = (Vec::new(), 0_u64);
        while lines.read_until(b'\n', &mut line)? > 0 {
            match line.strip_prefix(CALL_HEAD) {
                None => {
                    if self == Self::Hang && heard == 0 {
                        std::thread::sleep(HANGING);
                    }
                    heard += 1;
                }
                Some(rest) => {
                    let text = str::from_utf8(rest).context("a call is text")?;
                    let (id, rest) = text.split_once(',').context("a call has a number and more")?;
                    let result = self.result(rest, heard);
                    out.write_all(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n").as_bytes())?;
                    out.flush()?;
                }
            }
            line.clear();
        }
        Ok(())
    }

    fn result(self, asked: &str, heard: u64) -> String {
        let refusal = |why: &str| format!("{{\"action\":\"deny_tool\",\"reason\":\"{why}\"}}");
        match self {
            Self::Guard if asked.contains(UNWANTED) => refusal("unwanted"),
            Self::Count | Self::Hang if !asked.contains(HELLO) => refusal(&heard.to_string()),
            Self::Continue | Self::Guard | Self::Count | Self::Hang => "{\"action\":\"continue\"}".to_owned(),
        }
    }
}

/// A child behind pipes that block.
pub(crate) struct Pipes {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    read: String,
}

impl Pipes {
    /// This program as a child.
    pub(crate) fn start(answers: Answers) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.env(VARIABLE, answers.word());
        Self::spawn(command)
    }

    /// Whatever `command` starts.
    pub(crate) fn spawn(mut command: Command) -> anyhow::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take().context("its input is piped")?;
        let stdout = BufReader::new(child.stdout.take().context("its output is piped")?);
        Ok(Self { child, stdin, stdout, read: String::new() })
    }

    /// Writes one line or several.
    pub(crate) fn write(&mut self, lines: &[u8]) -> anyhow::Result<()> {
        Ok(self.stdin.write_all(lines)?)
    }

    /// Waits for a line.
    pub(crate) fn read(&mut self) -> anyhow::Result<&str> {
        self.read.clear();
        ensure!(self.stdout.read_line(&mut self.read)? > 0, "the child of the floor left");
        Ok(&self.read)
    }

    /// Lets the child go, and waits for it.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        let Self { mut child, stdin, .. } = self;
        drop(stdin);
        child.wait().map(drop).context("a child of a floor does not end")
    }
}
