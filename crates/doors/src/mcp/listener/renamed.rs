//! Requests of several clients before one server: each has an id of the door's own there, and its client's own here.

use crate::mcp::message::McpMessage;
use crate::spans::{Edits, JsonDocument, Node};

/// How such ids begin.
const OWN_ID: &str = "pintle-http-";

/// Where what is told of a subscription names the request that began it. Source: MCP of 2026-07-28.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// One request under an id of the door's own.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Renamed {
    own: String,
    /// The client's id, as it is written.
    id: String,
    /// The token by which the client wants to hear of progress, as it is written.
    token: Option<String>,
}

impl Renamed {
    /// The request `message` as the one with this `number`, and its text.
    pub(super) fn of(message: &McpMessage, number: u64) -> (Self, String) {
        let (document, own) = (&message.document, format!("{OWN_ID}{number}"));
        let mut edits = Edits::default();
        if let Some(node) = document.root.get("id") {
            edits.text(node, &own);
        }
        let token = message.params().and_then(|params| params.at(&["_meta", "progressToken"]));
        if let Some(node) = token {
            edits.text(node, &own);
        }
        let token = token.map(|node| document.raw(node).to_owned());
        let text = edits.apply(&document.text);
        (Self { own, id: message.id().to_owned(), token }, text)
    }

    /// The client's id, as it is written.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// What the server says of the request, in the client's names.
    pub(super) fn back(&self, text: String) -> String {
        let Ok(document) = JsonDocument::read(text.clone()) else { return text };
        let mut edits = Edits::default();
        let mut named = |path: &[&str], name: Option<&String>| {
            let is_own = |node: &&Node| document.string(node).as_ref() == Some(&self.own);
            if let (Some(node), Some(name)) = (document.root.at(path).filter(is_own), name) {
                edits.replace(node.span.clone(), name.as_str());
            }
        };
        named(&["id"], Some(&self.id));
        named(&["params", "progressToken"], self.token.as_ref());
        named(&["params", "requestId"], Some(&self.id));
        named(&["params", "_meta", SUBSCRIPTION], Some(&self.id));
        named(&["result", "_meta", SUBSCRIPTION], Some(&self.id));
        edits.apply(&text)
    }
}

/// The code of the error that `text` is, if it is one.
pub(super) fn error_code(text: &str) -> Option<i32> {
    let document = JsonDocument::read(text.to_owned()).ok()?;
    let code = document.root.at(&["error", "code"]).map(|node| document.value(node))?;
    code.as_i64().and_then(|code| i32::try_from(code).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_another_id_there_and_its_own_here() {
        let text = r#"{"id": 1.0, "method":"x","params":{"_meta":{"progressToken":"t"},"id":1}}"#;
        let message = McpMessage::read(text.to_owned()).unwrap();
        let (renamed, there) = Renamed::of(&message, 7);
        let own = r#""pintle-http-7""#;
        assert_eq!(there, text.replace("1.0", own).replace("\"t\"", own));
        for (said, here) in [
            (format!(r#"{{"id":{own},"result":{{"id":{own}}}}}"#), format!(r#"{{"id":1.0,"result":{{"id":{own}}}}}"#)),
            (format!(r#"{{"params":{{"progressToken":{own}}}}}"#), r#"{"params":{"progressToken":"t"}}"#.to_owned()),
            (
                format!(r#"{{"params":{{"_meta":{{"{SUBSCRIPTION}":{own}}}}}}}"#),
                format!(r#"{{"params":{{"_meta":{{"{SUBSCRIPTION}":1.0}}}}}}"#),
            ),
            (r#"{"id":"pintle-http-8"}"#.to_owned(), r#"{"id":"pintle-http-8"}"#.to_owned()),
            ("no JSON".to_owned(), "no JSON".to_owned()),
        ] {
            assert_eq!(renamed.back(said), here);
        }
    }

    #[test]
    fn a_token_that_nobody_gave_is_not_made_up() {
        let message = McpMessage::read(r#"{"id":"a","method":"x"}"#.to_owned()).unwrap();
        let (renamed, there) = Renamed::of(&message, 1);
        assert_eq!(there, r#"{"id":"pintle-http-1","method":"x"}"#);
        assert_eq!(renamed.back(there), r#"{"id":"a","method":"x"}"#);
    }

    #[test]
    fn an_error_has_a_code() {
        assert_eq!(error_code(r#"{"id":1,"error":{"code":-32601,"message":""}}"#), Some(-32601));
        assert_eq!(error_code(r#"{"id":1,"result":{}}"#), None);
    }
}
