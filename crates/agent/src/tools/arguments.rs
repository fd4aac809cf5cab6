//! The check of a call's arguments against the tool's JSON Schema.
//!
//! Schemas are other people's: what one may come to is bounded when the tool is added, and a check that could take long
//! is made on a thread of its own that is waited for only so long.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use jsonschema::ValidationError;
use pintle_domain::json::{Object, Value};
use pintle_domain::tool_schema::Expansion;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How many faults one message names; more would bury the first.
const MAX_FAULTS: usize = 3;

/// How much of a wrong value is quoted, in characters; enough to recognise it.
const MAX_QUOTED: usize = 120;

/// How long a check may take: a thousand times a usual one.
const CHECK_TIME: Duration = Duration::from_secs(2);
/// Work that is not worth a thread, in schemas times parts of the arguments: less than a millisecond.
const LITTLE_WORK: u64 = 20_000;
/// Deepest arguments that are checked, in levels. With the depth that a schema may have, a check fits its stack.
const MAX_LEVELS: usize = 128;
/// The stack of a check, in bytes; what is not used is not taken.
const CHECK_STACK_BYTES: usize = 64 << 20;

/// The check of one tool's arguments.
pub(super) struct Validator {
    schema: Arc<CompiledSchema>,
    comes_to: Expansion,
    /// The check that was given up last: it is there as long as its thread runs.
    given_up: Mutex<Weak<()>>,
}

/// A compiled schema.
struct CompiledSchema {
    compiled: jsonschema::Validator,
    schema: Value,
}

impl Validator {
    /// The check of a schema that comes to so much.
    pub(super) fn new(schema: &Value, comes_to: Expansion) -> Result<Self, String> {
        let theirs = schema.clone().into();
        let compiled = jsonschema::validator_for(&theirs).map_err(|e| e.to_string())?;
        let schema = Arc::new(CompiledSchema { compiled, schema: schema.clone() });
        Ok(Self { schema, comes_to, given_up: Mutex::default() })
    }

    /// Says of each fault where it is, what was expected and what was there. It takes as long as it takes: for schemas
    /// of ours.
    pub(super) fn check(&self, tool: &str, arguments: &Object) -> Result<(), String> {
        self.schema.check(tool, arguments)
    }

    /// The same for any schema: a check that could take long is made apart, and given up after a while.
    pub(super) async fn check_in_time(
        &self,
        tool: &str,
        arguments: &Object,
        cancel: &CancellationToken,
    ) -> Result<(), String> {
        let Size { parts, levels } = size(arguments);
        if levels > MAX_LEVELS {
            return Err(format!("invalid arguments of `{tool}`: nested deeper than {MAX_LEVELS} levels"));
        }
        if !self.comes_to.refers && self.comes_to.schemas.saturating_mul(parts) <= LITTLE_WORK {
            return self.check(tool, arguments);
        }
        let unchecked = |why: &str| format!("the arguments of `{tool}` could not be checked, so it did not run: {why}");
        if self.given_up().upgrade().is_some() {
            return Err(unchecked("an earlier check still goes on"));
        }
        let (done, checked) = oneshot::channel();
        let (schema, running) = (self.schema.clone(), Arc::new(()));
        let this_one = Arc::downgrade(&running);
        let (name, arguments) = (tool.to_owned(), arguments.clone());
        // No task of the runtime: one that does not end would hold the end of the program.
        let thread = std::thread::Builder::new().name("arguments".into()).stack_size(CHECK_STACK_BYTES);
        let begun = thread.spawn(move || {
            let outcome = schema.check(&name, &arguments);
            drop(running);
            // Whoever asked may have gone.
            drop(done.send(outcome));
        });
        if let Err(error) = begun {
            return Err(unchecked(&format!("no thread: {error}")));
        }
        let ends = tokio::time::timeout(CHECK_TIME, checked);
        let outcome = tokio::select! {
            biased;
            outcome = ends => outcome,
            () = cancel.cancelled() => return Err("cancelled".into()),
        };
        match outcome {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_panicked)) => Err(unchecked("the check failed inside")),
            Err(_elapsed) => {
                *self.given_up() = this_one;
                let ms = CHECK_TIME.as_millis();
                tracing::warn!(
                    tool,
                    "a check of arguments takes longer than {ms} ms: the tool's schema is too much work"
                );
                Err(unchecked(&format!("the check took longer than {ms} ms; send smaller arguments")))
            }
        }
    }

    /// Nothing that holds the lock can panic.
    fn given_up(&self) -> std::sync::MutexGuard<'_, Weak<()>> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CompiledSchema {
    fn check(&self, tool: &str, arguments: &Object) -> Result<(), String> {
        let arguments = Value::Object(arguments.clone());
        let forms = forms(&arguments);
        let Some(wrong) = forms.iter().find(|form| !self.compiled.is_valid(form)) else { return Ok(()) };
        let faults: Vec<String> =
            self.compiled.iter_errors(wrong).take(MAX_FAULTS).map(|e| self.describe(&e, &arguments)).collect();
        Err(format!("invalid arguments of `{tool}`: {}", faults.join("; ")))
    }

    fn describe(&self, error: &ValidationError<'_>, arguments: &Value) -> String {
        let at = match error.instance_path().as_str() {
            "" => "at the top".to_owned(),
            path => format!("at `{path}`"),
        };
        let rule = error.schema_path().as_str();
        let keyword = rule.rsplit('/').next().unwrap_or_default();
        let got = quote(arguments.pointer(error.instance_path().as_str()).unwrap_or(&Value::Null));
        match keyword {
            "additionalProperties" => format!("{at}: {error}; known are {}", self.known()),
            "required" => format!("{at}: {error}, got {got}"),
            _ => match self.schema.pointer(rule) {
                Some(Value::String(word)) => format!("{at}: expected {keyword} {word}, got {got}"),
                Some(value) => format!("{at}: expected {keyword} {}, got {got}", quote(value)),
                None => format!("{at}: {error}, got {got}"),
            },
        }
    }

    fn known(&self) -> String {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        let names: Vec<String> =
            properties.into_iter().flat_map(Object::keys).map(|name| format!("`{name}`")).collect();
        if names.is_empty() { "none".into() } else { names.join(", ") }
    }
}

