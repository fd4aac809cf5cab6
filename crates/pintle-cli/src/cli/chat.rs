//! `pintle chat`: a conversation in the terminal.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pintle_agent::Conversation;
use pintle_agent::driver::TurnEnding;
use pintle_domain::approval::{Approval, ApprovalMode};
use pintle_domain::session::ReleaseReason;
use pintle_engine::Watcher;
use tokio_util::sync::CancellationToken;

use super::live::Notices;
use super::session::{self, INTERRUPTED, WAITING};
use super::stops::Stops;
use super::{Global, session_config, terminal};
use crate::clean::{clean, prose};
use crate::error::CliError;
use crate::operator;
use crate::table::columns;
use crate::text::clip;
use crate::timeline::Timeline;
use pintle_host::changes::Changes;
use pintle_host::host::Host;
use pintle_host::ready_agent::ReadyAgent;
use pintle_host::reload::{ConversationSource, Reloaded, reload};

mod ask;
mod command;
mod console;
mod input;
mod keys;
mod line;
pub(super) mod screen;
mod work;

use command::Command;
use console::{ChatConsole, PersonOrder};
use input::{Input, InputPurpose, SentLine, StopKey};
use screen::{Front, Screen};
use work::{Task, WorkedWith, not_undone, undone};

/// How often an idle conversation looks for an answer from elsewhere to a question that was left for later: quick enough
/// for a person who waits, too seldom to be felt by the disk. Also how long what a sub-agent brought may take to arrive.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Flags of `chat`.
#[derive(Debug, Args)]
pub struct ChatArgs {
    /// The agent to talk to
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The session to go on with, new or stored [default: a new one, named on stderr]
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// Go on with a session of another agent: all that was said in it is sent to this one
    #[arg(long, requires = "session")]
    agent_changed: bool,
    /// Go on with a session that ran under another configuration, or with guards that are gone
    #[arg(long, requires = "session")]
    config_changed: bool,
    /// Another model than the agent's own
    #[arg(long, value_name = "PROVIDER/MODEL")]
    model: Option<String>,
    /// Show what the model thinks, not only how much
    #[arg(long)]
    thinking: bool,
    /// No timeline
    #[arg(short, long)]
    quiet: bool,
    /// Refuse to start when a guard is broken, down or untrusted
    #[arg(long)]
    strict: bool,
}

pub(super) fn run(global: &Global, args: &ChatArgs) -> Result<u8, CliError> {
    let runtime = terminal::runtime()?;
    let code = runtime.block_on(talk(global, args));
    // The thread that reads stdin may wait for a line that never comes.
    runtime.shutdown_background();
    code
}

async fn talk(global: &Global, args: &ChatArgs) -> Result<u8, CliError> {
    let screen = Arc::new(Screen::default());
    let _front = Front::take(screen.clone());
    let watchers: Vec<Arc<dyn Watcher>> = match args.quiet {
        true => Vec::new(),
        false => {
            let timeline = Timeline::new(Notices(screen.clone()), global.verbose > 0);
            let timeline = timeline.fitting(columns(std::io::stderr()));
            vec![Arc::new(timeline.explained_by(Some(session::flags(global))))]
        }
    };
    let mut host = session::open(global, watchers)?;
    // Watched before anything is said, so that no change after the first word is missed.
    let changes = Changes::of(&host)?;
    let (asker, questions) = ask::channel();
    // What the agent started does not answer for the person.
    let present = Input::sees_keys() && operator::require().is_ok();
    host.ask_in(ApprovalMode::Chat, present.then_some(asker));
    let (agent, model) = (args.agent.as_deref(), args.model.as_deref());
    session::servers(&host, agent).await?;
    let member = host.runner(agent, model)?;
    let guards = session::ready(&host, args.strict).await?;
    session::say_head(args.quiet, &guards);
    let by = session::WorkedBy { agent: &member.settings().id, agent_changed: args.agent_changed };
    let conversation = session::conversation(&host, args.session.as_deref(), by)?;
    let conversation = session_config::continued(&host, conversation, args.config_changed)?;
    let stops = Stops::listen(false)?;
    let input = Input::open(&screen)?;
    let wanted = ConversationSource { config: global.config.as_deref(), home: global.home.as_deref(), agent, model };
    let console = ChatConsole::new(screen, input, stops, (host.store.clone(), questions));
    let mut chat = Chat {
        global,
        wanted,
        host,
        member,
        conversation,
        console,
        changes,
        cancel: CancellationToken::new(),
        interactive: io::stdin().is_terminal(),
        thinking: args.thinking,
        last: LastTurn::default(),
        warned: false,
    };
    chat.greet();
    let code = chat.converse().await;
    let Chat { host, conversation, console, cancel, .. } = chat;
    cancel.cancel();
    // The terminal is the person's again, and the session another process's, before the hooks take their time to end.
    drop((console, conversation));
    host.close().await;
    Ok(code)
}

