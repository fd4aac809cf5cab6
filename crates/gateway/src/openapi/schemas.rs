//! The shapes of bodies.

use pintle_domain::json::{Object, Value, json};

use crate::wire::{Member, anthropic, openai};

/// Every schema, by its name.
pub(super) fn all() -> Value {
    let groups = [common(), of_teams(), of_openai(), of_anthropic()];
    let all: Object = groups.into_iter().filter_map(|group| group.as_object().cloned()).flatten().collect();
    Value::Object(all)
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn common() -> Value {
    json!({
        "Health": closed(json!({ "status": { "const": "ok" } })),
        "Ready": closed(json!({ "store": { "enum": ["ok", "not ok"] }, "serving": { "enum": ["ok", "not ok"] } })),
        "Document": { "type": "object", "required": ["openapi", "info", "paths"] },
        "VendorRequest": { "type": "object" },
        "VendorError": { "type": "object", "required": ["error"] },
        "Refusal": closed(json!({ "error": closed(json!({ "code": text(), "message": text() })) })),
        "OpenAiError": closed(json!({
            "error": closed(json!({
                "message": text(), "type": text(), "param": { "type": "null" }, "code": text(),
            })),
        })),
        "AnthropicError": closed(json!({
            "type": { "const": "error" },
            "error": closed(json!({ "type": text(), "message": text(), "code": text() })),
        })),
        "ExchangeRequest": closed(json!({ "code": text() })),
        "SignInRequest": {
            "type": "object",
            "required": ["token"],
            "properties": { "token": text(), "userId": text(), "tenant": text() },
            "additionalProperties": false,
        },
        "SignOutRequest": closed(json!({})),
        "SwitchRequest": closed(json!({ "tenant": text() })),
        "ConsoleSession": closed(json!({
            "sessionKey": text(), "sessionId": text(), "role": { "enum": ["viewer", "operator", "admin", "owner"] },
            "user_id": text(), "tenant_id": text(), "tenant_slug": text(), "tenant_name": text(),
            "expiresAt": { "type": ["string", "null"] },
        })),
        "Done": closed(json!({ "ok": { "const": true } })),
        "Models": closed(json!({
            "object": { "const": "list" },
            "data": { "type": "array", "items": { "$ref": "#/components/schemas/Model" } },
            "has_more": { "type": "boolean" },
            "first_id": { "type": ["string", "null"] },
            "last_id": { "type": ["string", "null"] },
        })),
        "Model": closed(json!({
            "id": text(), "object": { "const": "model" }, "created": count(), "owned_by": text(),
            "type": { "const": "model" }, "display_name": text(), "created_at": text(),
        })),
        "Media": closed(json!({
            "id": { "type": "string", "pattern": "^[0-9a-f]{32}$" },
            "object": { "const": "media" },
            "reference": { "type": "string", "pattern": "^media://[0-9a-f]{32}$" },
            "content_type": text(), "file_name": text(), "size_bytes": count(),
            "sha256": { "type": "string", "pattern": "^[0-9a-f]{64}$" }, "created_at": text(),
        })),
        "Pintle": closed(json!({
            "user": closed(json!({ "content": text(), "sig": text() })),
            "hooks": { "type": "array", "items": { "$ref": "#/components/schemas/Hook" } },
        })),
        "Hook": closed(json!({
            "name": text(), "role": { "enum": ["system", "user", "assistant"] }, "content": text(), "skill": text(),
            "timing": text(), "id": text(), "sig": text(), "at": count(),
        })),
    })
}

fn of_teams() -> Value {
    let maybe = || json!({ "type": ["string", "null"] });
    let record = closed(json!({
        "id": text(),
        "at": text(),
        "rule": closed(json!({ "id": text(), "name": text(), "version": count(), "handler": text() })),
        "place": closed(json!({
            "event": text(), "event_id": text(), "session": maybe(), "turn": maybe(), "tool": maybe(), "call": maybe(),
            "input_hash": maybe(),
        })),
        "end": closed(json!({
            "decision": text(), "reason": maybe(), "error": maybe(), "duration_ms": count(), "retry": count(),
            "metadata": { "type": "object" },
        })),
    }));
    json!({
        "SignedStatement": closed(json!({
            "format": { "const": 1 }, "signer": text(), "signature": text(), "signed": text(),
        })),
        "TeamRecords": closed(json!({
            "machine": closed(json!({ "id": text(), "name": text() })),
            "records": { "type": "array", "items": record },
        })),
        "TakenRecords": closed(json!({
            "taken": count(),
            "refused": { "type": "array", "items": closed(json!({ "id": {}, "why": text() })) },
        })),
    })
}

fn of_openai() -> Value {
    json!({
        "ChatRequest": request(openai::MEMBERS, &[("model", text()), ("messages", messages())]),
        "ChatCompletion": closed(json!({
            "id": text(), "object": { "const": "chat.completion" }, "created": count(), "model": text(),
            "choices": { "type": "array", "items": closed(json!({
                "index": count(),
                "message": closed(json!({
                    "role": { "const": "assistant" }, "content": text(), "refusal": { "type": "null" },
                })),
                "logprobs": { "type": "null" },
                "finish_reason": { "enum": ["stop", "content_filter", "length"] },
            })) },
            "usage": usage(["prompt_tokens", "completion_tokens", "total_tokens"].as_slice()),
            "pintle": { "$ref": "#/components/schemas/Pintle" },
        })),
        "ChatChunk": {
            "type": "object",
            "required": ["id", "object", "created", "model", "choices"],
            "properties": {
                "id": text(), "object": { "const": "chat.completion.chunk" }, "created": count(), "model": text(),
                "choices": { "type": "array", "items": closed(json!({
                    "index": count(),
                    "delta": { "type": "object", "properties": { "role": { "const": "assistant" }, "content": text() },
                        "additionalProperties": false },
                    "logprobs": { "type": "null" },
                    "finish_reason": { "enum": ["stop", "content_filter", "length", null] },
                })) },
                "usage": usage(["prompt_tokens", "completion_tokens", "total_tokens"].as_slice()),
                "pintle": { "type": "object" },
            },
            "additionalProperties": false,
        },
    })
}

fn of_anthropic() -> Value {
    json!({
        "MessageRequest": request(anthropic::MEMBERS, &[("model", text()), ("messages", messages())]),
        "Message": closed(json!({
            "id": text(), "type": { "const": "message" }, "role": { "const": "assistant" }, "model": text(),
            "content": { "type": "array", "items": closed(json!({ "type": { "const": "text" }, "text": text() })) },
            "stop_reason": { "enum": ["end_turn", "refusal", "max_tokens"] },
            "stop_sequence": { "type": "null" },
            "usage": usage(["input_tokens", "output_tokens"].as_slice()),
            "pintle": { "$ref": "#/components/schemas/Pintle" },
        })),
        "MessageEvent": {
            "type": "object",
            "required": ["type"],
            "properties": { "type": { "enum": [
                "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
                "message_stop", "error",
            ] } },
        },
    })
}

/// An object with exactly these members.
fn closed(properties: Value) -> Value {
    let required: Vec<String> = properties.as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default();
    json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false })
}

fn usage(names: &[&str]) -> Value {
    let counts: Object =
        names.iter().map(|name| ((*name).to_owned(), json!({ "type": "integer", "minimum": 0 }))).collect();
    closed(Value::Object(counts))
}

fn messages() -> Value {
    json!({ "type": "array", "minItems": 1, "maxItems": 200, "items": { "type": "object", "required": ["role"] } })
}

/// A request with these members; `typed` ones must be there.
fn request(members: &[(&str, Member)], typed: &[(&str, Value)]) -> Value {
    let mut properties = Object::new();
    for (name, member) in members {
        let known = typed.iter().find(|(typed, _)| typed == name);
        let schema = match (known, member) {
            (Some((_, schema)), _) => schema.clone(),
            (None, Member::Read) => json!({}),
            (None, Member::Ignored) => json!({ "description": "ignored: the operator's settings of the agent count" }),
            (None, Member::OnlyDefault) => json!({ "description": "refused, but for a value that means the default" }),
        };
        properties.insert((*name).to_owned(), schema);
    }
    let required: Vec<&str> = typed.iter().map(|(name, _)| *name).collect();
    json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false })
}
