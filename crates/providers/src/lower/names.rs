//! Names of tools and ids of calls, as every server takes them: one map for each request.
//!
//! A model may call a tool by any text, a server may give a call any id, and hooks may bring tools of any name. Servers
//! take few characters and short texts, and refuse a whole conversation over one of them. What fits goes out as it is;
//! anything else gets a form of its own, the same in every request that begins alike. An answer that uses such a form
//! means the name behind it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use pintle_domain::json::{Object, Rendered, Value};
use pintle_domain::llm::{LlmReply, ToolDef};
use pintle_domain::message::CallPart;

/// Longest name of a tool: what the strictest of the vendors takes.
const MAX_NAME_BYTES: usize = 64;
/// Longest id of a call: what the strictest of the vendors takes.
const MAX_ID_BYTES: usize = 40;
/// What stands for a name of nothing.
const NAMELESS: &str = "unnamed";
/// What stands for an id of nothing.
const NO_ID: &str = "call";
/// Which tool must be called, on either wire.
const CHOICE: &str = "tool_choice";

/// The names of tools in one request.
#[derive(Debug, Default)]
pub(crate) struct WireNames {
    /// The forms of those names that do not fit.
    forms: BTreeMap<String, String>,
}

impl WireNames {
    /// The names of `tools`, and those in `calls`.
    pub(crate) fn of<'a>(tools: &'a [Rendered<ToolDef>], calls: impl Iterator<Item = &'a CallPart>) -> Self {
        let offered = tools.iter().map(|tool| tool.get().function.name.as_str());
        let all: Vec<&str> = offered.chain(calls.map(|call| call.function.name.as_str())).collect();
        if all.iter().all(|name| fits(name)) {
            return Self::default();
        }
        let mut taken: BTreeSet<Cow<'_, str>> =
            all.iter().filter(|name| fits(name)).map(|name| (*name).into()).collect();
        let mut forms = BTreeMap::new();
        for name in all.iter().filter(|name| !fits(name)) {
            if !forms.contains_key(*name) {
                let form = free_form(name, &taken);
                taken.insert(form.clone().into());
                forms.insert((*name).to_owned(), form);
            }
        }
        Self { forms }
    }

    /// The form in which `name` goes out.
    pub(crate) fn form<'a>(&'a self, name: &'a str) -> &'a str {
        self.forms.get(name).map_or(name, String::as_str)
    }

    /// `options` with the form of the tool that they name.
    pub(crate) fn chosen<'a>(&self, options: Cow<'a, Object>) -> Cow<'a, Object> {
        let of =
            |choice: &Value| choice["function"]["name"].as_str().or_else(|| choice["name"].as_str()).map(str::to_owned);
        let Some(form) = options.get(CHOICE).and_then(of).and_then(|name| self.forms.get(&name)) else {
            return options;
        };
        let mut options = options.into_owned();
        if let Some(choice) = options.get_mut(CHOICE) {
            let place =
                if choice["function"].is_object() { &mut choice["function"]["name"] } else { &mut choice["name"] };
            *place = form.as_str().into();
        }
        Cow::Owned(options)
    }

    /// Puts the names that are meant in the place of forms in `reply`.
    pub(crate) fn meant(&self, reply: &mut LlmReply) {
        for call in &mut reply.tool_calls {
            if let Some((name, _)) = self.forms.iter().find(|(_, form)| **form == call.function.name) {
                call.function.name.clone_from(name);
            }
        }
    }
}

fn fits(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_wordy)
}

fn is_wordy(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// The nearest form of `name` that is not `taken`.
fn free_form(name: &str, taken: &BTreeSet<Cow<'_, str>>) -> String {
    let near: String = name.chars().map(|c| if c.is_ascii() && is_wordy(c as u8) { c } else { '_' }).collect();
    let near = if near.is_empty() { NAMELESS } else { near.as_str() };
    if near.len() <= MAX_NAME_BYTES && !taken.contains(near) {
        return near.to_owned();
    }
    // The digest tells apart what has one beginning, and is the same whatever else is in the request.
    let mark = |salt: u32| {
        let mut digest = DefaultHasher::new();
        (name, salt).hash(&mut digest);
        format!("_{:08x}", digest.finish() >> 32)
    };
    let form = |salt| {
        let mark = mark(salt);
        format!("{}{mark}", &near[..near.len().min(MAX_NAME_BYTES - mark.len())])
    };
    (0..).map(form).find(|form| !taken.contains(form.as_str())).unwrap_or_default()
}

/// The ids of calls in one request, in the order in which they stand there. No two calls of a request have one id, and a
/// result has that of the last call before it that had its id.
#[derive(Debug)]
pub(crate) struct WireIds {
    takes: fn(u8) -> bool,
    used: HashSet<String>,
    now: HashMap<String, String>,
}

impl WireIds {
    /// For a wire that takes the bytes for which `takes` holds.
    pub(crate) fn taking(takes: fn(u8) -> bool) -> Self {
        Self { takes, used: HashSet::new(), now: HashMap::new() }
    }

    /// For a wire whose ids are letters, digits, `_` and `-`.
    pub(crate) fn wordy() -> Self {
        Self::taking(is_wordy)
    }

    /// For a wire that takes any visible sign of ASCII.
    pub(crate) fn visible() -> Self {
        Self::taking(|byte| byte.is_ascii_graphic())
    }

    /// The form of the id of a call.
    pub(crate) fn of_call(&mut self, id: &str) -> String {
        let near = self.near(id);
        let numbered = |number: usize| {
            let mark = format!("_{number}");
            format!("{}{mark}", &near[..near.len().min(MAX_ID_BYTES - mark.len())])
        };
        let free = |form: &String| !self.used.contains(form);
        let form = Some(near.clone()).filter(free).or_else(|| (2..).map(numbered).find(free)).unwrap_or_default();
        self.used.insert(form.clone());
        self.now.insert(id.to_owned(), form.clone());
        form
    }

    /// The form of the id of a result.
    pub(crate) fn of_result(&self, id: &str) -> String {
        self.now.get(id).cloned().unwrap_or_else(|| self.near(id))
    }

    fn near(&self, id: &str) -> String {
        let sign = |c: char| if c.is_ascii() && (self.takes)(c as u8) { c } else { '_' };
        let near: String = id.chars().map(sign).take(MAX_ID_BYTES).collect();
        if near.is_empty() { NO_ID.to_owned() } else { near }
    }
}

/// The arguments of `call` as JSON text of an object, whatever the model wrote.
pub(crate) fn object_text(call: &CallPart) -> Cow<'_, str> {
    let text = call.function.arguments.as_str();
    match call.arguments() {
        // Chat templates parse the arguments, and an empty text is not JSON.
        Ok(_) if text.trim().is_empty() => "{}".into(),
        Ok(_) => text.into(),
        Err(_) => Value::Object(no_object(text)).to_string().into(),
    }
}

