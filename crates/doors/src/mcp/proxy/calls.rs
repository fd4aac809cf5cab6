//! Calls and what comes of them: held until they are cleared, answers held until their hooks saw them.

use pintle_domain::json::{Object, Value};
use pintle_domain::llm::LlmRequest;
use pintle_domain::tool::{ToolCall, ToolOutput};

use super::McpProxy;
use super::held::{AskedTask, HeldCall, HeldReply, HeldSampling, OpenRequest, ResultPlace, SamplingPlace};
use super::lists::meta_of;
use super::step::{ProxiedCall, ProxyRuling, ProxyStep, ServerBound, Ticket};
use crate::mcp::message::{
    INTERNAL_ERROR, INVALID_PARAMS, McpKind, McpMessage, REFUSED, RequestKey, error_reply, plainly,
};
use crate::mcp::result::{self, CallAnswer, WrittenOver};
use crate::mcp::sampling::{SeenSampling, asked_in};
use crate::spans::{Edits, JsonDocument, Node};

/// The members by which a call is known.
const KNOWN: [&str; 4] = ["name", "arguments", "_meta", "task"];

impl McpProxy {
    pub(super) fn called(&mut self, message: McpMessage, key: RequestKey) {
        let call = match read(&message, &key) {
            Ok(call) => call,
            Err(why) => {
                return self.answer(error_reply(message.id(), INVALID_PARAMS, &why), key);
            }
        };
        let ticket = self.ticket();
        self.held.calls.insert(ticket, HeldCall { call, message, is_admitted: false });
        self.admit(ticket, false);
    }

    /// The calls that wait for the list of tools.
    pub(super) fn unadmitted(&self) -> Vec<Ticket> {
        self.held.calls.iter().filter(|(_, held)| !held.is_admitted).map(|(ticket, _)| *ticket).collect()
    }

    /// Puts a call to the hooks if its tool is known and shown. `is_fresh`: the list was read for it.
    pub(super) fn admit(&mut self, ticket: Ticket, is_fresh: bool) {
        let is_current = self.is_current();
        let Some(held) = self.held.calls.get_mut(&ticket) else { return };
        let own = held.call.own.clone();
        let shows = self.rules.filter.shows(&own);
        let known = self.tools.get(&own);
        let is_sure = is_current && known.is_some_and(|known| known.withheld.is_none());
        if shows && !is_sure && !is_fresh {
            let meta = meta_of(&held.message);
            return self.list(meta);
        }
        match known.filter(|_| shows) {
            None => {
                let server = &self.rules.server;
                let why =
                    format!("there is no tool `{own}` here: the server `{server}` does not list it, or it is hidden");
                self.refuse(ticket, why);
            }
            Some(known) => match &known.withheld {
                Some(why) => {
                    let why = why.clone();
                    self.refuse(ticket, why);
                }
                None => {
                    held.call.tool.clone_from(&known.tool);
                    held.is_admitted = true;
                    self.steps.push_back(ProxyStep::Clear(ticket, held.call.clone()));
                }
            },
        }
    }

    /// Refuses a held call by a rule of the door's own.
    pub(super) fn refuse(&mut self, ticket: Ticket, why: String) {
        let Some(held) = self.held.calls.remove(&ticket) else { return };
        self.unask(&held.call.key);
        let text = result::answer(held.message.id(), &ToolOutput::error(why.as_str()), is_modern(&held.message));
        let key = held.call.key.clone();
        self.steps.push_back(ProxyStep::Refused(held.call, why));
        self.answer(text, key);
    }

    /// Takes the ruling on the call that has `ticket`.
    pub fn ruled(&mut self, ticket: Ticket, ruling: ProxyRuling) {
        let Some(held) = self.held.calls.remove(&ticket) else { return };
        self.unask(&held.call.key);
        let (id, modern) = (held.message.id().to_owned(), is_modern(&held.message));
        let key = held.call.key.clone();
        let output = match ruling {
            ProxyRuling::Run(permit, note) => match self.rewritten(&held, permit.into_call()) {
                Ok((text, call)) => {
                    let known = self.tools.get(&call.own);
                    let bound = ServerBound {
                        text,
                        key: Some(key.clone()),
                        method: Some("tools/call".into()),
                        name: Some(call.own.clone()),
                        mirrored: known.map_or_else(Vec::new, |known| known.definition.mirrored(&call.arguments)),
                    };
                    self.open.insert(key, OpenRequest::Call { ticket, call, note, id, modern });
                    return self.steps.push_back(ProxyStep::ToServer(bound));
                }
                Err(why) => {
                    self.steps.push_back(ProxyStep::Refused(held.call, why.clone()));
                    ToolOutput::error(why)
                }
            },
            ProxyRuling::Answered(output) => output,
            ProxyRuling::Denied(why) => ToolOutput::error(why),
        };
        self.steps.push_back(ProxyStep::Withdrawn(ticket));
        self.answer(result::answer(&id, &output, modern), key);
    }

