//! What a client may read otherwise than the door goes no further.

use pintle_doors::answer::{AnswerTo, DenyMode};

use crate::played::{Played, Wire, play, whole};

fn played(wire: Wire, answer: &str) -> Played {
    let played = play(wire, DenyMode::Answer, &[answer.to_owned()], whole);
    let single = play(wire, DenyMode::Answer, &[answer.to_owned()], |bytes| bytes.iter().map(|it| vec![*it]).collect());
    assert_eq!(played, single, "{wire:?} {answer}");
    played
}

pub(crate) fn is_broken(wire: Wire, answer: &str) {
    let played = played(wire, answer);
    assert!(played.broken.is_some(), "{wire:?} {answer}\n{played:?}");
    assert!(!played.sent.contains("evil"), "{wire:?} {answer}\n{}", played.sent);
}

pub(crate) fn is_same(wire: Wire, answer: &str) {
    assert_eq!(played(wire, answer), Played { sent: answer.to_owned(), ..Played::default() }, "{wire:?}");
}

const START: &str = r#"{"type":"message_start","message":{"id":"m","content":[]}}"#;
const END: &str = r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;
const CALL: &str =
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"yes","input":{}}}"#;
const PART: &str =
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"n\":1}"}}"#;
const OVER: &str = r#"{"type":"content_block_stop","index":0}"#;

fn events(data: &[&str]) -> String {
    data.iter().map(|data| format!("data: {data}\n\n")).collect()
}

