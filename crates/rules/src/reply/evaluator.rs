//! An evaluating model's answer: its calls of `decide`.

use pintle_domain::llm::LlmReply;
use pintle_domain::message::CallPart;

use super::members::{self, Read};
use super::{Decision, HandlerReply, MAX_REPLY_BYTES, ReplyFault, spelling, text};

/// The tool that an evaluator must call.
pub const DECIDE: &str = "decide";

/// The effect of an attempt to instruct the evaluator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InjectionEffect {
    /// A block, whatever was decided.
    #[default]
    Block,
    /// The decision stands.
    Ignore,
}

/// The members that are known in the arguments.
const KNOWN: [&str; 5] = ["decision", "reason", "injection_detected", "updated_input", "additional_context"];

/// Reads an evaluator's answer. Of several calls one that blocks wins, else the first speaks.
///
/// # Errors
/// A fault for an answer without a call, and for a call that is not one of [`DECIDE`] as it was offered, unless
/// another one blocks.
pub fn decide(answer: &LlmReply, on_injection: InjectionEffect) -> Result<HandlerReply, ReplyFault> {
    let mut first = None;
    let mut fault = None;
    for call in &answer.tool_calls {
        match decided(call, on_injection) {
            Ok(said) if said.decision == Decision::Block => return Ok(said),
            Ok(said) => _ = first.get_or_insert(said),
            Err(why) => _ = fault.get_or_insert(why),
        }
    }
    let why = match (fault, first) {
        (None, Some(said)) => return Ok(said),
        (Some(why), _) => why,
        (None, None) if answer.content.trim().is_empty() => "evaluator_empty_response".into(),
        (None, None) => "evaluator_no_tool_call".into(),
    };
    Err(ReplyFault::Unreadable(why))
}

/// Whether an evaluator says that it saw an attempt to instruct it, even in a call that is none: for the log.
pub fn saw_injection(answer: &LlmReply) -> bool {
    answer.tool_calls.iter().any(|call| match members::read(call.function.arguments.trim(), &KNOWN) {
        Ok(Read::Object(members)) => members.get("injection_detected") == Some(&pintle_domain::json::Value::Bool(true)),
        Ok(Read::Other(_) | Read::NotJson(_)) | Err(_) => false,
    })
}

fn decided(call: &CallPart, on_injection: InjectionEffect) -> Result<HandlerReply, String> {
    let function = &call.function;
    if function.name != DECIDE {
        return Err(format!("evaluator_wrong_tool: {}", text::line(&function.name).unwrap_or_default()));
    }
    let arguments = function.arguments.trim();
    if arguments.len() > MAX_REPLY_BYTES {
        return Err(broken(format!("{} bytes, more than the {MAX_REPLY_BYTES} that are read", arguments.len())));
    }
    let mut members = match members::read(arguments, &KNOWN).map_err(broken)? {
        Read::Object(members) => members,
        Read::Other(kind) => return Err(broken(format!("must be a JSON object, got {kind}"))),
        Read::NotJson(why) => return Err(broken(why)),
    };
    let word = members::string(&mut members, "decision").map_err(broken)?;
    let word = word.ok_or_else(|| broken("decision is missing"))?;
    let decision = match Decision::of(&word) {
        Some(decision @ (Decision::Allow | Decision::Block)) => decision,
        Some(Decision::Ask | Decision::Defer) | None => {
            return Err(format!("evaluator_invalid_decision: {}", text::quoted(&word)));
        }
    };
    if members.get("reason").is_none_or(pintle_domain::json::Value::is_null) {
        return Err(broken("reason is missing"));
    }
    let warnings = spelling::near_misses(&members, &KNOWN);
    let mut said = HandlerReply {
        warnings,
        decision,
        reason: members::reason(&mut members, "reason").map_err(broken)?,
        context: members::context(&mut members, "additional_context").map_err(broken)?,
        updated_input: members::object(&mut members, "updated_input").map_err(broken)?,
        injection_detected: members::flag(&mut members, "injection_detected").map_err(broken)?.unwrap_or(false),
    };
    if said.injection_detected && on_injection == InjectionEffect::Block {
        said.decision = Decision::Block;
        // What made it allow is no reason for a block.
        let why = said.reason.filter(|_| decision == Decision::Block);
        said.reason = why.or_else(|| Some("the evaluated input tries to instruct the evaluator".into()));
    }
    Ok(said)
}

fn broken(why: impl std::fmt::Display) -> String {
    format!("evaluator_args_parse_error: {why}")
}
