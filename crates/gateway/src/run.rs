//! One run: a prompt that is worked for somebody, with everything that they hear of it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use pintle_agent::TurnHandle;
use pintle_domain::id::{TenantId, TurnId};
use pintle_domain::json::{Object, Value, json};
use pintle_domain::llm::Usage;
use pintle_domain::store::SessionKey;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use crate::error::ApiError;
use crate::heard::{Heard, HeardLog};
use crate::hub::{Connection, Hub};
use crate::outcome::{AnswerEnd, RunAnswer, RunOutcome};
use crate::session_name::SessionName;

mod events;

/// Between two answers of one turn.
const BETWEEN: &str = "\n\n";

/// One run.
pub(crate) struct Run {
    pub(crate) name: SessionName,
    pub(crate) key: SessionKey,
    pub(crate) prompt: String,
    /// Steers its turn.
    pub(crate) handle: TurnHandle,
    /// Whether pieces of answers are wanted.
    pub(crate) stream: bool,
    asker: Asker,
    /// What is heard of it over HTTP; nothing for whoever asked over the socket.
    log: Option<Mutex<HeardLog>>,
    hub: Arc<Hub>,
    id: OnceLock<TurnId>,
    state: Mutex<RunState>,
    /// What came of it, before anybody hears it.
    settled: OnceLock<RunOutcome>,
    outcome: watch::Sender<Option<RunOutcome>>,
}

#[derive(Default)]
struct RunState {
    usage: Usage,
    /// How long hooks took.
    hooks: Duration,
    /// What was told before what comes.
    spoke: Spoke,
    thinking: String,
    /// The answer that is being told, or was told last.
    text: String,
    /// Whether it is complete; what follows is another one.
    complete: bool,
    /// How the model ended its last answer.
    end: AnswerEnd,
    /// What it does, for whoever asks.
    activity: Option<Value>,
    /// Whether it goes on with a turn that was cut.
    is_resumed: bool,
    /// The approval that it waits for.
    waits: Option<String>,
    work: WorkedHere,
    files: RunFiles,
}

/// Files for the user.
#[derive(Default)]
struct RunFiles {
    /// Where those stand that are not kept yet.
    waiting: Vec<PathBuf>,
    /// The references of those that are.
    kept: Vec<String>,
}

/// What was told last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Spoke {
    #[default]
    Nothing,
    /// A piece of an answer, or all of it.
    Answer,
    /// A text for the user that is none.
    Aside,
}

/// What was done here for a run.
#[derive(Default)]
struct WorkedHere {
    /// Whether a turn of it was: what became of one that was not is for somebody else to say.
    a_turn: bool,
    /// Whether a tool ran for it: asking again would run it again.
    effect: bool,
    /// The class of what went wrong with the model that was asked last, and how long its provider asks to wait.
    failing: Option<(String, Option<Duration>)>,
    /// The ids of the API keys with which somebody asked for what it works: it ends with any of them.
    keys: BTreeSet<String>,
}

/// Who asked for a run.
pub(crate) enum Asker {
    /// A client of the socket, which keeps the conversation, by its request of this id.
    Socket {
        /// Its connection, as long as it has one.
        connection: Weak<Connection>,
        /// The id that the client gave its request.
        request: String,
    },
    /// A request over HTTP, by its `X-Request-Id`.
    Http(String),
    /// Nobody who waits for it.
    Nobody,
}

/// What a run is made of.
pub(crate) struct RunParts {
    pub(crate) name: SessionName,
    pub(crate) tenant: TenantId,
    pub(crate) prompt: String,
    pub(crate) stream: bool,
    pub(crate) asker: Asker,
    /// The id of the API key with which they ask, if they have one.
    pub(crate) key: Option<String>,
    /// Whether its answer is heard over HTTP.
    pub(crate) is_heard: bool,
    pub(crate) hub: Arc<Hub>,
}

impl Run {
    pub(crate) fn new(parts: RunParts) -> Arc<Self> {
        Arc::new(Self::made(parts))
    }

