//! What every command shares with the terminal: colour, logs, words to stdout and stderr.

mod log_line;

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use log_line::LogLine;

use super::chat::screen::front;
use super::command_line::complete;
use super::{Color, Global};
use crate::clean::{prose, styled};
use crate::error::{CliError, FAILED, USAGE};
use crate::table::{columns, out_columns, wrapped};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default();
const HINT: Style = AnsiColor::Cyan.on_default();

/// What a command writes to the log by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogUse {
    /// Everything of weight.
    Usual,
    /// Only errors of our own, and what became of the keys: the command tells of faults by itself.
    Quiet,
    /// Everything of weight for as long as it runs, so each line says when.
    Service,
}

/// Sets up colour and logs.
pub(super) fn prepare(global: &Global, used: LogUse) {
    set_color(global.color);
    let level = match global.verbose {
        0 if used == LogUse::Quiet => "error,pintle.keys=warn,hook=off,rmcp=off",
        0 => "error,pintle=warn,hook=error,rmcp=off",
        1 => "warn,hook=info,hook.stderr=info,mcp.stderr=info,rmcp=warn",
        // What `rmcp` tells beyond warnings is each message once more.
        _ => "debug,rmcp=warn",
    };
    let filter = EnvFilter::try_from_env("PINTLE_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let on_terminal = io::stderr().is_terminal();
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Log)
        .log_internal_errors(false)
        .with_ansi(global.color != Color::Never && on_terminal);
    // Whoever asked for logs wants to know where each line comes from.
    let is_asked_for = global.verbose > 0 || std::env::var_os("PINTLE_LOG").is_some();
    let line = LogLine { error: ERROR, warning: WARNING, note: HINT };
    // The journal of the system has the time of each line already.
    let is_timed = used == LogUse::Service && std::env::var_os("JOURNAL_STREAM").is_none();
    let logs = match (on_terminal && !is_asked_for, is_timed) {
        (true, _) => logs.without_time().event_format(line).try_init(),
        (false, true) => logs.with_timer(Utc).try_init(),
        (false, false) => logs.without_time().try_init(),
    };
    if logs.is_err() {
        // A test that runs several commands in one process has set it up already.
        tracing::debug!("logs were set up before");
    }
}

/// Colours what is written from now on, or not.
pub(super) fn set_color(color: Color) {
    match color {
        Color::Auto => anstream::ColorChoice::Auto.write_global(),
        Color::Always => anstream::ColorChoice::AlwaysAnsi.write_global(),
        Color::Never => anstream::ColorChoice::Never.write_global(),
    }
}

/// The moment of a line of the log, to the millisecond.
struct Utc;

impl FormatTime for Utc {
    fn format_time(&self, to: &mut Writer<'_>) -> fmt::Result {
        write!(to, "{:.3}", jiff::Timestamp::now())
    }
}

/// Standard error, for the log. What cannot be written is lost: a log that nobody reads must end nothing.
struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        match front() {
            Some(screen) => screen.notice(&text),
            None => drop(io::stderr().write_all(styled(&text).as_bytes())),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes `text` to stdout; where that is a terminal, with nothing in it but colours that it acts on. A reader that went
/// away ends the command quietly.
///
/// # Errors
/// Stdout cannot be written for another reason.
pub(super) fn say(text: &str) -> Result<(), CliError> {
    let mut out = anstream::stdout();
    let text = if io::stdout().is_terminal() { styled(text) } else { text.into() };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) => unwritable(&error),
    }
}

/// What it means that stdout cannot be written.
fn unwritable(error: &io::Error) -> Result<(), CliError> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Ok(());
    }
    Err(CliError::failed(format!("stdout cannot be written: {error}")))
}

/// Writes a line to stderr, wrapped to what fits.
pub(super) fn note(text: &str) {
    let text = wrapped(&complete(text), columns(io::stderr()));
    if let Some(screen) = front() {
        return screen.notice(&format!("{text}\n"));
    }
    // There is nowhere left to say that stderr is gone.
    drop(writeln!(anstream::stderr(), "{}", styled(&text)));
}

/// Writes a warning to stderr.
pub(super) fn warn(text: &str) {
    note(&format!("{WARNING}warning:{WARNING:#} {text}"));
}

/// Writes a text of ours to stdout, wrapped to what fits.
///
/// # Errors
/// Stdout cannot be written.
pub(super) fn tell(text: &str) -> Result<(), CliError> {
    say(&wrapped(&complete(text), out_columns()))
}

/// Says what went wrong.
pub(super) fn complain(error: &CliError) {
    if !error.message.is_empty() {
        note(&format!("{ERROR}error:{ERROR:#} {}", prose(&error.message)));
    }
    for hint in &error.hints {
        note(&format!("  {HINT}hint:{HINT:#} {}", prose(hint)));
    }
}

/// What clap says of flags that do not fit; help and version are no errors.
pub(super) fn usage(error: &clap::Error) -> ExitCode {
    let shown = error.print().and_then(|()| io::stdout().flush());
    if error.use_stderr() {
        return ExitCode::from(USAGE);
    }
    match shown.or_else(|why| unwritable(&why)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::from(error.code)
        }
    }
}

/// A runtime for the commands that need one.
///
/// # Errors
/// The system gives no threads.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(|error| CliError {
        code: FAILED,
        message: format!("cannot start: {error}"),
        hints: Vec::new(),
    })
}