    /// The request as its permit has it.
    fn rewritten(&self, held: &HeldCall, permitted: ToolCall) -> Result<(String, ProxiedCall), String> {
        let own = match permitted.tool == held.call.tool {
            true => held.call.own.clone(),
            false => {
                let own = self.tools.own_name(&permitted.tool).filter(|own| self.rules.filter.shows(own));
                let own = own.filter(|own| self.tools.get(own).is_some_and(|known| known.withheld.is_none()));
                own.map(str::to_owned).ok_or_else(|| {
                    format!("a hook made it a call of `{}`, which is not one of the tools shown here", permitted.tool)
                })?
            }
        };
        let mut edits = Edits::default();
        let params = held.message.params().ok_or("it has no parameters")?;
        if own != held.call.own {
            edits.text(params.get("name").ok_or("it names no tool")?, &own);
        }
        if permitted.arguments != held.call.arguments {
            let arguments = Value::Object(permitted.arguments.clone()).to_string();
            match params.get("arguments") {
                Some(node) => edits.replace(node.span.clone(), arguments),
                None => edits.put_member(params, "arguments", &arguments),
            }
        }
        let text = match edits.is_empty() {
            true => held.message.document.text.clone(),
            false => edits.apply(&held.message.document.text),
        };
        let call = ProxiedCall { own, tool: permitted.tool, arguments: permitted.arguments, ..held.call.clone() };
        Ok((text, call))
    }

    /// Takes the answer of the server to the call that was cleared under `ticket`.
    pub(super) fn result_came(&mut self, ticket: Ticket, held: HeldReply) {
        let Some(node) = held.node() else { return };
        let output = match held.place {
            ResultPlace::Error | ResultPlace::NestedError | ResultPlace::ToldError => {
                ToolOutput::error(held.error_text(node))
            }
            ResultPlace::Whole | ResultPlace::Nested | ResultPlace::Told => match read_result(&held, node) {
                Ok(CallAnswer::Final(output)) => output,
                Ok(CallAnswer::Task(task)) => {
                    if let (Some(task), Some(call)) = (task, &held.call) {
                        self.tasks.insert(task, call.clone());
                    }
                    self.steps.push_back(ProxyStep::Withdrawn(ticket));
                    return self.say_to_client(held.document.text, held.key.clone(), held.key.is_some());
                }
                Ok(CallAnswer::MoreNeeded) => {
                    self.steps.push_back(ProxyStep::Withdrawn(ticket));
                    return self.more_needed(held);
                }
                Err(why) => {
                    self.steps.push_back(ProxyStep::Withdrawn(ticket));
                    return self.unread(&held, &why);
                }
            },
        };
        self.steps.push_back(ProxyStep::Review(ticket, held.call.clone(), output));
        self.held.replies.insert(ticket, held);
    }

    /// Takes what hooks left of the result that has `ticket`; nothing if they left it as it was.
    pub fn reviewed(&mut self, ticket: Ticket, left: Option<ToolOutput>) {
        let Some(held) = self.held.replies.remove(&ticket) else { return };
        let text = match (&left, held.note.as_deref(), held.place) {
            (None, None, _) => held.document.text.clone(),
            (None, Some(note), ResultPlace::Whole) => {
                let over = held.node().map(|node| WrittenOver { document: &held.document, node });
                let edits = over.and_then(|over| over.note(note));
                edits.map_or_else(|| held.document.text.clone(), |edits| edits.apply(&held.document.text))
            }
            (
                None,
                Some(_),
                ResultPlace::Nested
                | ResultPlace::Told
                | ResultPlace::Error
                | ResultPlace::NestedError
                | ResultPlace::ToldError,
            ) => held.document.text.clone(),
            (Some(left), note, _) => {
                let for_llm = match note {
                    Some(note) => format!("{}\n\n{note}", left.for_llm),
                    None => left.for_llm.clone(),
                };
                let left = ToolOutput { for_llm, ..left.clone() };
                held.replaced(&left).unwrap_or_else(|| result::answer(&held.id, &left, held.modern))
            }
        };
        let is_answer = held.key.is_some();
        self.say_to_client(text, held.key, is_answer);
    }

