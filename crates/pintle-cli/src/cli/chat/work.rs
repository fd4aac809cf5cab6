//! One turn of a conversation, while the person at the terminal steers it, stops it, and is asked.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use agent::driver::Ending;
use agent::{Conversation, Helm, Outlet, Report};
use tokio_util::sync::CancellationToken;

use super::command::Command;
use super::desk::{Desk, Order};
use super::input::{Awaited, Sent};
use super::screen::{Prompt, Screen};
use crate::clean::prose;
use crate::cli::session;
use crate::timeline::clip;
use host::crew::Member;
use host::files::delivered;

/// What is to be worked.
#[derive(Clone, Debug)]
pub(super) enum Task {
    /// A message.
    Say(Sent),
    /// What waits in the conversation.
    GoOn,
    /// The turn that is open.
    Resume,
}

/// How the work was left.
pub(super) struct Worked {
    /// What came of it; nothing if there was nothing to work.
    pub(super) report: Option<Report>,
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

impl Outlet for Live {
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
    helm: &'a Helm,
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
    desk: &mut Desk,
    member: &Member,
    conversation: &mut Conversation,
    task: Task,
    cancel: &CancellationToken,
) -> Worked {
    let helm = Helm::new(cancel);
    let live = Arc::new(Live { screen: desk.screen.clone(), home: member.home().to_owned(), held: Mutex::default() });
    let piece = if let Task::Say(sent) = &task { Some(sent.piece) } else { None };
    let said = said(conversation, &task);
    let mut ordered = Ordered { helm: &helm, live: &live, piece, stops: 0, said, end_program: false };
    desk.await_now(Awaited::Steering);
    let report = {
        let turn = async {
            let outlet: Arc<dyn Outlet> = live.clone();
            match &task {
                Task::Say(sent) => Some(member.turn(conversation, &sent.text, outlet, &helm).await),
                Task::GoOn => member.go_on(conversation, outlet, &helm).await,
                Task::Resume => member.resume(conversation, outlet, &helm).await,
            }
        };
        tokio::pin!(turn);
        loop {
            // What happened to a question is told before the turn says what came of it.
            tokio::select! {
                biased;
                happened = desk.next() => {
                    if let Some(order) = desk.heed(happened).await {
                        ordered.take(desk, order);
                    }
                }
                report = &mut turn => break report,
            }
        }
    };
    desk.screen.end_line();
    desk.tell_lost();
    let end_program = ordered.end_program;
    if let Some(report) = &report {
        ordered.tell_end(desk, report);
    }
    Worked { report, end_program }
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
    fn take(&mut self, desk: &mut Desk, order: Order) {
        match order {
            Order::Say(sent) if self.piece == Some(sent.piece) => desk.keep_ahead(sent),
            Order::Say(sent) => self.steer(desk, sent),
            Order::Stop => self.stop(desk),
            Order::End => {
                desk.end();
                desk.note("the conversation ends once this is done");
            }
            Order::EndProgram => {
                self.end_program = true;
                self.helm.cancel();
            }
        }
    }

    fn steer(&mut self, desk: &mut Desk, sent: Sent) {
        desk.screen.keep(Prompt::Steering, &sent.text);
        match Command::read(&sent.text) {
            Some(Command::Help) => return desk.note(Command::HELP),
            Some(Command::Resume | Command::Quit | Command::Unknown(_)) => {
                return desk.note("a turn is under way: Esc stops it, and what you type goes into it; see /help");
            }
            None => {}
        }
        match self.helm.steer(&sent.text) {
            Ok(()) => self.said.push(sent.text),
            Err(_) => {
                desk.note("it waits for the next turn");
                desk.keep_ahead(sent);
            }
        }
    }

    fn stop(&mut self, desk: &Desk) {
        self.stops += 1;
        match self.stops {
            1 => {
                self.helm.interrupt();
                desk.note("finishing; again to stop at once, which undoes the turn");
            }
            2 => {
                self.live.hold();
                self.helm.abort();
            }
            _ => {}
        }
    }

    fn tell_end(self, desk: &mut Desk, report: &Report) {
        let held = self.live.release();
        if report.ending == Ending::Cancelled && self.stops > 1 {
            let mut text = "stopped: the conversation is as it was before this turn; discarded:".to_owned();
            for line in self.said.into_iter().chain(desk.drop_ahead()) {
                text.push_str(&format!("\n  {}", clip(&line)));
            }
            return desk.note(&text);
        }
        held.iter().for_each(|text| desk.note(text));
        if let (_, Some(complaint)) = session::verdict(report) {
            desk.note(&complaint);
        }
    }
}
