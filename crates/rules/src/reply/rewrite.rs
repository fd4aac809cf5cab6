//! What an answer wants to change: the shapes of `updatedInput`.

use pintle_domain::json::{Object, Value, same_value};

use super::members::kind;
use super::{ReplyFault, text};

/// The input that can be changed at an event, as it is before the change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CurrentInput<'a> {
    /// The input of the tool, at `pre_tool_use`.
    Input(&'a Object),
    /// The prompt, at `user_prompt_submit`.
    Prompt(&'a str),
    /// Nothing, at any other event.
    Nothing,
}

/// How an `updatedInput` is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputShape {
    /// As commands, endpoints and evaluators write it: the complete new input, or `{"rawInput":"…"}`.
    Whole,
    /// As scripts write it: `{toolInput?, rawInput?}`, the former laid over the current input key by key.
    Parts,
}

/// The input that is to stand in place of what was asked about.
#[derive(Clone, Debug, PartialEq)]
pub enum Rewrite {
    /// The complete new input of the tool.
    Input(Object),
    /// The new prompt.
    Prompt(String),
}

const TOOL_INPUT: &str = "toolInput";
const RAW_INPUT: &str = "rawInput";

/// Reads what `updated` changes in `current`. `None` is not a change: an absent or empty one, one that leaves everything
/// equal (members in any order, numbers in any spelling), and any at an event where nothing can be changed.
///
/// # Errors
/// A fault for an `updatedInput` of another shape.
pub fn rewrite(
    updated: Option<Object>,
    current: CurrentInput<'_>,
    shape: InputShape,
) -> Result<Option<Rewrite>, ReplyFault> {
    let Some(updated) = updated.filter(|updated| !updated.is_empty()) else { return Ok(None) };
    let wanted = match (current, shape) {
        (CurrentInput::Nothing, InputShape::Whole | InputShape::Parts) => Ok(None),
        (CurrentInput::Input(_), InputShape::Whole) => Ok(Some(Rewrite::Input(updated))),
        (CurrentInput::Prompt(_), InputShape::Whole) => whole_prompt(updated).map(Some),
        (CurrentInput::Input(current), InputShape::Parts) => parts(updated).map(|parts| parts.laid_over(current)),
        (CurrentInput::Prompt(_), InputShape::Parts) => parts(updated).map(|parts| parts.prompt.map(Rewrite::Prompt)),
    };
    let wanted = wanted.map_err(|why| ReplyFault::Unreadable(format!("updatedInput: {why}")))?;
    Ok(wanted.filter(|wanted| !leaves(wanted, current)))
}

/// Whether `wanted` leaves everything as it is.
fn leaves(wanted: &Rewrite, current: CurrentInput<'_>) -> bool {
    match (wanted, current) {
        (Rewrite::Input(wanted), CurrentInput::Input(current)) => {
            wanted.len() == current.len()
                && wanted.iter().all(|(name, new)| current.get(name).is_some_and(|old| same_value(new, old)))
        }
        (Rewrite::Prompt(wanted), CurrentInput::Prompt(current)) => wanted == current,
        (Rewrite::Input(_), CurrentInput::Prompt(_) | CurrentInput::Nothing)
        | (Rewrite::Prompt(_), CurrentInput::Input(_) | CurrentInput::Nothing) => false,
    }
}

fn whole_prompt(mut updated: Object) -> Result<Rewrite, String> {
    if let Some(other) = updated.keys().find(|name| *name != RAW_INPUT) {
        return Err(format!(
            "must be exactly {{\"rawInput\":\"…\"}} at `user_prompt_submit`, got the member {}",
            text::quoted(other)
        ));
    }
    match updated.get_mut(RAW_INPUT).map(Value::take) {
        Some(Value::String(prompt)) => Ok(Rewrite::Prompt(prompt)),
        other => Err(format!("rawInput must be a string, got {}", kind(&other.unwrap_or_default()))),
    }
}

/// The parts that a script wrote, by its members.
struct Parts {
    input: Option<Object>,
    prompt: Option<String>,
}

impl Parts {
    fn laid_over(self, current: &Object) -> Option<Rewrite> {
        let input = self.input?;
        let mut laid = current.clone();
        laid.extend(input);
        Some(Rewrite::Input(laid))
    }
}

/// Both members are checked at every event, so that a mistake shows at the first one.
fn parts(updated: Object) -> Result<Parts, String> {
    let mut parts = Parts { input: None, prompt: None };
    for (name, value) in updated {
        match (name.as_str(), value) {
            (TOOL_INPUT | RAW_INPUT, Value::Null) => {}
            (TOOL_INPUT, Value::Object(input)) => parts.input = Some(input),
            (TOOL_INPUT, other) => return Err(format!("toolInput must be an object, got {}", kind(&other))),
            (RAW_INPUT, Value::String(prompt)) => parts.prompt = Some(prompt),
            (RAW_INPUT, other) => return Err(format!("rawInput must be a string, got {}", kind(&other))),
            _ => return Err(format!("must be {{toolInput?, rawInput?}}, got the member {}", text::quoted(&name))),
        }
    }
    Ok(parts)
}