    fn made(parts: RunParts) -> Self {
        let RunParts { name, tenant, prompt, stream, asker, key, is_heard, hub } = parts;
        let work = WorkedHere { keys: key.into_iter().collect(), ..WorkedHere::default() };
        Self {
            key: SessionKey { tenant, session: name.id() },
            name,
            prompt,
            handle: TurnHandle::default(),
            stream,
            asker,
            log: is_heard.then(Mutex::default),
            hub,
            id: OnceLock::new(),
            state: Mutex::new(RunState { work, ..RunState::default() }),
            settled: OnceLock::new(),
            outcome: watch::Sender::new(None),
        }
    }

    /// A run that is over, as it was kept.
    pub(crate) fn finished(parts: RunParts, turn: TurnId, heard: Vec<Heard>, outcome: RunOutcome) -> Arc<Self> {
        let mut run = Self::made(parts);
        run.log = Some(Mutex::new(HeardLog::over(heard)));
        run.begins(&turn);
        run.outcome.send_replace(Some(outcome));
        Arc::new(run)
    }

    /// The id of the request that asked for it, for the log.
    pub(crate) fn request(&self) -> Option<&str> {
        match &self.asker {
            Asker::Socket { request, .. } | Asker::Http(request) => Some(request),
            Asker::Nobody => None,
        }
    }

    /// Where those are who hear of it.
    pub(crate) fn hub(&self) -> Arc<Hub> {
        self.hub.clone()
    }

    /// Its turn, once that has begun.
    pub(crate) fn id(&self) -> Option<&TurnId> {
        self.id.get()
    }

    /// Waits for its end.
    pub(crate) async fn outcome(&self) -> RunOutcome {
        let mut outcome = self.outcome.subscribe();
        let ended = outcome.wait_for(Option::is_some).await;
        let ended = ended.ok().and_then(|outcome| outcome.clone());
        ended.unwrap_or_else(|| {
            RunOutcome::Failed(ApiError::new(crate::error::ErrorCode::Internal, "the run was dropped"))
        })
    }

    /// `outcome` came of it, and is kept before anybody hears it.
    pub(crate) fn settle(&self, outcome: &RunOutcome) {
        self.settled.get_or_init(|| outcome.clone());
    }

    /// What came of it, once that is certain.
    pub(crate) fn settled(&self) -> Option<&RunOutcome> {
        self.settled.get()
    }

    /// Whether it is over, and whoever waited for it heard so.
    pub(crate) fn ended(&self) -> bool {
        self.outcome.borrow().is_some()
    }

    /// It is over.
    pub(crate) fn end(&self, outcome: RunOutcome) {
        match &outcome {
            RunOutcome::Completed(answer) => {
                let mut payload = json!({ "content": answer.content });
                payload["usage"] = json!(answer.usage);
                if !answer.media.is_empty() {
                    payload["media"] = json!(answer.media);
                }
                self.event("run.completed", Some(payload));
            }
            RunOutcome::Failed(error) => self.tell_failed(error),
            RunOutcome::Cancelled => self.event("run.cancelled", None),
            RunOutcome::Parked(_) | RunOutcome::Elsewhere(_) => {}
        }
        self.outcome.send_replace(Some(outcome));
        if let Some(mut log) = self.log() {
            log.end();
        }
    }

    /// A model gave no answer: the class of why, and how long its provider asks to wait.
    pub(crate) fn model_failed(&self, class: &str, wait: Option<Duration>) {
        self.state().work.failing = Some((class.to_owned(), wait));
    }

    /// The same of the model that was asked last, if it gave none.
    pub(crate) fn failing_model(&self) -> Option<(String, Option<Duration>)> {
        self.state().work.failing.clone()
    }

