//! Plays answers through a machine.

use domain::json::{Value, json};
use pintle_doors::answer::{AnswerMachine, AnswerStep, CallRuling, DenyMode, Exchange, WantedCall};
use pintle_doors::{anthropic, openai};

/// A machine that reads answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wire {
    AnthropicStream,
    AnthropicWhole,
    OpenAiStream,
    OpenAiWhole,
}

impl Wire {
    pub(crate) const ALL: [Self; 4] =
        [Self::AnthropicStream, Self::AnthropicWhole, Self::OpenAiStream, Self::OpenAiWhole];

    pub(crate) fn answer(self, mode: DenyMode) -> Box<dyn AnswerMachine> {
        match self {
            Self::AnthropicStream => Box::new(anthropic::MessageStream::new(mode)),
            Self::AnthropicWhole => Box::new(anthropic::WholeMessage::new(mode)),
            Self::OpenAiStream => Box::new(openai::CompletionStream::new(mode)),
            Self::OpenAiWhole => Box::new(openai::WholeCompletion::new(mode)),
        }
    }

    /// An answer with `text` and `calls` as id, name and arguments.
    pub(crate) fn written(self, id: &str, text: &str, calls: &[(&str, &str, &str)]) -> String {
        match self {
            Self::AnthropicStream => anthropic_stream(id, text, calls),
            Self::AnthropicWhole => {
                let mut content = Vec::new();
                if !text.is_empty() {
                    content.push(json!({"type": "text", "text": text}));
                }
                for (id, name, arguments) in calls {
                    let input = domain::json::parse(arguments).unwrap();
                    content.push(json!({"type": "tool_use", "id": *id, "name": *name, "input": input}));
                }
                let stop = if calls.is_empty() { "end_turn" } else { "tool_use" };
                json!({
                    "id": id, "type": "message", "role": "assistant", "model": "m", "content": content,
                    "stop_reason": stop, "usage": {"input_tokens": 10, "output_tokens": 5}
                })
                .to_string()
            }
            Self::OpenAiStream => openai_stream(id, text, calls),
            Self::OpenAiWhole => {
                let call = |(id, name, arguments): &(&str, &str, &str)| json!({"id": *id, "type": "function", "function": {"name": *name, "arguments": *arguments}});
                let content = if text.is_empty() { Value::Null } else { Value::from(text) };
                let mut message = json!({"role": "assistant", "content": content});
                if !calls.is_empty() {
                    let calls: Vec<Value> = calls.iter().map(call).collect();
                    message.as_object_mut().unwrap().insert("tool_calls".into(), calls.into());
                }
                let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
                json!({
                    "id": id, "object": "chat.completion", "created": 1, "model": "m",
                    "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                    "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
                })
                .to_string()
            }
        }
    }
}

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

fn anthropic_stream(id: &str, text: &str, calls: &[(&str, &str, &str)]) -> String {
    let start = json!({"type": "message_start", "message": {
        "id": id, "type": "message", "role": "assistant", "content": [], "model": "m", "stop_reason": null,
        "usage": {"input_tokens": 10, "output_tokens": 1}
    }});
    let mut all = event("message_start", &start) + "event: ping\ndata: {\"type\": \"ping\"}\n\n";
    let mut index = 0_u64;
    let mut block = |beginning: Value, deltas: Vec<Value>| {
        let start = json!({"type": "content_block_start", "index": index, "content_block": beginning});
        all += &event("content_block_start", &start);
        for delta in deltas {
            let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
            all += &event("content_block_delta", &delta);
        }
        all += &event("content_block_stop", &json!({"type": "content_block_stop", "index": index}));
        index += 1;
    };
    if !text.is_empty() {
        let (first, second) = text.split_at(text.len() / 2);
        let delta = |text: &str| json!({"type": "text_delta", "text": text});
        block(json!({"type": "text", "text": ""}), vec![delta(first), delta(second)]);
    }
    for (id, name, arguments) in calls {
        let (first, second) = arguments.split_at(arguments.len() / 2);
        let delta = |json: &str| json!({"type": "input_json_delta", "partial_json": json});
        let beginning = json!({"type": "tool_use", "id": *id, "name": *name, "input": {}});
        block(beginning, vec![delta(""), delta(first), delta(second)]);
    }
    let stop = if calls.is_empty() { "end_turn" } else { "tool_use" };
    let end = json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}});
    all + &event("message_delta", &end) + &event("message_stop", &json!({"type": "message_stop"}))
}