    /// A result that cannot be read goes no further.
    fn unread(&mut self, held: &HeldReply, why: &str) {
        let why = format!("the server's result cannot be read: {why}");
        match held.key.clone() {
            Some(key) => self.answer(result::answer(&held.id, &ToolOutput::error(why), held.modern), key),
            None => self.steps.push_back(ProxyStep::Dropped(why)),
        }
    }

    pub(super) fn task_came(
        &mut self,
        message: McpMessage,
        key: RequestKey,
        AskedTask { task, call, nested }: AskedTask,
    ) {
        let result = message.document.root.get("result");
        let place = match (result, nested) {
            (None, _) => Ok(Some(ResultPlace::Error)),
            (Some(result), true) => {
                in_state(&message.document, result, (ResultPlace::Nested, ResultPlace::NestedError))
            }
            (Some(_), false) => Ok(Some(ResultPlace::Whole)),
        };
        match place {
            Ok(Some(place)) => {
                // An error may also say that the server cannot say it now.
                if let (Some(task), Some(_)) = (task, result) {
                    self.tasks.remove(&task);
                }
                let (id, modern) = (message.id().to_owned(), false);
                let (key, document, note) = (Some(key), message.document, None);
                let held = HeldReply { key, document, place, call, note, id, modern, is_task: true };
                let ticket = self.ticket();
                self.result_came(ticket, held);
            }
            // The task is not over.
            Ok(None) => self.other_came(message, key),
            Err(why) => {
                let why = format!("the server's answer cannot be read: {why}");
                self.answer(error_reply(message.id(), INTERNAL_ERROR, &why), key);
            }
        }
    }

    pub(super) fn task_told(&mut self, message: McpMessage, about: Option<RequestKey>) {
        let place = match message.params() {
            Some(params) => in_state(&message.document, params, (ResultPlace::Told, ResultPlace::ToldError)),
            None => Ok(None),
        };
        match place {
            Ok(Some(place)) => {
                let task = message.params().and_then(|params| message.document.text_at(params, "taskId"));
                let call = task.as_ref().and_then(|task| self.tasks.get(task)).cloned();
                let (id, note, document) = ("null".to_owned(), None, message.document);
                let held = HeldReply { key: None, document, place, call, note, id, modern: false, is_task: true };
                let ticket = self.ticket();
                self.result_came(ticket, held);
            }
            Ok(None) => {
                let asked = message.params().map_or_else(|| Ok(Vec::new()), |node| asked_in(&message.document, node));
                self.told_or_asked(message, asked, (SamplingPlace::Told, about));
            }
            Err(why) => self.steps.push_back(ProxyStep::Dropped(format!("the state of a task cannot be read: {why}"))),
        }
    }

    /// Takes an answer that no rule is about, but for what it asks the client's model.
    pub(super) fn other_came(&mut self, message: McpMessage, key: RequestKey) {
        let result = message.document.root.get("result");
        let asked = result.map_or_else(|| Ok(Vec::new()), |node| asked_in(&message.document, node));
        let about = Some(key.clone());
        self.told_or_asked(message, asked, (SamplingPlace::Reply(key), about));
    }

    /// Hands on what asks the model nothing; else its hooks see it first.
    fn told_or_asked(
        &mut self,
        message: McpMessage,
        asked: Result<Vec<SeenSampling>, String>,
        (place, about): (SamplingPlace, Option<RequestKey>),
    ) {
        match asked {
            Ok(asked) if asked.is_empty() => {
                let is_answer = matches!(message.kind, McpKind::Reply { .. });
                self.say_to_client(message.document.text, about, is_answer);
            }
            Ok(asked) => self.ask_model(HeldSampling { message, asked, place, about }),
            Err(why) => self.not_asked(&message, place, (INTERNAL_ERROR, why)),
        }
    }

    /// Takes a request to the client's model.
    pub(super) fn sampling(&mut self, message: McpMessage, about: Option<&RequestKey>) {
        let asked = message.params().ok_or_else(|| "it asks nothing".to_owned());
        match asked.and_then(|params| SeenSampling::read(&message.document, params)) {
            Ok(seen) => {
                let (asked, place) = (vec![seen], SamplingPlace::Alone);
                self.ask_model(HeldSampling { message, asked, place, about: about.cloned() });
            }
            Err(why) => {
                let why = format!("the request to the model cannot be read: {why}");
                self.say_to_server(error_reply(message.id(), INVALID_PARAMS, &why));
            }
        }
    }

    fn ask_model(&mut self, held: HeldSampling) {
        let ticket = self.ticket();
        let requests = held.asked.iter().map(|seen| seen.request.clone()).collect();
        self.steps.push_back(ProxyStep::Sample(ticket, requests));
        self.held.samplings.insert(ticket, held);
    }

