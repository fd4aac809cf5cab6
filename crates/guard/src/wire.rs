//! Reads what hosts say, member by member; what nobody asked for stays.

use pintle_domain::json::{self, MAX_DEPTH, MAX_VALUES, NotAlike, Object, Value};

use crate::event::{HookInput, HostCall, HostEvent, HostWhat, MAX_INPUT_BYTES, Malformed};
use crate::host::GuardHost;
use crate::tools::ToolClass;

/// The members of one payload; what is taken is gone.
pub(crate) struct Payload(Object);

impl Payload {
    /// The one JSON object that standard input holds.
    pub(crate) fn read(input: &HookInput<'_>) -> Result<Self, Malformed> {
        if input.stdin.len() > MAX_INPUT_BYTES {
            return Err(Malformed::TooLong(input.stdin.len()));
        }
        if json::holds_more_than(input.stdin, MAX_VALUES) {
            return Err(Malformed::TooMany);
        }
        let text = std::str::from_utf8(input.stdin).map_err(|_| Malformed::NotText)?;
        if json::depth(input.stdin) > MAX_DEPTH {
            return Err(Malformed::TooDeep);
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // Of two members of one name the host could mean another call than the one that is judged.
        let read = json::parse_alike(text).map_err(|error| match error {
            NotAlike::NotJson(why) => Malformed::NotJson(why),
            NotAlike::Twice(name) => Malformed::Twice(name),
        })?;
        match read {
            Value::Object(members) => Ok(Self(members)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(Malformed::NotJson("it is another value".to_owned()))
            }
        }
    }

    /// What is left.
    pub(crate) fn rest(self) -> Object {
        self.0
    }

    /// The member `name`, still there.
    pub(crate) fn peek(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Puts back what was taken in vain.
    pub(crate) fn put(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// The member `name`, whatever it is.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.0.shift_remove(name)
    }

    /// The text `name`; anything else stays where it is.
    pub(crate) fn said(&mut self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str()?;
        match self.0.shift_remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The text `name`, which has to be there.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<String, Malformed> {
        self.said(name).ok_or(Malformed::Member(name))
    }

    /// The truth `name`; anything else stays where it is and counts as false.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let Some(flag) = self.0.get(name).and_then(Value::as_bool) else { return false };
        self.0.shift_remove(name);
        flag
    }

    /// The object `name`, which has to be there.
    pub(crate) fn object(&mut self, name: &'static str) -> Result<Object, Malformed> {
        self.object_or_none(name).ok_or(Malformed::Member(name))
    }

    /// The members of `name`; none, and it stays, where that is no object.
    pub(crate) fn members(&mut self, name: &str) -> Object {
        if !self.0.get(name).is_some_and(Value::is_object) {
            return Object::new();
        }
        self.object_or_none(name).unwrap_or_default()
    }

    fn object_or_none(&mut self, name: &str) -> Option<Object> {
        match self.0.shift_remove(name) {
            Some(Value::Object(members)) => Some(members),
            _ => None,
        }
    }

    /// An event of `host` with what nearly all say, and with nothing else yet.
    pub(crate) fn begin(&mut self, host: &GuardHost, event: String, input: &HookInput<'_>) -> HostEvent {
        HostEvent {
            host: host.id,
            event,
            session: String::new(),
            turn: None,
            call: None,
            subagent: None,
            cwd: self.said("cwd").unwrap_or_else(|| input.cwd.to_owned()),
            transcript: None,
            attended: None,
            what: HostWhat::Other,
            host_raw: Object::new(),
        }
    }
}

/// The texts of the prompt in the member `name`: itself, or the parts of it that are texts, by lines. Parts without any
/// text, such as images, are told as their JSON.
pub(crate) fn prompt_text(prompt: &Value, name: &'static str) -> Result<String, Malformed> {
    match prompt {
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str()));
            let texts = texts.collect::<Vec<_>>().join("\n");
            Ok(if texts.trim().is_empty() { prompt.to_string() } else { texts })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Err(Malformed::Member(name)),
    }
}

/// The call of the tool that `host` calls `native`.
pub(crate) fn call(host: &GuardHost, native: String, arguments: Object) -> HostCall {
    let (canonical, class) = match host.tool(&native) {
        Some(row) => (row.canonical.to_owned(), row.class),
        None => match mcp_name(&native) {
            Some(canonical) => (canonical, ToolClass::Mcp),
            None => (native.clone(), ToolClass::Other),
        },
    };
    HostCall { native, canonical, class, arguments }
}

/// `mcp_SERVER_TOOL` for `mcp__SERVER__TOOL`, and for itself.
pub fn mcp_name(native: &str) -> Option<String> {
    if let Some(rest) = native.strip_prefix("mcp__") {
        let (server, tool) = rest.split_once("__")?;
        return Some(format!("mcp_{server}_{tool}"));
    }
    native.strip_prefix("mcp_").filter(|rest| rest.contains('_')).map(|_| native.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_a_text_or_parts_and_never_less_than_it_says() {
        let read = |prompt: &str| prompt_text(&json::parse(prompt).unwrap(), "prompt");
        for (prompt, text) in [
            (r#""""#, ""),
            (r#""go on""#, "go on"),
            (r#"["a", {"type": "text", "text": "b"}, {"type": "image"}]"#, "a\nb"),
            (r#"[{"type":"image","url":"x"}]"#, r#"[{"type":"image","url":"x"}]"#),
            (r#"[{"text":""},{"type":"file"}]"#, r#"[{"text":""},{"type":"file"}]"#),
            ("[]", "[]"),
        ] {
            assert_eq!(read(prompt).as_deref(), Ok(text), "{prompt}");
        }
        for prompt in ["null", "1", "true", "{}", r#"{"text": "a"}"#] {
            assert_eq!(read(prompt), Err(Malformed::Member("prompt")), "{prompt}");
        }
    }
}
