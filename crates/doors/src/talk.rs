//! One request to a model and its answer, worked: the machine of the wire says what is next, this does it.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, Method};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{Stream, StreamExt as _};
use jiff::Timestamp;
use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::checkpoint::{AfterLlm, CheckpointKind, ObservedEvent, RuntimeEvent};
use pintle_domain::id::CallId;
use pintle_domain::json::Value;
use pintle_domain::llm::{LlmReply, Usage};
use pintle_domain::message::{CallPart, FunctionPart};
use pintle_domain::tool::ToolCall;
use tokio_util::sync::CancellationToken;

use crate::answer::{AnswerMachine, AnswerStep, AnswerTo, CallRuling, NO_ARGUMENTS, StoredAnswer, WantedCall};
use crate::door::{Held, ModelDoor, Ruled, Session, looked_at_again, ruling_of, stopped_text};
use crate::inbound::{Refused, again, waits};
use crate::keeper::{ChainOwner, with_messages};
use crate::request::{AnswerChain, SeenCall};
use crate::room::Room;
use crate::tokens::{Meter, Tokens};

/// How often a connection is kept awake while a person thinks: well within the patience of every client seen.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// How long a person has to answer. Source: the longest that clients of models wait by default.
const HOLD: Duration = Duration::from_secs(600);

/// How long a vendor may say nothing in the middle of an answer.
const SILENCE: Duration = Duration::from_secs(600);

/// The bytes of a vendor's answer.
type AnswerBytes = Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>;

/// A request that left, to be made again with more behind it.
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) head: HeaderMap,
    pub(crate) body: String,
    /// What its answers are to.
    pub(crate) to: AnswerTo,
    /// The room that its body takes.
    pub(crate) room: Room,
    /// What its rounds may come to.
    pub(crate) held: Vec<Held>,
    /// What stands at the vendor behind it, and who may go on from there.
    pub(crate) chain: (ChainOwner, AnswerChain),
}

/// An answer under way.
pub(crate) struct Talk {
    pub(crate) door: Arc<ModelDoor>,
    pub(crate) session: Session,
    asked: Asked,
    answer: Box<dyn AnswerMachine>,
    bytes: AnswerBytes,
    clearing: Option<(WantedCall, BoxFuture<'static, Ruled>)>,
    /// Why nothing more may run in this answer.
    aborted: Option<String>,
    passed: Vec<CallPart>,
    /// The answer that the vendor keeps, until somebody reviewed it.
    stored: Option<StoredAnswer>,
    /// Why it could not be worked to its end.
    pub(crate) broken: Option<String>,
    is_over: bool,
    meter: Meter,
}

impl Drop for Talk {
    fn drop(&mut self) {
        // Also what nobody listened to any more was written.
        self.pay();
    }
}

impl Talk {
    pub(crate) fn new((door, session): (Arc<ModelDoor>, Session), asked: Asked, response: reqwest::Response) -> Self {
        let answer = session.wire.answer(asked.to.clone(), session.deny);
        let meter = Meter::of(asked.body.len(), asked.chain.1.tokens);
        Self {
            door,
            session,
            asked,
            answer,
            bytes: Box::pin(response.bytes_stream()),
            clearing: None,
            aborted: None,
            passed: Vec::new(),
            stored: None,
            broken: None,
            is_over: false,
            meter,
        }
    }

