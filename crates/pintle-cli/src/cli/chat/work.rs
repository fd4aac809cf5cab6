//! One turn of a conversation, while the person at the terminal steers it, stops it, and is asked.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use agent::driver::TurnEnding;
use agent::{Conversation, TurnHandle, TurnReport, UserOutput};
use tokio_util::sync::CancellationToken;

use super::command::Command;
use super::console::{ChatConsole, PersonOrder};
use super::input::{InputPurpose, SentLine};
use super::screen::{Prompt, Screen};
use crate::clean::prose;
use crate::cli::session;
use crate::text::clip;
use host::files::delivered;
use host::ready_agent::ReadyAgent;

/// What is to be worked.
#[derive(Clone, Debug)]
pub(super) enum Task {
    /// A message.
    Say(SentLine),
    /// What waits in the conversation.
    GoOn,
    /// The turn that is open.
    Resume,
}

/// How the work was left.
pub(super) struct WorkResult {
    /// What came of it; nothing if there was nothing to work.
    pub(super) report: Option<TurnReport>,
    /// The program is to end.
    pub(super) end_program: bool,
}

/// Shows an answer as it arrives.
struct Live {
    screen: Arc<Screen>,
    /// The home folder, below which delivered files are put.
    home: PathBuf,
    /// While the turn is being undone, what it says of discarded messages: all of them are named at its end.
    held: Mutex<Option<Vec<String>>>,
}

impl UserOutput for Live {
    fn streams(&self) -> bool {
        true
    }

    fn delta(&self, text: &str) {
        self.screen.answer(text);
    }

    fn answered(&self) {
        self.screen.end_line();
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
        match &mut *self.held.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(held) => held.push(text),
            None => self.screen.notice(&format!("{text}\n")),
        }
    }
}

impl Live {
    fn hold(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
    }

    fn release(&self) -> Vec<String> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }
}

/// What was ordered of the turn that is under way.
struct Ordered<'a> {
    turn_handle: &'a TurnHandle,
    live: &'a Live,
    /// Lines that came with this piece wait for turns of their own.
    piece: Option<u64>,
    /// How often the turn was told to stop.
    stops: u32,
    /// Everything that was said in it.
    said: Vec<String>,
    end_program: bool,
}

/// Works `task` to its end. Everything that was begun in the conversation ends with `cancel`.
pub(super) async fn work(
    console: &mut ChatConsole,
    member: &ReadyAgent,
    conversation: &mut Conversation,
    task: Task,
    cancel: &CancellationToken,
) -> WorkResult {
    let turn_handle = TurnHandle::new(cancel);
    let live =
        Arc::new(Live { screen: console.screen.clone(), home: member.home().to_owned(), held: Mutex::default() });
    let piece = if let Task::Say(sent) = &task { Some(sent.piece) } else { None };
    let said = said(conversation, &task);
    let mut ordered = Ordered { turn_handle: &turn_handle, live: &live, piece, stops: 0, said, end_program: false };
    console.await_now(InputPurpose::Steering);
    let report = {
        let turn = async {
            let user_output: Arc<dyn UserOutput> = live.clone();
            match &task {
                Task::Say(sent) => Some(member.turn(conversation, &sent.text, user_output, &turn_handle).await),
                Task::GoOn => member.go_on(conversation, user_output, &turn_handle).await,
                Task::Resume => member.resume(conversation, user_output, &turn_handle).await,
            }
        };
        tokio::pin!(turn);
        loop {
            // What happened to a question is told before the turn says what came of it.
            tokio::select! {
                biased;
                happened = console.next() => {
                    if let Some(order) = console.heed(happened).await {
                        ordered.take(console, order);
                    }
                }
                report = &mut turn => break report,
            }
        }
    };
    console.screen.end_line();
    console.tell_lost();
    let end_program = ordered.end_program;
    if let Some(report) = &report {
        ordered.tell_end(console, report);
    }
    WorkResult { report, end_program }
}

/// What a turn begins with, or began with.
fn said(conversation: &mut Conversation, task: &Task) -> Vec<String> {
    if let Task::Resume = task {
        return conversation.open_turn().map(|open| open.prompt.clone()).into_iter().collect();
    }
    let waiting = conversation.queue().iter().map(|waiting| waiting.text().to_owned());
    let sent = if let Task::Say(sent) = task { Some(sent.text.clone()) } else { None };
    waiting.chain(sent).collect()
}

impl Ordered<'_> {
    fn take(&mut self, console: &mut ChatConsole, order: PersonOrder) {
        match order {
            PersonOrder::Say(sent) if self.piece == Some(sent.piece) => console.keep_ahead(sent),
            PersonOrder::Say(sent) => self.steer(console, sent),
            PersonOrder::Stop => self.stop(console),
            PersonOrder::End => {
                console.end();
                console.note("the conversation ends once this is done");
            }
            PersonOrder::EndProgram => {
                self.end_program = true;
                self.turn_handle.cancel();
            }
        }
    }

    fn steer(&mut self, console: &mut ChatConsole, sent: SentLine) {
        console.screen.keep(Prompt::Steering, &sent.text);
        match Command::read(&sent.text) {
            Some(Command::Help) => return console.note(Command::HELP),
            Some(Command::Resume | Command::Quit | Command::Unknown(_)) => {
                return console.note("a turn is under way: Esc stops it, and what you type goes into it; see /help");
            }
            None => {}
        }
        match self.turn_handle.steer(&sent.text) {
            Ok(()) => self.said.push(sent.text),
            Err(_) => {
                console.note("it waits for the next turn");
                console.keep_ahead(sent);
            }
        }
    }

    fn stop(&mut self, console: &ChatConsole) {
        self.stops += 1;
        match self.stops {
            1 => {
                self.turn_handle.interrupt();
                console.note("finishing; again to stop at once, which undoes the turn");
            }
            2 => {
                self.live.hold();
                self.turn_handle.abort();
            }
            _ => {}
        }
    }

    fn tell_end(self, console: &mut ChatConsole, report: &TurnReport) {
        let held = self.live.release();
        if report.ending == TurnEnding::Cancelled && self.stops > 1 {
            let mut text = "stopped: the conversation is as it was before this turn; discarded:".to_owned();
            for line in self.said.into_iter().chain(console.drop_ahead()) {
                text.push_str(&format!("\n  {}", clip(&line)));
            }
            return console.note(&text);
        }
        held.iter().for_each(|text| console.note(text));
        if let (_, Some(complaint)) = session::verdict(report) {
            console.note(&complaint);
        }
    }
}
