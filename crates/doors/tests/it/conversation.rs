//! Whole conversations: what the model is sent in one request stands in the next one, in the same bytes.

use jiff::Timestamp;
use pintle_domain::json::{Value, json};
use pintle_doors::answer::DenyMode;
use pintle_doors::keeper::{Keeper, KeptText, put_back, result_key, with_messages};
use pintle_doors::request::SeenRequest;
use pintle_doors::spans::Edits;
use proptest::prelude::*;

use crate::played::{Read, Wire, play, read, whole};

/// A client that keeps its conversation as vendors' libraries do.
struct Client {
    wire: Wire,
    messages: Vec<Value>,
}

impl Client {
    fn is_anthropic(&self) -> bool {
        self.wire.vendor() == pintle_doors::Wire::Anthropic
    }

    fn read(&self, body: String) -> SeenRequest {
        self.wire.vendor().read(body).unwrap_or_else(|error| panic!("{error}"))
    }

    fn body(&self) -> String {
        let name = match self.wire.vendor() {
            pintle_doors::Wire::Responses => "input",
            pintle_doors::Wire::Gemini => "contents",
            pintle_doors::Wire::Anthropic | pintle_doors::Wire::OpenAi => "messages",
        };
        json!({"model": "m", name: self.messages.clone()}).to_string()
    }

    /// Takes the items of an answer over, as they are or as a client keeps them that knows no ids of items.
    fn hear_items(&mut self, heard: &Read, items: &Value) {
        for item in items.as_array().unwrap() {
            let mut item = item.clone();
            if self.messages.len().is_multiple_of(2) {
                item.as_object_mut().unwrap().shift_remove("id");
            }
            self.messages.push(item);
        }
        for (id, _, _) in &heard.calls {
            let output = format!("key=hunter2 of {id}");
            self.messages.push(json!({"type": "function_call_output", "call_id": id.as_str(), "output": output}));
        }
    }

    /// Takes the parts of an answer over, as they came or with all texts as one.
    fn hear_parts(&mut self, heard: &Read, parts: &Value) {
        let mut parts = parts.as_array().unwrap().clone();
        if self.messages.len() % 4 == 1 {
            parts.retain(|part| part.pointer("/text").is_none());
            parts.insert(0, json!({"text": heard.text.as_str()}));
        }
        self.messages.push(json!({"role": "model", "parts": parts}));
        let result = |(id, name, _): &(String, String, String)| {
            let response = json!({"output": format!("key=hunter2 of {id}")});
            json!({"functionResponse": {"id": id.as_str(), "name": name.as_str(), "response": response}})
        };
        if !heard.calls.is_empty() {
            let results: Vec<Value> = heard.calls.iter().map(result).collect();
            self.messages.push(json!({"role": "user", "parts": results}));
        }
    }

    /// Says something, if the model is to be asked.
    fn say(&mut self, text: &str) {
        let last = self.messages.last().and_then(|last| last["role"].as_str());
        if last.is_some_and(|role| !matches!(role, "assistant" | "model")) || self.is_tool_last() {
            return;
        }
        self.messages.push(match self.wire.vendor() {
            pintle_doors::Wire::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
            pintle_doors::Wire::Anthropic | pintle_doors::Wire::OpenAi | pintle_doors::Wire::Responses => {
                json!({"role": "user", "content": text})
            }
        });
    }

    /// Whether the last item is the output of a call, which has no role.
    fn is_tool_last(&self) -> bool {
        self.messages.last().is_some_and(|last| last["type"] == "function_call_output")
    }

