//! What each end of a connection does to messages that rmcp's own types would spoil.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use pintle_domain::json::{Object, Value, json};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, CustomResult, ErrorCode, ErrorData, JsonRpcMessage,
    RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, ServiceRole, TxJsonRpcMessage};
use rmcp::{RoleClient, RoleServer};
use tokio::time::Instant;

use super::exact;
use super::news::News;
use super::outline::Outline;

/// How long calls that run when a client closes our input may still be answered. A client that is piped in from a
/// file gets its answers; one that left does not keep us.
const LINGER: Duration = Duration::from_secs(1);

/// A message that rmcp cannot take.
pub(crate) struct UnreadableMessage {
    /// What is wrong with it.
    pub(crate) why: String,
    /// What its sender is told, if it waits for an answer.
    pub(crate) answer: Option<Value>,
}

/// How a line that was too long began and ended.
#[derive(Clone, Copy)]
pub(crate) struct Ends<'a> {
    pub(crate) head: &'a [u8],
    pub(crate) tail: &'a [u8],
}

/// One end of a connection.
pub(crate) trait Side: ServiceRole {
    /// What it remembers of the messages so far.
    type Memory: Default + Send;

    /// Notes a message that is about to be sent.
    fn sent(memory: &mut Self::Memory, message: &TxJsonRpcMessage<Self>);

    /// Reads a message, with every number as it is written; nothing for one that nobody here needs.
    fn read(memory: &mut Self::Memory, value: Value) -> Result<Option<RxJsonRpcMessage<Self>>, UnreadableMessage>;

    /// What stands for a message that is not JSON, or nested too deep, if its top tells whom it answers or who waits for
    /// an answer.
    fn unread(
        memory: &mut Self::Memory,
        top: Outline,
        why: String,
    ) -> Result<RxJsonRpcMessage<Self>, UnreadableMessage>;

    /// What stands for a line that was too long, if its ends tell whom it answers or who waits for an answer.
    fn too_long(
        memory: &mut Self::Memory,
        ends: Ends<'_>,
        limit: usize,
    ) -> Result<RxJsonRpcMessage<Self>, UnreadableMessage>;

    /// Waits at the end of the input for what is still to be sent. Starts anew, with the time that is left, when it is
    /// dropped and called again.
    fn linger(memory: &mut Self::Memory) -> impl Future<Output = ()> + Send;
}

/// Requests of ours that wait for an answer, and what is known of news.
#[derive(Default)]
pub(crate) struct PendingRequests {
    open: HashMap<RequestId, Reading>,
    news: News,
}

/// What becomes of a result.
#[derive(Clone, Copy, PartialEq)]
enum Reading {
    /// rmcp reads it.
    Typed,
    /// It is handed on as it is: calls and lists of tools.
    Verbatim,
}

impl Side for RoleClient {
    type Memory = PendingRequests;

    fn sent(memory: &mut PendingRequests, message: &ClientJsonRpcMessage) {
        memory.news.sent(message);
        match message {
            JsonRpcMessage::Request(request) => {
                let of_tools =
                    matches!(request.request, ClientRequest::CallToolRequest(_) | ClientRequest::ListToolsRequest(_));
                memory.open.insert(request.id.clone(), if of_tools { Reading::Verbatim } else { Reading::Typed });
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    memory.open.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    fn read(memory: &mut PendingRequests, mut value: Value) -> Result<Option<ServerJsonRpcMessage>, UnreadableMessage> {
        let unread = |why: String| UnreadableMessage { why, answer: None };
        if value.get("method").is_none()
            && let Some(id) = value.get("id").filter(|id| !id.is_null())
        {
            // Also before the handshake is over, where rmcp gives up on an answer to nothing.
            let known = own_id(id).and_then(|id| Some((memory.open.remove(&id)?, id)));
            let Some((reading, id)) = known else { return Err(unread("it answers nothing that was asked".into())) };
            if reading == Reading::Verbatim
                && let Some(result) = value.get_mut("result")
            {
                exact::noted(result);
                let result = ServerResult::CustomResult(CustomResult(result.take().into()));
                return Ok(Some(ServerJsonRpcMessage::response(result, id)));
            }
            return pintle_domain::json::from_value(value).map(Some).or_else(|error| {
                // Whoever asked must not wait for an answer that was skipped.
                Ok(Some(no_answer(id, &error)))
            });
        }
        let notice = value.get("method").and_then(Value::as_str).filter(|_| value.get("id").is_none());
        if notice.is_some_and(|method| !memory.news.is_wanted(method)) {
            return Ok(None);
        }
        pintle_domain::json::from_value(value).map(Some).map_err(|error| unread(error.to_string()))
    }

    fn unread(
        memory: &mut PendingRequests,
        top: Outline,
        why: String,
    ) -> Result<ServerJsonRpcMessage, UnreadableMessage> {
        let answers = (!top.has_method).then_some(top.id).flatten();
        let known = answers.as_ref().and_then(own_id).filter(|id| memory.open.remove(id).is_some());
        match known {
            Some(id) => Ok(no_answer(id, &why)),
            None => Err(UnreadableMessage { why, answer: None }),
        }
    }

    fn too_long(
        memory: &mut PendingRequests,
        ends: Ends<'_>,
        limit: usize,
    ) -> Result<ServerJsonRpcMessage, UnreadableMessage> {
        let unread = || UnreadableMessage { why: "nobody knows whom it answers".into(), answer: None };
        let id = RequestId::Number(ends.id("\"result\"").ok_or_else(unread)?);
        memory.open.remove(&id).ok_or_else(unread)?;
        let why = format!("its reply is longer than {limit} bytes");
        Ok(ServerJsonRpcMessage::error(ErrorData::internal_error(why, None), Some(id)))
    }

    async fn linger(_memory: &mut PendingRequests) {}
}

/// What whoever asked gets in the place of an answer that cannot be read.
pub(crate) fn no_answer(id: RequestId, why: &impl std::fmt::Display) -> ServerJsonRpcMessage {
    let why = format!("its answer cannot be read: {why}");
    ServerJsonRpcMessage::error(ErrorData::internal_error(why, None), Some(id))
}

/// What a client gets in the place of an answer.
fn refusal(id: &Value, code: ErrorCode, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code.0, "message": message}})
}

