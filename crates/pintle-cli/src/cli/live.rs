//! An answer as it arrives, for a person at a terminal.

use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anstyle::Style;
use pintle_agent::UserOutput;
use pintle_agent::user_output::{REWRITTEN, TAKEN_OUT};

use super::chat::screen::Screen;
use crate::clean::prose;
use crate::text::counted;
use pintle_host::files::delivered;

const DIM: Style = Style::new().dimmed();

/// Standard error for notices, each on lines of their own.
pub(super) struct Notices(pub(super) Arc<Screen>);

impl Write for Notices {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.notice(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Shows an answer as it arrives.
pub(super) struct LiveOutput {
    screen: Arc<Screen>,
    /// The home folder, below which delivered files are put.
    home: PathBuf,
    /// Whether what the model thinks is shown, and not only how much it is.
    thinking: bool,
    /// While the turn is being undone, what it says of discarded messages: all of them are named at its end.
    held: Mutex<Option<Vec<String>>>,
}

impl LiveOutput {
    pub(super) fn new(screen: Arc<Screen>, home: &Path, thinking: bool) -> Self {
        Self { screen, home: home.to_owned(), thinking, held: Mutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, Option<Vec<String>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn is being undone from now on.
    pub(super) fn hold(&self) {
        self.held().get_or_insert_default();
    }

    /// What it said of discarded messages since then.
    pub(super) fn release(&self) -> Vec<String> {
        self.held().take().unwrap_or_default()
    }
}

impl UserOutput for LiveOutput {
    fn streams(&self) -> bool {
        true
    }

    fn delta(&self, text: &str) {
        self.screen.answer(text);
    }

    fn thought(&self, text: &str) {
        if self.thinking {
            self.screen.notice(&unfolded(text));
        } else if io::stderr().is_terminal() {
            self.screen.notice(&format!("{}\n", folded(text)));
        }
    }

    fn answered(&self) {
        self.screen.end_line();
    }

    fn rewritten(&self, text: &str) {
        self.screen.end_line();
        self.screen.notice(&format!("{DIM}{}{DIM:#}\n", if text.is_empty() { TAKEN_OUT } else { REWRITTEN }));
        if !text.is_empty() {
            self.screen.answer(text);
        }
    }

    fn for_user(&self, text: &str) {
        self.screen.say(text);
    }

    fn folder(&self) -> Option<PathBuf> {
        Some(delivered(&self.home))
    }

    fn file(&self, path: &Path) {
        self.screen.say(&path.display().to_string());
    }

    fn refused(&self, text: &str) {
        let text = prose(text);
        match &mut *self.held() {
            Some(held) => held.push(text),
            None => self.screen.notice(&format!("{text}\n")),
        }
    }
}

/// How much was thought, in a line.
pub(super) fn folded(thought: &str) -> String {
    format!("{DIM}thought for {}{DIM:#}", counted(thought.split_whitespace().count(), "word"))
}

/// What was thought, its lines apart from those of the answer.
pub(super) fn unfolded(thought: &str) -> String {
    prose(thought.trim()).lines().map(|line| format!("{DIM}{}{DIM:#}\n", format!("  {line}").trim_end())).collect()
}
