//! The child that answers: this program, started again with a variable set.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;

/// The variable that makes this program a child; its value says how it answers.
pub(crate) const VARIABLE: &str = "PINTLE_BENCH_CHILD";

/// How a child answers.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Answers {
    /// `continue`, whatever it is asked.
    Continue,
    /// `modify`, with the whole request as it came.
    Echo,
}

impl Answers {
    /// The value of [`VARIABLE`].
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Echo => "echo",
        }
    }

    /// What this program is to do, if it was started as a child.
    pub(crate) fn wanted() -> Option<Self> {
        let word = std::env::var(VARIABLE).ok()?;
        [Self::Continue, Self::Echo].into_iter().find(|answers| answers.word() == word)
    }

    /// Answers every line on standard input until it ends.
    pub(crate) fn serve(self) -> anyhow::Result<()> {
        let mut lines = BufReader::with_capacity(1 << 20, io::stdin().lock());
        let mut out = io::stdout().lock();
        let (mut line, mut reply) = (Vec::new(), Vec::new());
        while lines.read_until(b'\n', &mut line)? > 0 {
            reply.clear();
            self.answer(&line, &mut reply).context("a line that is not a call")?;
            out.write_all(&reply)?;
            out.flush()?;
            line.clear();
        }
        Ok(())
    }

    /// The reply to a call. Id and params are found by where they stand, so that reading costs next to nothing.
    fn answer(self, line: &[u8], reply: &mut Vec<u8>) -> Option<()> {
        let head = &line[..line.len().min(200)];
        let text = str::from_utf8(head).or_else(|cut| str::from_utf8(&head[..cut.valid_up_to()])).ok()?;
        let (_, rest) = text.split_once("\"id\":")?;
        let (id, _) = rest.split_once(',')?;
        reply.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        reply.extend_from_slice(id.as_bytes());
        match self {
            Self::Continue => reply.extend_from_slice(b",\"result\":{\"action\":\"continue\"}}\n"),
            Self::Echo => {
                let marker = "\"params\":";
                let params = line.get(text.find(marker)? + marker.len()..line.len() - 2)?;
                reply.extend_from_slice(b",\"result\":{\"action\":\"modify\",\"request\":");
                reply.extend_from_slice(params);
                reply.extend_from_slice(b"}}\n");
            }
        }
        Some(())
    }

    /// The command that starts such a child.
    pub(crate) fn command(self) -> anyhow::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.env(VARIABLE, self.word()).stdin(Stdio::piped()).stdout(Stdio::piped());
        Ok(command)
    }
}

/// Lets a child that was started without a hook go, and waits for it.
pub(crate) fn farewell(mut child: Child) -> anyhow::Result<()> {
    drop(child.stdin.take());
    child.wait().map(drop).context("a child of a floor does not end")
}
