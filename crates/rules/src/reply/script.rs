//! A script's answer: the value that its `handle` returned.

use pintle_domain::json::Value;

use super::output::KNOWN;
use super::{Decision, HandlerReply, ReplyFault, members, spelling, text};

/// Reads what a script returned. A script that returned nothing returned `null`.
///
/// # Errors
/// A fault for what is not an object with a decision, and for a known member of a wrong type.
pub fn script(value: &Value) -> Result<HandlerReply, ReplyFault> {
    returned(value).map_err(|why| ReplyFault::Unreadable(format!("script return: {why}")))
}

fn returned(value: &Value) -> Result<HandlerReply, String> {
    let members = value.as_object().ok_or("must be object with decision")?;
    let mut members = spelling::settled(members.clone(), &KNOWN)?;
    let decision = match members::take(&mut members, "decision") {
        None => return Err("missing decision field".into()),
        Some(Value::String(word)) => {
            Decision::of(&word).ok_or_else(|| format!("invalid decision {}", text::quoted(&word)))?
        }
        Some(_) => return Err("decision must be string".into()),
    };
    // Not part of the contract, but whoever writes it means what it means in any other reply.
    let goes_on = members::flag(&mut members, "continue")?.unwrap_or(true);
    Ok(HandlerReply {
        warnings: spelling::near_misses(&members, &KNOWN),
        decision: if goes_on { decision } else { Decision::Block },
        reason: members::reason(&mut members, "reason")?,
        context: members::context(&mut members, "additionalContext")?,
        updated_input: members::object(&mut members, "updatedInput")?,
        injection_detected: false,
    })
}
