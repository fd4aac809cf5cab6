//! Lines as hooks write them, good and bad ones.

use proptest::prelude::*;

use super::*;

/// What a line says, in one text.
fn shown(line: &[u8]) -> String {
    match read_line(line.to_vec()) {
        Incoming::Noise { why } => format!("noise: {why}"),
        Incoming::Bad { id, detail } => format!("bad {id:?}: {detail}"),
        Incoming::Reply(RpcReply { id, body, warnings }) => {
            let body = match body {
                RpcBody::Result { line, range } => format!("result {}", &line[range]),
                RpcBody::Empty => "empty".into(),
                RpcBody::Error { message } => format!("error {message}"),
            };
            [vec![format!("{id}: {body}")], warnings].concat().join(" | ")
        }
    }
}

#[track_caller]
fn check(line: &str, expected: &str) {
    assert_eq!(shown(line.as_bytes()), expected, "{line}");
}

#[test]
fn a_reply_names_its_call_and_keeps_its_result_as_text() {
    check(r#"{"jsonrpc":"2.0","id":2,"result":{"action":"continue"}}"#, r#"2: result {"action":"continue"}"#);
    check("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{ \"a\" : 1e400 }}\r", r#"2: result { "a" : 1e400 }"#);
    check(r#"  {"RESULT":[1],"Id":2,"extra":{"id":3}} "#, "2: result [1]");
    check(r#"{"id":1,"result":1,"id":2,"result":{"x":-0}}"#, r#"2: result {"x":-0}"#);
    check(r#"{"\u0069d":2,"\u0072esult":{}}"#, "2: result {}");
    check(r#"{"id":2.0,"result":{}}"#, "2: result {} | the id 2.0 should be written 2");
    check(r#"{"id":"2","result":{}}"#, "2: result {} | the id \"2\" should be the number 2");
    check(r#"{"id":2,"result":{},"method":"x","jsonrpc":null}"#, "2: result {}");
}

#[test]
fn an_error_wins_unless_it_is_null() {
    check(r#"{"id":2,"result":{},"error":{"code":"E","message":"no\u0007"}}"#, "2: error no");
    check(r#"{"id":2,"result":{},"ERROR":{"MESSAGE":"a","message":"b"}}"#, "2: error b");
    check(r#"{"id":2,"result":{},"error":null}"#, "2: result {}");
    check(r#"{"id":2,"error":{"code":-32000}}"#, "2: error code -32000 without a message");
    check(r#"{"id":2,"error":{"message":null}}"#, "2: error no message");
    check(r#"{"id":2,"error":"boom"}"#, "bad Some(2): error: expected an object, got a string");
    check(r#"{"id":2,"error":{"message":5}}"#, "bad Some(2): error.message: expected a string, got a number");
}

#[test]
fn an_answer_may_be_empty() {
    check(r#"{"id":2,"result":null}"#, "2: empty | `result` is null; an empty answer is written \"result\":{}");
    let nothing = "2: empty | the line has no `result` and no `error`; an empty answer is written \"result\":{}";
    check(r#"{"id":2}"#, nothing);
    check(r#"{"id":2,"error":null,"method":null}"#, nothing);
}

#[test]
fn an_answer_one_level_too_high_says_where_it_belongs() {
    let high = |word: &str| {
        format!("bad Some(2): `{word}` stands beside `id`; it belongs into `result`: \"result\":{{\"{word}\":…}}")
    };
    check(r#"{"id":2,"action":"deny_tool"}"#, &high("action"));
    check(r#"{"jsonrpc":"2.0","id":2,"Approved":false}"#, &high("approved"));
    check(r#"{"id":2,"decision":"deny"}"#, &high("decision"));
    check(r#"{"id":2,"action":"deny_tool","result":{}}"#, "2: result {}");
}

#[test]
fn what_answers_nothing_is_noise() {
    check("", "noise: ");
    check(" \t\r", "noise: ");
    check(r#"{"result":{}}"#, "noise: a line without an `id` answers nothing");
    check(r#"{"id":null,"result":{}}"#, "noise: a line without an `id` answers nothing");
    check(r#"{"id":0,"error":5}"#, "noise: a line without an `id` answers nothing");
    check(r#"{"method":"log","params":{}}"#, "noise: hooks send no requests and no events");
    check(r#"{"id":2,"method":"ask"}"#, "noise: hooks send no requests");
    check(r#"{"id":-2,"result":{}}"#, "noise: the id `-2` names no call");
    check(r#"{"id":"two","result":{}}"#, "noise: the id `\"two\"` names no call");
}

#[test]
fn a_bad_line_blames_the_call_that_it_names() {
    check("loading model", "bad None: expected a JSON object, got `loading model`");
    check(r#"[{"id":2,"result":{}}]"#, "bad None: expected a JSON object, got `[{\"id\":2,\"result\":{}}]`");
    check(r#"{"id":true,"result":{}}"#, "bad None: id: expected a number, got a boolean");
    check(r#"{"id":2,"method":5,"result":{}}"#, "bad Some(2): method: expected a string, got a number");
    check(r#"{"id":2,"jsonrpc":2.0}"#, "bad Some(2): jsonrpc: expected a string, got a number");
    check(r#"{"id":2,"result":{"a":tru}}"#, "bad Some(2): expected ident at line 1 column 26");
    check(r#"{"id":2,"result":{}} {}"#, "bad Some(2): trailing characters at line 1 column 22");
    check("{'id': 2}", "bad None: key must be a string at line 1 column 2");
}

#[test]
fn nesting_is_bounded() {
    let line = |levels: usize| format!(r#"{{"id":2,"result":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
    assert!(shown(line(MAX_DEPTH - 1).as_bytes()).starts_with("2: result ["));
    check(&line(MAX_DEPTH), "bad Some(2): nested deeper than 512 levels");
    check(&"{\"a\":[".repeat(100_000), "bad None: nested deeper than 512 levels");
}

#[test]
fn broken_text_is_mended_with_a_warning() {
    let utf8 = "invalid UTF-8 became U+FFFD; write lines in UTF-8";
    let half = "a lone surrogate became U+FFFD; write both halves of a pair";
    assert_eq!(shown(b"{\"id\":2,\"result\":\"\xff\"}"), format!("2: result \"\u{fffd}\" | {utf8}"));
    check(r#"{"id":2,"result":"\ud800 \ud83d\ude00"}"#, &format!(r#"2: result "\ufffd \ud83d\ude00" | {half}"#));
    assert_eq!(shown(b"\xc3(print)"), "bad None: expected a JSON object, got `\u{fffd}(print)`");
}

#[test]
fn a_good_line_is_not_copied() {
    let line = br#"{"id":2,"result":{"text":"\ud83d\ude00 \u00e9"}}"#.to_vec();
    let address = line.as_ptr();
    let Incoming::Reply(RpcReply { body: RpcBody::Result { line, .. }, .. }) = read_line(line) else { panic!() };
    assert_eq!(line.as_ptr(), address);
}

#[test]
fn frames_are_written_in_the_order_of_the_protocol() {
    let frame = [request_head(7, "hook.before_llm"), b"{}".to_vec(), FRAME_TAIL.to_vec()].concat();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    assert_eq!(text(frame), "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"hook.before_llm\",\"params\":{}}\n");
    assert_eq!(text(cancel(7)), "{\"jsonrpc\":\"2.0\",\"method\":\"hook.cancel\",\"params\":{\"id\":7}}\n");
    let frame = [request_head(1, "hook.hello"), hello("h", &["observe", "llm", "tool", "approve"]), FRAME_TAIL.into()];
    assert_eq!(
        text(frame.concat()),
        concat!(
            r#"{"jsonrpc":"2.0","id":1,"method":"hook.hello","params":{"name":"h","version":1,"#,
            r#""modes":["observe","llm","tool","approve"]}}"#,
            "\n"
        )
    );
    assert_eq!(text(hello("a\"\u{2028}", &[])), r#"{"name":"a\"\u2028","version":1,"modes":[]}"#);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn any_bytes_are_read_without_a_panic(
        line in prop::collection::vec(any::<u8>(), 0..60),
        id in 1_u64..1000,
        head in any::<bool>(),
    ) {
        let prefix = format!("{{\"id\":{id},\"result\":");
        let line = if head { [prefix.as_bytes(), &line, b"}"].concat() } else { line };
        match read_line(line) {
            Incoming::Reply(RpcReply { id: named, body: RpcBody::Result { line, range }, .. }) => {
                prop_assert!(named > 0);
                prop_assert!(serde_json::from_str::<&RawValue>(&line[range]).is_ok());
            }
            Incoming::Reply(RpcReply { id: named, .. }) => prop_assert!(named > 0),
            Incoming::Bad { id: Some(named), .. } => prop_assert!(named > 0),
            Incoming::Noise { .. } | Incoming::Bad { id: None, .. } => {}
        }
    }

    #[test]
    fn the_scanner_and_the_reader_agree_on_the_id(
        members in prop::collection::vec((any::<bool>(), "[\\PC\"\\\\]{0,4}", "[0-9]{1,18}|\"[0-9]{0,3}\"|null|\\[1\\]"), 0..6),
    ) {
        let parts: Vec<String> = members
            .iter()
            .map(|(is_id, name, value)| format!("{}:{value}", quoted(if *is_id { "iD" } else { name })))
            .collect();
        let line = format!("{{\"result\":{{}},{}}}", parts.join(" , ")).replace(",}", "}");
        let mut scanner = IdScanner::new();
        scanner.feed(line.as_bytes());
        let read = match read_line(line.into_bytes()) {
            Incoming::Reply(reply) => Some(reply.id),
            Incoming::Bad { id, .. } => id,
            Incoming::Noise { .. } => None,
        };
        prop_assert_eq!(scanner.id(), read);
    }
}
