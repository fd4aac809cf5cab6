//! What is under way: requests that are open at the server, and what is held for the hooks.

use std::collections::{BTreeMap, VecDeque};

use pintle_domain::json::Value;
use pintle_domain::tool::ToolOutput;

use super::step::{ProxiedCall, Ticket};
use crate::mcp::message::{INTERNAL_ERROR, McpMessage, RequestKey};
use crate::mcp::result::{self, ResultOf, WrittenOver};
use crate::mcp::sampling::SeenSampling;
use crate::mcp::tools::{ListedPage, ToolDefinition};
use crate::spans::{Edits, JsonDocument, Node};

/// A request that is open at the server.
#[derive(Debug)]
pub(super) enum OpenRequest {
    /// A page of its tools, for the client; whether the first, and how often the list had changed before.
    List { is_first: bool, changes: u64 },
    /// The same, for the door.
    OwnList,
    /// A call.
    Call { ticket: Ticket, call: ProxiedCall, note: Option<String>, id: String, modern: bool },
    /// What became of a task; its call, if it is known. `nested`: its state is asked for, which may hold its result.
    Task(AskedTask),
    /// A subscription, which lasts until one side ends it.
    Subscription,
    /// Anything else.
    Other,
}

/// Most tasks whose calls are remembered.
const MAX_TASKS: usize = 1024;

/// The calls that go on as tasks, until their results came.
#[derive(Debug, Default)]
pub(super) struct OpenTasks {
    calls: BTreeMap<String, ProxiedCall>,
    /// Their names, the oldest first.
    order: VecDeque<String>,
}

impl OpenTasks {
    /// Remembers the call of `task`; where there are too many, the oldest is forgotten.
    pub(super) fn insert(&mut self, task: String, call: ProxiedCall) {
        self.remove(&task);
        if self.order.len() >= MAX_TASKS
            && let Some(oldest) = self.order.pop_front()
        {
            self.calls.remove(&oldest);
        }
        self.order.push_back(task.clone());
        self.calls.insert(task, call);
    }

    pub(super) fn get(&self, task: &str) -> Option<&ProxiedCall> {
        self.calls.get(task)
    }

    pub(super) fn remove(&mut self, task: &str) {
        if self.calls.remove(task).is_some() {
            self.order.retain(|known| known != task);
        }
    }
}

/// The questions that wait for an answer of the client.
#[derive(Debug, Default)]
pub(super) struct OpenQuestions {
    /// Whether the client says that it can ask.
    pub(super) can_ask: bool,
    /// The calls that they are about, by their ids.
    pub(super) about: BTreeMap<RequestKey, RequestKey>,
}

/// What is asked about a task.
#[derive(Debug)]
pub(super) struct AskedTask {
    /// Its id.
    pub(super) task: Option<String>,
    /// Its call, if it is known.
    pub(super) call: Option<ProxiedCall>,
    /// Whether its result stands in its state.
    pub(super) nested: bool,
}

/// What waits for something that is put to the hooks, or compared.
#[derive(Debug, Default)]
pub(super) struct HeldMessages {
    pub(super) calls: BTreeMap<Ticket, HeldCall>,
    pub(super) replies: BTreeMap<Ticket, HeldReply>,
    pub(super) samplings: BTreeMap<Ticket, HeldSampling>,
    pub(super) pages: BTreeMap<Ticket, HeldPage>,
}

/// A page for the client, while its tools are compared with what is pinned.
#[derive(Debug)]
pub(super) struct HeldPage {
    pub(super) key: RequestKey,
    pub(super) message: McpMessage,
    pub(super) page: ListedPage,
    /// How often the list had changed, if this is all of it.
    pub(super) whole_at: Option<u64>,
}

/// The door's own list.
#[derive(Debug)]
pub(super) struct OwnListing {
    /// How often the list had changed when it was begun.
    pub(super) changes: u64,
    pub(super) pages: usize,
    pub(super) found: Vec<ToolDefinition>,
    /// What every request of a client of the newest protocol says of it, as it is written.
    pub(super) meta: Option<String>,
    /// The ticket under which what was found is compared.
    pub(super) ticket: Option<Ticket>,
}

/// A call that is not at the server yet.
#[derive(Debug)]
pub(super) struct HeldCall {
    pub(super) call: ProxiedCall,
    pub(super) message: McpMessage,
    /// Whether it was put to the hooks; else it waits for the list of tools.
    pub(super) is_admitted: bool,
}