/// A conversation that is held.
struct Chat<'a> {
    global: &'a Global,
    wanted: ConversationSource<'a>,
    host: Host,
    member: ReadyAgent,
    conversation: Conversation,
    console: ChatConsole,
    changes: Changes,
    /// Ends everything that was begun in it.
    cancel: CancellationToken,
    /// Whether a person types.
    interactive: bool,
    /// Whether what the model thinks is shown.
    thinking: bool,
    last: LastTurn,
    /// Whether the person knows that sub-agents still work.
    warned: bool,
}

/// What the turn before left behind.
#[derive(Default)]
struct LastTurn {
    /// How many messages wait that begin no turn by themselves.
    left: usize,
    /// The question that the open turn waits for.
    parked: Option<Parked>,
    /// Everything that was said in it, if it was stopped and can still be undone.
    stopped: Option<Vec<String>>,
}

/// A question that was left for later.
struct Parked {
    id: String,
    /// Whether nobody had answered when it was looked at last.
    open: bool,
}

/// Somebody wants the program to end.
struct Interrupted;

/// What comes next in a conversation.
enum Next {
    Work(Task),
    /// The configuration has changed.
    Changed,
    /// It is over, with this exit code.
    Over(u8),
}

impl Chat<'_> {
    fn greet(&mut self) {
        let settings = self.member.settings();
        let (key, agent, model) = (clean(self.conversation.key.as_str()), &settings.id, &settings.model);
        self.console.note(&format!("session {key}, agent {}, model {}", clean(agent.as_str()), clean(model)));
        match (self.interactive, self.console.is_keys()) {
            (true, true) => {
                self.console.note("Esc stops an answer, Ctrl-D ends the conversation, /help shows the rest.")
            }
            (true, false) => {
                self.console.note("Ctrl-C stops an answer, Ctrl-D ends the conversation, /help shows the rest.")
            }
            (false, _) => {}
        }
        self.last.left = self.conversation.queue().len();
        if let Some(open) = self.conversation.open_turn() {
            let why = match self.conversation.last_cause() {
                Some(ReleaseReason::Waiting) => "waits for a person",
                Some(ReleaseReason::Killed) | None => "was left by a process that died",
                Some(ReleaseReason::Done | ReleaseReason::Failed | ReleaseReason::Interrupted) => "was left open",
            };
            let what = if self.interactive {
                "/resume goes on with it; a new message starts over"
            } else {
                "the next message starts over"
            };
            let prompt = clip(&open.prompt);
            self.console.note(&format!("the turn \"{prompt}\" {why}: {what}, and it ends as aborted"));
        } else if self.last.left > 0 {
            let resume = if self.interactive { "/resume goes on with them now; else they" } else { "they" };
            let messages = if self.last.left == 1 {
                "1 message waits".into()
            } else {
                format!("{} messages wait", self.last.left)
            };
            self.console.note(&format!("{messages} from before: {resume} go with the next message"));
        }
    }

    async fn converse(&mut self) -> u8 {
        loop {
            match self.next().await {
                Next::Over(code) => return code,
                Next::Changed => self.reload().await,
                Next::Work(task) => {
                    self.meet_servers();
                    if let Some(code) = self.work(task).await {
                        return code;
                    }
                }
            }
        }
    }

    /// Waits for what comes next.
    async fn next(&mut self) -> Next {
        self.console.await_now(InputPurpose::Message);
        self.prompt();
        loop {
            // Nobody else has anything to tell: an idle conversation wakes for nothing.
            let asked = self.last.parked.as_ref().is_some_and(|parked| parked.open);
            // A change comes before a line that was typed ahead.
            let happened = tokio::select! {
                biased;
                () = self.changes.next() => return Next::Changed,
                happened = self.console.next() => happened,
                () = tokio::time::sleep(LOOK_EVERY), if asked => match self.came_in().await {
                    Some(task) => return Next::Work(task),
                    None => continue,
                },
                () = self.conversation.arrival() => match self.came_in().await {
                    Some(task) => return Next::Work(task),
                    None => continue,
                },
            };
            let next = match self.console.heed(happened).await {
                None => None,
                Some(PersonOrder::Say(sent)) => self.said(sent).await,
                Some(PersonOrder::Again(key)) => {
                    self.again(key).await;
                    None
                }
                Some(PersonOrder::End) => self.end().await,
                Some(PersonOrder::Stop | PersonOrder::EndProgram) => Some(Next::Over(INTERRUPTED)),
            };
            if let Some(next) = next {
                return next;
            }
        }
    }

    /// A key that stops was pressed with nothing under way: a turn that it stopped before is undone.
    async fn again(&mut self, key: StopKey) {
        let stopped = self.last.stopped.take();
        let taken_back = match stopped.is_some() {
            true => self.conversation.take_back().await,
            false => Ok(false),
        };
        match (stopped, taken_back) {
            (stopped, Err(why)) => {
                self.console.note(&not_undone(&why));
                self.last.stopped = stopped;
            }
            (Some(said), Ok(true)) => {
                self.console.note(&undone(said));
                self.last.left = self.conversation.queue().len();
            }
            (Some(_) | None, Ok(_)) if key == StopKey::Interrupt => self.console.note("Ctrl-D ends the conversation."),
            (Some(_) | None, Ok(_)) => {}
        }
    }

    /// A prompt, where the terminal edits its lines by itself.
    fn prompt(&self) {
        if self.interactive && !self.console.is_keys() {
            self.console.screen.bare_prompt();
        }
    }

    /// What a line asks for.
    async fn said(&mut self, sent: SentLine) -> Option<Next> {
        if self.console.is_keys() {
            self.console.screen.keep(screen::Prompt::Message, &sent.text);
        }
        if sent.text.trim().is_empty() {
            self.prompt();
            return None;
        }
        match Command::read(&sent.text).filter(|_| self.interactive) {
            None => return Some(Next::Work(Task::Say(sent))),
            Some(Command::Resume) if self.conversation.open_turn().is_some() => return Some(Next::Work(Task::Resume)),
            Some(Command::Resume) if !self.conversation.queue().is_empty() => return Some(Next::Work(Task::GoOn)),
            Some(Command::Resume) => self.console.note("there is nothing to go on with"),
            Some(Command::Quit) => return self.end().await,
            Some(Command::Help) => self.console.note(Command::help(self.console.is_keys())),
            Some(Command::Finish) => self.console.note("nothing is under way"),
            Some(Command::Unknown(word)) => {
                let word = clean(&word);
                self.console.note(&format!("there is no command /{word}; see /help"));
            }
        }
        self.prompt();
        None
    }

    /// What came in while nothing was done.
    async fn came_in(&mut self) -> Option<Task> {
        if self.conversation.open_turn().is_none() {
            let waiting = self.conversation.queue().len();
            if waiting <= self.last.left {
                return None;
            }
            self.console.note("what a sub-agent brought has come in");
            return Some(Task::GoOn);
        }
        let parked = self.last.parked.as_mut().filter(|parked| parked.open)?;
        let became = ask::became(self.host.store.clone(), parked.id.clone()).await?;
        parked.open = false;
        self.console.note(&format!("{became}: /resume goes on"));
        None
    }

    /// Works `task`, and then what came in meanwhile. Returns the exit code if the conversation is over.
    async fn work(&mut self, mut task: Task) -> Option<u8> {
        loop {
            let with = WorkedWith { member: &self.member, cancel: &self.cancel, thinking: self.thinking };
            let worked = work::work(&mut self.console, &mut self.conversation, task, with).await;
            let ending = worked.report.map(|report| report.ending);
            self.last.stopped = worked.stopped;
            self.last.parked = None;
            if let Some(TurnEnding::Waiting(approval)) = &ending {
                self.park(approval);
            }
            if worked.end_program {
                return Some(INTERRUPTED);
            }
            if self.last.parked.is_some() && !self.interactive {
                return Some(WAITING);
            }
            self.last.left = self.conversation.queue().len();
            let stopped = matches!(ending, None | Some(TurnEnding::Cancelled));
            if stopped || self.last.left == 0 || self.conversation.open_turn().is_some() {
                return None;
            }
            self.console.note("continuing with what came in meanwhile");
            task = Task::GoOn;
        }
    }

    /// Says how a turn goes on that waits for a person.
    fn park(&mut self, approval: &Approval) {
        let key = self.conversation.key.as_str();
        let mut steps = session::next_steps(self.global, key, approval);
        if self.interactive {
            steps.pop();
            steps.push("then /resume goes on here".into());
        }
        steps.iter().for_each(|step| self.console.note(step));
        self.last.parked = Some(Parked { id: approval.id.clone(), open: true });
    }

    /// Nothing more is said. Where nobody is there to ask, sub-agents that still work are waited for.
    async fn end(&mut self) -> Option<Next> {
        if !self.interactive {
            return Some(self.wait_for_sub_agents().await);
        }
        if self.member.at_work() == 0 || self.warned {
            return Some(Next::Over(self.last_code()));
        }
        self.warned = true;
        self.console.note("sub-agents still work in the background; the same again stops them");
        self.console.go_on();
        None
    }

    /// Waits until what sub-agents bring is there: then it begins a turn.
    async fn wait_for_sub_agents(&mut self) -> Next {
        self.console.end();
        if self.member.at_work() > 0 && self.rest().await.is_err() {
            return Next::Over(INTERRUPTED);
        }
        self.console.await_now(InputPurpose::Message);
        match self.came_in().await {
            Some(task) => Next::Work(task),
            None => Next::Over(self.last_code()),
        }
    }

    /// Waits until no sub-agent works, unless somebody wants the program to end.
    async fn rest(&mut self) -> Result<(), Interrupted> {
        self.console.note("sub-agents still work in the background; Ctrl-C stops them");
        self.console.await_now(InputPurpose::Steering);
        let at_rest = async {
            self.member.at_rest().await;
            // What it brought stands in the conversation a moment after a sub-agent is at rest.
            tokio::time::sleep(LOOK_EVERY).await;
        };
        tokio::pin!(at_rest);
        loop {
            let happened = tokio::select! {
                () = &mut at_rest => return Ok(()),
                happened = self.console.next() => happened,
            };
            if let Some(PersonOrder::Stop | PersonOrder::EndProgram) = self.console.heed(happened).await {
                return Err(Interrupted);
            }
        }
    }

    /// The exit code of a conversation that ends now.
    fn last_code(&self) -> u8 {
        if self.last.parked.is_none() || self.conversation.open_turn().is_none() {
            return 0;
        }
        let (key, flags) = (session::word(self.conversation.key.as_str()), session::flags(self.global));
        self.console
            .note(&format!("a turn waits in this session; to go on with it: pintle sessions resume {key}{flags}"));
        WAITING
    }

    /// Takes up what MCP servers offer that came up, or changed their tools, since the agent was made.
    fn meet_servers(&mut self) {
        // Who still works in the background is waited for at the member that sent them.
        if self.member.at_work() > 0 || !self.host.has_other_tools(&self.member) {
            return;
        }
        match self.host.runner(self.wanted.agent, self.wanted.model) {
            Ok(member) => self.member = member,
            Err(error) => terminal::complain(&error.into()),
        }
    }

    async fn reload(&mut self) {
        self.changes.settle().await;
        match reload(&mut self.host, self.wanted).await {
            Ok(Reloaded { agent, later, children }) => {
                self.member = agent;
                // It may name other folders with rules.
                if let Err(error) = self.changes.follow(&self.host) {
                    terminal::complain(&error.into());
                }
                let children: String = children
                    .words()
                    .iter()
                    .map(|(word, names)| format!("; {word}: {}", clean(&names.join(", "))))
                    .collect();
                self.console.note(&format!("the new configuration is in force{children}"));
                for key in later {
                    self.console.note(&format!("warning: {} takes effect at the next start", prose(&key)));
                }
            }
            Err(error) => terminal::complain(&error.into()),
        }
    }
}