/// Requests that wait for our answer.
#[derive(Default)]
pub(crate) struct PendingReplies {
    open: HashSet<RequestId>,
    until: Option<Instant>,
}

impl Side for RoleServer {
    type Memory = PendingReplies;

    fn sent(memory: &mut PendingReplies, message: &ServerJsonRpcMessage) {
        match message {
            JsonRpcMessage::Response(response) => drop(memory.open.remove(&response.id)),
            JsonRpcMessage::Error(error) => drop(error.id.as_ref().map(|id| memory.open.remove(id))),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
    }

    fn read(memory: &mut PendingReplies, mut value: Value) -> Result<Option<ClientJsonRpcMessage>, UnreadableMessage> {
        let id = value.get("id").filter(|id| !id.is_null()).cloned();
        let asks = value.get("method").is_some() && id.is_some();
        let arguments = arguments(&mut value);
        let mut message: ClientJsonRpcMessage =
            pintle_domain::json::from_value(value).map_err(|error| UnreadableMessage {
                why: error.to_string(),
                answer: id
                    .as_ref()
                    .filter(|_| asks)
                    .map(|id| refusal(id, ErrorCode::INVALID_PARAMS, &format!("invalid request: {error}"))),
            })?;
        match &mut message {
            JsonRpcMessage::Request(request) => {
                if !memory.open.insert(request.id.clone()) {
                    let why = "its id is that of a request which still waits for an answer; give each request its own";
                    let answer = id.map(|id| refusal(&id, ErrorCode::INVALID_REQUEST, why));
                    return Err(UnreadableMessage { why: why.to_owned(), answer });
                }
                if let ClientRequest::CallToolRequest(call) = &mut request.request {
                    // The text is what is read; rmcp only wants to know whether there are any.
                    call.params.arguments = arguments.map(|arguments| exact::meta(&arguments).0);
                }
            }
            JsonRpcMessage::Notification(notification) => {
                // A withdrawn request is not answered.
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    memory.open.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Ok(Some(message))
    }

    fn unread(
        _memory: &mut PendingReplies,
        top: Outline,
        why: String,
    ) -> Result<ClientJsonRpcMessage, UnreadableMessage> {
        let asks = top.id.filter(|_| top.has_method);
        let answer = asks.map(|id| refusal(&id, ErrorCode::PARSE_ERROR, &format!("the request cannot be read: {why}")));
        Err(UnreadableMessage { why, answer })
    }

    fn too_long(
        _memory: &mut PendingReplies,
        ends: Ends<'_>,
        limit: usize,
    ) -> Result<ClientJsonRpcMessage, UnreadableMessage> {
        let why = format!("the request is longer than {limit} bytes");
        let answer = ends.id("\"params\"").map(|id| refusal(&json!(id), ErrorCode::INVALID_REQUEST, &why));
        Err(UnreadableMessage { why, answer })
    }

    async fn linger(memory: &mut PendingReplies) {
        let until = *memory.until.get_or_insert_with(|| Instant::now() + LINGER);
        if !memory.open.is_empty() {
            tokio::time::sleep_until(until).await;
        }
    }
}

/// Takes the arguments out of a call, so that rmcp does not read the numbers in them.
fn arguments(value: &mut Value) -> Option<Object> {
    if value.get("method").and_then(Value::as_str) != Some("tools/call") {
        return None;
    }
    let arguments = value.get_mut("params")?.get_mut("arguments")?;
    let taken = std::mem::take(arguments.as_object_mut()?);
    Some(taken)
}

/// The id that we gave, as a server may write it back: some languages know only doubles, some only strings.
fn own_id(value: &Value) -> Option<RequestId> {
    let number = match value {
        Value::Number(number) => number.to_string().trim_end_matches(".0").parse().ok(),
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    number.map(RequestId::Number)
}

impl Ends<'_> {
    /// The number under `id`, if it stands before the long member `body` or at the very end.
    fn id(self, body: &str) -> Option<i64> {
        let (head, tail) = (String::from_utf8_lossy(self.head), String::from_utf8_lossy(self.tail));
        let value = |text: &str| Some(text.trim_start().strip_prefix(':')?.trim().to_owned());
        let first = || {
            let rest = value(head.split(body).next()?.split_once("\"id\"")?.1)?;
            rest[..rest.find(|c: char| !c.is_ascii_digit())?].parse().ok()
        };
        let last = || value(tail.trim_end().strip_suffix('}')?.rsplit_once("\"id\"")?.1)?.parse().ok();
        first().or_else(last)
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolRequestParams, Request, RequestMetaObject};

    use super::*;

    /// Digits that no double has, an integer beyond 64 bits, and one beyond everything.
    const DIGITS: &str = r#"{"a":1.10,"b":123456789012345678901234567890,"c":[1e+400,-0.0,0.30000000000000000001]}"#;

    fn parse(text: &str) -> Value {
        pintle_domain::json::parse(text).unwrap()
    }

    fn call(id: i64) -> ClientJsonRpcMessage {
        let Value::Object(arguments) = parse(DIGITS) else { panic!() };
        let mut params = CallToolRequestParams::new("t").with_arguments(exact::theirs(arguments.clone()));
        params.meta = Some(RequestMetaObject(exact::meta(&arguments)));
        ClientJsonRpcMessage::request(ClientRequest::CallToolRequest(Request::new(params)), RequestId::Number(id))
    }

    #[test]
    fn arguments_and_results_keep_their_digits() {
        let sent = exact::written(&call(7)).unwrap().to_string();
        assert_eq!(
            sent,
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"arguments":{DIGITS},"name":"t"}}}}"#)
        );
        let mut server = PendingReplies::default();
        let Ok(Some(JsonRpcMessage::Request(request))) = RoleServer::read(&mut server, parse(&sent)) else { panic!() };
        let ClientRequest::CallToolRequest(heard) = request.request else { panic!() };
        assert_eq!(exact::arguments(&heard.params.arguments.unwrap()).unwrap().to_string(), DIGITS);

