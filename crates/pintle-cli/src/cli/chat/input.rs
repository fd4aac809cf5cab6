//! What a person types, or what stands in a pipe, as lines and orders.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::termios::{self, LocalFlags, SetArg, SpecialCharacterIndices, Termios};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::keys::{Decoder, Key};
use super::line::{History, Line, MAX_LINE_BYTES};
use super::screen::{Prompt, Screen};
use crate::error::CliError;

/// How many lines of a pipe, or pieces of what is typed, are read ahead.
const MAX_READ_AHEAD: usize = 64;

/// Largest piece that is read at once: what a terminal holds.
const PIECE_BYTES: usize = 4096;

/// How long the rest of a key is waited for after an escape: a terminal sends a key at once, also over a slow line; a
/// person who presses Escape does not wait longer.
const KEY_TIME: Duration = Duration::from_millis(50);

/// How long a paste may pause: one that has no end would make every later key a part of it.
const PASTE_TIME: Duration = Duration::from_secs(1);

/// What was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TypedInput {
    Line(SentLine),
    /// Escape or Ctrl-C: what is under way is to stop.
    Stop,
    /// One of these keys where nothing is under way and nothing is typed.
    Again(StopKey),
    /// Something is wrong with what was typed; in words.
    Unusable(String),
    /// Ctrl-\: the program is to end.
    Quit,
    /// No more comes, or no more is to come.
    End,
    /// The terminal is gone.
    Gone,
}

/// A key that stops what is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopKey {
    /// Escape.
    Escape,
    /// Ctrl-C.
    Interrupt,
}

/// A line that was sent off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SentLine {
    pub(super) text: String,
    /// Which piece of input it came with, counted from 1: lines of one paste have one number.
    pub(super) piece: u64,
    /// Whether its end was pasted, not typed.
    pub(super) pasted: bool,
}

/// What is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputPurpose {
    /// A message.
    Message,
    /// Nothing: a turn is running, and whoever types steers it.
    Steering,
    /// The answer to a question.
    Answer,
}

/// Where lines come from.
pub(super) enum Input {
    /// A pipe, or a terminal that edits its lines by itself.
    Lines(mpsc::Receiver<TypedInput>),
    /// A terminal, key by key.
    Keys(Box<Keys>),
}

impl Input {
    /// Standard input, key by key if it is a terminal that can be drawn on.
    ///
    /// # Errors
    /// The terminal cannot be set up.
    pub(super) fn open(screen: &Arc<Screen>) -> Result<Self, CliError> {
        if Self::sees_keys() {
            return Keys::open(screen.clone()).map(|keys| Self::Keys(Box::new(keys)));
        }
        Ok(Self::Lines(read_lines()))
    }

    /// Whether standard input is a terminal that can be drawn on.
    pub(super) fn sees_keys() -> bool {
        let dumb = |term: std::ffi::OsString| term.is_empty() || term == "dumb";
        let draws = std::env::var_os("TERM").is_some_and(|term| !dumb(term));
        io::stdin().is_terminal() && io::stderr().is_terminal() && draws
    }

    /// Whether single keys are seen, so that a turn can be steered and questions be answered.
    pub(super) fn is_keys(&self) -> bool {
        matches!(self, Self::Keys(_))
    }

    /// What is awaited from now on.
    pub(super) fn await_now(&mut self, what: InputPurpose) {
        if let Self::Keys(keys) = self {
            keys.await_now(what);
        }
    }

    /// The number of the piece of input that everything belongs to that has come in so far.
    pub(super) fn so_far(&mut self) -> u64 {
        match self {
            Self::Keys(keys) => keys.so_far(),
            Self::Lines(_) => 0,
        }
    }

    /// Waits for what is typed next. Nothing is lost when it is dropped.
    pub(super) async fn next(&mut self) -> TypedInput {
        match self {
            Self::Lines(lines) => lines.recv().await.unwrap_or(TypedInput::End),
            Self::Keys(keys) => keys.next().await,
        }
    }
}

/// A terminal, key by key.
pub(super) struct Keys {
    pieces: mpsc::Receiver<Vec<u8>>,
    decoder: Decoder,
    /// Keys that are not worked yet, with the number of their piece.
    ready: VecDeque<(Key, u64)>,
    piece: u64,
    pasting: bool,
    line: Line,
    /// What was being typed when a question came in between.
    draft: Line,
    history: History,
    awaited: InputPurpose,
    full: bool,
    continued: Signal,
    screen: Arc<Screen>,
    raw: Raw,
}

