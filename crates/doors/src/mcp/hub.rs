//! Drives one machine between a client and a server.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use pintle_domain::llm::LlmRequest;
use pintle_domain::tool::ToolOutput;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::clearing::{CallContext, ClearedCall, ClientWord, ToolSession};
use super::ends::{ClientEnd, FromClient, FromServer, QUEUE, ServerEnd};
use super::message::RequestKey;
use super::proxy::{ClientBound, McpProxy, PinnedTools, ProxyRuling, ProxyStep, ServerBound, SignInWanted, Ticket};

/// How many messages may wait for one side before the other is not read any more.
const MAX_WAITING: usize = 256;

/// How many messages may wait for a server before it is not read any more: more than a client ever has open, so that a
/// server which writes its answers before it reads on is always read.
const MAX_UNREAD: usize = 8192;

/// How long what is open when a client closes our input may still be answered: what was piped in from a file gets its
/// answers, and a client that left holds nothing up.
const LINGER: Duration = Duration::from_secs(1);

/// How long a server whose input was closed may still say something.
const LEAVE: Duration = Duration::from_secs(2);

/// How a proxy came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyEnd {
    /// The client left.
    ClientLeft,
    /// The server is gone, for this reason.
    ServerGone(String),
}

/// What came of something that was put to the hooks.
enum Done {
    Pinned(Ticket, Result<PinnedTools, String>),
    Ruled(Ticket, Box<(ProxyRuling, Option<ClearedCall>)>),
    Reviewed(Ticket, Option<ToolOutput>),
    Sampled(Ticket, Result<Vec<LlmRequest>, String>),
    Kept,
}

/// What a hub waits for.
enum Came {
    Nothing,
    /// The server does not read any more.
    Deaf,
    Client(Option<FromClient>),
    Server(Option<FromServer>),
    Done(Done),
    Word(ClientWord),
    /// What was waited for at the end did not come.
    Late,
    End(ProxyEnd),
}

/// One connection of a client to one server.
pub(super) struct Hub {
    session: Arc<ToolSession>,
    machine: McpProxy,
    work: FuturesUnordered<BoxFuture<'static, Done>>,
    /// What ends the clearing of each call.
    clearing: BTreeMap<Ticket, CancellationToken>,
    cleared: BTreeMap<Ticket, ClearedCall>,
    /// What the server wants before it answers these requests of the client.
    wanted: BTreeMap<RequestKey, SignInWanted>,
    for_client: VecDeque<ClientBound>,
    for_server: VecDeque<ServerBound>,
    words: (mpsc::Sender<ClientWord>, mpsc::Receiver<ClientWord>),
    /// Where the client's answers to questions of the door go.
    questions: BTreeMap<RequestKey, oneshot::Sender<bool>>,
}

impl Hub {
    pub(super) fn new(session: Arc<ToolSession>) -> Self {
        Self {
            machine: McpProxy::new(session.door.rules.clone()),
            session,
            work: FuturesUnordered::new(),
            clearing: BTreeMap::new(),
            cleared: BTreeMap::new(),
            wanted: BTreeMap::new(),
            for_client: VecDeque::new(),
            for_server: VecDeque::new(),
            words: mpsc::channel(QUEUE),
            questions: BTreeMap::new(),
        }
    }