    /// Takes an answer over, and what its calls brought.
    fn hear(&mut self, heard: &Read, parts: Option<&Value>) {
        let calls = &heard.calls;
        match (self.wire.vendor(), parts) {
            (pintle_doors::Wire::Responses, Some(items)) => return self.hear_items(heard, items),
            (pintle_doors::Wire::Gemini, Some(parts)) => return self.hear_parts(heard, parts),
            (_, Some(_) | None) => {}
        }
        let message = match self.is_anthropic() {
            true => {
                let text = |text: &str| json!({"type": "text", "text": text});
                let call = |(id, name, arguments): &(String, String, String)| {
                    let input = pintle_domain::json::parse(arguments).unwrap();
                    json!({"type": "tool_use", "id": id.as_str(), "name": name.as_str(), "input": input})
                };
                let own: Vec<Value> = std::iter::once(text(&heard.text))
                    .filter(|_| !heard.text.is_empty())
                    .chain(calls.iter().map(call))
                    .collect();
                let content = parts.cloned().unwrap_or_else(|| own.into());
                json!({"role": "assistant", "content": content})
            }
            false => {
                let call = |(id, name, arguments): &(String, String, String)| {
                    let function = json!({"name": name.as_str(), "arguments": arguments.as_str()});
                    json!({"id": id.as_str(), "type": "function", "function": function})
                };
                let content = if heard.text.is_empty() { Value::Null } else { heard.text.as_str().into() };
                let mut message = json!({"role": "assistant", "content": content});
                if !calls.is_empty() {
                    let calls: Vec<Value> = calls.iter().map(call).collect();
                    message.as_object_mut().unwrap().insert("tool_calls".into(), calls.into());
                }
                message
            }
        };
        self.messages.push(message);
        let result = |id: &str| format!("key=hunter2 of {id}");
        match self.is_anthropic() {
            true if !calls.is_empty() => {
                let result = |(id, _, _): &(String, String, String)| json!({"type": "tool_result", "tool_use_id": id.as_str(), "content": result(id)});
                let results: Vec<Value> = calls.iter().map(result).collect();
                self.messages.push(json!({"role": "user", "content": results}));
            }
            true => {}
            false => {
                let result = |(id, _, _): &(String, String, String)| json!({"role": "tool", "tool_call_id": id.as_str(), "content": result(id)});
                self.messages.extend(calls.iter().map(result));
            }
        }
    }
}

/// The parts that a client puts together of the events of a message.
fn parts_of(wire: Wire, sent: &str) -> Option<Value> {
    match wire {
        Wire::AnthropicWhole => Some(pintle_domain::json::parse(sent).unwrap()["content"].clone()),
        Wire::AnthropicStream => {
            let mut parts: Vec<Value> = Vec::new();
            let mut json = String::new();
            for data in sent.lines().filter_map(|line| line.strip_prefix("data: ")) {
                let event = pintle_domain::json::parse(data).unwrap();
                match event["type"].as_str().unwrap() {
                    "content_block_start" => {
                        assert_eq!(event["index"].as_u64(), Some(parts.len() as u64), "indices go on");
                        json.clear();
                        parts.push(event["content_block"].clone());
                    }
                    "content_block_delta" => {
                        let part = parts.last_mut().unwrap().as_object_mut().unwrap();
                        if let Some(text) = event.pointer("/delta/text").and_then(Value::as_str) {
                            let whole = format!("{}{text}", part["text"].as_str().unwrap());
                            part.insert("text".into(), whole.into());
                        }
                        if let Some(more) = event.pointer("/delta/partial_json").and_then(Value::as_str) {
                            json += more;
                        }
                    }
                    "content_block_stop" if !json.is_empty() => {
                        let input = pintle_domain::json::parse(&json).unwrap();
                        parts.last_mut().unwrap().as_object_mut().unwrap().insert("input".into(), input);
                    }
                    _ => {}
                }
            }
            Some(parts.into())
        }
        Wire::OpenAiStream | Wire::OpenAiWhole => None,
        Wire::GeminiWhole => {
            Some(pintle_domain::json::parse(sent).unwrap()["candidates"][0]["content"]["parts"].clone())
        }
        Wire::GeminiStream => {
            let events = sent.lines().filter_map(|line| line.strip_prefix("data: "));
            let parts = |data: &str| {
                let event = pintle_domain::json::parse(data).unwrap();
                event["candidates"][0]["content"]["parts"].as_array().unwrap().clone()
            };
            Some(events.flat_map(parts).collect::<Vec<Value>>().into())
        }
        Wire::ResponsesWhole => Some(pintle_domain::json::parse(sent).unwrap()["output"].clone()),
        Wire::ResponsesStream => {
            let end = sent.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap();
            Some(pintle_domain::json::parse(end).unwrap()["response"]["output"].clone())
        }
    }
}

