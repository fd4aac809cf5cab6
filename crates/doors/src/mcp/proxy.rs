//! The machine between one client and one server: messages in, steps out. What no rule is about goes on in its bytes.
//!
//! A call goes to the server only with a permit; a result goes to the client only after its hooks. An answer to nothing
//! that was asked goes nowhere, so that no server answers a call which is still being cleared.

use std::collections::{BTreeMap, VecDeque};

use pintle_domain::tool::Annotations;

use self::held::{AskedTask, HeldMessages, HeldReply, OpenQuestions, OpenRequest, OpenTasks, OwnListing};
use super::message::{
    INTERNAL_ERROR, INVALID_REQUEST, McpKind, McpMessage, PARSE_ERROR, RequestKey, UnreadMessage, error_reply,
};
use super::tools::{KnownTools, ToolFilter};

mod calls;
mod held;
mod lists;
mod questions;
mod step;

pub use step::{ClientBound, PinnedTools, ProxiedCall, ProxyRuling, ProxyStep, ServerBound, SignInWanted, Ticket};

/// Most requests that are open at once: no client has as many.
const MAX_OPEN: usize = 4096;

/// Where what is told of a subscription names the request that began it. Source: MCP of 2026-07-28.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What is set of a proxy.
#[derive(Clone, Debug)]
pub struct ProxyRules {
    /// The name of the server here.
    pub server: String,
    /// Which of its tools are shown.
    pub filter: ToolFilter,
    /// What a person types to accept a changed tool.
    pub accept: String,
}

/// The machine.
#[derive(Debug)]
pub struct McpProxy {
    rules: ProxyRules,
    tools: KnownTools,
    steps: VecDeque<ProxyStep>,
    open: BTreeMap<RequestKey, OpenRequest>,
    /// The requests that have a progress token, by it.
    tokens: BTreeMap<RequestKey, RequestKey>,
    held: HeldMessages,
    listing: Option<OwnListing>,
    /// How often the server said that its list changed.
    changes: u64,
    /// How often it had when all of it was seen.
    listed_at: Option<u64>,
    tasks: OpenTasks,
    questions: OpenQuestions,
    next: Ticket,
}

impl McpProxy {
    /// A machine that knows nothing of its server yet.
    pub fn new(rules: ProxyRules) -> Self {
        Self {
            rules,
            tools: KnownTools::default(),
            steps: VecDeque::new(),
            open: BTreeMap::new(),
            tokens: BTreeMap::new(),
            held: HeldMessages::default(),
            listing: None,
            changes: 0,
            listed_at: None,
            tasks: OpenTasks::default(),
            questions: OpenQuestions::default(),
            next: 0,
        }
    }

    /// What is next; nothing where more is needed.
    pub fn next_step(&mut self) -> Option<ProxyStep> {
        self.steps.pop_front()
    }

    /// What the tools say of themselves, by our names.
    pub fn annotations(&self) -> BTreeMap<String, Annotations> {
        self.tools.annotations()
    }

