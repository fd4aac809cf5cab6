//! One JSON-RPC message, as text with places. A message that two readers may read differently is none.

use std::fmt;

use pintle_domain::json::{self, Value};

use crate::spans::{JsonDocument, Kind, Node, NotRead};
use crate::strict::folded;

/// Longest message, in bytes: what our own client takes of a server.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// The members of a message by which everybody tells what it is.
const KNOWN: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// Methods that the door has a rule for: another spelling of one is refused.
const RULED: [&str; 6] =
    ["tools/call", "tools/list", "tasks/result", "tasks/get", "sampling/createMessage", "notifications/cancelled"];

/// The id of a request, such that the two spellings of one id are the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(String);

impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get(2..).unwrap_or_default())
    }
}

impl RequestKey {
    /// The key of an id or a progress token; none of what is neither a text nor a number.
    pub fn of(id: &Value) -> Option<Self> {
        match id {
            Value::String(text) => Some(Self(format!("s:{text}"))),
            Value::Number(number) => Some(Self(match number.as_f64() {
                Some(double) if !number.is_i64() && !number.is_u64() => format!("n:{double}"),
                Some(_) | None => format!("n:{}", number.as_str()),
            })),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// The key that reads the same but is a text where this one is a number, or a number where this one is a text.
    pub(crate) fn twin(&self) -> Self {
        match self.0.split_at(2) {
            ("s:", text) => Self(format!("n:{text}")),
            (_, number) => Self(format!("s:{number}")),
        }
    }

    /// As JSON.
    pub fn written(&self) -> String {
        match self.0.split_at(2) {
            ("s:", text) => Value::from(text).to_string(),
            (_, number) => number.to_owned(),
        }
    }
}

/// What a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpKind {
    /// Somebody waits for an answer.
    Request {
        /// Its id.
        key: RequestKey,
        /// What is asked.
        method: String,
    },
    /// Nobody does.
    Notice {
        /// What is told.
        method: String,
    },
    /// An answer.
    Reply {
        /// The id of what it answers.
        key: RequestKey,
    },
    /// An error that answers nothing in particular.
    Complaint,
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct McpMessage {
    /// Its text.
    pub document: JsonDocument,
    /// What it is.
    pub kind: McpKind,
}

/// Why a text is no message that may go on.
#[derive(Clone, Debug, PartialEq)]
pub struct UnreadMessage {
    /// In words.
    pub why: String,
    /// The id of the request that it may be, as it is written.
    pub id: Option<String>,
    /// The requests that it may answer: of a list, each of them.
    pub answers: Vec<RequestKey>,
}

impl UnreadMessage {
    fn new(why: String) -> Self {
        Self { why, id: None, answers: Vec::new() }
    }

    /// The same, with what can be said of who waits for it.
    fn of(self, text: &str) -> Self {
        let value = json::parse(text).unwrap_or(Value::Null);
        let id = value.get("id").filter(|id| !id.is_null());
        let asks = value.get("method").is_some();
        // What has a result answers, whatever else is in it.
        let is_answer =
            |one: &Value| one.get("method").is_none() || one.get("result").is_some() || one.get("error").is_some();
        let all = value.as_array().map_or(std::slice::from_ref(&value), Vec::as_slice);
        let answers = all.iter().filter(|one| is_answer(one)).filter_map(|one| RequestKey::of(one.get("id")?));
        Self { id: id.filter(|_| asks).map(ToString::to_string), answers: answers.collect(), ..self }
    }
}

impl McpMessage {
    /// Reads one message.
    ///
    /// # Errors
    /// It is none, or could be read in two ways.
    pub fn read(text: String) -> Result<Self, UnreadMessage> {
        if text.len() > MAX_MESSAGE_BYTES {
            return Err(UnreadMessage::new(format!("it is longer than {MAX_MESSAGE_BYTES} bytes")));
        }
        let document = match JsonDocument::read(text.clone()) {
            Ok(document) => document,
            Err(error @ NotRead::NoJson(_)) => return Err(UnreadMessage::new(error.to_string())),
            Err(error @ NotRead::Twice(_)) => return Err(UnreadMessage::new(error.to_string()).of(&text)),
        };
        match kind(&document) {
            Ok(kind) => Ok(Self { document, kind }),
            Err(why) => Err(UnreadMessage::new(why).of(&text)),
        }
    }

    /// The parameters, if it has some.
    pub fn params(&self) -> Option<&Node> {
        self.document.root.get("params")
    }

    /// The id, as it is written.
    pub fn id(&self) -> &str {
        self.document.root.get("id").map_or("null", |id| self.document.raw(id))
    }
}

fn kind(document: &JsonDocument) -> Result<McpKind, String> {
    let root = &document.root;
    match &root.kind {
        Kind::Object(_) => {}
        Kind::Array(_) => return Err("messages come one by one here, not in a list".into()),
        Kind::Plain => return Err("it is not an object".into()),
    }
    plainly(root, &KNOWN)?;
    let method = match root.get("method") {
        None => None,
        Some(node) => Some(document.string(node).ok_or("`method` is not a text")?),
    };
    let key = match root.get("id").map(|node| document.value(node)) {
        None => None,
        Some(Value::Null) if method.is_none() => None,
        Some(id) => Some(RequestKey::of(&id).ok_or("`id` is neither a text nor a number")?),
    };
    let has = |name: &str| root.get(name).is_some();
    if has("result") && has("error") {
        return Err("it has a result and an error at once".into());
    }
    let answers = has("result") || has("error");
    match (method, key, answers) {
        (Some(_), _, true) => Err("it asks and answers at once".into()),
        (Some(method), key, false) => {
            let meant = method.trim().to_lowercase();
            if let Some(known) = RULED.iter().find(|known| known.to_lowercase() == meant && **known != method) {
                return Err(format!("there is no method `{method}`; is it `{known}`?"));
            }
            Ok(match key {
                Some(key) => McpKind::Request { key, method },
                None => McpKind::Notice { method },
            })
        }
        (None, Some(key), true) => Ok(McpKind::Reply { key }),
        (None, None, true) => Ok(McpKind::Complaint),
        (None, _, false) => Err("it neither asks nor answers anything".into()),
    }
}

/// Refuses an object with a member that some readers take for one of `known`.
///
/// # Errors
/// It has one: which.
pub(crate) fn plainly(node: &Node, known: &[&str]) -> Result<(), String> {
    let Kind::Object(members) = &node.kind else { return Ok(()) };
    for (own, _) in members {
        let folded = folded(own);
        if !known.contains(&own.as_str())
            && let Some(meant) = known.iter().find(|known| known.to_lowercase() == folded)
        {
            return Err(format!("it has the member `{own}`, which some read as `{meant}`"));
        }
    }
    Ok(())
}

/// The answer that something went wrong, to the request with the id `id` as it is written.
pub fn error_reply(id: &str, code: i32, why: &str) -> String {
    let message = Value::from(why);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#)
}

/// The code of an error: the message is no JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The message is no request.
pub const INVALID_REQUEST: i32 = -32600;
/// The parameters are wrong.
pub const INVALID_PARAMS: i32 = -32602;
/// It failed.
pub const INTERNAL_ERROR: i32 = -32603;
/// Somebody refused it. Source: the code with which clients refuse samplings.
pub const REFUSED: i32 = -1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_of_one_kind() {
        for (text, kind) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request n:1 ping"),
            (r#"{"id":"1","method":"ping"}"#, "request s:1 ping"),
            (r#"{"id":1.0,"method":"ping"}"#, "request n:1 ping"),
            (r#"{"method":"notifications/x"}"#, "notice notifications/x"),
            (r#"{"id":1,"result":{}}"#, "reply n:1"),
            (r#"{"id":null,"error":{}}"#, "complaint"),
            (r#"{"id":null,"method":"tools/call"}"#, "`id` is neither a text nor a number"),
            (r#"{"id":{},"method":"tools/call"}"#, "`id` is neither a text nor a number"),
            (r#"{"id":1,"method":"tools/call","result":1}"#, "it asks and answers at once"),
            (r#"{"id":1,"result":{},"error":{}}"#, "it has a result and an error at once"),
            (r#"{"id":1,"result":null,"error":{}}"#, "it has a result and an error at once"),
            (r#"{"id":1}"#, "it neither asks nor answers anything"),
            (r#"[{"id":1,"method":"ping"}]"#, "messages come one by one here, not in a list"),
            ("1", "it is not an object"),
            (r#"{"id":1,"method":1}"#, "`method` is not a text"),
            (r#"{"id":1,"Method":"tools/call"}"#, "it has the member `Method`, which some read as `method`"),
            (r#"{"id":1,"paramſ":1}"#, "it has the member `paramſ`, which some read as `params`"),
            (r#"{"id":1,"method":"Tools/Call "}"#, "there is no method `Tools/Call `; is it `tools/call`?"),
            (r#"{"id":1,"method":"a","method":"b"}"#, "the member `method` stands twice in one object"),
            (r#"{"id":1,"params":{"x":[{"a":1,"\u0061":2}]}}"#, "the member `a` stands twice in one object"),
        ] {
            let got = match McpMessage::read(text.to_owned()) {
                Ok(message) => match message.kind {
                    McpKind::Request { key, method } => format!("request {} {method}", key.0),
                    McpKind::Notice { method } => format!("notice {method}"),
                    McpKind::Reply { key } => format!("reply {}", key.0),
                    McpKind::Complaint => "complaint".into(),
                },
                Err(error) => error.why,
            };
            assert_eq!(got, kind, "{text}");
        }
    }

    #[test]
    fn who_waits_for_an_answer_to_what_is_no_message_is_known() {
        let id = |text: &str| McpMessage::read(text.to_owned()).unwrap_err().id;
        assert_eq!(id(r#"{"id":7,"method":"a","method":"b"}"#).as_deref(), Some("7"));
        assert_eq!(id(r#"{"id":"x","method":"Tools/Call"}"#).as_deref(), Some("\"x\""));
        assert_eq!(id(r#"{"id":7,"result":{},"result":1}"#), None);
        let answers = |text: &str| {
            let answers = McpMessage::read(text.to_owned()).unwrap_err().answers;
            answers.iter().map(RequestKey::written).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(answers(r#"{"id":7,"result":{},"result":1}"#), "7");
        assert_eq!(answers(r#"{"id":7,"method":"a","result":1}"#), "7");
        assert_eq!(answers(r#"[{"id":7,"result":1},{"id":"8","error":{}},{"id":9,"method":"ping"}]"#), "7 \"8\"");
        assert_eq!(answers(r#"{"id":7,"method":"a","method":"b"}"#), "");
        assert_eq!(id("{"), None);
    }
}
