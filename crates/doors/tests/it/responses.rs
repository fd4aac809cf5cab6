//! Answers of OpenAI's responses: a call is said up to five times, and is one call each time.

use pintle_domain::json::json;
use pintle_doors::Wire;
use pintle_doors::answer::{AnswerStep, AnswerTo, CallRuling, DenyMode};

use crate::played::{self, Played, play, whole as in_one_piece};
use crate::strict::{is_broken, is_same};

const STREAM: played::Wire = played::Wire::ResponsesStream;
const WHOLE: played::Wire = played::Wire::ResponsesWhole;

const CREATED: &str = r#"{"type":"response.created","response":{"id":"r","output":[]}}"#;
const CALL: &str = r#"{"id":"f","type":"function_call","call_id":"c","name":"yes","arguments":"{\"n\":1}"}"#;
const ADDED: &str = r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"f","type":"function_call","call_id":"c","name":"yes","arguments":""}}"#;
const PART: &str =
    r#"{"type":"response.function_call_arguments.delta","item_id":"f","output_index":0,"delta":"{\"n\":1}"}"#;
const REPEATED: &str =
    r#"{"type":"response.function_call_arguments.done","item_id":"f","output_index":0,"arguments":"{\"n\":1}"}"#;

fn finished(call: &str) -> String {
    format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{call}}}"#)
}