    /// Whether nothing is open or held.
    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.held.calls.is_empty() && self.held.replies.is_empty() && self.held.pages.is_empty()
    }

    /// Takes a message of the client.
    pub fn client(&mut self, text: String) {
        let message = match McpMessage::read(text) {
            Ok(message) => message,
            Err(UnreadMessage { why, id, .. }) => {
                let code = if id.is_some() { INVALID_REQUEST } else { PARSE_ERROR };
                let text = error_reply(id.as_deref().unwrap_or("null"), code, &why);
                return self.say_to_client(text, None, true);
            }
        };
        match message.kind.clone() {
            McpKind::Request { key, method } => self.asked(message, key, &method),
            McpKind::Notice { method } => self.told(message, &method),
            McpKind::Reply { key } if self.said(&message, &key) => {}
            McpKind::Reply { .. } | McpKind::Complaint => self.pass_to_server(message, None, None),
        }
    }

    fn asked(&mut self, message: McpMessage, key: RequestKey, method: &str) {
        let in_use = self.open.contains_key(&key)
            || self.held.calls.values().any(|held| held.call.key == key)
            || self.held.replies.values().any(|held| held.key.as_ref() == Some(&key))
            || self.held.pages.values().any(|held| held.key == key)
            || self.held.samplings.values().any(|held| held.answers() == Some(&key));
        if in_use || self.open.len() + self.held.calls.len() >= MAX_OPEN {
            let why = if in_use { "the id is still in use by another request" } else { "too many requests are open" };
            return self.say_to_client(error_reply(message.id(), INVALID_REQUEST, why), Some(key), true);
        }
        let meta = |name: &str| message.params().and_then(|params| params.at(&["_meta", name]));
        if let Some(token) = meta("progressToken").and_then(|node| RequestKey::of(&message.document.value(node))) {
            self.tokens.insert(token, key.clone());
        }
        let param = |name: &str| message.params().and_then(|params| message.document.text_at(params, name));
        if method == "initialize" {
            self.greeted(&message);
        }
        let (open, name) = match method {
            "tools/call" => return self.called(message, key),
            "tools/list" => {
                let cursor = message.params().and_then(|params| params.get("cursor"));
                let is_first = cursor.is_none_or(|node| message.document.raw(node) == "null");
                (OpenRequest::List { is_first, changes: self.changes }, None)
            }
            "tasks/result" | "tasks/get" => {
                let task = param("taskId");
                let call = task.as_ref().and_then(|task| self.tasks.get(task)).cloned();
                (OpenRequest::Task(AskedTask { task: task.clone(), call, nested: method == "tasks/get" }), task)
            }
            "subscriptions/listen" => (OpenRequest::Subscription, None),
            _ => (OpenRequest::Other, ["name", "uri", "taskId"].into_iter().find_map(param)),
        };
        self.open.insert(key.clone(), open);
        self.pass_to_server(message, Some(key), name);
    }

    fn told(&mut self, message: McpMessage, method: &str) {
        match method {
            "tools/call" | "tools/list" | "tasks/result" | "tasks/get" | "sampling/createMessage" => {
                self.steps.push_back(ProxyStep::Dropped(format!("`{method}` came without an id")));
            }
            "notifications/cancelled" => {
                let id = message.params().and_then(|params| params.get("requestId"));
                let key = id.and_then(|node| RequestKey::of(&message.document.value(node)));
                if key.is_none_or(|key| self.withdraw(&key)) {
                    self.pass_to_server(message, None, None);
                }
            }
            _ => self.pass_to_server(message, None, None),
        }
    }

    /// The client does not wait for `key` any more. Whether the server knows of it.
    pub fn withdraw(&mut self, key: &RequestKey) -> bool {
        self.tokens.retain(|_, request| request != key);
        if let Some(ticket) = self.held.calls.iter().find(|(_, held)| held.call.key == *key).map(|(ticket, _)| *ticket)
        {
            self.held.calls.remove(&ticket);
            self.unask(key);
            self.steps.push_back(ProxyStep::Withdrawn(ticket));
            return false;
        }
        self.held.replies.retain(|ticket, held| {
            let is_meant = held.key.as_ref() == Some(key);
            if is_meant {
                self.steps.push_back(ProxyStep::Withdrawn(*ticket));
            }
            !is_meant
        });
        self.held.pages.retain(|_, held| held.key != *key);
        self.held.samplings.retain(|_, held| held.answers() != Some(key));
        if let Some(OpenRequest::Call { ticket, .. }) = self.open.remove(key) {
            self.steps.push_back(ProxyStep::Withdrawn(ticket));
        }
        true
    }

    /// Takes a message of the server. `about` is the request of the client that it came with, where that is known.
    pub fn server(&mut self, text: String, about: Option<&RequestKey>) {
        let message = match McpMessage::read(text) {
            Ok(message) => message,
            Err(UnreadMessage { why, id, answers }) => {
                let why = format!("the server's message cannot be read: {why}");
                let lost: Vec<RequestKey> = answers.iter().filter_map(|key| self.awaited_as(key)).collect();
                return match id {
                    _ if !lost.is_empty() => self.lose(&lost, &why),
                    Some(id) => self.say_to_server(error_reply(&id, INVALID_REQUEST, &why)),
                    None => self.steps.push_back(ProxyStep::Dropped(why)),
                };
            }
        };
        match message.kind.clone() {
            McpKind::Reply { key } => match self.open.remove(&key) {
                Some(open) => self.answered(message, key, open),
                None => match self.awaited_as(&key) {
                    Some(meant) => {
                        let (said, asked) = (key.written(), meant.written());
                        self.lose(&[meant], &format!("the server answered `{said}`, and the request is `{asked}`"));
                    }
                    None => self.steps.push_back(ProxyStep::Dropped("it answers nothing that was asked".into())),
                },
            },
            McpKind::Request { method, .. } if method == "sampling/createMessage" => self.sampling(message, about),
            McpKind::Request { .. } | McpKind::Complaint => self.hand_on(message, about.cloned()),
            McpKind::Notice { method } => self.noticed(message, &method, about),
        }
    }

    fn noticed(&mut self, message: McpMessage, method: &str, about: Option<&RequestKey>) {
        let mut about = about.cloned().or_else(|| self.subscribed(&message));
        match method {
            "notifications/tools/list_changed" => self.changes += 1,
            "notifications/progress" => {
                let token = message.params().and_then(|params| params.get("progressToken"));
                let token = token.and_then(|node| RequestKey::of(&message.document.value(node)));
                about = about.or_else(|| self.tokens.get(&token?).cloned());
            }
            // On a stream of its own it ends with that.
            "notifications/cancelled" => {
                if let Some(key) = self.ended(&message) {
                    return self.answer(message.document.text, key);
                }
            }
            "tools/call" | "tools/list" | "sampling/createMessage" => {
                return self.steps.push_back(ProxyStep::Dropped(format!("`{method}` came without an id")));
            }
            _ if method.starts_with("notifications/tasks") => return self.task_told(message, about),
            _ => {}
        }
        self.hand_on(message, about);
    }

    /// The open request that began the subscription which `message` is of.
    fn subscribed(&self, message: &McpMessage) -> Option<RequestKey> {
        let id = message.params()?.at(&["_meta", SUBSCRIPTION])?;
        RequestKey::of(&message.document.value(id)).filter(|key| self.open.contains_key(key))
    }

    /// The subscription of which the server says with `message` that it is over.
    fn ended(&mut self, message: &McpMessage) -> Option<RequestKey> {
        let id = message.params()?.get("requestId")?;
        let key = RequestKey::of(&message.document.value(id))?;
        // Anything else with this id may be a request of the server's own.
        matches!(self.open.get(&key), Some(OpenRequest::Subscription)).then(|| self.open.remove(&key))?;
        Some(key)
    }

    fn answered(&mut self, message: McpMessage, key: RequestKey, open: OpenRequest) {
        match open {
            OpenRequest::Subscription | OpenRequest::Other => self.other_came(message, key),
            OpenRequest::List { is_first, changes } => self.page_came(message, key, (is_first, changes)),
            OpenRequest::OwnList => self.own_page_came(&message),
            OpenRequest::Call { ticket, call, note, id, modern } => {
                let held = HeldReply::of_call(message, call, (note, id, modern));
                self.result_came(ticket, held);
            }
            OpenRequest::Task(asked) => self.task_came(message, key, asked),
        }
    }

    /// The requests of the client that fail where `key` does, which is open at the server: calls wait for the door's own
    /// list.
    pub fn waiting_for(&self, key: &RequestKey) -> Vec<RequestKey> {
        match self.open.get(key) {
            Some(OpenRequest::OwnList) => {
                let unlisted = self.held.calls.values().filter(|held| !held.is_admitted);
                unlisted.map(|held| held.call.key.clone()).collect()
            }
            Some(
                OpenRequest::List { .. }
                | OpenRequest::Call { .. }
                | OpenRequest::Task(_)
                | OpenRequest::Subscription
                | OpenRequest::Other,
            ) => vec![key.clone()],
            None => Vec::new(),
        }
    }

    /// Whether the client's request `key` is still to be answered.
    pub fn is_awaited(&self, key: &RequestKey) -> bool {
        self.open.contains_key(key)
            || self.held.calls.values().any(|held| held.call.key == *key)
            || self.held.replies.values().any(|held| held.key.as_ref() == Some(key))
            || self.held.pages.values().any(|held| held.key == *key)
    }

    /// The request `key` has no answer, for the reason `why`.
    pub fn failed(&mut self, key: &RequestKey, why: &str) {
        match self.open.remove(key) {
            None => {}
            Some(OpenRequest::OwnList) => self.own_list_failed(why),
            Some(OpenRequest::Call { ticket, call, id, modern, .. }) => {
                let held = HeldReply::failed(call, (id, modern), why);
                self.result_came(ticket, held);
            }
            Some(OpenRequest::List { .. } | OpenRequest::Task(_) | OpenRequest::Subscription | OpenRequest::Other) => {
                // Its own spelling is not kept of a request that only passes: numbers and texts are written alike.
                let text = error_reply(&key.written(), INTERNAL_ERROR, why);
                self.answer(text, key.clone());
            }
        }
    }

    /// The request at the server that an answer to `key` is meant for: some servers make a text of a number.
    fn awaited_as(&self, key: &RequestKey) -> Option<RequestKey> {
        [key.clone(), key.twin()].into_iter().find(|key| self.open.contains_key(key))
    }

    /// What the server said to the requests `lost` cannot be handed on, for the reason `why`.
    fn lose(&mut self, lost: &[RequestKey], why: &str) {
        self.steps.push_back(ProxyStep::Lost(why.to_owned()));
        lost.iter().for_each(|key| self.failed(key, why));
    }

    /// The server is gone, for the reason `why`: nothing that is open will be answered.
    pub fn server_gone(&mut self, why: &str) {
        let open: Vec<RequestKey> = self.open.keys().cloned().collect();
        open.iter().for_each(|key| self.failed(key, why));
        let held: Vec<Ticket> = self.held.calls.keys().copied().collect();
        for ticket in held {
            self.steps.push_back(ProxyStep::Withdrawn(ticket));
            self.refuse(ticket, why.to_owned());
        }
    }

    fn ticket(&mut self) -> Ticket {
        self.next += 1;
        self.next
    }

    fn pass_to_server(&mut self, message: McpMessage, key: Option<RequestKey>, name: Option<String>) {
        let method = match message.kind {
            McpKind::Request { method, .. } | McpKind::Notice { method } => Some(method),
            McpKind::Reply { .. } | McpKind::Complaint => None,
        };
        let (text, mirrored) = (message.document.text, Vec::new());
        self.steps.push_back(ProxyStep::ToServer(ServerBound { text, key, method, name, mirrored }));
    }

    fn say_to_server(&mut self, text: String) {
        let bound = ServerBound { text, key: None, method: None, name: None, mirrored: Vec::new() };
        self.steps.push_back(ProxyStep::ToServer(bound));
    }

    fn say_to_client(&mut self, text: String, about: Option<RequestKey>, is_answer: bool) {
        if is_answer {
            self.tokens.retain(|_, request| about.as_ref() != Some(request));
        }
        self.steps.push_back(ProxyStep::ToClient(ClientBound { text, about, is_answer, wants: None }));
    }

    fn hand_on(&mut self, message: McpMessage, about: Option<RequestKey>) {
        self.say_to_client(message.document.text, about, false);
    }

    fn answer(&mut self, text: String, key: RequestKey) {
        self.say_to_client(text, Some(key), true);
    }
}
