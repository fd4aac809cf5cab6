//! Surroundings in which the program finds nothing of the machine that tests run on.

use std::fmt;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use pintle_store::keyring::signing::SigningKey;
use pintle_store::{Durability, Store, StoreKeys, open_with};
use regex::{Captures, Regex};

/// Runs a program in a shell on a terminal of its own and answers its question there. Arguments: the answer, the program,
/// its arguments; `eval` and a line are for the shell itself.
///
/// Who leads the session of a terminal takes what nobody has read yet along when it ends. So the shell says behind the
/// program how that ended, and stays until it was read.
pub(crate) const ON_TERMINAL: &str = r#"
import os, pty, sys
SHELL = r"""trap : INT; "$@"; printf '\036%d\036' $?; while read -r _; do :; done"""
pid, terminal = pty.fork()
if pid == 0:
    os.execv('/bin/sh', ['sh', '-c', SHELL, 'sh', *sys.argv[2:]])
answer = sys.argv[1].encode()
shown = b''
while shown.count(b'\x1e') < 2:
    try:
        piece = os.read(terminal, 65536)
    except OSError:
        break
    shown += piece
    if answer and b'[y/N]' in shown:
        os.write(terminal, answer)
        answer = b''
shown, ended, _ = shown.split(b'\x1e')
sys.stdout.buffer.write(shown.replace(b'\r\n', b'\n'))
sys.exit(int(ended))
"#;

/// A process hook in plain sh that answers `result` to lines that fit `pattern`, a pattern of `case`, and has no
/// opinion on others.
pub(crate) fn answering(pattern: &str, result: &str) -> String {
    format!(
        r#"while IFS= read -r line; do
  id=${{line#*'"id":'}}; id=${{id%%,*}}
  case $line in
    {pattern}) r='{result}' ;;
    *) r='{{}}' ;;
  esac
  printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$r"
done
"#
    )
}

/// The lines about a call of a tool that is to run.
pub(crate) const BEFORE_TOOL: &str = r#"*'"method":"hook.before_tool"'*"#;

/// A home, a configuration folder and a working directory, all empty at first.
pub(crate) struct TestEnv {
    root: tempfile::TempDir,
}