fn completed(calls: &str) -> String {
    format!(r#"{{"type":"response.completed","response":{{"id":"r","status":"completed","output":[{calls}]}}}}"#)
}

fn events(data: &[&str]) -> String {
    data.iter().map(|data| format!("data: {data}\n\n")).collect()
}

#[test]
fn events_that_are_one_call_each_time_pass() {
    let (done, end) = (finished(CALL), completed(CALL));
    is_same(STREAM, &events(&[CREATED, ADDED, PART, REPEATED, &done, &end]));
    // Some servers repeat nothing, say all at once, or name a last event.
    let none = r#"{"type":"response.completed","response":{"id":"r"}}"#;
    is_same(STREAM, &events(&[ADDED, &done, none]));
    let full = ADDED.replace(r#""arguments":"""#, r#""arguments":"{\"n\":1}""#);
    is_same(STREAM, &(events(&[CREATED, &full, &done, &completed("")]) + "data: [DONE]\n\n"));
    is_same(STREAM, &events(&[CREATED, r#"{"type":"keepalive"}"#, ADDED, PART, &done, &end]));
    // Calls of which parts come one in another.
    let second = |text: &str| text.replace(r#""output_index":0"#, r#""output_index":1"#).replace(r#""f""#, r#""g""#);
    let second = |text: &str| second(text).replace(r#""c""#, r#""d""#);
    let both = format!("{CALL},{}", second(CALL));
    let mixed = [ADDED, &second(ADDED), &second(PART), PART, &done, &second(&done), &completed(&both)];
    is_same(STREAM, &events(&mixed));
    // A text has members of other names.
    let text = r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"m","type":"message","role":"assistant","content":[]}}"#;
    let part = r#"{"type":"response.output_text.delta","output_index":0,"delta":"x","new":{"Name":1}}"#;
    let whole = r#"{"id":"m","type":"message","content":[{"type":"output_text","text":"x"}]}"#;
    is_same(STREAM, &events(&[CREATED, text, part, &finished(whole), &completed(whole)]));
}

#[test]
fn events_that_two_may_read_differently_do_not() {
    let (done, end) = (finished(CALL), completed(CALL));
    let evil = CALL.replace("yes", "evil");
    let custom = CALL.replace("function_call", "custom_tool_call").replace("arguments", "input");
    let text = ADDED.replace("function_call", "message").replace(r#""arguments":"""#, r#""content":[]"#);
    for (what, data) in [
        ("items in the beginning", vec![CREATED.replace("[]", &format!("[{evil}]"))]),
        ("items later in the beginning", vec![CREATED.into(), CREATED.replace("[]", &format!("[{evil}]"))]),
        ("items of another type", vec![CREATED.replace("[]", &evil)]),
        ("an index twice", vec![ADDED.into(), ADDED.replace(r#""f""#, r#""g""#).replace(r#""c""#, r#""d""#)]),
        ("an id twice", vec![ADDED.into(), ADDED.replace(r#":0"#, ":1").replace(r#""f""#, r#""g""#)]),
        ("no index", vec![ADDED.replace(r#""output_index":0,"#, "")]),
        ("an index that is a text", vec![ADDED.replace(":0", r#":"0""#)]),
        ("no id", vec![ADDED.replace(r#""call_id":"c","#, "")]),
        ("no name", vec![ADDED.replace(r#""name":"yes","#, "")]),
        ("a name that is a list", vec![ADDED.replace(r#""yes""#, r#"["evil"]"#)]),
        ("a name in another case", vec![ADDED.replace(r#""name":"#, r#""Name":"evil","name":"#)]),
        ("arguments as an object", vec![ADDED.replace(r#""arguments":"""#, r#""arguments":{}"#)]),
        ("arguments and input", vec![ADDED.replace(r#""name""#, r#""input":"evil","name""#)]),
        ("a space of names", vec![ADDED.replace(r#""name""#, r#""namespace":"evil","name""#)]),
        ("another kind of call", vec![ADDED.replace("function_call", "shell_call").replace("yes", "evil")]),
        ("an unknown kind of item", vec![ADDED.replace("function_call", "new_call").replace("yes", "evil")]),
        ("an item without kind", vec![ADDED.replace(r#""type":"function_call","#, "")]),
        ("an item in another event", vec![ADDED.replace("output_item.added", "item.new")]),
        ("an answer in another event", vec![end.replace("completed", "new").replace("yes", "evil")]),
        ("an event of another name", vec![ADDED.replace("\"type\"", "\"Type\":\"x\",\"type\"")]),
        ("no beginning", vec![PART.into()]),
        ("an end without beginning", vec![finished(&evil)]),
        ("a part of a text", vec![text.clone(), PART.into()]),
        (
            "a part of another kind",
            vec![ADDED.into(), PART.replace("function_call_arguments", "custom_tool_call_input")],
        ),
        ("a part of another call", vec![ADDED.into(), PART.replace(r#""f""#, r#""g""#)]),
        ("a part of another form", vec![ADDED.into(), PART.replace("function_call_arguments", "mcp_call_arguments")]),
        ("a part that is an object", vec![ADDED.into(), PART.replace(r#""{\"n\":1}""#, "{}")]),
        ("a part behind the end", vec![ADDED.into(), PART.into(), done.clone(), PART.into()]),
        ("a part behind all of them", vec![ADDED.into(), PART.into(), REPEATED.into(), PART.into()]),
        ("all of them twice", vec![ADDED.into(), PART.into(), REPEATED.into(), REPEATED.into()]),
        ("other parts", vec![ADDED.into(), PART.replace('1', "2"), done.clone(), end.clone()]),
        ("parts twice", vec![ADDED.into(), PART.into(), PART.into(), done.clone(), end.clone()]),
        ("others repeated", vec![ADDED.into(), PART.into(), REPEATED.replace('1', "2"), done.clone(), end.clone()]),
        ("another name repeated", vec![ADDED.into(), REPEATED.replace(r#""item_id""#, r#""name":"evil","item_id""#)]),
        ("another name at its end", vec![ADDED.into(), PART.into(), finished(&evil)]),
        ("another kind at its end", vec![ADDED.into(), PART.into(), finished(&custom.replace("yes", "evil"))]),
        ("other arguments at its end", vec![ADDED.into(), PART.into(), finished(&CALL.replace('1', "2"))]),
        ("a call at the end of a text", vec![text, finished(&evil)]),
        ("another end", vec![ADDED.into(), PART.into(), done.clone(), completed(&evil)]),
        (
            "another end in its arguments",
            vec![ADDED.into(), PART.into(), done.clone(), completed(&CALL.replace('1', "2"))],
        ),
        ("one more in the end", vec![ADDED.into(), PART.into(), done.clone(), completed(&format!("{CALL},{evil}"))]),
        ("one more of the same", vec![ADDED.into(), PART.into(), done.clone(), completed(&format!("{CALL},{CALL}"))]),
        ("a call in the end alone", vec![CREATED.into(), completed(&evil)]),
        ("an end that is a list", vec![end.replace("\"response\":{", "\"response\":[{").replace("}}", "}]}")]),
        (
            "an end in another case",
            vec![CREATED.into(), completed("").replace("\"output\"", "\"output\":[],\"Output\"")],
        ),
        ("an open call", vec![ADDED.into(), PART.into(), completed(CALL)]),
    ] {
        let data: Vec<&str> = data.iter().map(String::as_str).collect();
        println!("{what}");
        is_broken(STREAM, &events(&data));
    }
    is_broken(STREAM, &format!("event: ping\ndata: {ADDED}\n\n"));
    is_broken(STREAM, &events(&[ADDED, PART, &done]));
    // What comes behind the end is not read by the door, and by no client.
    let late = play(STREAM, DenyMode::Answer, &[events(&[CREATED, &completed(""), &done])], in_one_piece);
    assert!(late.broken.is_some() && !late.sent.contains("yes"), "{late:?}");
}

#[test]
fn a_text_that_is_said_again_is_the_same_text() {
    let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"m","type":"message","role":"assistant","content":[]}}"#;
    let part = |text: &str| format!(r#"{{"type":"response.output_text.delta","output_index":0,"delta":"{text}"}}"#);
    let repeated = |text: &str| format!(r#"{{"type":"response.output_text.done","output_index":0,"text":"{text}"}}"#);
    let whole =
        |text: &str| format!(r#"{{"id":"m","type":"message","content":[{{"type":"output_text","text":"{text}"}}]}}"#);
    let all = |texts: [&str; 4]| {
        let [first, second, third, fourth] = texts;
        let data = [added, &part(first), &repeated(second), &finished(&whole(third)), &completed(&whole(fourth))];
        events(&data)
    };
    is_same(STREAM, &all(["good"; 4]));
    for place in 0..4 {
        let mut texts = ["good"; 4];
        texts[place] = "other";
        let played = play(STREAM, DenyMode::Answer, &[all(texts)], in_one_piece);
        assert!(played.broken.is_some(), "{place} {played:?}");
    }
}

#[test]
fn answers_that_come_whole() {
    let of = |output: &str| format!(r#"{{"id":"r","status":"completed","output":{output}}}"#);
    is_same(WHOLE, &of(&format!("[{CALL}]")));
    is_same(WHOLE, &of("null"));
    is_same(
        WHOLE,
        &of(
            r#"[{"type":"reasoning","id":"x","summary":[]},{"type":"message","content":[{"type":"refusal","refusal":"no"}]}]"#,
        ),
    );
    let evil = CALL.replace("yes", "evil");
    for output in [
        evil.clone(),
        r#"["evil"]"#.into(),
        format!("[{CALL},{CALL}]"),
        format!("[{}]", evil.replace("function_call", "local_shell_call")),
        format!("[{}]", evil.replace(r#""type""#, r#""Type""#)),
        format!("[{}]", evil.replace(r#""name""#, r#""name":"yes","Name""#)),
        format!("[{}]", evil.replace(r#""call_id":"c","#, "")),
        format!("[{}]", evil.replace("arguments", "input")),
        format!("[],\"Output\":[{evil}]"),
        r#"[{"type":"message","role":"user","content":[]}]"#.into(),
        r#"[{"type":"message","content":{"text":"evil"}}]"#.into(),
        r#"[{"type":"message","content":[{"text":"evil"}]}]"#.into(),
    ] {
        is_broken(WHOLE, &of(&output));
    }
    let twice = play(
        WHOLE,
        DenyMode::Answer,
        &[of(&format!("[{}]", CALL.replace(r#"\"n\":1"#, r#"\"n\":1,\"n\":2"#)))],
        in_one_piece,
    );
    assert!(twice.sent.contains("was refused") && !twice.sent.contains("function_call"), "{twice:?}");
    assert_eq!(twice.unread, ["yes"]);
}

/// Plays one answer to a request that offers `hosted`, and allows all.
fn sent(hosted: &[&str], answer: &str) -> Result<String, String> {
    let hosted = hosted.iter().map(|kind| (*kind).to_owned()).collect();
    let mut machine = Wire::Responses.answer(AnswerTo { hosted, ..AnswerTo::default() }, DenyMode::Answer);
    machine.feed(answer.as_bytes());
    machine.end();
    let mut sent = String::new();
    loop {
        match machine.next().unwrap() {
            AnswerStep::Send(bytes) => sent += &String::from_utf8(bytes).unwrap(),
            AnswerStep::Rule(_) => machine.rule(CallRuling::Allowed),
            AnswerStep::Done(_) => return Ok(sent),
            AnswerStep::Broken(why) => return Err(why),
            step @ (AnswerStep::GoOn(_) | AnswerStep::Unread { .. }) => panic!("{step:?}"),
        }
    }
}

#[test]
fn items_of_the_vendor_pass_if_the_request_offered_their_tool() {
    for (kind, item, passes) in [
        ("web_search", "web_search_call", true),
        ("web_search_preview_2025_03_11", "web_search_call", true),
        ("mcp", "mcp_call", true),
        ("mcp", "mcp_approval_request", true),
        ("code_interpreter", "code_interpreter_call", true),
        ("computer_use_preview", "computer_call", true),
        ("web_search", "local_shell_call", false),
        ("shell", "local_shell_call", false),
        ("file_search", "web_search_call", false),
        ("file_search", "function_call_new", false),
    ] {
        let answer = format!(r#"{{"output":[{{"type":"{item}","id":"x","status":"completed"}}]}}"#);
        let came = sent(&[kind], &answer);
        assert_eq!(came.as_ref() == Ok(&answer), passes, "{kind} {item} {came:?}");
        assert!(sent(&[], &answer).is_err(), "{item}");
    }
}

#[test]
fn a_call_within_a_namespace_is_told_by_both_names_if_the_request_offered_it() {
    let call = CALL.replace(r#""name""#, r#""namespace":"box","name""#);
    let added = ADDED.replace(r#""name""#, r#""namespace":"box","name""#);
    let repeated = REPEATED.replace(r#""item_id""#, r#""name":"yes","item_id""#);
    let whole = format!(r#"{{"id":"r","status":"completed","output":[{call}]}}"#);
    let streamed = events(&[CREATED, &added, PART, &repeated, &finished(&call), &completed(&call)]);
    for (streams, answer) in [(false, whole), (true, streamed)] {
        let machine = |namespaces: &[&str]| {
            let namespaces = namespaces.iter().map(|name| (*name).to_owned()).collect();
            let to = AnswerTo { streams, namespaces, ..AnswerTo::default() };
            let mut machine = Wire::Responses.answer(to, DenyMode::Answer);
            machine.feed(answer.as_bytes());
            machine.end();
            machine
        };
        let mut own = machine(&["box"]);
        let mut sent = String::new();
        let told = loop {
            match own.next().unwrap() {
                AnswerStep::Send(bytes) => sent += &String::from_utf8(bytes).unwrap(),
                AnswerStep::Rule(call) => break call,
                step @ (AnswerStep::Done(_)
                | AnswerStep::Broken(_)
                | AnswerStep::GoOn(_)
                | AnswerStep::Unread { .. }) => {
                    panic!("{step:?}")
                }
            }
        };
        assert_eq!(told.name, "box__yes");
        assert!(!sent.contains("namespace"), "nothing of it before it was ruled: {sent}");
        own.rule(CallRuling::Allowed);
        while let Some(AnswerStep::Send(bytes)) = own.next() {
            sent += &String::from_utf8(bytes).unwrap();
        }
        assert_eq!(sent, answer);
        // What the request did not offer is no call that anybody knows.
        let mut other = machine(&["other"]);
        let steps: Vec<AnswerStep> = std::iter::from_fn(|| other.next()).take(9).collect();
        assert!(
            steps.iter().any(|step| matches!(step, AnswerStep::Broken(why) if why.contains("`namespace`"))),
            "{steps:?}"
        );
    }
}

#[test]
fn a_call_of_one_text_is_changed_in_its_text_or_refused() {
    let call =
        |name: &str| json!({"type": "custom_tool_call", "id": "f", "call_id": "c", "name": name, "input": "rm -r"});
    let answer = |name: &str| json!({"id": "r", "status": "completed", "output": [call(name)]}).to_string();
    is_same(WHOLE, &answer("yes"));
    // The change cannot be said: the door answers.
    let played = play(WHOLE, DenyMode::Answer, &[answer("change"), answer("yes")], in_one_piece);
    let result = r#"{"type":"custom_tool_call_output","call_id":"c","output":"This call was refused and did not run: "#;
    assert!(played.went_on[0][1].starts_with(result), "{played:?}");
    let wanted = json!({"type": "custom_tool_call", "id": "f", "call_id": "c", "name": "text", "input": "ls"});
    let mut machine = Wire::Responses.answer(AnswerTo::default(), DenyMode::Answer);
    machine.feed(answer("text").as_bytes());
    machine.end();
    let Some(AnswerStep::Rule(call)) = machine.next() else { panic!() };
    assert_eq!(call.arguments["input"], "rm -r");
    let with = json!({"input": "ls"}).as_object().unwrap().clone();
    machine.rule(CallRuling::Rewritten(with));
    let Some(AnswerStep::Send(bytes)) = machine.next() else { panic!() };
    assert_eq!(pintle_domain::json::parse(&String::from_utf8(bytes).unwrap()).unwrap()["output"][0], wanted);
}

#[test]
fn thoughts_go_back_as_they_came_where_they_may() {
    let answer = |thought: &str, name: &str| {
        let call = CALL.replace("yes", name);
        format!(r#"{{"id":"r","status":"completed","output":[{thought},{call}]}}"#)
    };
    let sealed = r#"{"type":"reasoning","id":"t","summary":[],"encrypted_content":"x"}"#;
    let open = r#"{"type":"reasoning","id":"t","summary":[]}"#;
    for (is_stored, thought, goes) in
        [(true, sealed, true), (true, open, true), (false, sealed, true), (false, open, false)]
    {
        let to = AnswerTo { is_stored, ..AnswerTo::default() };
        let mut machine = Wire::Responses.answer(to, DenyMode::Answer);
        machine.feed(answer(thought, "no").as_bytes());
        machine.end();
        let Some(AnswerStep::Rule(_)) = machine.next() else { panic!() };
        machine.rule(CallRuling::Denied("not here".into()));
        match machine.next() {
            Some(AnswerStep::GoOn(messages)) => assert!(goes && messages[0] == thought, "{thought} {is_stored}"),
            Some(AnswerStep::Send(bytes)) => {
                let sent = String::from_utf8(bytes).unwrap();
                assert!(!goes && sent.contains("was refused") && !sent.contains("function_call"), "{sent}");
            }
            step => panic!("{step:?}"),
        }
    }
}

#[test]
fn an_answer_that_is_cut_short_by_the_vendor_runs_nothing_that_is_not_whole() {
    let end = r#"{"type":"response.incomplete","response":{"id":"r","status":"incomplete","output":[]}}"#;
    let played = play(STREAM, DenyMode::Answer, &[events(&[CREATED, ADDED, PART, end])], in_one_piece);
    assert!(played.broken.is_none() && !played.sent.contains("function_call"), "{played:?}");
    assert!(played.sent.contains("was refused") && played.unread == ["yes"], "{played:?}");
    let failed = r#"{"type":"error","code":"x","message":"overloaded"}"#;
    let played = play(STREAM, DenyMode::Answer, &[events(&[CREATED, ADDED, PART, failed])], in_one_piece);
    assert_eq!(played, Played { sent: events(&[CREATED, failed]), ..Played::default() });
}
