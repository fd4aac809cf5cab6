//! What a conversation is shown on: an answer that grows, notices between its lines, and below them the line that is
//! being typed, which makes way for both.
//!
//! While a line is typed below an answer that is in the middle of a line, the terminal keeps the place where the answer
//! goes on. What the line shows is never wider than the terminal, so that it takes exactly one row.

use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use anstyle::{AnsiColor, Style};

use super::line::{View, width};
use crate::clean::{foreign, styled};

const PROMPT: Style = AnsiColor::Green.on_default().bold();
const QUESTION: Style = AnsiColor::Yellow.on_default().bold();
const QUIET: Style = Style::new().dimmed();

/// The width of a terminal that does not tell its own.
const USUAL_COLUMNS: u16 = 80;

/// The widest that the line is drawn: wider terminals are none.
const MAX_COLUMNS: u16 = 1000;

/// How wide a tab of an answer is, as terminals have it.
const TAB: usize = 8;

/// Makes room for one row below, and notes where the answer goes on.
const LEAVE: &str = "\x1bD\x1b[A\x1b7\r\n";
/// Goes back there, and clears what stands behind.
const COME_BACK: &str = "\x1b8\x1b[J";
/// Clears the row.
const CLEAR: &str = "\r\x1b[J";
/// Has the terminal say where what is pasted begins and ends.
const MARK_PASTES: &str = "\x1b[?2004h";
const LEAVE_PASTES: &str = "\x1b[?2004l";

/// The one screen of this process, while there is a conversation on it.
static FRONT: RwLock<Option<Arc<Screen>>> = RwLock::new(None);

/// The screen that others who write to stderr must go through.
pub(in crate::cli) fn front() -> Option<Arc<Screen>> {
    FRONT.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// What the line begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prompt {
    /// A message is awaited.
    Message,
    /// A message for the turn that is under way.
    Steering,
    /// An answer to a question.
    Answer,
}

impl Prompt {
    fn mark(self) -> (Style, char) {
        match self {
            Self::Message => (PROMPT, '>'),
            Self::Steering => (QUIET, '»'),
            Self::Answer => (QUESTION, '?'),
        }
    }
}

/// How many columns a prompt takes.
const PROMPT_COLUMNS: usize = 2;

/// The two streams that a conversation is shown on, often the same terminal.
pub(in crate::cli) struct Screen {
    state: Mutex<State>,
    /// Whether stdout and stderr are both terminals, so that what one leaves open the other has to close.
    together: bool,
}

#[derive(Default)]
struct State {
    /// Whether an answer is in the middle of a line.
    open: bool,
    /// Where it is there.
    column: usize,
    /// Whether its last row is full and was ended here, so that a line end of its own would be one too many.
    ended: bool,
    line: Option<(Prompt, View)>,
    drawn: Option<Drawn>,
}

/// How the line was drawn.
#[derive(Clone, Copy)]
enum Drawn {
    /// On a row of its own, where the next output goes.
    Here,
    /// Below an answer that is in the middle of a line.
    Below,
}

/// The screen as the one of this process; given back when dropped.
pub(in crate::cli) struct Front;