        let mut client = PendingRequests::default();
        RoleClient::sent(&mut client, &call(7));
        let reply = format!(r#"{{"result":{{"structuredContent":{DIGITS}}},"jsonrpc":"2.0","id":7}}"#);
        let Ok(Some(JsonRpcMessage::Response(response))) = RoleClient::read(&mut client, parse(&reply)) else {
            panic!()
        };
        let result = exact::result(response.result).unwrap();
        assert_eq!(result["structuredContent"].to_string(), DIGITS);
    }

    #[test]
    fn a_request_that_cannot_be_read_is_answered() {
        let mut server = PendingReplies::default();
        let bad = parse(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#);
        let answer = match RoleServer::read(&mut server, bad) {
            Ok(message) => pintle_domain::json::to_value(message.unwrap()).unwrap(),
            Err(unread) => unread.answer.unwrap(),
        };
        assert_eq!((&answer["id"], answer["error"]["code"].as_i64()), (&parse("1.5"), Some(-32602)), "{answer}");
    }

    #[test]
    fn an_answer_finds_its_question_however_its_id_is_written() {
        let check = |answer: &str| {
            let mut client = PendingRequests::default();
            RoleClient::sent(&mut client, &call(7));
            match RoleClient::read(&mut client, parse(answer)) {
                Ok(message) => pintle_domain::json::to_value(message.unwrap()).unwrap().to_string(),
                Err(unread) => unread.why,
            }
        };
        let result = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        for id in ["7", "7.0", r#""7""#] {
            assert_eq!(check(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)), result);
        }
        for id in ["8", "7.5", r#""x""#, "[7]", "70.0"] {
            let why = check(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
            assert_eq!(why, "it answers nothing that was asked", "{id}");
        }
        let odd = check(r#"{"jsonrpc":"2.0","id":7,"error":{"code":"x"}}"#);
        assert!(odd.contains("its answer cannot be read"), "{odd}");
    }

    #[test]
    fn a_reply_that_is_too_long_is_an_error_of_its_call() {
        let mut client = PendingRequests::default();
        (1..=2).for_each(|id| RoleClient::sent(&mut client, &call(id)));
        let mut check = |head: &str, tail: &str| {
            let ends = Ends { head: head.as_bytes(), tail: tail.as_bytes() };
            let message = RoleClient::too_long(&mut client, ends, 10).ok()?;
            Some(pintle_domain::json::to_value(message).unwrap().to_string())
        };
        let error = |id| {
            Some(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"its reply is longer than 10 bytes"}}}}"#
            ))
        };
        assert_eq!(check(r#"{"jsonrpc":"2.0","id":1,"result":{"x"#, "xx\"}}"), error(1));
        assert_eq!(check(r#"{"result":{"id":1,"#, r#"xx"},"jsonrpc":"2.0","id":2}"#), error(2));
        assert_eq!(check(r#"{"id":9,"result""#, ""), None, "it was never asked");
        assert_eq!(check("xxx", "xxx"), None);
    }

    #[test]
    fn a_request_that_is_too_long_is_answered() {
        let ends =
            Ends { head: br#"{"method":"tools/call","params":{"id":1"#, tail: br#"x"},"jsonrpc":"2.0","id":6}"# };
        let Err(unread) = RoleServer::too_long(&mut PendingReplies::default(), ends, 10) else { panic!() };
        let error = r#"{"code":-32600,"message":"the request is longer than 10 bytes"}"#;
        assert_eq!(unread.answer, Some(parse(&format!(r#"{{"jsonrpc":"2.0","id":6,"error":{error}}}"#))));
    }

    #[test]
    fn an_id_in_use_is_refused_until_it_is_answered() {
        let mut server = PendingReplies::default();
        let ask = parse(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#);
        assert!(RoleServer::read(&mut server, ask.clone()).is_ok());
        let Err(unread) = RoleServer::read(&mut server, ask.clone()) else { panic!("the id is in use") };
        let answer = unread.answer.unwrap();
        assert_eq!((&answer["id"], answer["error"]["code"].as_i64()), (&json!(5), Some(-32600)), "{answer}");
        let other = parse(r#"{"jsonrpc":"2.0","id":"5","method":"ping"}"#);
        assert!(RoleServer::read(&mut server, other).is_ok(), "a text is another id");
        let result = ServerResult::EmptyResult(rmcp::model::EmptyObject {});
        RoleServer::sent(&mut server, &ServerJsonRpcMessage::response(result, RequestId::Number(5)));
        assert!(RoleServer::read(&mut server, ask).is_ok());
    }

    #[test]
    fn of_many_notices_one_is_handed_on_until_the_list_is_asked_for() {
        let mut client = PendingRequests::default();
        let heard = |client: &mut PendingRequests, method: &str| {
            let notice = json!({"jsonrpc": "2.0", "method": method});
            matches!(RoleClient::read(client, notice), Ok(Some(_)))
        };
        let changed = "notifications/tools/list_changed";
        assert!(heard(&mut client, changed));
        assert!((0..1000).all(|_| !heard(&mut client, changed)));
        assert!(!heard(&mut client, "notifications/progress"), "nobody asks for it");
        let params = None;
        let list = rmcp::model::ListToolsRequest { method: Default::default(), params, extensions: Default::default() };
        let list = ClientJsonRpcMessage::request(ClientRequest::ListToolsRequest(list), RequestId::Number(1));
        RoleClient::sent(&mut client, &list);
        assert!(heard(&mut client, changed), "what changes while the list is on its way is news");
    }

    #[test]
    fn a_message_that_cannot_be_read_leaves_nobody_waiting() {
        let mut client = PendingRequests::default();
        RoleClient::sent(&mut client, &call(7));
        let top = |id: i64, has_method| Outline { id: Some(json!(id)), has_method };
        assert!(RoleClient::unread(&mut client, top(7, true), "deep".into()).is_err(), "it is not an answer");
        assert!(RoleClient::unread(&mut client, top(8, false), "deep".into()).is_err(), "nobody asked");
        let Ok(error) = RoleClient::unread(&mut client, top(7, false), "deep".into()) else { panic!("it was asked") };
        let error = pintle_domain::json::to_value(error).unwrap();
        assert_eq!(error["error"]["message"], "its answer cannot be read: deep");
        let mut server = PendingReplies::default();
        let Err(unread) = RoleServer::unread(&mut server, top(7, true), "deep".into()) else { panic!("no request") };
        let error = r#"{"code":-32700,"message":"the request cannot be read: deep"}"#;
        assert_eq!(unread.answer, Some(parse(&format!(r#"{{"jsonrpc":"2.0","id":7,"error":{error}}}"#))));
    }
}