/// The conversation of a body without its end, which is what may grow.
fn prefix(body: &str) -> &str {
    body.strip_suffix("]}").unwrap()
}

/// Plays `rounds` of a conversation; says what was sent to the model.
fn converse(wire: Wire, rounds: &[Vec<&str>]) -> Vec<String> {
    let mut client = Client { wire, messages: Vec::new() };
    let (mut keeper, mut sent) = (Keeper::default(), Vec::new());
    keeper.visit("s", 0, Timestamp::UNIX_EPOCH);
    let how = wire.vendor().put_back();
    let mut calls = 0_usize;
    for (number, wanted) in rounds.iter().enumerate() {
        client.say(&format!("prompt {number}"));
        // In: what was said before is put back, results are redacted.
        let request = client.read(client.body());
        let mut edits = Edits::default();
        put_back(&request, &keeper.exchanges("s"), how, &mut edits);
        for result in request.messages.iter().flat_map(|message| &message.results) {
            let key = result_key(&result.call, &result.text);
            let kept =
                keeper.text("s", &key).unwrap_or_else(|| KeptText::Changed(result.text.replace("hunter2", "***")));
            keeper.keep_text("s", key, kept.clone());
            if let KeptText::Changed(text) = kept {
                SeenRequest::result(&mut edits, result, &text);
            }
        }
        let mut body = edits.apply(&request.document.text);
        assert!(!body.contains("hunter2"));
        sent.push(body.clone());
        // Out: the calls of the first answer, then one that may run.
        let mut answers = Vec::new();
        for (place, names) in [wanted.as_slice(), &["yes"]].into_iter().enumerate() {
            let ids: Vec<String> = (0..names.len()).map(|place| format!("call{}", calls + place)).collect();
            calls += names.len();
            let made: Vec<_> = names.iter().zip(&ids).map(|(name, id)| (id.as_str(), *name, "{\"n\":1}")).collect();
            answers.push(wire.written(&format!("r{number}-{place}"), &format!("say {number}.{place}"), &made));
        }
        let played = play(wire, DenyMode::Answer, &answers, whole);
        for messages in &played.went_on {
            body = with_messages(&client.read(body), messages);
            sent.push(body.clone());
        }
        if let Some(exchange) = played.exchange {
            keeper.keep_exchange("s", exchange);
        }
        let heard = read(wire, &played.sent);
        client.hear(&heard, parts_of(wire, &played.sent).as_ref());
    }
    sent
}

fn check(wire: Wire, rounds: &[Vec<&str>]) {
    let sent = converse(wire, rounds);
    for (earlier, later) in sent.iter().zip(&sent[1..]) {
        assert!(later.starts_with(prefix(earlier)), "{wire:?}\n{earlier}\n{later}");
        let read = Client { wire, messages: Vec::new() }.read(later.clone());
        // Every call has its result, and the other way round.
        let calls: Vec<&String> = read.messages.iter().flat_map(|it| &it.calls).map(|call| &call.id).collect();
        let results: Vec<&String> = read.messages.iter().flat_map(|it| &it.results).map(|it| &it.call).collect();
        // Without ids the model finds by their order which is of which; items stand where the model put them.
        let is_of_items = wire.vendor() == pintle_doors::Wire::Responses;
        assert!(is_of_items || calls == results, "{wire:?}: {calls:?} and {results:?}");
        let sorted = |mut all: Vec<&String>| {
            all.sort();
            all.into_iter().cloned().collect::<Vec<_>>()
        };
        assert_eq!(sorted(calls), sorted(results), "{wire:?} {later}");
    }
}

#[test]
fn twenty_rounds_keep_a_growing_common_prefix() {
    let kinds: [&[&str]; 5] = [&["no"], &["yes", "no"], &[], &["change"], &["no", "yes", "no", "also"]];
    let rounds: Vec<Vec<&str>> = (0..20).map(|round| kinds[round % kinds.len()].to_vec()).collect();
    for wire in Wire::ALL {
        check(wire, &rounds);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_conversation_keeps_its_prefix(
        rounds in prop::collection::vec(prop::collection::vec(prop::sample::select(vec!["no", "yes", "change"]), 0..4), 1..8)
    ) {
        for wire in Wire::ALL {
            check(wire, &rounds);
        }
    }
}