fn openai_stream(id: &str, text: &str, calls: &[(&str, &str, &str)]) -> String {
    let mut all = String::new();
    let mut chunk = |delta: Value, finish: Value| {
        let chunk = json!({
            "id": id, "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]
        });
        all += &format!("data: {chunk}\n\n");
    };
    chunk(json!({"role": "assistant", "content": ""}), Value::Null);
    if !text.is_empty() {
        let (first, second) = text.split_at(text.len() / 2);
        chunk(json!({"content": first}), Value::Null);
        chunk(json!({"content": second}), Value::Null);
    }
    for (index, (id, name, arguments)) in calls.iter().enumerate() {
        let (first, second) = arguments.split_at(arguments.len() / 2);
        let index = index as u64;
        let begins = json!({
            "index": index, "id": *id, "type": "function", "function": {"name": *name, "arguments": ""}
        });
        chunk(json!({"tool_calls": [begins]}), Value::Null);
        for part in [first, second] {
            chunk(json!({"tool_calls": [{"index": index, "function": {"arguments": part}}]}), Value::Null);
        }
    }
    chunk(json!({}), if calls.is_empty() { "stop".into() } else { "tool_calls".into() });
    let usage = json!({
        "id": id, "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    });
    all + &format!("data: {usage}\n\ndata: [DONE]\n\n")
}

/// What came of it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Played {
    pub(crate) sent: String,
    pub(crate) went_on: Vec<Vec<String>>,
    pub(crate) exchange: Option<Exchange>,
    pub(crate) broken: Option<String>,
}

/// By the name of the tool: `no…` is refused, `change…` is changed, `stop…` ends it.
pub(crate) fn ruled(call: &WantedCall) -> CallRuling {
    match call.name.as_str() {
        name if name.starts_with("no") => CallRuling::Denied("not here".into()),
        name if name.starts_with("change") => {
            let mut arguments = call.arguments.clone();
            arguments.insert("safe".into(), true.into());
            CallRuling::Rewritten(arguments)
        }
        name if name.starts_with("stop") => CallRuling::Aborted("enough".into()),
        _ => CallRuling::Allowed,
    }
}

/// Plays `rounds`, each in pieces that `cut` makes of it.
pub(crate) fn play(wire: Wire, mode: DenyMode, rounds: &[String], cut: impl Fn(&[u8]) -> Vec<Vec<u8>>) -> Played {
    let mut answer = wire.answer(mode);
    let (mut played, mut sent) = (Played::default(), Vec::new());
    let mut rounds = rounds.iter();
    let mut pieces: std::collections::VecDeque<Vec<u8>> = cut(rounds.next().unwrap().as_bytes()).into();
    loop {
        match answer.next() {
            Some(AnswerStep::Send(bytes)) => sent.extend(bytes),
            Some(AnswerStep::Rule(call)) => answer.rule(ruled(&call)),
            Some(AnswerStep::GoOn(messages)) => {
                played.went_on.push(messages);
                pieces = cut(rounds.next().expect("another round").as_bytes()).into();
            }
            Some(AnswerStep::Done(exchange)) => {
                played.exchange = exchange;
                break;
            }
            Some(AnswerStep::Broken(why)) => {
                played.broken = Some(why);
                break;
            }
            None => match pieces.pop_front() {
                Some(piece) => answer.feed(&piece),
                None => answer.end(),
            },
        }
    }
    played.sent = String::from_utf8(sent).unwrap();
    played
}

/// In one piece.
pub(crate) fn whole(bytes: &[u8]) -> Vec<Vec<u8>> {
    vec![bytes.to_vec()]
}

/// What a client reads of it: text, calls as id, name and arguments, how it ends, tokens read and written.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Read {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<(String, String, String)>,
    pub(crate) stop: String,
    pub(crate) tokens: (u64, u64),
}