    /// The next bytes for the client; nothing at the end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        while !self.is_over {
            if let Some((call, clearing)) = &mut self.clearing {
                let call = call.clone();
                match or_awake(clearing, self.answer.keep_alive()).await {
                    Ok(ruled) => self.ruled(call, ruled),
                    Err(bytes) => return Some(Bytes::from_static(bytes)),
                }
                continue;
            }
            match self.answer.next() {
                Some(AnswerStep::Send(bytes)) => {
                    self.note_stored();
                    return Some(bytes.into());
                }
                Some(AnswerStep::Rule(call)) => self.rule(call),
                Some(AnswerStep::Unread { id, name }) => {
                    let mut hooks = self.session.hooks.clone();
                    hooks.set_call(Some(CallId::new(id)));
                    hooks.refused(CheckpointKind::PreToolUse, &format!("`{name}`: {NO_ARGUMENTS}"));
                }
                Some(AnswerStep::GoOn(messages)) => {
                    if let Err(why) = self.ask_again(&messages).await {
                        return self.fail(&why);
                    }
                }
                Some(AnswerStep::Done(exchange)) => {
                    if let Some(exchange) = exchange {
                        self.session.kept(|keeper| keeper.keep_exchange(&self.session.name, exchange));
                    }
                    self.ended();
                }
                Some(AnswerStep::Broken(why)) => self.breaks(&why),
                None => match tokio::time::timeout(SILENCE, self.bytes.next()).await {
                    Ok(Some(Ok(bytes))) => {
                        self.meter.came(bytes.len(), self.answer.tally());
                        self.answer.feed(&bytes);
                    }
                    // What is missing is noticed by the machine, which knows what belongs to an answer.
                    Ok(Some(Err(_)) | None) | Err(_) => self.answer.end(),
                },
            }
        }
        None
    }

    /// Takes notice that the client may go on from this answer: once it was reviewed, where somebody does that.
    fn note_stored(&mut self) {
        if let Some(stored) = self.answer.take_stored() {
            match self.is_reviewed() {
                true => self.stored = Some(stored),
                false => self.keep_chain(stored),
            }
        }
    }

    fn keep_chain(&self, stored: StoredAnswer) {
        let (owner, before) = &self.asked.chain;
        let mut chain = AnswerChain { tokens: self.meter.stands(self.answer.tally()), ..before.clone() };
        let call = |WantedCall { id, name, arguments }| SeenCall { id, made: None, name, arguments };
        chain.calls.extend(stored.calls.into_iter().map(call));
        let (key, now) = (owner.key(&stored.id), Timestamp::now());
        self.session.kept(|keeper| keeper.keep_chain(&self.session.name, key, chain, now));
    }

    /// It goes no further, and the record says why: no hook was asked.
    fn breaks(&mut self, why: &str) {
        tracing::warn!("{}: {why}", self.session.wire.name());
        self.session.hooks.refused(CheckpointKind::AfterLlm, why);
        (self.broken, self.is_over) = (Some(why.to_owned()), true);
    }

    /// Notes what the answer cost, once: what the vendor says, and where it does not, a guess.
    fn pay(&mut self) {
        let is_whole = self.is_over && self.broken.is_none();
        if let Some((tokens, is_told)) = self.meter.bill(self.answer.tally(), is_whole) {
            self.session.spend(tokens, is_told, std::mem::take(&mut self.asked.held));
        }
    }

    fn fail(&mut self, why: &str) -> Option<Bytes> {
        self.breaks(why);
        self.answer.keep_alive().map(|_| self.session.wire.error_event(why).into())
    }

    fn rule(&mut self, call: WantedCall) {
        if let Some(why) = &self.aborted {
            return self.answer.rule(CallRuling::Aborted(why.clone()));
        }
        let clearing = Box::pin(clear(self.session.clone(), call.clone()));
        self.clearing = Some((call, clearing));
    }

    fn ruled(&mut self, wanted: WantedCall, ruled: Ruled) {
        self.clearing = None;
        if let Some(what) = ruled.degraded {
            self.session.degraded(CheckpointKind::PreToolUse, what);
        }
        if let Some(note) = ruled.note {
            self.session.kept(|keeper| keeper.keep_note(&self.session.name, &wanted.id, note));
        }
        let arguments = match &ruled.ruling {
            CallRuling::Allowed => Some(&wanted.arguments),
            CallRuling::Rewritten(arguments) => Some(arguments),
            CallRuling::Denied(_) => None,
            CallRuling::Aborted(why) => {
                self.aborted = Some(why.clone());
                None
            }
        };
        if let Some(arguments) = arguments {
            self.passed.push(CallPart {
                id: wanted.id.clone(),
                kind: "function".into(),
                function: FunctionPart {
                    name: wanted.name.clone(),
                    arguments: Value::Object(arguments.clone()).to_string(),
                    thought_signature: String::new(),
                },
                extra_content: None,
            });
        }
        self.answer.rule(ruled.ruling);
    }

    /// Makes the request again, with what the model said and was told behind it.
    async fn ask_again(&mut self, messages: &[String]) -> Result<(), String> {
        let request = self.session.read(self.asked.body.clone())?;
        let most = Tokens::most(&request.document, self.asked.chain.1.tokens);
        let held = self.session.hold(most, &self.asked.held).await.map_err(|over| over.why)?;
        self.asked.held.push(held);
        let grown = with_messages(&request, messages);
        // What is sent in the client's name is put to the hooks as what the client sends.
        let body = again(&self.session, grown).await.map_err(|Refused(why)| why)?;
        let upstream = self.door.upstream(self.session.wire);
        let place = (Method::POST, self.asked.path.as_str());
        let asked = upstream.ask(place, self.asked.head.clone(), body.clone());
        let response = asked.await.map_err(|error| error.to_string())?;
        if !response.status().is_success() {
            return Err(format!("the model was told that its calls were refused, and answered {}", response.status()));
        }
        self.asked.room.shrink(body.len());
        self.meter.sent(body.len());
        self.asked.body = body;
        self.bytes = Box::pin(response.bytes_stream());
        Ok(())
    }

    fn ended(&mut self) {
        self.is_over = true;
        self.pay();
        if !self.passed.is_empty() {
            return;
        }
        let (reply, duration) = (self.answer.said(), Duration::ZERO);
        let hooks = &self.session.hooks;
        hooks.tell(RuntimeEvent::TurnEnd {
            status: TurnStatus::Completed,
            iterations: 0,
            duration,
            final_content_len: reply.len(),
            user_message: String::new(),
            final_content: reply.clone(),
            tool_kinds: Vec::new(),
            tool_executions: Vec::new(),
        });
        hooks.tell(ObservedEvent::Stop { reply, iterations: 0, usage: Usage::default(), duration });
    }

    /// All of the answer, for what is told at once.
    pub(crate) async fn whole(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(bytes) = self.next().await {
            all.extend_from_slice(&bytes);
        }
        all
    }

    /// Whether somebody wants to see the answer before the client does.
    pub(crate) fn is_reviewed(&self) -> bool {
        waits(&self.session.hooks, CheckpointKind::AfterLlm)
    }

    /// Shows the answer to the hooks that may change it. What they change cannot be told on this wire: it is refused.
    pub(crate) async fn review(&mut self) -> Result<(), String> {
        let response = match self.passed.as_slice() {
            [] => LlmReply::text(self.answer.said()),
            calls => LlmReply { content: self.answer.said(), ..LlmReply::calls(calls.to_vec()) },
        };
        let subject = AfterLlm { model: self.session.wire.name().into(), response };
        let before = subject.response.clone();
        let reviewed = match self.session.hooks.pass(subject).await {
            Err((_, stopped)) => Err(stopped_text(&stopped)),
            // Its usage is nobody's to change: what a hook says of it is not heard anywhere.
            Ok(left) if LlmReply { usage: before.usage, ..left.response.clone() } == before => Ok(()),
            Ok(_) => {
                self.session.degraded(CheckpointKind::AfterLlm, "modify→deny");
                Err("a hook changed the answer of the model, which this door cannot send".into())
            }
        };
        if let Some(stored) = self.stored.take().filter(|_| reviewed.is_ok()) {
            self.keep_chain(stored);
        }
        reviewed
    }
}