    /// Works until one side is gone.
    pub(super) async fn run(mut self, client: ClientEnd, server: ServerEnd) -> ProxyEnd {
        let ClientEnd { from: mut from_client, to: to_client } = client;
        let ServerEnd { from: mut from_server, to: to_server } = server;
        let (mut to_server, mut end, mut is_left) = (Some(to_server), None::<Instant>, false);
        let outcome = loop {
            self.step();
            if is_left
                && to_server.is_some()
                && (self.machine.is_idle() || end.is_some_and(|end| Instant::now() >= end))
                && self.for_server.is_empty()
            {
                // The server hears of it as it would without a proxy, and may still say something.
                (to_server, end) = (None, Some(Instant::now() + LEAVE));
            }
            let hears_server = self.hears_server();
            let came = tokio::select! {
                room = to_client.reserve(), if !self.for_client.is_empty() => match room {
                    Ok(room) => self.for_client.pop_front().map_or(Came::Nothing, |message| {
                        room.send(message);
                        Came::Nothing
                    }),
                    Err(_) => Came::End(ProxyEnd::ClientLeft),
                },
                room = reserve(to_server.as_ref()), if to_server.is_some() && !self.for_server.is_empty() => match room {
                    Some(room) => self.for_server.pop_front().map_or(Came::Nothing, |message| {
                        room.send(message);
                        Came::Nothing
                    }),
                    // Why it is gone is said where its messages come from.
                    None => Came::Deaf,
                },
                came = from_client.recv(), if !is_left && self.for_server.len() < MAX_WAITING => Came::Client(came),
                came = from_server.recv(), if hears_server => Came::Server(came),
                Some(done) = self.work.next() => Came::Done(done),
                Some(word) = self.words.1.recv() => Came::Word(word),
                () = sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => Came::Late,
            };
            match came {
                Came::Nothing => {}
                Came::Deaf => (to_server, self.for_server) = (None, VecDeque::new()),
                Came::Client(Some(FromClient::Message(text))) => self.machine.client(text),
                Came::Client(Some(FromClient::Left(key))) => self.left(&key),
                Came::Client(None) => (is_left, end) = (true, Some(Instant::now() + LINGER)),
                Came::Server(Some(FromServer::Message(text, about))) => self.machine.server(text, about.as_ref()),
                Came::Server(Some(FromServer::Failed(key, why, wants))) => self.failed(&key, &why, wants),
                Came::Server(Some(FromServer::Gone(why))) => break ProxyEnd::ServerGone(why),
                Came::Server(None) => break ProxyEnd::ServerGone("the server is gone".into()),
                Came::Done(done) => self.done(done),
                Came::Word(ClientWord::Progress(key, text)) => {
                    self.for_client.push_back(ClientBound { text, about: Some(key), is_answer: false, wants: None });
                }
                Came::Word(ClientWord::Question(key, question, answer)) => {
                    // Nobody else can answer it: its name is told to the client alone.
                    if let Some(own) = self.machine.ask(&key, (&Uuid::new_v4().to_string(), &question)) {
                        self.questions.insert(own, answer);
                    }
                }
                Came::Late if to_server.is_none() => break ProxyEnd::ClientLeft,
                Came::Late => self.for_server.clear(),
                Came::End(end) => break end,
            }
        };
        drop((to_server, from_client));
        self.close(&outcome, (is_left, &to_client)).await;
        if is_left { ProxyEnd::ClientLeft } else { outcome }
    }

    /// Says what is to be said at the end, and keeps what is to be kept.
    async fn close(mut self, outcome: &ProxyEnd, (is_left, to_client): (bool, &mpsc::Sender<ClientBound>)) {
        if let ProxyEnd::ServerGone(why) = outcome {
            self.machine.server_gone(&format!("{why}; whether a call that was under way had an effect is not known"));
        }
        self.clearing.values().for_each(CancellationToken::cancel);
        let late = Instant::now() + LEAVE;
        loop {
            self.step();
            if self.work.is_empty() {
                break;
            }
            tokio::select! {
                Some(done) = self.work.next() => self.done(done),
                () = sleep_until(late) => {
                    tracing::warn!("hooks did not come to an end when the proxy did");
                    break;
                }
            }
        }
        for message in self.for_client.drain(..) {
            let sent = tokio::time::timeout_at(late, to_client.send(message)).await;
            if !matches!(sent, Ok(Ok(()))) {
                tracing::debug!(is_left, "the client does not read its last messages");
                break;
            }
        }
        std::mem::take(&mut self.cleared).into_values().for_each(ClearedCall::leave);
    }

    /// Whether there is room for what a server says, and for what comes of it. Calls that are being cleared do not count:
    /// they come from the client, and may wait long for a person.
    fn hears_server(&self) -> bool {
        let at_hooks = self.work.len().saturating_sub(self.clearing.len());
        self.for_client.len() < MAX_WAITING && at_hooks < MAX_WAITING && self.for_server.len() < MAX_UNREAD
    }

    /// The request `key` has no answer, for the reason `why`. What the server wants first is told with the answers of
    /// all that fail with it.
    fn failed(&mut self, key: &RequestKey, why: &str, wants: Option<SignInWanted>) {
        if let Some(wants) = wants {
            let waiting = self.machine.waiting_for(key);
            self.wanted.extend(waiting.into_iter().map(|key| (key, wants.clone())));
        }
        self.machine.failed(key, why);
    }