/// An answer that its hooks have not seen yet.
#[derive(Debug)]
pub(super) struct HeldReply {
    /// The request that it answers; none of what answers none.
    pub(super) key: Option<RequestKey>,
    pub(super) document: JsonDocument,
    pub(super) place: ResultPlace,
    pub(super) call: Option<ProxiedCall>,
    pub(super) note: Option<String>,
    pub(super) id: String,
    pub(super) modern: bool,
    /// Whether it says what came of a task.
    pub(super) is_task: bool,
}

/// Where the result stands in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResultPlace {
    /// It is the result.
    Whole,
    /// It is a member of the result.
    Nested,
    /// It is a member of what is told.
    Told,
    /// It is an error.
    Error,
    /// It is an error that is a member of the result.
    NestedError,
    /// It is an error that is a member of what is told.
    ToldError,
}

/// What is asked of the client's model and was not seen yet.
#[derive(Debug)]
pub(super) struct HeldSampling {
    pub(super) message: McpMessage,
    pub(super) asked: Vec<SeenSampling>,
    pub(super) place: SamplingPlace,
    pub(super) about: Option<RequestKey>,
}

impl HeldSampling {
    /// The request in whose answer it stands.
    pub(super) const fn answers(&self) -> Option<&RequestKey> {
        match &self.place {
            SamplingPlace::Call(key, _) | SamplingPlace::Reply(key) => Some(key),
            SamplingPlace::Alone | SamplingPlace::Told => None,
        }
    }
}

/// Where the client's model is asked.
#[derive(Debug)]
pub(super) enum SamplingPlace {
    /// It is a request.
    Alone,
    /// It stands in the answer to this call; whether that is one of the newest protocol.
    Call(RequestKey, bool),
    /// It stands in the answer to this other request.
    Reply(RequestKey),
    /// It stands in what is told.
    Told,
}

impl HeldReply {
    pub(super) fn of_call(message: McpMessage, call: ProxiedCall, kept: (Option<String>, String, bool)) -> Self {
        let (note, id, modern) = kept;
        let is_error = message.document.root.get("result").is_none();
        let place = if is_error { ResultPlace::Error } else { ResultPlace::Whole };
        let (key, document) = (Some(call.key.clone()), message.document);
        Self { key, document, place, call: Some(call), note, id, modern, is_task: false }
    }

    /// The answer to a call that will get none.
    pub(super) fn failed(call: ProxiedCall, (id, modern): (String, bool), why: &str) -> Self {
        let text = result::answer(&id, &ToolOutput::error(why), modern);
        let root = Node { span: 0..0, kind: crate::spans::Kind::Plain };
        let document = JsonDocument::read(text.clone()).unwrap_or(JsonDocument { text, root });
        let key = Some(call.key.clone());
        Self { key, document, place: ResultPlace::Whole, call: Some(call), note: None, id, modern, is_task: false }
    }

    pub(super) fn node(&self) -> Option<&Node> {
        let root = &self.document.root;
        match self.place {
            ResultPlace::Whole => root.get("result"),
            ResultPlace::Nested => root.at(&["result", "result"]),
            ResultPlace::Told => root.at(&["params", "result"]),
            ResultPlace::Error => root.get("error"),
            ResultPlace::NestedError => root.at(&["result", "error"]),
            ResultPlace::ToldError => root.at(&["params", "error"]),
        }
    }

    /// What it answers.
    pub(super) const fn answers_to(&self) -> ResultOf {
        match (self.is_task, self.modern) {
            (true, _) => ResultOf::Task,
            (false, true) => ResultOf::ModernCall,
            (false, false) => ResultOf::Call,
        }
    }

    /// What hooks read of an error.
    pub(super) fn error_text(&self, error: &Node) -> String {
        let text = self.document.text_at(error, "message").unwrap_or_default();
        match error.get("data") {
            Some(data) => format!("{text}\n{}", self.document.raw(data)),
            None => text,
        }
    }

    /// The message with `left` in the place of its result.
    pub(super) fn replaced(&self, left: &ToolOutput) -> Option<String> {
        let node = self.node()?;
        let edits = match self.place {
            ResultPlace::Error | ResultPlace::NestedError | ResultPlace::ToldError => {
                // Its own code says no more than that it failed.
                let mut edits = Edits::default();
                let message = Value::from(left.for_llm.as_str());
                edits.replace(node.span.clone(), format!(r#"{{"code":{INTERNAL_ERROR},"message":{message}}}"#));
                edits
            }
            ResultPlace::Whole | ResultPlace::Nested | ResultPlace::Told => {
                WrittenOver { document: &self.document, node }.replace(left)
            }
        };
        Some(edits.apply(&self.document.text))
    }
}
