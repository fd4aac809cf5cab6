//! Conditions of rules: a matcher on the tool's name, and an expression of CEL over the event.
//!
//! The `cel` crate parses an expression and writes its macros out. The evaluation is done here: conditions judge what
//! a model has sent, so each step and each byte that is looked at must count against a budget, also inside of the
//! operators, of equality and of error messages, which the crate's evaluation has no place for. It also lends the
//! event instead of copying it, and the names, the types and the patterns are settled when it is compiled.

use std::cell::OnceCell;
use std::sync::Arc;

use cel::parser::PrattParser;
use pintle_domain::condition::{Condition, ConditionInput};
use pintle_domain::matcher::Matcher;

use fault::{Fault, shown};
use kind::Kind;
use lower::Lowering;
use meter::Bounds;
use node::Node;
use run::{Event, Run};

mod call;
mod fault;
mod kind;
mod lower;
mod macros;
mod meter;
mod names;
#[expect(clippy::wildcard_enum_match_arm, reason = "kinds that a conversion does not know are one case, also new ones")]
mod native;
mod node;
mod number;
mod pattern;
mod run;
mod same;
mod text;
mod tree;
mod value;

/// Longest expression, in bytes: what is longer belongs into a script.
pub const MAX_BYTES: usize = 4 << 10;

/// How deep brackets and macros may be nested in each other before the parser gives up; it fits a small stack.
const MAX_BRACKETS: u16 = 32;

/// An expression, ready to be evaluated many times and from many threads.
#[derive(Debug)]
pub struct Compiled {
    text: Arc<str>,
    root: Node,
    names_tool: bool,
    bounds: Bounds,
}

/// Compiles the expression of a condition (`if_expr`).
///
/// # Errors
/// What is wrong with it, on one line: `cel parse "E": …` or `expression must be bool, got T`.
pub fn compile(text: &str) -> Result<Compiled, String> {
    compile_located(text).map_err(|error| error.text)
}

/// Why an expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionError {
    /// On one line, as [`compile`] says it.
    pub text: String,
    /// The line and the column where it is wrong, from 1, where that is known.
    pub place: Option<(u32, u32)>,
}

/// The same, for whoever shows where it is wrong.
///
/// # Errors
/// As those of [`compile`], with their place.
pub fn compile_located(text: &str) -> Result<Compiled, ConditionError> {
    compile_bounded(text, Bounds::default())
}

fn compile_bounded(text: &str, bounds: Bounds) -> Result<Compiled, ConditionError> {
    let at = |why: String, place| ConditionError { text: format!("cel parse {}: {why}", quoted(text)), place };
    let wrong = |why: String| at(why, None);
    if text.len() > MAX_BYTES {
        return Err(wrong(format!("longer than {MAX_BYTES} bytes (got {})", text.len())));
    }
    let parser = PrattParser::new().max_recursion_depth(MAX_BRACKETS).enable_variadic_operator_asts(true);
    let tree = parser.parse(text).map_err(|e| {
        let (why, place) = first_of(&e);
        at(why, place)
    })?;
    let tree = tree::bounded(tree).map_err(wrong)?;
    let mut lowering = Lowering::default();
    let (root, known) = lowering.lower(tree).map_err(wrong)?;
    if !known.may_be(|kind| kind == Kind::Bool) {
        let text = format!("expression must be bool, got {known}");
        return Err(ConditionError { text, place: None });
    }
    Ok(Compiled { text: text.into(), root, names_tool: lowering.names_tool, bounds })
}

/// Compiles the pattern on a tool's name (`matcher`).
///
/// # Errors
/// What is wrong with it, on one line: `compile matcher "P": …`.
pub fn compile_matcher(pattern: &str) -> Result<Matcher, String> {
    if pattern.len() > MAX_BYTES {
        let why = format!("longer than {MAX_BYTES} bytes (got {})", pattern.len());
        return Err(format!("compile matcher {}: {why}", quoted(pattern)));
    }
    Matcher::compile(pattern).map_err(|why| format!("compile matcher {}: {why}", quoted(pattern)))
}

