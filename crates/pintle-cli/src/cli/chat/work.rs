//! One turn of a conversation, while the person at the terminal steers it, stops it, and is asked.

use std::sync::Arc;

use pintle_agent::driver::TurnEnding;
use pintle_agent::{Conversation, TurnHandle, TurnReport, UserOutput};
use pintle_domain::store::StoreError;
use tokio_util::sync::CancellationToken;

use super::command::Command;
use super::console::{ChatConsole, PersonOrder};
use super::input::{InputPurpose, SentLine};
use super::screen::Prompt;
use crate::clean::prose;
use crate::cli::live::LiveOutput;
use crate::cli::session;
use crate::text::clip;
use pintle_host::ready_agent::ReadyAgent;

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
    /// Everything that was said in it, if it was stopped and can still be undone.
    pub(super) stopped: Option<Vec<String>>,
    /// The program is to end.
    pub(super) end_program: bool,
}

/// What a turn runs with.
pub(super) struct WorkedWith<'a> {
    pub(super) member: &'a ReadyAgent,
    /// Everything that was begun in the conversation ends with it.
    pub(super) cancel: &'a CancellationToken,
    /// Whether what the model thinks is shown.
    pub(super) thinking: bool,
}

/// What was ordered of the turn that is under way.
struct Ordered<'a> {
    turn_handle: &'a TurnHandle,
    live: &'a LiveOutput,
    /// Lines that came with this piece wait for turns of their own.
    piece: Option<u64>,
    /// How often the turn was told to stop.
    stops: u32,
    /// Everything that was said in it.
    said: Vec<String>,
    end_program: bool,
}

/// Works `task` to its end.
pub(super) async fn work(
    console: &mut ChatConsole,
    conversation: &mut Conversation,
    task: Task,
    with: WorkedWith<'_>,
) -> WorkResult {
    let WorkedWith { member, cancel, thinking } = with;
    let turn_handle = TurnHandle::new(cancel);
    let live = Arc::new(LiveOutput::new(console.screen.clone(), member.home(), thinking));
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
    let stopped = match &report {
        Some(report) => ordered.tell_end(console, conversation, report).await,
        None => None,
    };
    WorkResult { report, stopped, end_program }
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
            PersonOrder::Stop | PersonOrder::Again(_) => self.stop(),
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
            Some(Command::Help) => return console.note(Command::help(console.is_keys())),
            Some(Command::Finish) => {
                self.turn_handle.interrupt();
                return console.note("finishing; Esc stops at once");
            }
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

    fn stop(&mut self) {
        self.stops += 1;
        match self.stops {
            1 => self.turn_handle.cancel(),
            2 => {
                self.live.hold();
                self.turn_handle.abort();
            }
            _ => {}
        }
    }

    /// Says how the turn ended. What was said in it, if it can still be undone.
    async fn tell_end(
        self,
        console: &mut ChatConsole,
        conversation: &mut Conversation,
        report: &TurnReport,
    ) -> Option<Vec<String>> {
        let held = self.live.release();
        let stops = if report.ending == TurnEnding::Cancelled { self.stops } else { 0 };
        if stops > 1 {
            // The second order may have come when the end was decided already.
            let taken_back = conversation.take_back().await;
            let said = self.said.into_iter().chain(console.drop_ahead()).collect();
            console.note(&taken_back.map_or_else(|why| not_undone(&why), |_| undone(said)));
            return None;
        }
        held.iter().for_each(|text| console.note(text));
        if stops == 1 && !self.end_program {
            let undo = if console.is_keys() { "; Esc again undoes the turn" } else { "" };
            console.note(&format!("stopped: what is there stays{undo}"));
            return Some(self.said);
        }
        if let (_, Some(complaint)) = session::verdict(report) {
            console.note(&complaint);
        }
        None
    }
}

/// What is told where a turn stays, because that it is undone could not be written.
pub(super) fn not_undone(why: &StoreError) -> String {
    format!("the turn is not undone, what is there stays: {}", prose(&why.to_string()))
}

/// What is told where a turn is undone.
pub(super) fn undone(said: Vec<String>) -> String {
    let lines: String = said.iter().map(|line| format!("\n  {}", clip(line))).collect();
    format!("undone: the conversation is as it was before this turn; discarded:{lines}")
}