/// What a run of the program left to see, with everything that differs from run to run taken out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        Self::below(tempfile::Builder::new().prefix("pintle-").tempdir().unwrap())
    }

    /// Surroundings at the path `folder`/`name`, for a home that says where it lies. One at a time: the caller sees to
    /// that.
    pub(crate) fn at(folder: &Path, name: &str) -> Self {
        Self::below(tempfile::Builder::new().prefix(name).rand_bytes(0).tempdir_in(folder).unwrap())
    }

    fn below(root: tempfile::TempDir) -> Self {
        let env = Self { root };
        for folder in ["home", "config", "data", "here"] {
            fs::create_dir(env.path(folder)).unwrap();
        }
        env
    }

    /// The store of the home, with its keys: what is changed there has the seal of this host.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        let home = self.path("data/pintle");
        let signing = Some(Arc::new(SigningKey::open_or_create(&home).unwrap()));
        let keys = StoreKeys { signing, ..StoreKeys::default() };
        open_with("sqlite://pintle.db", &home, Durability::Commit, keys).unwrap()
    }

    /// A path below the root of these surroundings, such as `here/guard.sh`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    /// Writes a file, with the folders above it.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    /// Writes the user's own configuration.
    pub(crate) fn user_config(&self, text: &str) -> PathBuf {
        self.write("config/pintle/pintle.toml", text)
    }

    /// Writes a configuration into the working directory, where it is merely found.
    pub(crate) fn found_config(&self, text: &str) -> PathBuf {
        self.write("here/pintle.toml", text)
    }

    /// A command with these surroundings and nothing else but `PATH`.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path("home"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_DATA_HOME", self.path("data"))
            .current_dir(self.path("here"));
        command
    }

    /// Runs the program in the working directory, without a terminal and without input.
    pub(crate) fn pintle(&self, args: &[&str]) -> Seen {
        self.run(self.command(PINTLE).args(args), "")
    }

    /// What the program writes to standard output, as it is.
    pub(crate) fn raw(&self, args: &[&str]) -> String {
        let output = self.command(PINTLE).args(args).stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `command` with `input` on its standard input.
    pub(crate) fn run(&self, command: &mut Command, input: &str) -> Seen {
        self.seen(&Self::output(command, input))
    }

    /// The same, as it is.
    pub(crate) fn output(command: &mut Command, input: &str) -> Output {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A program that reads nothing may be gone already.
        child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
        child.wait_with_output().unwrap()
    }

    /// Runs the program on a terminal of its own where `typed` is typed. All that it shows is its output.
    pub(crate) fn on_terminal(&self, typed: &str, args: &[&str]) -> Seen {
        self.run(self.command("python3").args(["-c", ON_TERMINAL, typed, PINTLE]).args(args), "")
    }

    /// A shell command line that does the same from inside, with nothing in the environment that says where it is.
    pub(crate) fn terminal_line(&self, args: &str) -> String {
        let script = self.write("terminal.py", ON_TERMINAL);
        let vars = ["HOME=home", "XDG_CONFIG_HOME=config", "XDG_DATA_HOME=data"].map(|var| {
            let (name, folder) = var.split_once('=').unwrap();
            format!("{name}={}", self.path(folder).display())
        });
        format!("env -i PATH=\"$PATH\" {} python3 {} 'y\n' {PINTLE} {args}", vars.join(" "), script.display())
    }

    fn seen(&self, output: &Output) -> Seen {
        let text = |bytes: &[u8]| self.redact(&String::from_utf8_lossy(bytes));
        Seen { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// `text` without paths, times and identifiers of this run.
    pub(crate) fn redact(&self, text: &str) -> String {
        let text = text.replace(&self.path("").display().to_string().trim_end_matches('/').to_string(), "[root]");
        let text = text.replace(env!("CARGO_BIN_EXE_pintle"), "[pintle]");
        // A column of times is aligned to the right, at least three spaces behind a word: how long something took must not
        // move it.
        let column = Regex::new(r"(\S) {3,}<?\d+(\.\d+)? (µs|ms|s)\b").unwrap();
        let text = column.replace_all(&text, |found: &Captures<'_>| {
            format!("{}{:>2$}", &found[1], "[time]", found[0].chars().count() - 1)
        });
        // So is one that a narrow terminal has moved to the next line.
        let moved = Regex::new(r"(?m)^ {3,}<?\d+(?:\.\d+)? (?:µs|ms|s)(  |$)").unwrap();
        let text = moved.replace_all(&text, |found: &Captures<'_>| {
            format!("{:>2$}{}", "[time]", &found[1], found[0].chars().count() - found[1].len())
        });
        let rules = [
            (r"(<|\b)\d+(\.\d+)? (µs|ms|s)\b", "[time]"),
            // A proof is some seconds old, or some minutes on a slow machine.
            (r"\bproven \d+ (s|min) ago\b", "proven [time] ago"),
            (r"\bpintle why [0-9a-f]{12}\b", "pintle why [id]"),
            (r"\bturn [0-9a-f]{12}\b", "turn [short]"),
            (r"UTC  [0-9a-f]{12}\b", "UTC  [short]"),
            (r#""duration_ms": [0-9.]+"#, r#""duration_ms": "[time]""#),
            (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "[id]"),
            (r"\b\d{4}-\d{2}-\d{2}(T[0-9:.]+Z| \d{2}:\d{2} UTC)", "[at]"),
            (r"sha256 [0-9a-f]+", "sha256 [digest]"),
            (r"sha256:[0-9a-f]+", "sha256:[digest]"),
            (r"\bprocess \d+", "process [pid]"),
            (r"program {4}\S+", "program    [program]"),
            // Only a busy machine is that slow.
            (r"(?m)^waiting for hooks to start: .*\n", ""),
        ];
        rules.iter().fold(text.into_owned(), |text, (pattern, with)| {
            Regex::new(pattern).unwrap().replace_all(&text, *with).into_owned()
        })
    }
}

/// The program.
pub(crate) const PINTLE: &str = env!("CARGO_BIN_EXE_pintle");

/// What a person sees: how it ended, then both streams.
impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => writeln!(f, "exit {code}")?,
            None => writeln!(f, "killed")?,
        }
        for (name, text) in [("out", &self.out), ("err", &self.err)] {
            if !text.is_empty() {
                writeln!(f, "--- {name}\n{text}")?;
            }
        }
        Ok(())
    }
}
