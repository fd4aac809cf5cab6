//! `before_llm`: a request is about to leave for a model; hooks rewrite it, and may bring tools of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::originals::Originals;
use super::verdict::{ParsedVerdict, Verdict};
use super::{AgentInfo, Checkpoint, CheckpointKind, Facts, Reply, Snapshot, Subject};
use crate::id::HookName;
use crate::json::{Object, Rendered};
use crate::ledger::{MessageSource, Provenance};
use crate::llm::{LlmRequest, ToolDef};
use crate::message::{Lifetime, Message};
use crate::reason::{Abort, AbortScope, Never, Reason};

mod originals;

/// A request on its way to a model.
///
/// # Example
///
/// A hook that brings a tool becomes its owner.
///
/// ```
/// use pintle_domain::checkpoint::{BeforeLlm, Checkpoint, AgentInfo, LlmPatch};
/// use pintle_domain::id::HookName;
/// use pintle_domain::llm::{LlmRequest, ToolDef};
/// # use pintle_domain::json::Object;
/// # struct Agent;
/// # impl AgentInfo for Agent {
/// #     fn tool(&self, name: &str) -> Option<String> { (name == "read").then(|| name.to_owned()) }
/// #     fn model(&self, model: &str) -> bool { model == "big" }
/// #     fn owner(&self, _name: &str) -> Option<HookName> { None }
/// # }
///
/// let (messages, tools, options) = (Vec::new(), Vec::new(), Object::new());
/// let mut event =
///     BeforeLlm::new(LlmRequest { model: "m".into(), messages, tools, options, graceful_terminal: false });
/// let weather = ToolDef::new("weather", "Says how the sky is.", pintle_domain::json::json!({"type": "object"}));
/// let patch = LlmPatch { tools: Some(vec![weather.into()]), ..LlmPatch::default() };
/// event.modify(patch, &HookName::from("sky"), &Agent).expect("a new tool is allowed");
/// assert_eq!(event.owners["weather"], HookName::from("sky"));
///
/// let patch = LlmPatch { model: Some("unknown".into()), ..LlmPatch::default() };
/// assert!(event.modify(patch, &HookName::from("sky"), &Agent).is_err());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BeforeLlm {
    /// The request that will be sent.
    pub request: LlmRequest,
    /// Which hook answers for which injected tool, for the calls of this response.
    pub owners: BTreeMap<String, HookName>,
}

/// The values that a hook puts in the place of parts of a request. An absent member keeps its value;
/// a present one replaces it whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LlmPatch {
    /// Another model.
    pub model: Option<String>,
    /// The whole conversation.
    pub messages: Option<Vec<Rendered<Message>>>,
    /// The whole list of offered tools.
    pub tools: Option<Vec<Rendered<ToolDef>>>,
    /// All options.
    pub options: Option<Object>,
    /// Why one of these could not be read, if so: the rest of them counts, and this is the fault.
    pub faulty: Option<String>,
}

impl BeforeLlm {
    /// A request that no hook has seen yet.
    pub fn new(request: LlmRequest) -> Self {
        Self { request, owners: BTreeMap::new() }
    }

