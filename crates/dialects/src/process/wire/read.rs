//! What a reply says, by the checkpoint that was asked about.

use std::collections::BTreeSet;

use pintle_domain::checkpoint::{
    AfterLlm, AfterTool, ApproveTool, BeforeLlm, BeforeTool, CallPatch, Checkpoint, CheckpointKind, LlmPatch, Reply,
    Subject, Substitute,
};
use pintle_domain::fault::{Cause, Fault, ProtocolBreach};
use pintle_domain::json::Rendered;
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::ToolCall;
use pintle_domain::verdict::{Abort, AbortScope, ParsedVerdict, Reason, Verdict};
use serde::Serialize;

use super::echo::{Element, Originals};
use super::hint::{MisplacedMembers, Shape, no_action, other_decision, unknown_action};
use super::nanos;
use super::parts::{OUTPUT_NAMES, RESPONSE_NAMES};
use super::reader::{Path, RESULT, Reader, flag, list, object, string, text};
use crate::process::frame::skim::{self, KnownList};
use crate::process::frame::{RpcBody, RpcReply};

/// The actions of the rewriters.
const ACTIONS: [&str; 4] = ["continue", "modify", "abort_turn", "hard_abort"];
/// The actions of `before_tool`.
const TOOL_ACTIONS: [&str; 6] = ["continue", "modify", "respond", "deny_tool", "abort_turn", "hard_abort"];

const BEFORE_LLM: Shape<3> = Shape {
    names: ["action", "reason", "request"],
    elsewhere: &[MisplacedMembers {
        names: &["model", "messages", "tools", "options"],
        at: "result.request.",
        with: "",
    }],
};
const REQUEST: Shape<9> = Shape {
    names: ["model", "messages", "tools", "options", "graceful_terminal", "meta", "context", "channel", "chat_id"],
    elsewhere: &[],
};
const FLAT_RESPONSE: &[MisplacedMembers] =
    &[MisplacedMembers { names: &RESPONSE_NAMES, at: "result.response.response.", with: "" }];
const AFTER_LLM: Shape<3> = Shape { names: ["action", "reason", "response"], elsewhere: FLAT_RESPONSE };
const RESPONSE_WRAPPER: Shape<6> =
    Shape { names: ["model", "response", "meta", "context", "channel", "chat_id"], elsewhere: FLAT_RESPONSE };
const BEFORE_TOOL: Shape<4> = Shape {
    names: ["action", "reason", "call", "result"],
    elsewhere: &[
        MisplacedMembers { names: &["tool", "arguments"], at: "result.call.", with: "" },
        MisplacedMembers { names: &OUTPUT_NAMES, at: "result.result.", with: " with \"respond\"" },
    ],
};
const CALL: Shape<8> = Shape {
    names: ["tool", "arguments", "tool_call_id", "raw_tool", "meta", "context", "channel", "chat_id"],
    elsewhere: &[],
};
const FLAT_OUTPUT: &[MisplacedMembers] =
    &[MisplacedMembers { names: &OUTPUT_NAMES, at: "result.result.result.", with: "" }];
const AFTER_TOOL: Shape<3> = Shape { names: ["action", "reason", "result"], elsewhere: FLAT_OUTPUT };
const OUTPUT_WRAPPER: Shape<10> = Shape {
    names: [
        "tool",
        "arguments",
        "tool_call_id",
        "raw_tool",
        "result",
        "duration",
        "meta",
        "context",
        "channel",
        "chat_id",
    ],
    elsewhere: FLAT_OUTPUT,
};
const APPROVE_TOOL: Shape<3> = Shape { names: ["approved", "reason", "action"], elsewhere: &[] };

/// Reads the body of a reply to the question about `subject`.
///
/// # Errors
/// Why it is not an answer. With `strict`, any likely mistake is a fault.
pub fn read(subject: Subject<'_>, body: &RpcBody, strict: bool) -> Result<Reply, Fault> {
    answer(subject, body, Reader::default(), strict)
}