fn string(value: &Value, path: &str) -> String {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn number(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or_default()
}

/// Reads as clients do.
pub(crate) fn read(wire: Wire, sent: &str) -> Read {
    let mut read = Read::default();
    let events: Vec<Value> = match wire {
        Wire::AnthropicWhole | Wire::OpenAiWhole => vec![domain::json::parse(sent).unwrap()],
        Wire::AnthropicStream | Wire::OpenAiStream => {
            let data = sent.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
            data.map(|data| domain::json::parse(data).unwrap()).collect()
        }
    };
    for event in &events {
        match wire {
            Wire::AnthropicStream => anthropic_event(event, &mut read),
            Wire::AnthropicWhole => {
                for part in event["content"].as_array().unwrap() {
                    read.text += &string(part, "/text");
                    if part["type"] == "tool_use" {
                        let call = (string(part, "/id"), string(part, "/name"), part["input"].to_string());
                        read.calls.push(call);
                    }
                }
                (read.id, read.stop) = (string(event, "/id"), string(event, "/stop_reason"));
                read.tokens = (number(event, "/usage/input_tokens"), number(event, "/usage/output_tokens"));
            }
            Wire::OpenAiStream | Wire::OpenAiWhole => openai_event(event, &mut read),
        }
    }
    read
}

fn anthropic_event(event: &Value, read: &mut Read) {
    match event["type"].as_str().unwrap() {
        "message_start" => {
            assert!(read.id.is_empty(), "one beginning");
            (read.id, read.tokens.0) = (string(event, "/message/id"), number(event, "/message/usage/input_tokens"));
        }
        "content_block_start" => {
            let block = &event["content_block"];
            if block["type"] == "tool_use" {
                read.calls.push((string(block, "/id"), string(block, "/name"), String::new()));
            }
        }
        "content_block_delta" => {
            read.text += &string(event, "/delta/text");
            if let Some(call) = read.calls.last_mut() {
                call.2 += &string(event, "/delta/partial_json");
            }
        }
        "message_delta" => {
            read.stop = string(event, "/delta/stop_reason");
            read.tokens.1 = number(event, "/usage/output_tokens");
            read.tokens.0 = read.tokens.0.max(number(event, "/usage/input_tokens"));
        }
        _ => {}
    }
}

fn openai_event(event: &Value, read: &mut Read) {
    let id = string(event, "/id");
    assert!(read.id.is_empty() || read.id == id, "one id");
    read.id = id;
    if event.pointer("/usage").is_some_and(|usage| !usage.is_null()) {
        read.tokens = (number(event, "/usage/prompt_tokens"), number(event, "/usage/completion_tokens"));
    }
    let Some(choice) = event.pointer("/choices/0") else { return };
    let message = choice.pointer("/delta").or(choice.pointer("/message")).unwrap();
    read.text += &string(message, "/content");
    for (place, call) in
        message.pointer("/tool_calls").and_then(Value::as_array).unwrap_or(&Vec::new()).iter().enumerate()
    {
        let place = call.pointer("/index").and_then(Value::as_u64).map_or(place, |index| index as usize);
        if place == read.calls.len() {
            read.calls.push((string(call, "/id"), string(call, "/function/name"), String::new()));
        }
        read.calls[place].2 += &string(call, "/function/arguments");
    }
    if let Some(stop) = choice.pointer("/finish_reason").and_then(Value::as_str) {
        read.stop = stop.to_owned();
    }
}