    /// The request as the hooks left it.
    ///
    /// # Errors
    /// They left nothing to send, in words.
    pub fn sendable(self) -> Result<Self, &'static str> {
        let is_empty = self.request.messages.is_empty();
        if is_empty { Err("the request has no messages left after `before_llm`") } else { Ok(self) }
    }

    /// The model that `name` means: one that is configured, or by a bare name one of the provider that is to be asked.
    fn meant(&self, name: &str, known: &dyn AgentInfo) -> Option<String> {
        if name == self.request.model || known.model(name) {
            return Some(name.to_owned());
        }
        let (provider, _) = self.request.model.split_once('/').filter(|_| !name.contains('/'))?;
        Some(format!("{provider}/{name}")).filter(|whole| known.model(whole))
    }

    /// Takes the messages that `by` left. One that was there before stays what it was; any other is a text of `by` for
    /// this call alone.
    fn take_messages(&mut self, messages: Vec<Rendered<Message>>, by: &HookName) {
        let before = std::mem::take(&mut self.request.messages);
        let mut originals = Originals::new(&before);
        let taken = messages.into_iter().map(|message| originals.take(&message).unwrap_or_else(|| owned(message, by)));
        self.request.messages = taken.collect();
    }

    /// Takes the tools that `by` left. A name that was not in its input makes it the owner;
    /// of two definitions with one name the first stays, so no other tool is taken over.
    fn take_tools(&mut self, tools: Vec<Rendered<ToolDef>>, by: &HookName) -> Vec<String> {
        let before: BTreeSet<String> = self.request.tools.iter().map(|t| t.get().function.name.clone()).collect();
        let mut kept = BTreeSet::new();
        let mut warnings = Vec::new();
        self.request.tools.clear();
        for tool in tools {
            let name = &tool.get().function.name;
            if !kept.insert(name.clone()) {
                warnings.push(format!("a second definition of tool `{name}` is ignored; the first stays"));
                continue;
            }
            if !before.contains(name) {
                self.owners.insert(name.clone(), by.clone());
            }
            self.request.tools.push(tool);
        }
        // What is no longer offered belongs to nobody.
        self.owners.retain(|name, _| kept.contains(name));
        warnings
    }
}

impl Checkpoint for BeforeLlm {
    const KIND: CheckpointKind = CheckpointKind::BeforeLlm;
    type Modify = LlmPatch;
    type Respond = Never;
    type Ask = Never;
    type Deny = Never;
    type Abort = Abort;

    fn facts(&self) -> Facts<'_> {
        Facts::default()
    }

    fn modify(&mut self, with: LlmPatch, by: &HookName, known: &dyn AgentInfo) -> Result<Vec<String>, String> {
        let (mut warnings, mut faulty) = (Vec::new(), with.faulty);
        if let Some(model) = with.model {
            if model.is_empty() {
                warnings.push("an empty `model` keeps the model".into());
            } else {
                match self.meant(&model, known) {
                    Some(model) => self.request.model = model,
                    None => faulty = Some(faulty.unwrap_or_else(|| unknown(&model))),
                }
            }
        }
        if let Some(messages) = with.messages {
            self.take_messages(messages, by);
        }
        if let Some(tools) = with.tools {
            warnings.extend(self.take_tools(tools, by));
        }
        if let Some(options) = with.options {
            self.request.options = options;
        }
        // One member that cannot count takes no other one along.
        faulty.map_or(Ok(warnings), Err)
    }

    fn closed(_why: Reason) -> Option<Verdict<Self>> {
        None
    }

    fn aborted(why: Reason) -> Option<Verdict<Self>> {
        Some(Verdict::Abort(Abort { abort_scope: AbortScope::Turn, reason: why }))
    }

    fn subject(&self) -> Subject<'_> {
        Subject::BeforeLlm(self)
    }

    fn heard(reply: Reply) -> Option<ParsedVerdict<Self>> {
        if let Reply::BeforeLlm(heard) = reply { Some(heard) } else { None }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::Request(self.request.clone())
    }
}

fn unknown(model: &str) -> String {
    format!(
        "result.request.model names \"{model}\", which is not configured; a model is written PROVIDER/MODEL, or by its \
         bare name if the agent's provider has it"
    )
}

/// `message` as a text of `by` for one call.
fn owned(message: Rendered<Message>, by: &HookName) -> Rendered<Message> {
    let mut message = message.get().clone();
    let call = Some(&message.tool_call_id).filter(|id| !id.is_empty()).cloned();
    let from =
        Provenance { hook: Some(by.to_string()), tool_call_id: call, ..Provenance::new(MessageSource::Rewriter, 0) };
    message.private.from = Some(Arc::new(from));
    message.private.lifetime = Lifetime::Passing;
    message.into()
}

#[cfg(test)]
mod tests;
