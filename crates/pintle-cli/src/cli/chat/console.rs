//! Where the person sits: what they type, what they are asked, and which signals the program gets.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;

use pintle_domain::approval::PersonAnswer;
use pintle_store::Store;

use super::ask::{self, CHOICES, LineAnswer, Question, Questions};
use super::input::{Input, InputPurpose, SentLine, StopKey, TypedInput};
use super::screen::{Prompt, Screen};
use crate::clean::clean;
use crate::cli::approvals::{MAX_NOTE_BYTES, person, shown_whole};
use crate::cli::stops::{Stop, Stops};

/// How many lines wait for turns of their own: a pasted page. More of them are no conversation.
const MAX_AHEAD: usize = 64;

/// What happened while nothing else did.
pub(super) enum ConsoleEvent {
    Stop(Stop),
    Typed(TypedInput),
    Asked(Box<Question>),
    /// The question that is shown is no longer asked here.
    Withdrawn,
}

/// What the person wants.
#[derive(Debug)]
pub(super) enum PersonOrder {
    /// Something is said.
    Say(SentLine),
    /// What is under way is to stop.
    Stop,
    /// The same with nothing under way.
    Again(StopKey),
    /// The whole program is to end.
    EndProgram,
    /// The conversation is to end.
    End,
}

/// The place of the person.
pub(super) struct ChatConsole {
    pub(super) screen: Arc<Screen>,
    input: Input,
    stops: Stops,
    store: Arc<dyn Store>,
    questions: Questions,
    /// Questions without an answer; the first one is shown.
    asked: VecDeque<Question>,
    /// What came in up to this piece was typed before the question was seen.
    seen_since: u64,
    /// What is awaited when nothing is asked.
    awaits: InputPurpose,
    /// Lines that wait for turns of their own.
    ahead: VecDeque<SentLine>,
    /// How many more there were.
    lost: usize,
    ended: bool,
}

impl ChatConsole {
    pub(super) fn new(screen: Arc<Screen>, input: Input, stops: Stops, asking: (Arc<dyn Store>, Questions)) -> Self {
        Self {
            screen,
            input,
            stops,
            store: asking.0,
            questions: asking.1,
            asked: VecDeque::new(),
            seen_since: 0,
            awaits: InputPurpose::Message,
            ahead: VecDeque::new(),
            lost: 0,
            ended: false,
        }
    }

    /// Whether what is typed is seen key by key.
    pub(super) fn is_keys(&self) -> bool {
        self.input.is_keys()
    }

    /// Writes a line to the person.
    pub(super) fn note(&self, text: &str) {
        self.screen.notice(&format!("{text}\n"));
    }

    /// Says what is awaited from now on, whenever nothing is asked.
    pub(super) fn await_now(&mut self, what: InputPurpose) {
        self.awaits = what;
        if self.asked.is_empty() {
            self.input.await_now(what);
        }
    }