    /// An answer that asks for more before the call can go on; requests to the model among that are put to the hooks.
    fn more_needed(&mut self, held: HeldReply) {
        let Some(key) = held.key.clone() else { return };
        let asked = held.node().map_or_else(|| Ok(Vec::new()), |node| asked_in(&held.document, node));
        let about = Some(key.clone());
        let message = McpMessage { document: held.document, kind: McpKind::Reply { key: key.clone() } };
        self.told_or_asked(message, asked, (SamplingPlace::Call(key, held.modern), about));
    }

    /// Takes what hooks left of the requests to the model that have `ticket`, or why they go no further.
    pub fn sampled(&mut self, ticket: Ticket, left: Result<Vec<LlmRequest>, String>) {
        let Some(held) = self.held.samplings.remove(&ticket) else { return };
        let edits = left.and_then(|left| {
            let mut edits = Edits::default();
            for (seen, left) in held.asked.iter().zip(&left) {
                let said = seen.say(left);
                edits.join(said.ok_or("a hook changed the request to the model in a way that cannot be sent")?);
            }
            Ok(edits)
        });
        let edits = match edits {
            Ok(edits) => edits,
            Err(why) => return self.not_asked(&held.message, held.place, (REFUSED, why)),
        };
        let is_answer = match held.place {
            SamplingPlace::Call(..) | SamplingPlace::Reply(_) => true,
            SamplingPlace::Alone | SamplingPlace::Told => false,
        };
        let text = held.message.document.text;
        let text = if edits.is_empty() { text } else { edits.apply(&text) };
        self.say_to_client(text, held.about, is_answer);
    }

    /// What asks the client's model goes no further, for the reason `why`.
    fn not_asked(&mut self, message: &McpMessage, place: SamplingPlace, (code, why): (i32, String)) {
        match place {
            SamplingPlace::Alone => self.say_to_server(error_reply(message.id(), code, &why)),
            SamplingPlace::Call(key, modern) => {
                self.answer(result::answer(message.id(), &ToolOutput::error(why), modern), key);
            }
            SamplingPlace::Reply(key) => self.answer(error_reply(message.id(), code, &why), key),
            SamplingPlace::Told => self.steps.push_back(ProxyStep::Dropped(why)),
        }
    }
}

/// Reads a result. One that is final asks the client's model nothing: it would be asked past the hooks.
fn read_result(held: &HeldReply, node: &Node) -> Result<CallAnswer, String> {
    let answer = result::read(&held.document, node, held.answers_to())?;
    if matches!(answer, CallAnswer::Final(_)) && !asked_in(&held.document, node)?.is_empty() {
        return Err("it is a result, and asks the client's model".into());
    }
    Ok(answer)
}

/// Where the state `node` of a task says what came of it; nothing if it is not over.
fn in_state(
    document: &JsonDocument,
    node: &Node,
    (result, error): (ResultPlace, ResultPlace),
) -> Result<Option<ResultPlace>, String> {
    plainly(node, &["result", "error", "content", "structuredContent", "inputRequests"])?;
    let says = |name: &str| node.get(name).is_some_and(|member| document.raw(member) != "null");
    if says("content") || says("structuredContent") {
        return Err("the result of a task does not stand in its member `result`".into());
    }
    let place = match (says("result"), says("error")) {
        (true, true) => return Err("it has a result and an error at once".into()),
        (true, false) => result,
        (false, true) => error,
        (false, false) => return Ok(None),
    };
    match asked_in(document, node)?.is_empty() {
        true => Ok(Some(place)),
        false => Err("it is a result, and asks the client's model".into()),
    }
}

fn read(message: &McpMessage, key: &RequestKey) -> Result<ProxiedCall, String> {
    let params = message.params().ok_or("a call without parameters")?;
    plainly(params, &KNOWN)?;
    let name = params.get("name").and_then(|node| message.document.string(node));
    let own = name.ok_or("`name` of the tool is not a text")?;
    let arguments = match params.get("arguments").map(|node| message.document.value(node)) {
        None | Some(Value::Null) => Object::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            return Err("`arguments` is not an object".into());
        }
    };
    let token = params.at(&["_meta", "progressToken"]);
    let progress = token.map(|node| message.document.raw(node).to_owned());
    Ok(ProxiedCall { key: key.clone(), own, tool: String::new(), arguments, progress })
}

/// Whether a request says of itself which protocol it is of, as only the newest wants it.
fn is_modern(message: &McpMessage) -> bool {
    let meta = message.params().and_then(|params| params.get("_meta"));
    meta.is_some_and(|meta| meta.get("io.modelcontextprotocol/protocolVersion").is_some())
}