/// Clears one call, and waits for a person where one is asked, but not for ever.
async fn clear(session: Session, call: WantedCall) -> Ruled {
    let cancel = CancellationToken::new();
    let mut hooks = session.hooks.clone().with_cancel(cancel.clone());
    hooks.set_call(Some(CallId::new(call.id.as_str())));
    let asked = session.call(&call.id, &call.name, call.arguments.clone());
    // Before any rule: with what is protected the agent would take the guard away, or answer for a person.
    if let Some(reason) = session.protects(&asked).await {
        hooks.refused_call(CheckpointKind::PreToolUse, &asked, &reason);
        return Ruled { ruling: CallRuling::Denied(reason), note: None, degraded: None };
    }
    let clearing = hooks.clear(asked.clone());
    tokio::pin!(clearing);
    let clearance = tokio::select! {
        clearance = &mut clearing => clearance,
        () = tokio::time::sleep(HOLD) => {
            cancel.cancel();
            clearing.await
        }
    };
    let session = &session;
    let protects = |call: ToolCall| async move { session.protects(&call).await };
    let clearance = looked_at_again(clearance, &asked, &hooks, protects).await;
    session.told((call.name.as_str(), &call.arguments), ruling_of(clearance, &asked))
}

/// What `work` comes to, or the bytes that keep a connection `awake` meanwhile, where there are any.
async fn or_awake<T>(
    work: &mut (impl Future<Output = T> + Unpin),
    awake: Option<&'static [u8]>,
) -> Result<T, &'static [u8]> {
    loop {
        match (tokio::time::timeout(KEEP_ALIVE, &mut *work).await, awake) {
            (Ok(done), _) => return Ok(done),
            (Err(_), Some(bytes)) => return Err(bytes),
            (Err(_), None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::answer::DenyMode;
    use crate::wire::Wire;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_kept_awake_while_a_person_thinks() {
        for wire in [Wire::Anthropic, Wire::Gemini, Wire::OpenAi, Wire::Responses] {
            let awake =
                |streams: bool| wire.answer(AnswerTo { streams, ..AnswerTo::default() }, DenyMode::Answer).keep_alive();
            let ping = awake(true).unwrap();
            assert!(ping.ends_with(b"\n\n"), "{}", wire.name());
            let (answer, mut asked) = oneshot::channel();
            for _ in 0..3 {
                assert_eq!(or_awake(&mut asked, Some(ping)).await, Err(ping));
            }
            answer.send("yes").unwrap();
            assert_eq!(or_awake(&mut asked, Some(ping)).await, Ok(Ok("yes")));
            // What comes as a whole has no room for it.
            assert_eq!(awake(false), None);
            let (answer, mut asked) = oneshot::channel();
            let (answered, ()) = tokio::join!(or_awake(&mut asked, None), async {
                tokio::time::advance(KEEP_ALIVE * 2).await;
                answer.send("yes").unwrap();
            });
            assert_eq!(answered, Ok(Ok("yes")));
        }
    }
}