    /// Waits for what happens next. Lines of a pipe are read only while one can begin a turn.
    pub(super) async fn next(&mut self) -> ConsoleEvent {
        let idle = self.awaits == InputPurpose::Message;
        if idle && let Some(line) = self.ahead.pop_front() {
            return ConsoleEvent::Typed(TypedInput::Line(line));
        }
        let Self { input, stops, questions, asked, ended, .. } = self;
        let reads = !*ended && (idle || input.is_keys());
        let withdrawn = async {
            match asked.front_mut() {
                Some(question) => question.answer.closed().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            stop = stops.next() => ConsoleEvent::Stop(stop),
            () = withdrawn => ConsoleEvent::Withdrawn,
            Some(question) = questions.recv() => ConsoleEvent::Asked(Box::new(question)),
            typed = input.next(), if reads => ConsoleEvent::Typed(typed),
            () = std::future::ready(()), if idle && *ended => ConsoleEvent::Typed(TypedInput::End),
        }
    }

    /// Deals with what happened, as far as it is not an order.
    pub(super) async fn heed(&mut self, happened: ConsoleEvent) -> Option<PersonOrder> {
        match happened {
            ConsoleEvent::Stop(Stop::Program) | ConsoleEvent::Typed(TypedInput::Quit) => {
                return Some(PersonOrder::EndProgram);
            }
            ConsoleEvent::Asked(question) => {
                self.asked.push_back(*question);
                if self.asked.len() == 1 {
                    self.show_question();
                }
            }
            ConsoleEvent::Withdrawn => self.withdraw().await,
            ConsoleEvent::Typed(TypedInput::Line(line)) if self.is_answer(&line) => self.answer(&line.text),
            ConsoleEvent::Typed(TypedInput::Line(line)) => return Some(PersonOrder::Say(line)),
            ConsoleEvent::Typed(TypedInput::Unusable(why)) => self.note(&why),
            ConsoleEvent::Typed(TypedInput::Again(key)) => return Some(PersonOrder::Again(key)),
            // At a question that nobody's turn waits for, there is nothing else to stop.
            ConsoleEvent::Stop(Stop::Turn) | ConsoleEvent::Typed(TypedInput::Stop) if self.is_asked_idly() => {
                self.answer("later")
            }
            ConsoleEvent::Stop(Stop::Turn) | ConsoleEvent::Typed(TypedInput::Stop) => return Some(PersonOrder::Stop),
            ConsoleEvent::Typed(TypedInput::End) if !self.asked.is_empty() => self.answer("later"),
            ConsoleEvent::Typed(TypedInput::Gone) => return self.lose_terminal(),
            ConsoleEvent::Typed(TypedInput::End) => return Some(PersonOrder::End),
        }
        None
    }

    /// A question outlives its terminal; what nobody is asked in ends.
    fn lose_terminal(&mut self) -> Option<PersonOrder> {
        self.ended = true;
        if self.asked.is_empty() {
            return Some(PersonOrder::EndProgram);
        }
        while !self.asked.is_empty() {
            self.answer("later");
        }
        None
    }

    fn is_asked_idly(&self) -> bool {
        !self.asked.is_empty() && self.awaits == InputPurpose::Message
    }

    /// No more lines are awaited.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Lines are awaited after all; where none can come any more, that shows again.
    pub(super) fn go_on(&mut self) {
        self.ended = false;
    }

    /// Keeps a line for a turn of its own.
    pub(super) fn keep_ahead(&mut self, line: SentLine) {
        if self.ahead.len() < MAX_AHEAD {
            self.ahead.push_back(line);
        } else {
            self.lost += 1;
        }
    }

    /// Says how many lines were too many.
    pub(super) fn tell_lost(&mut self) {
        if self.lost > 0 {
            let lost = std::mem::take(&mut self.lost);
            self.note(&format!("{MAX_AHEAD} lines wait already; left out after them: {lost}"));
        }
    }

    /// Lines that wait for turns of their own are not said any more.
    pub(super) fn drop_ahead(&mut self) -> Vec<String> {
        self.ahead.drain(..).map(|line| line.text).collect()
    }

    /// Only what was typed once the question was seen answers it, and nothing that was pasted.
    fn is_answer(&self, line: &SentLine) -> bool {
        !self.asked.is_empty() && !line.pasted && line.piece > self.seen_since
    }

    fn show_question(&mut self) {
        let Some(question) = self.asked.front() else { return };
        let agent = clean(question.approval.agent_id.as_str());
        let text =
            format!("a call of the agent \"{agent}\" waits for you\n{}{CHOICES}\n", shown_whole(&question.approval));
        // Whatever comes from here on may be an answer to what is seen now.
        self.seen_since = self.input.so_far();
        self.screen.notice(&text);
        self.input.await_now(InputPurpose::Answer);
    }

    fn answer(&mut self, line: &str) {
        self.screen.keep(Prompt::Answer, line);
        let said = match LineAnswer::read(line) {
            Some(LineAnswer::Yes) => Some(PersonAnswer::of(person(), true, String::new())),
            Some(LineAnswer::No(note)) if note.len() > MAX_NOTE_BYTES => {
                return self.note(&format!("a note has at most {MAX_NOTE_BYTES} bytes"));
            }
            Some(LineAnswer::No(note)) => Some(PersonAnswer::of(person(), false, note)),
            Some(LineAnswer::Later) => None,
            None => return self.note(CHOICES),
        };
        if let Some(question) = self.asked.pop_front() {
            // Where nobody waits for it any more, somebody else was faster.
            drop(question.answer.send(said));
        }
        self.turn_over();
    }

    async fn withdraw(&mut self) {
        let Some(question) = self.asked.pop_front() else { return };
        if let Some(became) = ask::became(self.store.clone(), question.approval.id).await {
            self.note(&became);
        }
        self.turn_over();
    }

    /// The next question, or what is awaited without one.
    fn turn_over(&mut self) {
        if self.asked.is_empty() {
            self.input.await_now(self.awaits);
        } else {
            self.show_question();
        }
    }
}
