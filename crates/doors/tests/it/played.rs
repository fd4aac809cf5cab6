//! Plays answers through a machine.

use pintle_domain::json::{Value, json};
use pintle_doors::answer::{AnswerMachine, AnswerStep, AnswerTo, CallRuling, DenyMode, Exchange, WantedCall};

/// A machine that reads answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wire {
    AnthropicStream,
    AnthropicWhole,
    OpenAiStream,
    OpenAiWhole,
    ResponsesStream,
    ResponsesWhole,
    GeminiStream,
    GeminiWhole,
}

impl Wire {
    pub(crate) const ALL: [Self; 8] = [
        Self::AnthropicStream,
        Self::AnthropicWhole,
        Self::OpenAiStream,
        Self::OpenAiWhole,
        Self::ResponsesStream,
        Self::ResponsesWhole,
        Self::GeminiStream,
        Self::GeminiWhole,
    ];

    /// The vendor whose it is.
    pub(crate) const fn vendor(self) -> pintle_doors::Wire {
        match self {
            Self::AnthropicStream | Self::AnthropicWhole => pintle_doors::Wire::Anthropic,
            Self::OpenAiStream | Self::OpenAiWhole => pintle_doors::Wire::OpenAi,
            Self::ResponsesStream | Self::ResponsesWhole => pintle_doors::Wire::Responses,
            Self::GeminiStream | Self::GeminiWhole => pintle_doors::Wire::Gemini,
        }
    }

    /// Whether it comes as events.
    pub(crate) const fn streams(self) -> bool {
        matches!(self, Self::AnthropicStream | Self::OpenAiStream | Self::ResponsesStream | Self::GeminiStream)
    }

    pub(crate) fn answer(self, mode: DenyMode) -> Box<dyn AnswerMachine> {
        self.vendor().answer(AnswerTo { streams: self.streams(), ..AnswerTo::default() }, mode)
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
                    let input = pintle_domain::json::parse(arguments).unwrap();
                    content.push(json!({"type": "tool_use", "id": *id, "name": *name, "input": input}));
                }
                let stop = if calls.is_empty() { "end_turn" } else { "tool_use" };
                json!({
                    "id": id, "type": "message", "role": "assistant", "model": "m", "content": content,
                    "stop_reason": stop, "usage": {"input_tokens": 10, "output_tokens": 5}
                })
                .to_string()
            }
            Self::ResponsesStream => responses_stream(id, text, calls),
            Self::ResponsesWhole => response(id, &response_items(id, text, calls)).to_string(),
            Self::GeminiStream => gemini_stream(id, text, calls),
            Self::GeminiWhole => {
                let said = (!text.is_empty()).then(|| json!({"text": text}));
                let parts: Vec<Value> = said.into_iter().chain(gemini_calls(calls)).collect();
                gemini(id, &parts, true).to_string()
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

fn response(id: &str, items: &[Value]) -> Value {
    json!({
        "id": id, "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": items,
        "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 1}, "output_tokens": 5, "total_tokens": 15}
    })
}

fn response_items(id: &str, text: &str, calls: &[(&str, &str, &str)]) -> Vec<Value> {
    let mut items = Vec::new();
    if !text.is_empty() {
        let part = json!({"type": "output_text", "text": text, "annotations": []});
        let id = format!("msg_{id}");
        items.push(json!({"id": id, "type": "message", "status": "completed", "role": "assistant", "content": [part]}));
    }
    for (id, name, arguments) in calls {
        items.push(json!({
            "id": format!("fc_{id}"), "type": "function_call", "status": "completed", "call_id": *id, "name": *name,
            "arguments": *arguments
        }));
    }
    items
}

fn responses_stream(id: &str, text: &str, calls: &[(&str, &str, &str)]) -> String {
    let (mut all, mut number) = (String::new(), 0_u64);
    let mut say = |name: &str, data: Value| {
        let name = format!("response.{name}");
        let mut whole = json!({"type": name.as_str(), "sequence_number": number});
        whole.as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
        number += 1;
        all += &event(&name, &whole);
    };
    let items = response_items(id, text, calls);
    let mut begun = response(id, &[]);
    begun["status"] = "in_progress".into();
    begun["usage"] = Value::Null;
    say("created", json!({"response": begun.clone()}));
    say("in_progress", json!({"response": begun}));
    for (index, item) in items.iter().enumerate() {
        let (index, own) = (index as u64, item["id"].clone());
        let mut begun = item.clone();
        begun["status"] = "in_progress".into();
        if item["type"] == "message" {
            begun["content"] = json!([]);
            say("output_item.added", json!({"output_index": index, "item": begun}));
            let mut part = |name: &str, member: &str, value: Value| {
                say(name, json!({"item_id": own.clone(), "output_index": index, "content_index": 0, member: value}));
            };
            part("content_part.added", "part", json!({"type": "output_text", "text": "", "annotations": []}));
            let (first, second) = text.split_at(text.len() / 2);
            part("output_text.delta", "delta", first.into());
            part("output_text.delta", "delta", second.into());
            part("output_text.done", "text", text.into());
            part("content_part.done", "part", item["content"][0].clone());
        } else {
            begun["arguments"] = "".into();
            say("output_item.added", json!({"output_index": index, "item": begun}));
            let whole = item["arguments"].as_str().unwrap().to_owned();
            let (first, second) = whole.split_at(whole.len() / 2);
            for part in [first, second] {
                let data = json!({"item_id": own.clone(), "output_index": index, "delta": part});
                say("function_call_arguments.delta", data);
            }
            let data = json!({"item_id": own.clone(), "output_index": index, "arguments": whole});
            say("function_call_arguments.done", data);
        }
        say("output_item.done", json!({"output_index": index, "item": item.clone()}));
    }
    say("completed", json!({"response": response(id, &items)}));
    all
}

fn gemini(id: &str, parts: &[Value], ends: bool) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if ends {
        candidate["finishReason"] = "STOP".into();
    }
    json!({
        "candidates": [candidate], "modelVersion": "m", "responseId": id,
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    })
}