    /// A client does not wait for `key` any more.
    fn left(&mut self, key: &RequestKey) {
        if self.machine.withdraw(key) {
            let id = key.written();
            let text = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"the client left"}}}}"#
            );
            let method = Some("notifications/cancelled".to_owned());
            self.for_server.push_back(ServerBound { text, key: None, method, name: Some(id), mirrored: Vec::new() });
        }
    }

    /// Does what the machine wants done.
    fn step(&mut self) {
        while let Some(step) = self.machine.next_step() {
            match step {
                ProxyStep::ToServer(message) => {
                    // Under the id of one that was withdrawn.
                    if let Some(key) = &message.key {
                        self.wanted.remove(key);
                    }
                    self.for_server.push_back(message);
                }
                ProxyStep::ToClient(message) => {
                    let answered = message.about.as_ref().filter(|_| message.is_answer);
                    let wants = answered.and_then(|key| self.wanted.remove(key));
                    self.for_client.push_back(ClientBound { wants, ..message });
                }
                ProxyStep::Pin(ticket, definitions) => {
                    let pinned = self.session.clone().pin(definitions);
                    self.work.push(Box::pin(async move { Done::Pinned(ticket, pinned.await) }));
                }
                ProxyStep::Clear(ticket, call) => {
                    let cancel = CancellationToken::new();
                    self.clearing.insert(ticket, cancel.clone());
                    let annotations = self.machine.annotations();
                    let context = CallContext { annotations, cancel, words: self.words.0.clone() };
                    let cleared = self.session.clone().clear(call, context);
                    self.work.push(Box::pin(async move { Done::Ruled(ticket, Box::new(cleared.await)) }));
                }
                ProxyStep::Refused(call, why) => {
                    let kept = self.session.clone().refused(call, why);
                    self.work.push(Box::pin(async move {
                        kept.await;
                        Done::Kept
                    }));
                }
                ProxyStep::Review(ticket, call, output) => {
                    let cleared = self.cleared.remove(&ticket);
                    let reviewed = self.session.clone().review((call, cleared), output);
                    self.work.push(Box::pin(async move { Done::Reviewed(ticket, reviewed.await) }));
                }
                ProxyStep::Sample(ticket, requests) => {
                    let sampled = self.session.clone().sample(requests);
                    self.work.push(Box::pin(async move { Done::Sampled(ticket, sampled.await) }));
                }
                ProxyStep::Withdrawn(ticket) => {
                    if let Some(cancel) = self.clearing.remove(&ticket) {
                        cancel.cancel();
                    }
                    if let Some(cleared) = self.cleared.remove(&ticket) {
                        cleared.leave();
                    }
                }
                ProxyStep::Said(key, said) => {
                    let answer = self.questions.remove(&key);
                    // Who does not want to say leaves it to others.
                    if let (Some(answer), Some(said)) = (answer, said) {
                        answer.send(said).ok();
                    }
                }
                ProxyStep::Dropped(why) => {
                    tracing::info!(server = %self.session.door.rules.server, "a message was not handed on: {why}");
                }
                ProxyStep::Lost(why) => {
                    tracing::warn!(server = %self.session.door.rules.server, "an answer of the server is lost: {why}");
                }
            }
        }
        // Whoever withdrew a request meanwhile gets no answer to tell it with.
        self.wanted.retain(|key, _| self.machine.is_awaited(key));
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Pinned(ticket, pinned) => self.machine.pinned(ticket, pinned),
            Done::Ruled(ticket, ruled) => {
                let (ruling, cleared) = *ruled;
                // Of a call that was withdrawn meanwhile nothing is to be kept.
                let waits = self.clearing.remove(&ticket).is_some();
                match cleared {
                    Some(cleared) if waits => drop(self.cleared.insert(ticket, cleared)),
                    Some(cleared) => cleared.leave(),
                    None => {}
                }
                self.machine.ruled(ticket, ruling);
            }
            Done::Reviewed(ticket, left) => self.machine.reviewed(ticket, left),
            Done::Sampled(ticket, left) => self.machine.sampled(ticket, left),
            Done::Kept => {}
        }
    }
}

async fn reserve(to: Option<&mpsc::Sender<ServerBound>>) -> Option<mpsc::Permit<'_, ServerBound>> {
    match to {
        Some(to) => to.reserve().await.ok(),
        None => std::future::pending().await,
    }
}