impl Front {
    /// From now on everybody who writes goes through `screen`.
    pub(in crate::cli) fn take(screen: Arc<Screen>) -> Self {
        *FRONT.write().unwrap_or_else(PoisonError::into_inner) = Some(screen);
        Self
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        *FRONT.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Default for Screen {
    fn default() -> Self {
        let together = io::stdout().is_terminal() && io::stderr().is_terminal();
        Self { state: Mutex::default(), together }
    }
}

impl Screen {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A piece of an answer.
    pub(in crate::cli) fn answer(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut state = self.state();
        state.erase();
        self.write(&mut state, text);
        state.draw(self.together);
    }

    /// Ends the line that an answer is in.
    pub(in crate::cli) fn end_line(&self) {
        let mut state = self.state();
        if state.open {
            state.erase();
            self.write(&mut state, "\n");
            state.draw(self.together);
        }
    }

    /// Lines that go to stdout.
    pub(in crate::cli) fn say(&self, text: &str) {
        self.end_line();
        self.answer(&format!("{}\n", text.trim_end_matches('\n')));
    }

    /// Text of whole lines that goes to stderr.
    pub(in crate::cli) fn notice(&self, text: &str) {
        let mut state = self.state();
        state.erase();
        if self.together && state.open {
            self.write(&mut state, "\n");
        }
        print(&mut anstream::stderr(), &styled(text));
        state.draw(self.together);
    }

    /// Shows the line that is being typed, or none.
    pub(super) fn line(&self, line: Option<(Prompt, View)>) {
        let mut state = self.state();
        if state.line != line {
            state.erase();
            state.line = line;
            state.draw(self.together);
        }
    }

    /// Shows it again: something else wrote on the terminal.
    pub(super) fn redraw(&self) {
        let mut state = self.state();
        state.erase();
        state.draw(self.together);
    }

    /// A line that was typed becomes part of what was said.
    pub(super) fn keep(&self, prompt: Prompt, text: &str) {
        let (style, mark) = prompt.mark();
        self.notice(&format!("{style}{mark}{style:#} {}\n", crate::clean::prose(text)));
    }

    /// A prompt where the terminal edits the line by itself.
    pub(super) fn bare_prompt(&self) {
        let (style, mark) = Prompt::Message.mark();
        print(&mut anstream::stderr(), &format!("{style}{mark}{style:#} "));
    }

    /// Lets pastes be told from what is typed, or no longer.
    pub(super) fn mark_pastes(&self, on: bool) {
        let _one_at_a_time = self.state();
        print(&mut io::stderr(), if on { MARK_PASTES } else { LEAVE_PASTES });
    }

    /// How many columns a line may take behind its prompt.
    pub(super) fn columns(&self) -> usize {
        columns().saturating_sub(PROMPT_COLUMNS)
    }

    fn write(&self, state: &mut State, text: &str) {
        let text = foreign(text);
        let text = if std::mem::take(&mut state.ended) { text.strip_prefix('\n').unwrap_or(&text) } else { &text };
        if text.is_empty() {
            return;
        }
        print(&mut anstream::stdout(), text);
        state.open = !text.ends_with('\n');
        if self.together {
            state.go_on(text, columns());
        }
    }
}

impl State {
    /// Notes where `text` leaves the answer.
    fn go_on(&mut self, text: &str, columns: usize) {
        for c in text.chars() {
            self.column = match c {
                '\n' => 0,
                '\t' => (self.column / TAB + 1) * TAB,
                c if self.column + width(c) > columns => width(c),
                c => self.column + width(c),
            };
        }
    }

    /// Takes the line off the terminal.
    fn erase(&mut self) {
        match self.drawn.take() {
            Some(Drawn::Here) => print(&mut io::stderr(), CLEAR),
            Some(Drawn::Below) => print(&mut io::stderr(), COME_BACK),
            None => {}
        }
    }

    /// Puts the line onto the terminal.
    fn draw(&mut self, together: bool) {
        let Some((prompt, view)) = &self.line else { return };
        let full = self.column >= columns();
        let drawn = match together && self.open {
            // The terminal does not keep a place behind its last column, and the next row is where the answer goes on.
            true if full => {
                print(&mut io::stderr(), "\r\n");
                (self.open, self.column, self.ended) = (false, 0, true);
                Drawn::Here
            }
            true if self.column > 0 => {
                print(&mut io::stderr(), LEAVE);
                Drawn::Below
            }
            true | false => Drawn::Here,
        };
        let (style, mark) = prompt.mark();
        print(&mut anstream::stderr(), &format!("{style}{mark}{style:#} {}", view.text));
        print(&mut io::stderr(), &format!("\r\x1b[{}C", PROMPT_COLUMNS + view.column));
        self.drawn = Some(drawn);
    }
}

/// Writes it out. What cannot be written is lost: a terminal that is gone ends no turn, and it could not be said.
fn print(out: &mut impl Write, text: &str) {
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

fn columns() -> usize {
    let told = terminal_size::terminal_size().map_or(USUAL_COLUMNS, |(columns, _)| columns.0);
    let told = if told == 0 { USUAL_COLUMNS } else { told };
    usize::from(told.min(MAX_COLUMNS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_of_an_answer_is_where_the_terminal_has_it() {
        for (text, columns, expected) in [
            ("abc", 80, 3),
            ("abc\nde", 80, 2),
            ("a\tb", 80, 9),
            ("abcd", 4, 4),
            ("abcde", 4, 1),
            ("abc日", 4, 2),
            ("日本", 4, 4),
            ("e\u{301}", 80, 1),
        ] {
            let mut state = State::default();
            state.go_on(text, columns);
            assert_eq!(state.column, expected, "{text:?}");
        }
    }
}