    pub(crate) fn used(&self, usage: Usage) {
        let mut state = self.state();
        state.work.failing = None;
        let total = &mut state.usage;
        total.prompt_tokens = total.prompt_tokens.saturating_add(usage.prompt_tokens);
        total.completion_tokens = total.completion_tokens.saturating_add(usage.completion_tokens);
        total.total_tokens = total.total_tokens.saturating_add(usage.total_tokens);
    }

    /// What it cost so far.
    pub(crate) fn cost(&self) -> Usage {
        self.state().usage
    }

    /// How long its hooks took so far, in milliseconds.
    pub(crate) fn hook_ms(&self) -> u64 {
        u64::try_from(self.state().hooks.as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn hooks_took(&self, time: Duration) {
        self.state().hooks += time;
    }

    /// Tells whoever waits for the answer.
    pub(crate) fn hears(&self, heard: Heard) {
        if let Some(mut log) = self.log() {
            log.push(heard);
        }
    }

    /// Hears everything of it; at once nothing more where it is not heard over HTTP.
    pub(crate) fn listen(&self) -> UnboundedReceiver<Heard> {
        self.log().map_or_else(|| HeardLog::over(Vec::new()).listen(), |mut log| log.listen())
    }

    /// Whether anybody waits for its answer over HTTP.
    pub(crate) fn has_listeners(&self) -> bool {
        self.log().is_some_and(|log| log.has_listeners())
    }

    /// What was heard of it, for whoever asks the same again.
    pub(crate) fn transcript(&self) -> Vec<Heard> {
        self.log().map(|log| log.kept()).unwrap_or_default()
    }

    fn log(&self) -> Option<MutexGuard<'_, HeardLog>> {
        Some(self.log.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The model ended an answer so.
    pub(crate) fn model_ended(&self, end: AnswerEnd) {
        self.state().end = end;
    }

    /// A turn of it is worked here.
    pub(crate) fn is_worked(&self) {
        self.state().work.a_turn = true;
    }

    /// Whether a turn of it was worked here.
    pub(crate) fn was_worked(&self) -> bool {
        self.state().work.a_turn
    }

    /// It works what somebody asked for with the API key `key` as well.
    pub(crate) fn is_asked_with(&self, key: &str) {
        self.state().work.keys.insert(key.to_owned());
    }

    /// The ids of the API keys with which somebody asked for what it works.
    pub(crate) fn keys(&self) -> BTreeSet<String> {
        self.state().work.keys.clone()
    }

    /// Whether a tool ran for it.
    pub(crate) fn has_effect(&self) -> bool {
        self.state().work.effect
    }

    /// A file for its user stands at `path`.
    pub(crate) fn brings(&self, path: PathBuf) {
        self.state().files.waiting.push(path);
    }

    /// The files that are not kept yet; once.
    pub(crate) fn brought(&self) -> Vec<PathBuf> {
        std::mem::take(&mut self.state().files.waiting)
    }

    /// A file for its user is kept.
    pub(crate) fn has_kept(&self, reference: String) {
        self.state().files.kept.push(reference);
    }

    pub(crate) fn had_effect(&self) {
        self.state().work.effect = true;
    }

    /// What it brought, with `content` as the answer.
    pub(crate) fn answer(&self, run_id: TurnId, content: String) -> RunAnswer {
        let state = self.state();
        let thinking = Some(state.thinking.clone()).filter(|thinking| !thinking.is_empty());
        RunAnswer { run_id, content, usage: state.usage, thinking, media: state.files.kept.clone(), end: state.end }
    }

    /// Whether it is about the prompt `text`, as it was sent or as the gates left it.
    pub(crate) fn says(&self, text: &str) -> bool {
        let begun = |heard: &Heard| matches!(heard, Heard::Started { content, .. } if content == text);
        self.prompt == text || self.transcript().iter().any(begun)
    }

    /// The approval that it waits for.
    pub(crate) fn waits(&self) -> Option<String> {
        self.state().waits.clone()
    }

    pub(crate) fn now_waits(&self, approval: Option<String>) {
        self.state().waits.clone_from(&approval);
        self.hears(Heard::Waits(approval));
    }

    /// What it does.
    pub(crate) fn activity(&self) -> Option<Value> {
        self.state().activity.clone()
    }

    /// It goes on with a turn that was cut, such as by a restart of the host.
    pub(crate) fn was_cut(&self) {
        self.state().is_resumed = true;
    }

    /// Whether it goes on with a turn that was cut.
    pub(crate) fn is_resumed(&self) -> bool {
        self.state().is_resumed
    }

    /// It does something else now.
    pub(crate) fn does(&self, activity: Value) {
        self.is_at(activity.clone());
        self.event("activity", Some(activity));
    }

    /// The same of what another event tells.
    pub(crate) fn is_at(&self, activity: Value) {
        self.state().activity = Some(activity);
    }

    /// An answer that was followed by calls of tools was no last word.
    pub(crate) fn was_intermediate(&self) {
        let text = {
            let mut state = self.state();
            let is_told = std::mem::replace(&mut state.complete, false);
            if is_told { std::mem::take(&mut state.text) } else { String::new() }
        };
        if !text.is_empty() {
            self.event("block.reply", Some(json!({ "content": text })));
        }
    }

    /// A text for the user that is no answer of the model's: of a tool, or of a hook that answered for one.
    pub(crate) fn for_user(&self, text: &str) {
        self.event("block.reply", Some(json!({ "content": text })));
        // Before it begins there is no answer that it could stand in.
        if self.log().is_none_or(|log| !log.has_started()) {
            return;
        }
        if std::mem::replace(&mut self.state().spoke, Spoke::Aside) != Spoke::Nothing {
            self.hears(Heard::Text(BETWEEN.to_owned()));
        }
        self.hears(Heard::Text(text.to_owned()));
    }

    /// The files for the user that are kept, as references.
    pub(crate) fn media(&self) -> Vec<String> {
        self.state().files.kept.clone()
    }

    /// A piece of an answer, or all of it.
    pub(crate) fn piece(&self, text: &str) {
        let begins = {
            let state = self.state();
            state.complete || state.text.is_empty()
        };
        self.was_intermediate();
        let spoke = {
            let mut state = self.state();
            state.text.push_str(text);
            std::mem::replace(&mut state.spoke, Spoke::Answer)
        };
        if spoke == Spoke::Aside || (begins && spoke == Spoke::Answer) {
            self.hears(Heard::Text(BETWEEN.to_owned()));
        }
        self.hears(Heard::Text(text.to_owned()));
    }

    /// Another node ended the turn with `reply`: whoever waits for the answer gets what they have not heard.
    pub(crate) fn catch_up(&self, reply: &str) {
        let is_told = self.state().text == reply;
        if !is_told {
            self.piece(reply);
            self.answered(None);
        }
    }

    /// Its turn is `turn_id`, unless it had one already.
    pub(crate) fn begins(&self, turn_id: &TurnId) -> &TurnId {
        self.id.get_or_init(|| turn_id.clone())
    }

    /// The text of a hook that stays, for whoever keeps the conversation, if anybody does.
    pub(crate) fn keeps(&self, mut hook: Object) -> bool {
        if self.log.is_some() {
            self.hears(Heard::Hook(hook));
            return true;
        }
        let Asker::Socket { connection, .. } = &self.asker else { return false };
        let Some(origin) = connection.upgrade() else { return false };
        hook.insert("sessionKey".to_owned(), json!(self.name.shown_to(&origin.who)));
        hook.insert("runId".to_owned(), json!(self.id.get_or_init(TurnId::fresh)));
        origin.hook(&hook)
    }

    /// The answer that was told last is complete, or stands otherwise than it was told.
    pub(crate) fn answered(&self, instead: Option<&str>) {
        let mut state = self.state();
        state.complete |= instead.is_none();
        if let Some(text) = instead {
            text.clone_into(&mut state.text);
        }
    }

    pub(crate) fn thinks(&self, text: &str) {
        self.state().thinking.push_str(text);
    }

    fn state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