impl Keys {
    fn open(screen: Arc<Screen>) -> Result<Self, CliError> {
        let failed = |why: io::Error| CliError::failed(format!("the terminal cannot be used: {why}"));
        let continued = signal(SignalKind::from_raw(nix::libc::SIGCONT)).map_err(failed)?;
        let raw = Raw::enter(screen.clone()).map_err(failed)?;
        Ok(Self {
            pieces: read_pieces(),
            decoder: Decoder::default(),
            ready: VecDeque::new(),
            piece: 0,
            pasting: false,
            line: Line::default(),
            draft: Line::default(),
            history: History::default(),
            awaited: InputPurpose::Message,
            full: false,
            continued,
            screen,
            raw,
        })
    }

    fn await_now(&mut self, what: InputPurpose) {
        if self.awaited == what {
            return self.show();
        }
        if what == InputPurpose::Answer {
            // Half a message is not an answer.
            self.draft = std::mem::take(&mut self.line);
        } else if self.awaited == InputPurpose::Answer {
            self.line = std::mem::take(&mut self.draft);
        }
        self.awaited = what;
        self.show();
    }

    fn so_far(&mut self) -> u64 {
        while let Ok(piece) = self.pieces.try_recv() {
            self.take_in(&piece);
        }
        self.piece
    }

    async fn next(&mut self) -> TypedInput {
        loop {
            while let Some((key, piece)) = self.ready.pop_front() {
                if let Some(typed) = self.press(key, piece) {
                    return typed;
                }
            }
            self.show();
            if self.full {
                self.full = false;
                let kib = MAX_LINE_BYTES >> 10;
                return TypedInput::Unusable(format!("a line has at most {kib} KiB; the rest of this one is left out"));
            }
            let time = if self.decoder.is_pasting() { PASTE_TIME } else { KEY_TIME };
            tokio::select! {
                piece = self.pieces.recv() => match piece {
                    Some(piece) => self.take_in(&piece),
                    None => return TypedInput::Gone,
                },
                () = tokio::time::sleep(time), if self.decoder.is_waiting() => self.settle(),
                Some(()) = self.continued.recv() => {
                    // Whoever stopped this program has set up the terminal for itself meanwhile.
                    self.raw.again();
                    self.screen.redraw();
                }
            }
        }
    }

    fn take_in(&mut self, bytes: &[u8]) {
        let first = self.piece == 0;
        if !self.decoder.is_pasting() {
            self.piece += 1;
        }
        let mut keys = Vec::new();
        if first {
            // Typed before the terminal was set up; it has put this where Ctrl-D was pressed.
            let bytes: Vec<u8> = bytes.iter().map(|byte| if *byte == 0 { END } else { *byte }).collect();
            self.decoder.feed(&bytes, &mut keys);
        } else {
            self.decoder.feed(bytes, &mut keys);
        }
        self.queue(keys);
    }

    fn settle(&mut self) {
        let mut keys = Vec::new();
        self.decoder.settle(&mut keys);
        self.queue(keys);
    }

    fn queue(&mut self, keys: Vec<Key>) {
        let piece = self.piece;
        self.ready.extend(keys.into_iter().map(|key| (key, piece)));
    }

    /// Does what a key says to the line, or answers what it asks for.
    fn press(&mut self, key: Key, piece: u64) -> Option<TypedInput> {
        match key {
            Key::Enter => return self.send(piece),
            Key::Interrupt | Key::Escape if self.awaited != InputPurpose::Message => return Some(TypedInput::Stop),
            Key::Interrupt if self.line.is_empty() => return Some(TypedInput::Again(StopKey::Interrupt)),
            Key::Escape if self.line.is_empty() => return Some(TypedInput::Again(StopKey::Escape)),
            Key::Interrupt | Key::Escape => drop(self.line.take()),
            Key::End if self.line.is_empty() => return Some(TypedInput::End),
            Key::End => drop(self.line.edit(Key::Delete)),
            Key::Quit => return Some(TypedInput::Quit),
            Key::Redraw => self.screen.redraw(),
            Key::Up if self.awaited != InputPurpose::Answer => self.history.back(&mut self.line),
            Key::Down if self.awaited != InputPurpose::Answer => self.history.forward(&mut self.line),
            Key::PasteBegins => self.pasting = true,
            Key::PasteEnds => self.pasting = false,
            Key::Char(_) | Key::Backspace | Key::Delete | Key::Left | Key::Right | Key::First | Key::Last => {
                self.full |= !self.line.edit(key);
            }
            Key::EraseWord | Key::EraseBefore | Key::EraseAfter => drop(self.line.edit(key)),
            Key::Up | Key::Down => {}
        }
        None
    }

