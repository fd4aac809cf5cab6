//! `before_tool`: a model asks for a tool; hooks rewrite the call, refuse it, or answer in the tool's place.

use super::verdict::{ParsedVerdict, Verdict};
use super::{AgentInfo, Checkpoint, CheckpointKind, Facts, Reply, Snapshot, Subject};
use crate::fault::{Fault, ProtocolBreach};
use crate::hook::Hook;
use crate::id::HookName;
use crate::json::Object;
use crate::reason::{Abort, AbortScope, Never, Reason};
use crate::tool::{ToolCall, ToolOutput};

/// A call on its way to a tool.
///
/// # Example
///
/// A call can be renamed to another tool of this agent only.
///
/// ```
/// use pintle_domain::checkpoint::{BeforeTool, CallPatch, Checkpoint, AgentInfo};
/// use pintle_domain::id::HookName;
/// use pintle_domain::json::Object;
/// use pintle_domain::tool::ToolCall;
/// # struct Agent;
/// # impl AgentInfo for Agent {
/// #     fn tool(&self, name: &str) -> Option<String> { (name == "read").then(|| name.to_owned()) }
/// #     fn model(&self, model: &str) -> bool { model == "big" }
/// #     fn owner(&self, _name: &str) -> Option<HookName> { None }
/// # }
///
/// let call = ToolCall {
///     id: "c1".into(),
///     tool: "exec".into(),
///     raw_tool: "bash".into(),
///     arguments: Object::new(),
/// };
/// let mut event = BeforeTool { call, owner: None };
/// let rename = |tool: &str| CallPatch { tool: Some(tool.into()), arguments: None };
/// event.modify(rename("read"), &HookName::from("safer"), &Agent).expect("`read` is a tool");
/// assert_eq!((event.call.tool.as_str(), event.call.raw_tool.as_str()), ("read", "bash"));
/// assert!(event.modify(rename("launch"), &HookName::from("safer"), &Agent).is_err());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BeforeTool {
    /// The call as the previous hook left it.
    pub call: ToolCall,
    /// The hook that brought the tool, if one did.
    pub owner: Option<HookName>,
}

/// Longest name of a call that a hook answered where no tool has that name, in bytes: vendors take half of it.
const MAX_NAME_BYTES: usize = 128;

/// The values that a hook puts in the place of parts of a call. An absent member keeps its value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallPatch {
    /// Another tool: of this agent, where the call is to run.
    pub tool: Option<String>,
    /// All arguments.
    pub arguments: Option<Object>,
}

/// An answer in the tool's place.
#[derive(Clone, Debug, PartialEq)]
pub struct Substitute {
    /// The call that the result belongs to, where it differs from the one that was asked about.
    pub call: Option<CallPatch>,
    /// The result.
    pub result: ToolOutput,
}

impl CallPatch {
    /// Applies the patch to `call`, which is to run.
    ///
    /// # Errors
    /// The new name is not a tool of this agent.
    pub fn apply(self, call: &mut ToolCall, known: &dyn AgentInfo) -> Result<Vec<String>, String> {
        self.put(call, |name| {
            known
                .tool(name)
                .ok_or_else(|| format!("result.call.tool names \"{name}\", which is not a tool of this agent"))
        })
    }

    /// Applies the patch to `call`, which a hook answered. Nothing runs for it, so it need not be a tool of this agent; the
    /// gates rule on the name that is meant.
    ///
    /// # Errors
    /// The new name is too long for one, or cannot be printed.
    pub fn apply_to_answered(self, call: &mut ToolCall, known: &dyn AgentInfo) -> Result<Vec<String>, String> {
        self.put(call, |name| match known.tool(name) {
            Some(tool) => Ok(tool),
            None if name.len() > MAX_NAME_BYTES => {
                Err(format!("result.call.tool has {} bytes, more than {MAX_NAME_BYTES}", name.len()))
            }
            None if name.chars().any(char::is_control) => Err("result.call.tool has control characters".to_owned()),
            None => Ok(known.meant(name)),
        })
    }

    fn put(
        self,
        call: &mut ToolCall,
        named: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<Vec<String>, String> {
        let mut warnings = Vec::new();
        if let Some(name) = self.tool {
            if name.is_empty() {
                warnings.push("an empty `tool` keeps the tool".into());
            } else if name != call.tool {
                call.tool = named(&name)?;
            }
        }
        if let Some(arguments) = self.arguments {
            call.arguments = arguments;
        }
        Ok(warnings)
    }
}

impl Verdict<BeforeTool> {
    /// This is the result; do not run the tool.
    pub fn respond(with: Substitute) -> Self {
        Self::Respond(Box::new(with))
    }
}

impl Checkpoint for BeforeTool {
    const KIND: CheckpointKind = CheckpointKind::BeforeTool;
    type Modify = CallPatch;
    // In a box: it is large and rare, and every ruling that lets pass would be as large.
    type Respond = Box<Substitute>;
    type Ask = Never;
    type Deny = Reason;
    type Abort = Abort;

    fn facts(&self) -> Facts<'_> {
        Facts::of_call(&self.call)
    }

    fn modify(&mut self, with: CallPatch, _by: &HookName, known: &dyn AgentInfo) -> Result<Vec<String>, String> {
        let warnings = with.apply(&mut self.call, known)?;
        self.owner = known.owner(&self.call.tool);
        Ok(warnings)
    }

    fn owner(&self) -> Option<&HookName> {
        self.owner.as_ref()
    }

    fn admit(&self, verdict: &Verdict<Self>, hook: &Hook, known: &dyn AgentInfo) -> Result<(), Fault> {
        let Verdict::Respond(substitute) = verdict else { return Ok(()) };
        let may = |tool: &str, owner: Option<&HookName>| owner == Some(&hook.name) || hook.respond.grants(tool);
        let refuse = |detail: String| Err(Fault::Protocol(ProtocolBreach::Respond(detail.into())));
        if !may(&self.call.tool, self.owner()) {
            return refuse(format!("it may not respond to tool \"{}\"", self.call.tool));
        }
        let Some(patch) = &substitute.call else { return Ok(()) };
        let mut call = self.call.clone();
        if let Err(detail) = patch.clone().apply_to_answered(&mut call, known) {
            return refuse(detail);
        }
        if !may(&call.tool, known.owner(&call.tool).as_ref()) {
            return refuse(format!("it may not respond to tool \"{}\"", call.tool));
        }
        Ok(())
    }

    fn closed(why: Reason) -> Option<Verdict<Self>> {
        Some(Verdict::Deny(why))
    }

    fn aborted(why: Reason) -> Option<Verdict<Self>> {
        Some(Verdict::Abort(Abort { abort_scope: AbortScope::Turn, reason: why }))
    }

    fn subject(&self) -> Subject<'_> {
        Subject::BeforeTool(self)
    }

    fn heard(reply: Reply) -> Option<ParsedVerdict<Self>> {
        if let Reply::BeforeTool(heard) = reply { Some(heard) } else { None }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::Call { tool: self.call.tool.clone(), arguments: self.call.arguments.clone() }
    }
}