#[test]
fn events_of_anthropic() {
    let wire = Wire::AnthropicStream;
    is_same(wire, &events(&[START, CALL, PART, OVER, END, STOP]));
    is_same(wire, &events(&[START, r#"{"type":"ping"}"#, r#"{"type":"new","more":1}"#, CALL, OVER, END, STOP]));
    // Parts of a call at the vendor.
    let hosted = CALL.replace("tool_use", "server_tool_use");
    is_same(wire, &events(&[START, &hosted, PART, OVER, END, STOP]));
    // Arguments in the beginning, and blank parts.
    let full = CALL.replace(r#""input":{}"#, r#""input":{"n":1}"#);
    let blank = PART.replace(r#"{\"n\":1}"#, " ");
    is_same(wire, &events(&[START, &full, &blank, OVER, END, STOP]));

    let evil = r#"{"type":"tool_use","id":"a","name":"evil","input":{}}"#;
    let begun = |content: &str| START.replace("[]", content);
    let text = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    let delta = |delta: &str| format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#);
    let block = |block: &str| format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#);
    for (_, data) in [
        ("content in the beginning", vec![begun(&format!("[{evil}]"))]),
        ("content of another type", vec![begun(evil)]),
        ("two beginnings", vec![START.into(), START.into()]),
        ("a beginning behind a block", vec![text.into(), START.into()]),
        ("an index twice", vec![START.into(), text.into(), CALL.into()]),
        ("a closed index again", vec![START.into(), text.into(), OVER.into(), CALL.into()]),
        ("a part of nothing", vec![START.into(), PART.into()]),
        ("a part behind its end", vec![START.into(), CALL.into(), OVER.into(), PART.into()]),
        ("an end of nothing", vec![START.into(), OVER.into()]),
        ("no index", vec![START.into(), CALL.replace(r#""index":0,"#, "")]),
        ("an index that is a text", vec![START.into(), CALL.replace(r#""index":0"#, r#""index":"0""#)]),
        ("an index that is no whole number", vec![START.into(), CALL.replace(r#""index":0"#, r#""index":0.0"#)]),
        ("an index below nought", vec![START.into(), CALL.replace(r#""index":0"#, r#""index":-1"#)]),
        ("another part in a call", vec![START.into(), CALL.into(), delta(r#"{"type":"text_delta","text":"x"}"#)]),
        ("a part without type", vec![START.into(), CALL.into(), delta(r#"{"partial_json":"{}"}"#)]),
        ("arguments as an object", vec![START.into(), CALL.into(), PART.replace(r#""{\"n\":1}""#, "{}")]),
        ("arguments in a text", vec![START.into(), text.into(), PART.into()]),
        (
            "hidden arguments in a text",
            vec![START.into(), text.into(), delta(r#"{"type":"text_delta","partial_json":"{}"}"#)],
        ),
        ("arguments twice", vec![START.into(), full.clone(), PART.into()]),
        ("a block behind the end", vec![START.into(), END.into(), CALL.into()]),
        ("a block behind the very end", vec![START.into(), STOP.into(), CALL.into()]),
        ("an unknown event with a block", vec![START.into(), CALL.replace("content_block_start", "new_block")]),
        ("an event without type", vec![START.into(), CALL.replace(r#""type":"content_block_start","#, "")]),
        ("a type that is no text", vec![START.into(), CALL.replace(r#""content_block_start""#, "1")]),
        ("an event that is a list", vec![START.into(), format!("[{CALL}]")]),
        ("a block that is a list", vec![START.into(), block(&format!("[{evil}]"))]),
        ("a block without type", vec![START.into(), block(r#"{"name":"evil","input":{}}"#)]),
        ("a name that is no text", vec![START.into(), CALL.replace(r#""yes""#, "1")]),
        ("no name", vec![START.into(), CALL.replace(r#""yes""#, "null")]),
        ("an input that is no object", vec![START.into(), CALL.replace(r#""input":{}"#, r#""input":"{}""#)]),
        ("a name in another case", vec![START.into(), CALL.replace(r#""name""#, r#""name":"yes","Name""#)]),
        ("a long s", vec![START.into(), begun("[]").replace("content", "meſſage")]),
        ("a Kelvin", vec![START.into(), CALL.replace(r#""index""#, "\"content_bloc\u{212a}\":{},\"index\"")]),
    ] {
        let data: Vec<&str> = data.iter().map(String::as_str).collect();
        is_broken(wire, &events(&data));
    }
    let named = |name: &str| format!("event: {name}\ndata: {CALL}\n\n");
    is_broken(wire, &(events(&[START]) + &named("ping")));
    is_same(wire, &(events(&[START]) + &named("content_block_start") + &events(&[PART, OVER, END, STOP])));
}

#[test]
fn messages_of_anthropic() {
    let wire = Wire::AnthropicWhole;
    let of = |content: &str| format!(r#"{{"id":"m","content":{content},"stop_reason":"tool_use"}}"#);
    is_same(wire, &of(r#"[{"type":"tool_use","id":"a","name":"yes","input":{"Name":1,"TYPE":2}}]"#));
    is_same(wire, &of("null"));
    for content in [
        r#"{"type":"tool_use"}"#,
        r#"["evil"]"#,
        r#"[{"id":"a","name":"evil","input":{}}]"#,
        r#"[{"type":1,"id":"a","name":"evil","input":{}}]"#,
        r#"[{"type":"tool_use","id":"a","name":["evil"],"input":{}}]"#,
        r#"[{"type":"tool_use","id":"a","name":"","input":{}}]"#,
        r#"[{"type":"tool_use","id":"a","name":"yes","input":"evil"}]"#,
        r#"[{"type":"tool_use","id":"a","name":"yes","input":{},"Input":{}}]"#,
        r#"[{"type":"text","Type":"tool_use","text":""}]"#,
        r#"[],"Content":[{"type":"tool_use","id":"a","name":"evil","input":{}}]"#,
    ] {
        is_broken(wire, &of(content));
    }
    is_broken(wire, "[]");
    // A member twice within arguments.
    let twice = r#"[{"type":"tool_use","id":"a","name":"yes","input":{"a":1,"a":2}}]"#;
    is_broken(wire, &of(twice));
}

/// Calls of both forms of OpenAI's, as one fragment.
const BAD_CALLS: [&str; 17] = [
    r#"{"id":"a","type":"function","function":{"name":"evil","arguments":"{}"},"custom":{"name":"yes","input":""}}"#,
    r#"{"id":"a","type":"custom","function":{"name":"evil","arguments":"{}"}}"#,
    r#"{"id":"a","type":"function","custom":{"name":"evil","input":""}}"#,
    r#"{"id":"a","type":"other","function":{"name":"evil","arguments":"{}"}}"#,
    r#"{"id":"a","type":"other"}"#,
    r#"{"id":"a","type":1,"function":{"name":"evil","arguments":"{}"}}"#,
    r#"{"id":1,"function":{"name":"evil","arguments":"{}"}}"#,
    r#"{"id":"a","function":["evil"]}"#,
    r#"{"id":"a","function":{"name":["evil"],"arguments":"{}"}}"#,
    r#"{"id":"a","function":{"name":"evil","arguments":{}}}"#,
    r#"{"id":"a","function":{"name":"evil","arguments":["{}"]}}"#,
    r#"{"id":"a","custom":{"name":"evil","input":{}}}"#,
    r#"{"id":"a","index":"0","function":{"name":"evil","arguments":"{}"}}"#,
    r#"{"id":"a","index":null,"function":{"name":"evil","arguments":"{}"}}"#,
    r#"{"id":"a","function":{"name":"yes","Name":"evil","arguments":"{}"}}"#,
    r#"{"id":"a","function":{"name":"yes","argumentſ":"evil","arguments":"{}"}}"#,
    r#""evil""#,
];

#[test]
fn completions_of_openai() {
    let wire = Wire::OpenAiWhole;
    let of = |choices: &str| format!(r#"{{"id":"x","choices":{choices}}}"#);
    let call = |call: &str| of(&format!(r#"[{{"message":{{"tool_calls":[{call}]}},"finish_reason":"tool_calls"}}]"#));
    is_same(wire, &call(r#"{"id":"a","custom":null,"function":{"name":"yes","arguments":"{\"Name\":1}"}}"#));
    is_same(wire, &call(r#"{"id":"a","type":"","function":{"name":"yes"}}"#));
    is_same(wire, &of(r#"[{"index":0,"message":{"content":"x","tool_calls":null}}]"#));
    for bad in BAD_CALLS {
        is_broken(wire, &call(bad));
    }
    for choices in [
        "{}",
        r#"["evil"]"#,
        r#"[{"message":["evil"]}]"#,
        r#"[{"message":{"tool_calls":{"0":"evil"}}}]"#,
        r#"[{"message":{"content":["evil"]}}]"#,
        r#"[{"delta":{"tool_calls":[{"function":{"name":"evil"}}]}}]"#,
        r#"[{"message":{},"Message":{"tool_calls":[{"function":{"name":"evil"}}]}}]"#,
        r#"[{"index":0,"message":{}},{"index":0,"message":{"content":"evil"}}]"#,
        r#"[{"index":0,"message":{}},{"index":1,"message":{"content":"evil"}}]"#,
        r#"[{"index":1,"message":{"content":"evil"}}]"#,
        r#"[],"CHOICES":[{"message":{"content":"evil"}}]"#,
    ] {
        is_broken(wire, &of(choices));
    }
    let twice = played(wire, &call(r#"{"id":"a","function":{"name":"evil","arguments":"{\"a\":1,\"a\":2}"}}"#));
    assert!(twice.sent.contains("was refused"), "{}", twice.sent);
    assert_eq!(twice.unread, ["evil"]);
}

#[test]
fn arguments_are_put_where_there_were_none() {
    let call = r#"{"id":"x","choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"change"}}]},"finish_reason":"tool_calls"}]}"#;
    let sent = played(Wire::OpenAiWhole, call).sent;
    assert!(sent.contains(r#"{"arguments":"{\"safe\":true}","name":"change"}"#), "{sent}");
    let event = call.replace("message", "delta");
    let sent = played(Wire::OpenAiStream, &format!("data: {event}\n\ndata: [DONE]\n\n")).sent;
    assert!(sent.contains(r#"{"arguments":"{\"safe\":true}","name":"change"}"#), "{sent}");
}

fn chunk(choices: &str) -> String {
    format!("data: {{\"id\":\"x\",\"choices\":{choices}}}\n\n")
}

fn part(call: &str) -> String {
    chunk(&format!(r#"[{{"index":0,"delta":{{"tool_calls":[{call}]}}}}]"#))
}

fn done() -> String {
    chunk(r#"[{"index":0,"delta":{},"finish_reason":"tool_calls"}]"#) + "data: [DONE]\n\n"
}

#[test]
fn chunks_of_openai() {
    let wire = Wire::OpenAiStream;
    let first = r#"{"index":0,"id":"a","type":"function","function":{"name":"yes","arguments":""}}"#;
    let same = r#"{"index":0,"id":"a","type":"function","custom":null,"function":{"name":"yes","arguments":"{}"}}"#;
    let bare = r#"{"index":0,"id":"","type":"","function":{"name":"","arguments":" "}}"#;
    is_same(wire, &(part(first) + &part(same) + &part(bare) + &done()));
    for bad in BAD_CALLS {
        is_broken(wire, &(part(bad) + &done()));
    }
    for later in [
        r#"{"index":0,"custom":{"input":"evil"}}"#,
        r#"{"index":0,"type":"custom"}"#,
        r#"{"index":0,"function":{"name":"evil"}}"#,
        r#"{"index":0,"id":"evil"}"#,
    ] {
        is_broken(wire, &(part(first) + &part(later) + &done()));
    }
    for choices in [
        r#"{"0":"evil"}"#,
        r#"[{"index":"0","delta":{"content":"evil"}}]"#,
        r#"[{"index":null,"delta":{"content":"evil"}}]"#,
        r#"[{"index":1,"delta":{"content":"evil"}}]"#,
        r#"[{"index":0,"delta":{}},{"index":0,"delta":{"content":"evil"}}]"#,
        r#"[{"index":0,"delta":["evil"]}]"#,
        r#"[{"index":0,"delta":{"tool_calls":{"name":"evil"}}}]"#,
        r#"[{"index":0,"delta":{"content":["evil"]}}]"#,
        r#"[{"index":0,"delta":{},"message":{"tool_calls":[{"function":{"name":"evil"}}]}}]"#,
        r#"[{"index":0,"delta":{"Tool_Calls":[{"function":{"name":"evil"}}]}}]"#,
    ] {
        is_broken(wire, &(chunk(choices) + &done()));
    }
}

#[test]
fn what_else_a_chunk_says_stays() {
    // Of two choices one has a call that is refused, and the other has text.
    let both = r#"[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"no","arguments":"{}"}}]}},{"index":1,"delta":{"content":"stays"}}]"#;
    let answer = chunk(both) + &done();
    let mut machine = pintle_doors::Wire::OpenAi
        .answer(AnswerTo { streams: true, choices: 2, ..AnswerTo::default() }, DenyMode::Answer);
    machine.feed(answer.as_bytes());
    machine.end();
    let mut sent = String::new();
    while let Some(step) = machine.next() {
        match step {
            pintle_doors::answer::AnswerStep::Send(bytes) => sent += &String::from_utf8(bytes).unwrap(),
            pintle_doors::answer::AnswerStep::Rule(_) => {
                machine.rule(pintle_doors::answer::CallRuling::Denied("not here".into()));
            }
            pintle_doors::answer::AnswerStep::Done(_) => break,
            step @ (pintle_doors::answer::AnswerStep::GoOn(_)
            | pintle_doors::answer::AnswerStep::Unread { .. }
            | pintle_doors::answer::AnswerStep::Broken(_)) => {
                panic!("{step:?}")
            }
        }
    }
    assert!(sent.contains("stays") && !sent.contains(r#""name":"no""#), "{sent}");
}

#[test]
fn changed_arguments_stand_in_the_first_part() {
    // The name comes last.
    let parts = [
        r#"{"index":0,"id":"a","function":{"arguments":"{\"n\""}}"#,
        r#"{"index":0,"function":{"arguments":":1}"}}"#,
        r#"{"index":0,"function":{"name":"change"}}"#,
    ];
    let answer: String = parts.iter().map(|call| part(call)).collect::<String>() + &done();
    let sent = played(Wire::OpenAiStream, &answer).sent;
    assert_eq!(sent.matches("safe").count(), 1, "{sent}");
    assert!(sent.find("safe") < sent.find(r#""arguments":"""#), "{sent}");
}

#[test]
fn what_is_said_is_said_of_all_choices() {
    let choice = |own: &str, index: u64, text: &str| {
        format!(r#"{{"index":{index},"{own}":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}"#)
    };
    let both = |own: &str| chunk(&format!("[{},{}]", choice(own, 0, "first"), choice(own, 1, "second")));
    let whole = both("message").trim_start_matches("data: ").to_owned();
    for (streams, answer) in [(true, both("delta") + "data: [DONE]\n\n"), (false, whole)] {
        let to = AnswerTo { streams, choices: 2, ..AnswerTo::default() };
        let mut machine = pintle_doors::Wire::OpenAi.answer(to, DenyMode::Answer);
        machine.feed(answer.as_bytes());
        machine.end();
        while machine.next().is_some_and(|step| !matches!(step, pintle_doors::answer::AnswerStep::Done(_))) {}
        assert_eq!(machine.said(), "first\n\nsecond", "{streams}");
    }
}