    fn send(&mut self, piece: u64) -> Option<TypedInput> {
        let text = self.line.take();
        self.screen.line(None);
        if text.trim().is_empty() {
            return None;
        }
        if self.awaited != InputPurpose::Answer {
            self.history.keep(&text);
        }
        Some(TypedInput::Line(SentLine { text, piece, pasted: self.pasting }))
    }

    /// Draws the line as it is now.
    fn show(&self) {
        let prompt = match self.awaited {
            InputPurpose::Message => Some(Prompt::Message),
            InputPurpose::Answer => Some(Prompt::Answer),
            // An answer that comes in has the terminal to itself until something is typed.
            InputPurpose::Steering => (!self.line.is_empty()).then_some(Prompt::Steering),
        };
        self.screen.line(prompt.map(|prompt| (prompt, self.line.view(self.screen.columns()))));
    }
}

/// The byte of Ctrl-D.
const END: u8 = 4;

/// A terminal that gives single keys and shows none by itself. Given back as it was when dropped.
struct Raw {
    before: Termios,
    screen: Arc<Screen>,
}

impl Raw {
    fn enter(screen: Arc<Screen>) -> io::Result<Self> {
        let before = termios::tcgetattr(io::stdin())?;
        let raw = Self { before, screen };
        raw.set()?;
        raw.screen.mark_pastes(true);
        Ok(raw)
    }

    fn set(&self) -> io::Result<()> {
        let mut now = self.before.clone();
        let shown = LocalFlags::ECHO | LocalFlags::ECHONL;
        now.local_flags &= !(LocalFlags::ICANON | LocalFlags::ISIG | LocalFlags::IEXTEN | shown);
        now.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        now.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        // What was typed ahead stays.
        Ok(termios::tcsetattr(io::stdin(), SetArg::TCSANOW, &now)?)
    }

    fn again(&self) {
        // A terminal that is gone is noticed where it is read.
        drop(self.set());
        self.screen.mark_pastes(true);
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.screen.line(None);
        self.screen.mark_pastes(false);
        // A terminal that is gone has nothing to be given back.
        termios::tcsetattr(io::stdin(), SetArg::TCSANOW, &self.before).ok();
    }
}

/// Reads keys on a thread of its own, which may wait for ever. The channel closes when the terminal is gone.
fn read_pieces() -> mpsc::Receiver<Vec<u8>> {
    let (sender, pieces) = mpsc::channel(MAX_READ_AHEAD);
    std::thread::spawn(move || {
        let stdin = io::stdin();
        while let Some(piece) = read_piece(stdin.as_fd()) {
            if sender.blocking_send(piece).is_err() {
                return;
            }
        }
    });
    pieces
}

/// The next bytes, past every buffer; none at the end.
fn read_piece(from: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match nix::unistd::read(from, &mut piece) {
            Err(nix::errno::Errno::EINTR) => {}
            Ok(0) | Err(_) => return None,
            Ok(read) => {
                piece.truncate(read);
                return Some(piece);
            }
        }
    }
}

/// Reads lines on a thread of its own, which may wait for ever. The channel closes at the end of input.
fn read_lines() -> mpsc::Receiver<TypedInput> {
    let (sender, lines) = mpsc::channel(MAX_READ_AHEAD);
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        for piece in 1.. {
            let Some(typed) = read_line(&mut stdin, piece) else { return };
            if sender.blocking_send(typed).is_err() {
                return;
            }
        }
    });
    lines
}

fn read_line(stdin: &mut io::StdinLock<'_>, piece: u64) -> Option<TypedInput> {
    let mut bytes = Vec::new();
    match stdin.take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut bytes) {
        Ok(0) => return None,
        Ok(_) => {}
        Err(why) => {
            tracing::warn!("stdin ends here: {why}");
            return None;
        }
    }
    if bytes.len() > MAX_LINE_BYTES && !bytes.ends_with(b"\n") {
        skip_line(stdin);
        let kib = MAX_LINE_BYTES >> 10;
        return Some(TypedInput::Unusable(format!("line {piece} is longer than {kib} KiB and is left out")));
    }
    match String::from_utf8(bytes) {
        Ok(line) => {
            let text = line.trim_end_matches(['\n', '\r']).to_owned();
            Some(TypedInput::Line(SentLine { text, piece, pasted: false }))
        }
        Err(_) => Some(TypedInput::Unusable(format!("line {piece} is not valid UTF-8 and is left out"))),
    }
}

fn skip_line(stdin: &mut io::StdinLock<'_>) {
    while let Ok(buffer) = stdin.fill_buf() {
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let (passed, over) = (end.map_or(buffer.len(), |end| end + 1), end.is_some() || buffer.is_empty());
        stdin.consume(passed);
        if over {
            return;
        }
    }
}