/// Reads a whole reply to the question about `subject` that was sent as `params`.
///
/// Unlike [`read`], likely mistakes in the envelope count too, and changes of `meta`, `context`, `channel` and
/// `chat_id` are noticed.
///
/// # Errors
/// Why it is not an answer. With `strict`, any likely mistake is a fault.
pub fn hear(subject: Subject<'_>, params: &[u8], reply: &RpcReply, strict: bool) -> Result<Reply, Fault> {
    let reader = Reader { warnings: reply.warnings.clone(), sent: Some(params), ..Reader::default() };
    answer(subject, &reply.body, reader, strict)
}

/// Reads the reply to `hook.hello`: any object, `null` or nothing will do.
///
/// # Errors
/// Why the handshake failed; otherwise the warnings.
pub fn welcome(body: &RpcBody) -> Result<Vec<String>, String> {
    let result = match body {
        RpcBody::Empty => return Ok(Vec::new()),
        RpcBody::Error { message } => return Err(format!("hook.hello returned an error: {message}")),
        RpcBody::Result { line, range } => line.get(range.clone()).unwrap_or_default(),
    };
    let Some(members) = skim::members(result, &skim::NOTHING) else {
        return Err(format!("hook.hello: expected an object as result, got {}", skim::kind(result)));
    };
    let ok = members.filter(|(name, _)| name.eq_ignore_ascii_case("ok")).last();
    let refused = ok.is_some_and(|(_, value)| value == "false");
    Ok(if refused {
        vec!["hook.hello was answered with ok: false; the hook is used all the same".into()]
    } else {
        vec![]
    })
}

fn answer(subject: Subject<'_>, body: &RpcBody, mut reader: Reader<'_>, strict: bool) -> Result<Reply, Fault> {
    let json = match body {
        RpcBody::Error { message } => return Err(Fault::Protocol(ProtocolBreach::Returned(message.as_str().into()))),
        RpcBody::Empty => "{}",
        RpcBody::Result { line, range } => line.get(range.clone()).unwrap_or_default(),
    };
    match subject {
        Subject::BeforeLlm(asked) => {
            // Most of a conversation comes back as it went.
            let sent = asked.request.messages.iter().map(|message| message.json());
            let known = KnownList::find(json, "messages", sent);
            let mut reader = Reader { known: &known, ..reader };
            let verdict = reader.before_llm(asked, json);
            reader.conclude(verdict, strict).map(Reply::BeforeLlm)
        }
        Subject::AfterLlm(asked) => {
            let verdict = reader.after_llm(asked, json);
            reader.conclude(verdict, strict).map(Reply::AfterLlm)
        }
        Subject::BeforeTool(asked) => {
            let verdict = reader.before_tool(asked, json);
            reader.conclude(verdict, strict).map(Reply::BeforeTool)
        }
        Subject::ApproveTool(_) => {
            let verdict = reader.approve_tool(json);
            reader.conclude(verdict, strict).map(Reply::ApproveTool)
        }
        Subject::AfterTool(asked) => {
            let verdict = reader.after_tool(asked, json);
            reader.conclude(verdict, strict).map(Reply::AfterTool)
        }
        Subject::UserPromptSubmit(_) | Subject::PreToolUse(_) | Subject::SubagentStart(_) => {
            Err(Fault::broke(format!("process hooks are not asked at {}", subject.kind().name())))
        }
    }
}