/// A text in quotes. One that is too long is only begun.
fn quoted(text: &str) -> String {
    if text.len() > MAX_BYTES { format!("\"{}\"", shown(text)) } else { format!("{text:?}") }
}

/// The first thing that the parser found, and where.
fn first_of(all: &cel::ParseErrors) -> (String, Option<(u32, u32)>) {
    let Some(first) = all.errors.first() else { return ("it cannot be read".to_owned(), None) };
    let line = first.msg.lines().next().unwrap_or_default();
    let (row, column) = first.pos;
    let place = u32::try_from(row).ok().filter(|row| *row > 0).zip(u32::try_from(column).ok());
    match place {
        Some((row, column)) => (format!("{row}:{column}: {line}"), place),
        None => (line.to_owned(), None),
    }
}

impl Compiled {
    /// Evaluates with one of the tool's names.
    fn with_name<'a>(&'a self, event: Event<'a>) -> Result<bool, Fault<'a>> {
        Run::new(event, self.bounds).holds(&self.root)
    }
}

impl Condition for Compiled {
    fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Where the raw and the canonical name of the tool differ, it holds if it holds with either of them as
    /// `tool_name`, whatever is wrong with the other; a bound that is reached is a fault all the same.
    fn holds(&self, seen: &ConditionInput<'_>) -> Result<bool, String> {
        let shell = OnceCell::new();
        let with = |tool_name| self.with_name(Event { seen, tool_name, shell: &shell });
        let canonical = with(seen.tool_name);
        let twice = self.names_tool && seen.raw_tool_name != seen.tool_name;
        let absorbable = canonical.as_ref().err().is_none_or(Fault::absorbable);
        if !twice || !absorbable || matches!(canonical, Ok(true)) {
            return canonical.map_err(|fault| fault.to_string());
        }
        match with(seen.raw_tool_name) {
            Ok(true) => Ok(true),
            Ok(false) => canonical.map_err(|fault| fault.to_string()),
            Err(fault) => Err(fault.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ask(condition: &Compiled) -> Result<bool, String> {
        let shell = std::sync::Arc::default;
        condition.holds(&ConditionInput {
            event: "pre_tool_use",
            tool_name: "exec",
            raw_tool_name: "exec",
            tool_input: None,
            raw_input: "",
            depth: 0,
            agent_id: "",
            session_id: "",
            first_prompt: false,
            shell: &shell,
        })
    }

    #[test]
    fn the_clock_is_a_bound_of_its_own() {
        let out_of_time = Bounds { cost: u64::MAX, time: Duration::ZERO };
        let many = format!("[{}]", vec!["1"; 100].join(","));
        let long = format!("{many}.all(a, {many}.all(b, a == b)) || true");
        let condition = compile_bounded(&long, out_of_time).unwrap();
        let fault = ask(&condition).unwrap_err();
        assert_eq!(fault, "the condition took longer than 0 ms; look at fewer or smaller values");
        // What is over before the first look needs no clock.
        assert_eq!(ask(&compile_bounded("tool_name == 'exec'", out_of_time).unwrap()), Ok(true));
        assert_eq!(ask(&compile(&long).unwrap()), Ok(true));
    }

    #[test]
    fn the_cost_ends_where_it_says() {
        let costs = |expression: &str| {
            let holds = |cost| ask(&compile_bounded(expression, Bounds { cost, ..Bounds::default() }).unwrap());
            (0..1_000).find(|cost| holds(*cost).is_ok()).unwrap()
        };
        assert_eq!(costs("true"), 1);
        assert_eq!(costs("tool_name == 'exec'"), 4);
        assert_eq!(costs("tool_name == 'x'"), 3);
        // A list and its two items, then one for each item and for its test.
        assert_eq!(costs("[1, 2].all(x, true)"), 8);
        assert!(costs(&format!("'{}'.contains('b') || true", "a".repeat(640))) >= 10);
    }
}