fn gemini_calls(calls: &[(&str, &str, &str)]) -> Vec<Value> {
    let call = |(id, name, arguments): &(&str, &str, &str)| {
        let args = pintle_domain::json::parse(arguments).unwrap();
        json!({"functionCall": {"id": *id, "name": *name, "args": args}, "thoughtSignature": "x"})
    };
    calls.iter().map(call).collect()
}

fn gemini_stream(id: &str, text: &str, calls: &[(&str, &str, &str)]) -> String {
    let mut all = String::new();
    let mut chunk = |parts: &[Value], ends| all += &format!("data: {}\r\n\r\n", gemini(id, parts, ends));
    if !text.is_empty() {
        let (first, second) = text.split_at(text.len() / 2);
        chunk(&[json!({"text": first})], false);
        chunk(&[json!({"text": second})], false);
    }
    for call in gemini_calls(calls) {
        chunk(&[call], false);
    }
    chunk(&[json!({"text": ""})], true);
    all
}

/// What came of it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Played {
    pub(crate) sent: String,
    pub(crate) went_on: Vec<Vec<String>>,
    pub(crate) exchange: Option<Exchange>,
    pub(crate) broken: Option<String>,
    /// The calls whose arguments cannot be read.
    pub(crate) unread: Vec<String>,
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
            Some(AnswerStep::Unread { name, .. }) => played.unread.push(name),
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
        Wire::AnthropicWhole | Wire::OpenAiWhole | Wire::ResponsesWhole | Wire::GeminiWhole => {
            vec![pintle_domain::json::parse(sent).unwrap()]
        }
        Wire::AnthropicStream | Wire::OpenAiStream | Wire::ResponsesStream | Wire::GeminiStream => {
            let data = sent.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
            data.map(|data| pintle_domain::json::parse(data).unwrap()).collect()
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
            Wire::ResponsesWhole => whole_response(event, &mut read),
            Wire::ResponsesStream => {}
            Wire::GeminiStream | Wire::GeminiWhole => gemini_event(event, &mut read),
        }
    }
    if wire == Wire::ResponsesStream {
        response_events(&events, &mut read);
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

/// Reads an answer as its end repeats it.
fn whole_response(response: &Value, read: &mut Read) {
    read.id = string(response, "/id");
    read.tokens = (number(response, "/usage/input_tokens"), number(response, "/usage/output_tokens"));
    for item in response["output"].as_array().unwrap() {
        match item["type"].as_str().unwrap() {
            "message" => read.text += &string(item, "/content/0/text"),
            "function_call" => {
                read.calls.push((string(item, "/call_id"), string(item, "/name"), string(item, "/arguments")));
            }
            _ => {}
        }
    }
}

/// Reads all events: what is begun, grown, repeated and ended is the same, whichever of them a client takes.
fn response_events(events: &[Value], read: &mut Read) {
    let (mut grown, mut repeated, mut ended): (Vec<Value>, Vec<String>, Vec<Value>) = Default::default();
    for (number, event) in events.iter().enumerate() {
        let kind = event["type"].as_str().unwrap();
        if kind == "error" {
            return;
        }
        assert_eq!(event["sequence_number"].as_u64(), Some(number as u64), "numbers go on");
        let place = event.pointer("/output_index").and_then(Value::as_u64).map(|place| place as usize);
        let delta = |grown: &mut Vec<Value>, path: &[&str]| {
            let mut at = &mut grown[place.unwrap()];
            for name in path {
                at = &mut at[*name];
            }
            let whole = format!("{}{}", at.as_str().unwrap_or_default(), string(event, "/delta"));
            *at = whole.into();
        };
        match kind {
            "response.created" => read.id = string(event, "/response/id"),
            "response.output_item.added" => {
                assert_eq!(place, Some(grown.len()), "indices go on");
                grown.push(event["item"].clone());
                repeated.push(String::new());
            }
            "response.output_text.delta" => delta(&mut grown, &["said"]),
            "response.function_call_arguments.delta" => delta(&mut grown, &["arguments"]),
            "response.function_call_arguments.done" => repeated[place.unwrap()] = string(event, "/arguments"),
            "response.output_item.done" => {
                let (item, grown) = (&event["item"], &grown[place.unwrap()]);
                match item["type"].as_str().unwrap() {
                    "message" => assert_eq!(item["content"][0]["text"], grown["said"]),
                    _ => {
                        assert_eq!(item["arguments"], grown["arguments"]);
                        assert_eq!(item["arguments"], repeated[place.unwrap()].as_str());
                    }
                }
                ended.push(item.clone());
            }
            "response.completed" => {
                assert_eq!(string(event, "/response/id"), read.id, "one id");
                assert_eq!(event["response"]["output"], Value::from(ended.clone()));
                whole_response(&event["response"], read);
            }
            _ => {}
        }
    }
}

fn gemini_event(event: &Value, read: &mut Read) {
    if event.pointer("/error").is_some() {
        return;
    }
    let id = string(event, "/responseId");
    assert!(read.id.is_empty() || read.id == id, "one id");
    read.id = id;
    read.tokens =
        (number(event, "/usageMetadata/promptTokenCount"), number(event, "/usageMetadata/candidatesTokenCount"));
    for part in event["candidates"][0]["content"]["parts"].as_array().unwrap() {
        read.text += &string(part, "/text");
        if let Some(call) = part.pointer("/functionCall") {
            read.calls.push((string(call, "/id"), string(call, "/name"), call["args"].to_string()));
        }
    }
}