/// How large a value is.
#[derive(Clone, Copy)]
struct Size {
    parts: u64,
    levels: usize,
}

fn size(arguments: &Object) -> Size {
    let mut whole = Size { parts: 1, levels: 1 };
    for value in arguments.values() {
        let part = size_of(value);
        whole = Size { parts: whole.parts + part.parts, levels: whole.levels.max(part.levels + 1) };
    }
    whole
}

fn size_of(value: &Value) -> Size {
    match value {
        Value::Object(members) => size(members),
        Value::Array(items) => items.iter().map(size_of).fold(Size { parts: 1, levels: 1 }, |whole, part| Size {
            parts: whole.parts + part.parts,
            levels: whole.levels.max(part.levels + 1),
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Size { parts: 1, levels: 1 },
    }
}

/// The arguments in numbers of the machine, which is what a schema is compared with. Where a number is none of them, it
/// lies between two of them, and the arguments have to be good with either: so rounding lets none past a bound.
fn forms(arguments: &Value) -> Vec<serde_json::Value> {
    let nearest = arguments.clone().into();
    if is_of_machine(arguments) {
        return vec![nearest];
    }
    vec![nearest, leaning(arguments, f64::next_down), leaning(arguments, f64::next_up)]
}

fn is_of_machine(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_of_machine(),
        Value::Array(items) => items.iter().all(is_of_machine),
        Value::Object(members) => members.values().all(is_of_machine),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// The value with each number that no machine has replaced by a neighbour of the nearest that it has.
fn leaning(value: &Value, neighbour: fn(f64) -> f64) -> serde_json::Value {
    match value {
        Value::Number(number) if !number.is_of_machine() => {
            let nearest = serde_json::Value::from(value.clone());
            let beside = nearest.as_f64().map(neighbour).and_then(serde_json::Number::from_f64);
            beside.map_or(nearest, serde_json::Value::Number)
        }
        Value::Array(items) => items.iter().map(|item| leaning(item, neighbour)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), leaning(value, neighbour))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone().into(),
    }
}

fn quote(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use pintle_domain::json::json;

    use super::*;

    fn validator(schema: &Value) -> Validator {
        Validator::new(schema, pintle_domain::tool_schema::expanded(schema).unwrap()).unwrap()
    }

    fn check(arguments: Value) -> String {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1},
                "limit": {"type": "integer", "minimum": 1, "maximum": 10},
                "mode": {"enum": ["a", "b"]},
            },
            "required": ["path"],
            "additionalProperties": false,
        });
        let arguments = arguments.as_object().unwrap().clone();
        validator(&schema).check("t", &arguments).err().unwrap_or_default()
    }

    #[test]
    fn a_fault_names_the_place_the_rule_and_the_value() {
        for (arguments, text) in [
            (json!({"path": "x", "limit": 3}), ""),
            (json!({"path": 3}), "invalid arguments of `t`: at `/path`: expected type string, got 3"),
            (json!({"path": ""}), r#"invalid arguments of `t`: at `/path`: expected minLength 1, got """#),
            (
                json!({"path": "x", "limit": "ten"}),
                r#"invalid arguments of `t`: at `/limit`: expected type integer, got "ten""#,
            ),
            (json!({"path": "x", "limit": 11}), "invalid arguments of `t`: at `/limit`: expected maximum 10, got 11"),
            (
                json!({"path": "x", "mode": "c"}),
                r#"invalid arguments of `t`: at `/mode`: expected enum ["a","b"], got "c""#,
            ),
            (
                json!({"limit": 0}),
                "invalid arguments of `t`: at `/limit`: expected minimum 1, got 0; \
                 at the top: \"path\" is a required property, got {\"limit\":0}",
            ),
            (
                json!({"path": "x", "patch": 1}),
                "invalid arguments of `t`: at the top: Additional properties are not allowed ('patch' was unexpected); \
                 known are `path`, `limit`, `mode`",
            ),
        ] {
            assert_eq!(check(arguments.clone()), text, "{arguments}");
        }
    }

    /// Schemas know numbers of the machine only; what is beyond a bound stays beyond it.
    #[test]
    fn rounding_lets_no_number_past_a_bound() {
        let schema = r#"{"properties":{"n":{"type":"number","minimum":-0.5,"maximum":9007199254740992}}}"#;
        let validator = validator(&pintle_domain::json::parse(schema).unwrap());
        let check = |number: &str| {
            let arguments = pintle_domain::json::parse(&format!(r#"{{"n":{number}}}"#)).unwrap();
            validator.check("t", arguments.as_object().unwrap()).err()
        };
        for good in ["1.50", "9007199254740992", "-0.5", "0.10000000000000000001", "12345678901234.567890123456789"] {
            assert_eq!(check(good), None, "{good}");
        }
        for bad in ["9007199254740992.5", "9007199254740993", "-0.50000000000000000001", "1e+999", "-1e+999"] {
            let rule = if bad.starts_with('-') { "minimum -0.5" } else { "maximum 9007199254740992" };
            let expected = format!("invalid arguments of `t`: at `/n`: expected {rule}, got {bad}");
            assert_eq!(check(bad), Some(expected));
        }
    }

    #[test]
    fn a_long_value_is_cut() {
        let text = check(json!({"path": "x", "mode": "\u{e9}".repeat(5000)}));
        assert!(text.chars().count() < 300 && text.ends_with('…'), "{text}");
    }

    /// Each item is compared with thousands of schemas.
    fn slow() -> Validator {
        let never: Vec<Value> = (0..9_000).map(|at| json!({"const": at})).collect();
        validator(&json!({"type": "object", "properties": {"x": {"items": {"not": {"anyOf": never}}}}}))
    }

    fn items(count: usize) -> Object {
        Object::from_iter([("x".to_owned(), Value::Array(vec![json!("y"); count]))])
    }

    fn recursive() -> Validator {
        let both = json!({"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]});
        validator(&json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"x": both}}}}))
    }

    fn nested(levels: usize) -> Object {
        let mut arguments = Object::new();
        for _ in 1..levels {
            arguments = Object::from_iter([("x".to_owned(), Value::Object(arguments))]);
        }
        arguments
    }

    #[tokio::test]
    async fn some_work_is_done_beside_the_call() {
        let none = CancellationToken::new();
        assert_eq!(slow().check_in_time("t", &items(1), &none).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_without_end_holds_neither_the_call_nor_the_next_one() {
        let (validator, none) = (slow(), CancellationToken::new());
        let text = |why: &str| format!("the arguments of `t` could not be checked, so it did not run: {why}");
        let late = text("the check took longer than 2000 ms; send smaller arguments");
        assert_eq!(validator.check_in_time("t", &items(50_000), &none).await, Err(late));
        let busy = text("an earlier check still goes on");
        assert_eq!(validator.check_in_time("t", &items(50), &none).await, Err(busy));
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        assert_eq!(slow().check_in_time("t", &items(50_000), &cancelled).await, Err("cancelled".into()));
    }

    #[tokio::test]
    async fn deep_arguments_are_refused_and_those_at_the_bound_fit_the_stack() {
        let none = CancellationToken::new();
        let text = "invalid arguments of `t`: nested deeper than 128 levels".to_owned();
        assert_eq!(recursive().check_in_time("t", &nested(129), &none).await, Err(text));
        // As deep as a schema may be, once more for each level of the arguments.
        let mut around = json!({"$ref": "#/$defs/a"});
        for _ in 0..190 {
            around = json!({"allOf": [around]});
        }
        let deep = json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"x": around}}}});
        assert_eq!(validator(&deep).check_in_time("t", &nested(128), &none).await, Ok(()));
        let mut wrong = nested(127);
        wrong.insert("x".into(), json!({"x": 5}));
        let said = validator(&deep).check_in_time("t", &wrong, &none).await;
        assert_eq!(said, Err("invalid arguments of `t`: at `/x/x`: expected type object, got 5".into()));
    }
}
