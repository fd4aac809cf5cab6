//! What went wrong in the engine, as one of our faults.

use rquickjs::{Ctx, Error, Type, Value};

use crate::fault::SyntaxError;
use crate::frame::ReplyBody;
use crate::{limits, peak};

use super::text;

/// When it went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// While the source was read or its own text ran.
    Load,
    /// Later.
    Run,
}

/// The name that the engine gives to a source which has none, in the places that it reports.
const SOURCE_NAME: &str = "eval_script:";

/// Turns what the engine reports into a fault.
pub(super) fn raised(ctx: &Ctx<'_>, error: &Error, phase: Phase) -> ReplyBody {
    if matches!(error, Error::Allocation) {
        return ReplyBody::OutOfMemory;
    }
    if !error.is_exception() && !ctx.has_exception() {
        return ReplyBody::Threw(one_line(&error.to_string()));
    }
    let value = ctx.catch();
    if let Some(error) = syntax(&value).filter(|_| phase == Phase::Load) {
        return ReplyBody::Syntax(error);
    }
    // When there is no memory for an error either, the engine throws this.
    if matches!(value.type_of(), Type::Null | Type::Uninitialized) && peak::heap_was_full() {
        return ReplyBody::OutOfMemory;
    }
    match told(ctx, &value).as_str() {
        "InternalError: out of memory" | "SyntaxError: out of memory" => ReplyBody::OutOfMemory,
        "RangeError: Maximum call stack size exceeded" => ReplyBody::TooDeep,
        text => ReplyBody::Threw(one_line(text)),
    }
}

/// The place of a NUL, after `before`: the engine would take it for the end of the source.
pub(super) fn nul(before: &str) -> SyntaxError {
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    SyntaxError { line: small(line), column: small(column), message: "the source contains a NUL character".into() }
}

fn told(ctx: &Ctx<'_>, value: &Value<'_>) -> String {
    match value.as_object() {
        Some(object) if !value.is_function() => text::error(ctx, object, limits::THROW_BYTES),
        _ => text::plain(value).unwrap_or_else(|| format!("a {}", value.type_name())),
    }
}

/// Where the source itself does not parse. Errors of running code name the function first: `at f (eval_script:1:2)`.
fn syntax(value: &Value<'_>) -> Option<SyntaxError> {
    let exception = value.as_exception()?;
    let stack = exception.stack()?;
    let place = stack.lines().next()?.trim_start().strip_prefix("at ")?.strip_prefix(SOURCE_NAME)?;
    let (line, column) = place.split_once(':')?;
    let message = one_line(&exception.message().unwrap_or_default());
    Some(SyntaxError { line: line.parse().ok()?, column: column.parse().ok()?, message })
}

/// The first line, without control characters, bounded.
fn one_line(text: &str) -> String {
    let line = text.split(['\n', '\r', '\u{2028}', '\u{2029}']).next().unwrap_or_default();
    let line: String = line.chars().filter(|char| !char.is_control()).collect();
    text::head(&line, limits::THROW_BYTES).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_throw_is_one_bounded_line() {
        assert_eq!(one_line("a\u{1b}[31mb\nc"), "a[31mb");
        assert_eq!(one_line(&"ü".repeat(1000)).len(), limits::THROW_BYTES);
    }

    #[test]
    fn a_nul_has_a_place() {
        let error = nul("ä\nbc");
        assert_eq!((error.line, error.column), (2, 3));
    }
}