impl Reader<'_> {
    /// The verdict with the warnings; the fault instead, if there is one or must be one.
    fn conclude<C: Checkpoint>(
        self,
        verdict: Result<Verdict<C>, Fault>,
        strict: bool,
    ) -> Result<ParsedVerdict<C>, Fault> {
        let heard = verdict.and_then(|verdict| match self.warnings.first() {
            Some(mistake) if strict => Err(Fault::broke(mistake.as_str())),
            Some(_) | None => Ok(ParsedVerdict { warnings: self.warnings, ..verdict.into() }),
        });
        match heard {
            Err(Fault::Unreadable { cause } | Fault::Protocol(ProtocolBreach::Broke(cause))) if self.responds => {
                Err(Fault::Protocol(ProtocolBreach::Respond(cause)))
            }
            Ok(_) | Err(_) => heard,
        }
    }

    fn before_llm(&mut self, asked: &BeforeLlm, json: &str) -> Result<Verdict<BeforeLlm>, Fault> {
        let [action, reason, request] = self.fields(&RESULT, json, &BEFORE_LLM)?;
        let action = text(&RESULT.name("action"), action)?;
        if let Some(abort) = self.abort(CheckpointKind::BeforeLlm, &action, reason)? {
            self.ignored("request", request, &action);
            return Ok(Verdict::Abort(abort));
        }
        match request {
            Some(request) => Ok(Verdict::Modify(self.request(asked, request)?)),
            None => Ok(Verdict::Continue),
        }
    }

    fn request(&mut self, asked: &BeforeLlm, json: &str) -> Result<LlmPatch, Fault> {
        let path = RESULT.name("request");
        let [model, messages, tools, options, graceful, meta, context, channel, chat_id] =
            self.fields(&path, json, &REQUEST)?;
        self.stamped(&path, [meta, context, channel, chat_id]);
        self.unchanged(&path.name("graceful_terminal"), graceful, &asked.request.graceful_terminal);
        let model = string(&path.name("model"), model);
        let messages = self.elements(&path.name("messages"), messages, &asked.request.messages, Self::message);
        let tools = self.elements(&path.name("tools"), tools, &asked.request.tools, Self::tool);
        let options = object(&path.name("options"), options);
        // A member that cannot be read takes no other one along.
        let mut faults = Vec::new();
        let (model, messages) = (readable(model, &mut faults), readable(messages, &mut faults));
        let (tools, options) = (readable(tools, &mut faults), readable(options, &mut faults));
        let nothing = model.is_none() && messages.is_none() && tools.is_none() && options.is_none();
        let mut faulty = None;
        if let Some(fault) = faults.into_iter().next() {
            if nothing {
                return Err(fault);
            }
            self.warn(fault.cause().map_or_else(|| fault.phrase().to_string(), Cause::shown));
            faulty = fault.cause().map(|cause| cause.unredacted().to_owned());
        }
        let tools = tools.map(|tools| self.first_of_each_name(tools));
        Ok(LlmPatch { model: self.kept_if_empty("model", model), messages, tools, options, faulty })
    }

    /// A name that replaces another one; an empty one replaces nothing.
    fn kept_if_empty(&mut self, what: &str, name: Option<String>) -> Option<String> {
        let empty = name.as_deref() == Some("");
        if empty {
            self.warn(format!("an empty `{what}` keeps the {what}"));
        }
        name.filter(|_| !empty)
    }

    /// Of two definitions with one name the first.
    fn first_of_each_name(&mut self, tools: Vec<Rendered<ToolDef>>) -> Vec<Rendered<ToolDef>> {
        let mut names = BTreeSet::new();
        let mut kept = Vec::with_capacity(tools.len());
        for tool in tools {
            let name = &tool.get().function.name;
            if names.insert(name.clone()) {
                kept.push(tool);
            } else {
                self.warn(format!("a second definition of tool `{name}` is ignored; the first stays"));
            }
        }
        kept
    }

    /// The elements of a list: those that come back equal are the host's own.
    fn elements<T: Element>(
        &mut self,
        path: &Path<'_>,
        json: Option<&str>,
        originals: &[Rendered<T>],
        read: fn(&mut Self, &Path<'_>, &str) -> Result<T, Fault>,
    ) -> Result<Option<Vec<Rendered<T>>>, Fault> {
        let Some(elements) = list(path, json, self.known)? else { return Ok(None) };
        let mut originals = Originals::new(originals);
        let elements = elements.into_iter().enumerate().map(|(i, element)| {
            let path = path.index(i);
            match originals.take(element).map_err(|why| path.unreadable(&why))? {
                Some(original) => Ok(original),
                None => read(self, &path, element).map(Rendered::new),
            }
        });
        elements.collect::<Result<_, _>>().map(Some)
    }

    fn after_llm(&mut self, asked: &AfterLlm, json: &str) -> Result<Verdict<AfterLlm>, Fault> {
        let [action, reason, wrapper] = self.fields(&RESULT, json, &AFTER_LLM)?;
        let action = text(&RESULT.name("action"), action)?;
        if let Some(abort) = self.abort(CheckpointKind::AfterLlm, &action, reason)? {
            self.ignored("response", wrapper, &action);
            return Ok(Verdict::Abort(abort));
        }
        let Some(wrapper) = wrapper else { return Ok(Verdict::Continue) };
        let path = RESULT.name("response");
        let [model, response, meta, context, channel, chat_id] = self.fields(&path, wrapper, &RESPONSE_WRAPPER)?;
        self.stamped(&path, [meta, context, channel, chat_id]);
        self.unchanged(&path.name("model"), model, &asked.model);
        match response {
            Some(response) => {
                self.response(&path.name("response"), response, asked.response.usage).map(Verdict::Modify)
            }
            None => Ok(Verdict::Continue),
        }
    }

    fn before_tool(&mut self, asked: &BeforeTool, json: &str) -> Result<Verdict<BeforeTool>, Fault> {
        let [action, reason, call, result] = self.fields(&RESULT, json, &BEFORE_TOOL)?;
        let action = text(&RESULT.name("action"), action)?;
        if action == "respond" {
            self.responds = true;
            text(&RESULT.name("reason"), reason)?;
            return self.substitute(asked, call, result).map(Verdict::respond);
        }
        // Each of them is a member that is not read, so it has been warned about.
        if action.is_empty()
            && !self.warnings.is_empty()
            && let Some(word) = other_decision(json)
        {
            return Err(Fault::broke(no_action(word)));
        }
        let terminal = self.abort_or_deny(&action, reason)?;
        self.ignored("result", result, if action.is_empty() { "continue" } else { &action });
        match (terminal, call) {
            (Some(terminal), call) => {
                self.ignored("call", call, &action);
                Ok(terminal)
            }
            (None, Some(call)) => self.call(asked, call).map(Verdict::Modify),
            (None, None) => Ok(Verdict::Continue),
        }
    }

    fn abort_or_deny(&mut self, action: &str, reason: Option<&str>) -> Result<Option<Verdict<BeforeTool>>, Fault> {
        if action == "deny_tool" {
            let reason = text(&RESULT.name("reason"), reason)?;
            return Ok(Some(Verdict::Deny(Reason::new(&reason))));
        }
        Ok(self.abort(CheckpointKind::BeforeTool, action, reason)?.map(Verdict::Abort))
    }

    fn call(&mut self, asked: &BeforeTool, json: &str) -> Result<CallPatch, Fault> {
        let path = RESULT.name("call");
        let [tool, arguments, id, raw, meta, context, channel, chat_id] = self.fields(&path, json, &CALL)?;
        self.stamped(&path, [meta, context, channel, chat_id]);
        self.unchanged(&path.name("tool_call_id"), id, &asked.call.id);
        self.unchanged(&path.name("raw_tool"), raw, &asked.call.raw_tool);
        let tool = string(&path.name("tool"), tool)?;
        Ok(CallPatch { tool: self.kept_if_empty("tool", tool), arguments: object(&path.name("arguments"), arguments)? })
    }

    fn substitute(
        &mut self,
        asked: &BeforeTool,
        call: Option<&str>,
        result: Option<&str>,
    ) -> Result<Substitute, Fault> {
        let Some(result) = result else {
            // The result may well stand at the wrong place; then the first warning says so.
            let hint = self.warnings.first().map(|warning| format!("; {warning}")).unwrap_or_default();
            return Err(Fault::broke(format!(
                "\"respond\" needs \"result\", an object with a string \"for_llm\"{hint}"
            )));
        };
        let path = RESULT.name("result");
        let (output, complete) = self.output(&path, result)?;
        if !complete {
            return Err(Fault::broke(format!("{path}.for_llm is missing; it must be a string, which may be empty")));
        }
        let call = call.map(|call| self.call(asked, call)).transpose()?;
        Ok(Substitute { call, result: output })
    }

    fn after_tool(&mut self, asked: &AfterTool, json: &str) -> Result<Verdict<AfterTool>, Fault> {
        let [action, reason, wrapper] = self.fields(&RESULT, json, &AFTER_TOOL)?;
        let action = text(&RESULT.name("action"), action)?;
        if let Some(abort) = self.abort(CheckpointKind::AfterTool, &action, reason)? {
            self.ignored("result", wrapper, &action);
            return Ok(Verdict::Abort(abort));
        }
        let Some(wrapper) = wrapper else { return Ok(Verdict::Continue) };
        let path = RESULT.name("result");
        let [tool, arguments, id, raw, result, duration, meta, context, channel, chat_id] =
            self.fields(&path, wrapper, &OUTPUT_WRAPPER)?;
        self.stamped(&path, [meta, context, channel, chat_id]);
        self.unchanged_call(&path, [tool, arguments, id, raw], &asked.call);
        self.unchanged(&path.name("duration"), duration, &nanos(asked.duration));
        let Some(result) = result else { return Ok(Verdict::Continue) };
        let path = path.name("result");
        let (output, complete) = self.output(&path, result)?;
        if !complete {
            self.warn(format!("{path}.for_llm is missing; the model reads an empty result"));
        }
        Ok(Verdict::Modify(output))
    }

    fn approve_tool(&mut self, json: &str) -> Result<Verdict<ApproveTool>, Fault> {
        let [approved, reason, action] = self.fields(&RESULT, json, &APPROVE_TOOL)?;
        if action.is_some() {
            self.warn("approve_tool reads \"approved\"".into());
        }
        let approved = flag(&RESULT.name("approved"), approved)?;
        let reason = text(&RESULT.name("reason"), reason)?;
        Ok(if approved { Verdict::Continue } else { Verdict::Deny(Reason::new(&reason)) })
    }

    /// The abort that `action` demands; `None` if the payload decides.
    fn abort(&mut self, kind: CheckpointKind, action: &str, reason: Option<&str>) -> Result<Option<Abort>, Fault> {
        let abort_scope = match action {
            "" | "continue" | "modify" => None,
            "abort_turn" => Some(AbortScope::Turn),
            "hard_abort" => Some(AbortScope::Run),
            _ => {
                let allowed = if kind == CheckpointKind::BeforeTool { &TOOL_ACTIONS[..] } else { &ACTIONS[..] };
                return Err(Fault::broke(unknown_action(action, allowed, kind.name())));
            }
        };
        let reason = text(&RESULT.name("reason"), reason)?;
        Ok(abort_scope.map(|abort_scope| Abort { abort_scope, reason: Reason::new(&reason) }))
    }

    /// Warns about a payload that the action leaves no room for.
    fn ignored(&mut self, name: &'static str, payload: Option<&str>, action: &str) {
        if payload.is_some() {
            self.warn(format!("result.{name} is ignored beside \"{action}\""));
        }
    }

    /// Warns if a read-only member came back as another value than `was`.
    fn unchanged(&mut self, path: &Path<'_>, echoed: Option<&str>, was: &impl Serialize) {
        self.read_only(path, echoed, || serde_json::to_string(was).ok());
    }

    fn unchanged_call(&mut self, path: &Path<'_>, echoed: [Option<&str>; 4], was: &ToolCall) {
        let [tool, arguments, id, raw] = echoed;
        self.unchanged(&path.name("tool"), tool, &was.tool);
        self.unchanged(&path.name("arguments"), arguments, &was.arguments);
        self.unchanged(&path.name("tool_call_id"), id, &was.id);
        self.unchanged(&path.name("raw_tool"), raw, &was.raw_tool);
    }
}

/// A member that can be read; the fault of any other goes to `faults`.
fn readable<T>(read: Result<Option<T>, Fault>, faults: &mut Vec<Fault>) -> Option<T> {
    read.unwrap_or_else(|fault| {
        faults.push(fault);
        None
    })
}