/// The arguments of `call` as an object, whatever the model wrote.
pub(crate) fn object(call: &CallPart) -> Object {
    call.arguments().unwrap_or_else(|_| no_object(&call.function.arguments))
}

/// What stands for arguments that are not an object.
fn no_object(text: &str) -> Object {
    [("invalid_json".to_owned(), text.into())].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use pintle_domain::json::json;

    use super::*;

    fn names(tools: &[&str], called: &[&str]) -> WireNames {
        let tools: Vec<_> = tools.iter().map(|name| ToolDef::new(name, "", json!({})).into()).collect();
        let calls: Vec<CallPart> = called.iter().map(|name| CallPart::new("c", name, "")).collect();
        WireNames::of(&tools, calls.iter())
    }

    #[test]
    fn what_does_not_fit_gets_a_form_of_its_own_and_is_meant_by_it() {
        let long = "x".repeat(65);
        let tools = ["read_file", "weather.get", "weather get", "weather_get", "größe", long.as_str()];
        let called = ["functions.exec", "", "weather.get", "read_file"];
        let names = names(&tools, &called);
        let mut forms: Vec<&str> = tools.iter().chain(&called).map(|name| names.form(name)).collect();
        for form in &forms {
            assert!(fits(form), "{form}");
        }
        assert_eq!((forms[0], forms[3], forms[4]), ("read_file", "weather_get", "gr__e"));
        assert_eq!((forms[6], forms[7], forms[8]), ("functions_exec", "unnamed", forms[1]));
        for (name, form) in tools.iter().chain(&called).zip(&forms) {
            let mut reply = LlmReply::calls(vec![CallPart::new("c", form, "{}")]);
            names.meant(&mut reply);
            assert_eq!(reply.tool_calls[0].function.name, **name);
        }
        forms.sort_unstable();
        forms.dedup();
        assert_eq!(forms.len(), tools.len() + called.len() - 2, "two of them were called and offered");
    }

    #[test]
    fn a_form_does_not_depend_on_what_follows() {
        let before = names(&["read_file"], &["a.b"]);
        let after = names(&["read_file"], &["a.b", "a b", "a:b"]);
        assert_eq!(before.form("a.b"), after.form("a.b"));
    }

    #[test]
    fn a_choice_names_the_form() {
        let names = names(&["a.b"], &[]);
        for (choice, expected) in [
            (
                json!({"type": "function", "function": {"name": "a.b"}}),
                r#"{"type":"function","function":{"name":"a_b"}}"#,
            ),
            (json!({"type": "tool", "name": "a.b"}), r#"{"type":"tool","name":"a_b"}"#),
            (json!("auto"), r#""auto""#),
            (json!({"type": "tool", "name": "c"}), r#"{"type":"tool","name":"c"}"#),
        ] {
            let options: Object = [(CHOICE.to_owned(), choice)].into_iter().collect();
            assert_eq!(names.chosen(Cow::Owned(options)).get(CHOICE).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn each_call_has_an_id_of_its_own_that_its_result_shares() {
        let long = "i".repeat(50);
        let mut ids = WireIds::wordy();
        let mut all = Vec::new();
        for id in ["a", "a", "a.b", "a:b", "", "größe", &long, &format!("{long}2")] {
            let form = ids.of_call(id);
            assert!(form.len() <= MAX_ID_BYTES && !form.is_empty() && form.bytes().all(is_wordy), "{form}");
            assert_eq!(ids.of_result(id), form);
            all.push(form);
        }
        assert_eq!(all[..6], ["a", "a_2", "a_b", "a_b_2", "call", "gr__e"]);
        assert_ne!(all[6], all[7]);
        assert_eq!(WireIds::visible().of_call("functions.add:0"), "functions.add:0");
    }

    #[test]
    fn arguments_are_an_object_whatever_came() {
        for (arguments, expected) in [
            (r#"{"n":  1.50e400}"#, r#"{"n":  1.50e400}"#),
            (" ", "{}"),
            ("[1]", r#"{"invalid_json":"[1]"}"#),
            ("{oops", r#"{"invalid_json":"{oops"}"#),
        ] {
            let call = CallPart::new("c", "x", arguments);
            assert_eq!(object_text(&call), expected);
            assert_eq!(Value::Object(object(&call)), pintle_domain::json::parse(expected).unwrap());
        }
    }
}
