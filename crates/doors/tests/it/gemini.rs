//! Requests and answers of Gemini.

use pintle_doors::Wire;
use pintle_doors::answer::{AnswerStep, AnswerTo, DeniedCall, DenyMode, Exchange};
use pintle_doors::gemini;
use pintle_doors::request::SeenRequest;
use pintle_doors::spans::Edits;

use crate::played::{self, play, whole};
use crate::strict::{is_broken, is_same};

const STREAM: played::Wire = played::Wire::GeminiStream;
const WHOLE: played::Wire = played::Wire::GeminiWhole;

const CALL: &str = r#"{"functionCall":{"id":"a","name":"yes","args":{"Name":1}}}"#;

fn candidate(parts: &str) -> String {
    format!(r#"{{"content":{{"parts":[{parts}],"role":"model"}},"finishReason":"STOP"}}"#)
}

fn answer(parts: &str) -> String {
    format!(r#"{{"candidates":[{}]}}"#, candidate(parts))
}

#[test]
fn a_request_is_read_in_both_spellings() {
    for (call, response, system, declarations) in [
        ("functionCall", "functionResponse", "systemInstruction", "functionDeclarations"),
        ("function_call", "function_response", "system_instruction", "function_declarations"),
    ] {
        let body = format!(
            r#"{{"{system}":{{"parts":[{{"text":"be good"}}]}},"contents":[
            {{"parts":[{{"text":"a"}},{{"inlineData":{{}}}},{{"text":"b"}}]}},
            {{"role":"model","parts":[{{"text":"hm","thought":true}},{{"{call}":{{"name":"f","args":{{"x":1}}}}}},{{"{call}":{{"name":"f","args":{{"x":2}}}}}}]}},
            {{"role":"user","parts":[{{"{response}":{{"name":"f","response":{{"output":"one"}}}}}},{{"{response}":{{"name":"f","response":{{"n":2,"m":3}}}}}}]}}],
            "tools":[{{"{declarations}":[{{"name":"f"}},{{"name":"g"}}],"codeExecution":{{}}}},{{"googleSearch":{{}}}}]}}"#
        );
        let request = gemini::read(body.clone()).unwrap();
        let names: Vec<&str> = request.hosted.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["code_execution", "google_search"]);
        let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["f", "g"]);
        assert_eq!((request.system[0].text.as_str(), request.prompts()[0].text.as_str()), ("be good", "a\nb"));
        assert!(request.messages[1].texts.is_empty());
        let results = &request.messages[2].results;
        let said: Vec<_> = results.iter().map(|it| (it.call.as_str(), it.text.as_str())).collect();
        assert_eq!(said, [(r#"f {"x":1}"#, "one"), (r#"f {"x":2}"#, r#"{"n":2,"m":3}"#)]);
        let mut edits = Edits::default();
        request.say(&mut edits, 0, "new");
        results.iter().for_each(|result| SeenRequest::result(&mut edits, result, "clean"));
        let changed = edits.apply(&body);
        assert!(changed.contains(r#"{"output":"clean"}"#) && changed.contains(r#"{"result":"clean"}"#), "{changed}");
        let changed = gemini::read(changed).unwrap();
        assert_eq!(changed.prompts()[0].text, "new");
        assert!(changed.messages[2].results.iter().all(|result| result.text == "clean"));
    }
    for (body, expected) in [
        ("{}", "`contents` is not what the door knows: expected a list"),
        (
            r#"{"contents":[{"role":"tool","parts":[]}]}"#,
            "`contents[0].role` is not what the door knows: expected `user` or `model`",
        ),
        (r#"{"contents":[{}]}"#, "`contents[0].parts` is not what the door knows: expected a list"),
        (
            r#"{"contents":[],"cachedContent":"x"}"#,
            "`cachedContent` is not what the door knows: it names what stands at the vendor, where no hook saw it; send it in `contents`",
        ),
        (
            r#"{"contents":[],"systemInstruction":{"parts":[]},"system_instruction":{"parts":[]}}"#,
            "`system_instruction` is not what the door knows: it stands there a second time, in another spelling",
        ),
    ] {
        assert_eq!(gemini::read(body.into()).unwrap_err().to_string(), expected);
    }
}

#[test]
fn what_no_hook_would_see_is_no_request() {
    let is_refused = |member: &str, beside: &str| {
        let body = format!(r#"{{"contents":[],{beside}}}"#);
        let error = gemini::read(body).unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{member}` is not what the door knows: ")), "{beside}: {error}");
    };
    let function = r#"{"name":"f"}"#;
    for tools in [&format!(r#"{{"functionDeclarations":[{function}]}}"#), r#""evil""#, "1", "true"] {
        is_refused("tools", &format!(r#""tools":{tools}"#));
    }
    for name in ["functionDeclarations", "function_declarations"] {
        for list in [function, r#""evil""#, "1", "true"] {
            is_refused("functionDeclarations", &format!(r#""tools":[{{"{name}":{list}}}]"#));
        }
    }
    for name in ["generateContentRequest", "generate_content_request"] {
        for request in [r#"{"contents":[]}"#, "[]", "null"] {
            is_refused(name, &format!(r#""{name}":{request}"#));
        }
    }
    for passes in [r#""tools":null"#, r#""tools":[]"#, r#""tools":[{"functionDeclarations":null}]"#] {
        assert_eq!(gemini::read(format!(r#"{{"contents":[],{passes}}}"#)).unwrap().tools.len(), 0, "{passes}");
    }
}

#[test]
fn answers_that_everybody_reads_alike_pass() {
    for passes in [
        answer(CALL),
        answer(r#"{"functionCall":{"name":"yes"}},{"text":"","thoughtSignature":"x"}"#),
        answer(r#"{"text":"hm","thought":true},{"text":"x","new":null}"#),
        r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":1}}"#.to_owned(),
        r#"{"candidates":[{"finishReason":"MAX_TOKENS","index":0}]}"#.to_owned(),
    ] {
        is_same(WHOLE, &passes);
        is_same(STREAM, &format!("data: {passes}\r\n\r\n"));
    }
}

#[test]
fn answers_that_two_may_read_differently_do_not() {
    let evil = CALL.replace("yes", "evil");
    for (what, bad) in [
        ("a list", format!("[{}]", answer(&evil))),
        ("candidates that are none", format!(r#"{{"candidates":{}}}"#, candidate(&evil))),
        ("a candidate that is a list", format!(r#"{{"candidates":[[{evil}]]}}"#)),
        ("an index twice", format!(r#"{{"candidates":[{},{}]}}"#, candidate(CALL), candidate(&evil))),
        ("an index that nobody asked for", answer(&evil).replace("\"finish", "\"index\":1,\"finish")),
        ("an index that is a text", answer(&evil).replace("\"finish", "\"index\":\"0\",\"finish")),
        ("another role", answer(&evil).replace("\"model\"", "\"user\"")),
        ("parts that are none", answer(&evil).replace("[{\"func", "{\"0\":{\"func").replace("}],\"role", "}},\"role")),
        ("a part that is a text", answer("\"evil\"")),
        ("a text that is none", answer(r#"{"text":["evil"]}"#)),
        ("two things", answer(&evil.replace("{\"func", "{\"text\":\"x\",\"func"))),
        ("a call and code", answer(&evil.replace("{\"func", "{\"executableCode\":{},\"func"))),
        ("a new kind of call", answer(&evil.replace("functionCall", "toolCall"))),
        ("another spelling", answer(&evil.replace("functionCall", "function_call"))),
        ("another case", answer(&evil.replace("functionCall", "functioncall"))),
        ("another spelling beside it", answer(&evil.replace("{\"id\"", "{\"Name\":\"evil\",\"id\""))),
        ("another spelling of the end", answer(&evil).replace("finishReason", "finish_reason")),
        ("no name", answer(r#"{"functionCall":{"args":{"x":"evil"}}}"#)),
        ("a name that is none", answer(r#"{"functionCall":{"name":["evil"]}}"#)),
        ("a call that is a list", answer(r#"{"functionCall":["evil"]}"#)),
        ("arguments that are a text", answer(r#"{"functionCall":{"name":"evil","args":"{}"}}"#)),
        ("arguments in parts", answer(r#"{"functionCall":{"name":"evil","partialArgs":[{}]}}"#)),
        ("more to come", answer(r#"{"functionCall":{"name":"evil","willContinue":true}}"#)),
        ("a result", answer(r#"{"functionResponse":{"name":"evil","response":{}}}"#)),
        ("a member twice", answer(r#"{"functionCall":{"name":"yes","name":"evil"}}"#)),
        ("arguments twice", answer(r#"{"functionCall":{"name":"yes","args":{"a":1,"a":"evil"}}}"#)),
    ] {
        println!("{what}");
        is_broken(WHOLE, &bad);
        is_broken(STREAM, &format!("data: {bad}\r\n\r\n"));
    }
    // Cut off before it says that it ends.
    let open = answer(&evil).replace(r#","finishReason":"STOP""#, "");
    is_broken(STREAM, &format!("data: {open}\r\n\r\n"));
}

#[test]
fn calls_without_ids_are_known_by_what_they_are() {
    let call = |name: &str, n: u64| format!(r#"{{"functionCall":{{"name":"{name}","args":{{"n":{n}}}}}}}"#);
    let mixed = answer(&format!("{},{}", call("no", 1), call("change", 2)));
    let played = play(WHOLE, DenyMode::Answer, &[mixed], whole);
    let exchange = played.exchange.unwrap();
    assert_eq!(exchange.calls, [r#"change {"n":2,"safe":true}"#]);
    assert_eq!(exchange.denied[0].call, call("no", 1));
    let result =
        r#"{"functionResponse":{"name":"no","response":{"error":"This call was refused and did not run: not here"}}}"#;
    assert_eq!(exchange.denied[0].result, result);
    // It stood before the other one, and does so again.
    let body = format!(
        r#"{{"contents":[{{"role":"model","parts":[{{"text":"x"}},{}]}},{{"role":"user","parts":[{{"functionResponse":{{"name":"change","response":{{}}}}}}]}}]}}"#,
        r#"{"functionCall":{"name":"change","args":{"safe":true,"n":2}}}"#
    );
    let request = gemini::read(body).unwrap();
    let mut edits = Edits::default();
    pintle_doors::keeper::put_back(&request, &[exchange], Wire::Gemini.put_back(), &mut edits);
    let again = gemini::read(edits.apply(&request.document.text)).unwrap();
    let names: Vec<&str> = again.messages[0].calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!((names, again.messages[1].results.len()), (vec!["no", "change"], 2));
}

#[test]
fn a_client_may_give_ids_to_calls_that_had_none() {
    let call = |name: &str, id: &str| format!(r#"{{"functionCall":{{{id}"name":"{name}","args":{{"n":1}}}}}}"#);
    let rounds = [answer(&call("no", "")), answer(&call("yes", ""))];
    let played = play(WHOLE, DenyMode::Answer, &rounds, whole);
    let exchange = played.exchange.unwrap();
    // As Gemini CLI tells it later.
    let own = r#""id":"run_1","#;
    let result = r#"{"functionResponse":{"id":"run_1","name":"yes","response":{"output":"done"}}}"#;
    let body = |name: &str| {
        let call = call(name, own);
        format!(r#"{{"contents":[{{"role":"model","parts":[{call}]}},{{"role":"user","parts":[{result}]}}]}}"#)
    };
    let put_back = |body: String| {
        let request = gemini::read(body).unwrap();
        let mut edits = Edits::default();
        pintle_doors::keeper::put_back(&request, std::slice::from_ref(&exchange), Wire::Gemini.put_back(), &mut edits);
        edits.apply(&request.document.text)
    };
    let again = gemini::read(put_back(body("yes"))).unwrap();
    let names = again.messages.iter().flat_map(|message| &message.calls).map(|call| call.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["no", "yes"], "what was refused stands there again");
    assert!(again.messages[1].results[0].text.contains("not here"), "with its refusal");
    assert_eq!(put_back(body("other")), body("other"), "of another call nothing was refused");
}

#[test]
fn results_without_ids_come_in_the_order_of_their_calls() {
    let call = |n: u64| format!(r#"{{"functionCall":{{"name":"run","args":{{"n":{n}}}}}}}"#);
    let result = |said: &str| format!(r#"{{"functionResponse":{{"name":"run","response":{said}}}}}"#);
    let denied = |n: u64, leads: bool| DeniedCall {
        call: call(n),
        result: result(&format!(r#"{{"error":"refused {n}"}}"#)),
        leads,
    };
    let exchange = Exchange {
        calls: vec![r#"run {"n":2}"#.to_owned()],
        denied: vec![denied(0, true), denied(1, true), denied(3, false), denied(4, false)],
        ..Exchange::default()
    };
    let parts = |all: &[String]| all.join(",");
    let body = |calls: &[String], results: &[String]| {
        let (calls, results) = (parts(calls), parts(results));
        format!(
            r#"{{"contents":[{{"role":"model","parts":[{calls}]}},{{"role":"user","parts":[{results},{{"text":"x"}}]}}]}}"#
        )
    };
    let got = result(r#"{"result":"of 2"}"#);
    let request = gemini::read(body(&[call(2)], std::slice::from_ref(&got))).unwrap();
    let mut edits = Edits::default();
    pintle_doors::keeper::put_back(&request, &[exchange], Wire::Gemini.put_back(), &mut edits);
    let refused = |n: u64| result(&format!(r#"{{"error":"refused {n}"}}"#));
    let results = [refused(0), refused(1), got, refused(3), refused(4)];
    assert_eq!(edits.apply(&request.document.text), body(&[0, 1, 2, 3, 4].map(call), &results));
}

#[test]
fn several_candidates_are_worked_and_not_merged() {
    let other = candidate(&CALL.replace("yes", "no")).replace("\"finish", "\"index\":1,\"finish");
    let answer = format!(r#"{{"candidates":[{},{other}]}}"#, candidate(r#"{"text":"first"}"#));
    for streams in [true, false] {
        let to = AnswerTo { streams, choices: 2, ..AnswerTo::default() };
        let mut machine = Wire::Gemini.answer(to, DenyMode::Answer);
        let written = if streams { format!("data: {answer}\n\n") } else { answer.clone() };
        machine.feed(written.as_bytes());
        machine.end();
        let mut sent = String::new();
        loop {
            match machine.next().unwrap() {
                AnswerStep::Send(bytes) => sent += &String::from_utf8(bytes).unwrap(),
                AnswerStep::Rule(call) => machine.rule(played::ruled(&call)),
                AnswerStep::Done(_) => break,
                step @ (AnswerStep::Unread { .. } | AnswerStep::GoOn(_) | AnswerStep::Broken(_)) => panic!("{step:?}"),
            }
        }
        assert!(sent.contains("was refused") && !sent.contains("functionCall"), "{sent}");
    }
}

#[test]
fn an_error_has_the_word_of_its_status() {
    for (status, word) in [
        (400, "INVALID_ARGUMENT"),
        (401, "UNAUTHENTICATED"),
        (403, "PERMISSION_DENIED"),
        (404, "NOT_FOUND"),
        (413, "INVALID_ARGUMENT"),
        (429, "RESOURCE_EXHAUSTED"),
        (500, "INTERNAL"),
        (502, "UNAVAILABLE"),
        (503, "UNAVAILABLE"),
        (504, "DEADLINE_EXCEEDED"),
    ] {
        let expected = format!(r#"{{"error":{{"code":{status},"message":"no","status":"{word}"}}}}"#);
        assert_eq!(Wire::Gemini.error(status, "no"), expected);
    }
}
