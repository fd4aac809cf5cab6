//! What is served over HTTP, in words for programs (OpenAPI 3.1) and for people (`docs/reference/http.md`): one table of
//! paths, and the tables of members that requests are read with. Tests hold both against live answers.

use std::fmt::Write as _;

use domain::json::{Object, Value, json};

use crate::media_type;
use crate::wire::{Member, anthropic, openai};

mod schemas;

/// One thing that can be asked for.
struct Operation {
    verb: &'static str,
    path: &'static str,
    does: &'static str,
    /// What of the body is expected: a schema, or `*` for a file.
    takes: Option<&'static str>,
    /// The statuses that are no refusals, each with its schema; `*` for what is not JSON.
    gives: &'static [(u16, &'static str)],
    /// The schema of refusals, and their statuses.
    refuses: (&'static str, &'static [u16]),
}

const TURN: &[u16] = &[400, 401, 403, 404, 408, 409, 413, 422, 429, 502, 503, 507];

/// What a door refuses, beside what the vendor does.
const DOOR: &[u16] = &[400, 401, 403, 404, 408, 413, 415, 429, 502, 503];

const OPERATIONS: &[Operation] = &[
    Operation {
        verb: "get",
        path: "/healthz",
        does: "Whether it is alive.",
        takes: None,
        gives: &[(200, "Health")],
        refuses: ("Refusal", &[403]),
    },
    Operation {
        verb: "get",
        path: "/readyz",
        does: "Whether turns can be begun: its parts, each ok or not.",
        takes: None,
        gives: &[(200, "Ready"), (503, "Ready")],
        refuses: ("Refusal", &[403]),
    },
    Operation {
        verb: "get",
        path: "/metrics",
        does: "Numbers, in the text format of Prometheus. For administrators, or for anybody at `gateway.metrics_listen`.",
        takes: None,
        gives: &[(200, "*")],
        refuses: ("OpenAiError", &[401, 403, 503]),
    },
    Operation {
        verb: "get",
        path: "/openapi.json",
        does: "This document.",
        takes: None,
        gives: &[(200, "Document")],
        refuses: ("Refusal", &[403]),
    },
    Operation {
        verb: "get",
        path: "/v1/models",
        does: "The agents that the caller may use.",
        takes: None,
        gives: &[(200, "Models")],
        refuses: ("OpenAiError", &[401, 403, 503]),
    },
    Operation {
        verb: "get",
        path: "/v1/models/{id}",
        does: "One of them.",
        takes: None,
        gives: &[(200, "Model")],
        refuses: ("OpenAiError", &[401, 403, 404, 503]),
    },
    Operation {
        verb: "post",
        path: "/v1/chat/completions",
        does: "A turn of an agent, as OpenAI's chat completions. With `stream` the answer is server-sent events, each a \
               `ChatChunk`, `[DONE]` at the end.",
        takes: Some("ChatRequest"),
        gives: &[(200, "ChatCompletion")],
        refuses: ("OpenAiError", TURN),
    },
    Operation {
        verb: "post",
        path: "/v1/messages",
        does: "A turn of an agent, as Anthropic's messages. With `stream` the answer is server-sent events, each a \
               `MessageEvent`.",
        takes: Some("MessageRequest"),
        gives: &[(200, "Message")],
        refuses: ("AnthropicError", TURN),
    },
    Operation {
        verb: "post",
        path: "/v1/media",
        does: "Takes a file in: the body is its content, `Content-Type` its type, `Content-Disposition` its name. It is \
               its user's until a session takes it, and goes with that session; after a day without one it is forgotten.",
        takes: Some("*"),
        gives: &[(201, "Media")],
        refuses: ("OpenAiError", &[400, 401, 403, 408, 413, 415, 429, 503, 507]),
    },
    Operation {
        verb: "get",
        path: "/v1/media/{id}",
        does: "Gives a file back, as an attachment.",
        takes: None,
        gives: &[(200, "*")],
        refuses: ("OpenAiError", &[401, 403, 404, 503]),
    },
    Operation {
        verb: "post",
        path: "/door/anthropic/v1/messages",
        does: "Anthropic's messages, asked through the model door: what comes back is the vendor's answer, as the hooks \
               leave it.",
        takes: Some("VendorRequest"),
        gives: &[(200, "*")],
        refuses: ("VendorError", DOOR),
    },
    Operation {
        verb: "post",
        path: "/door/anthropic/v1/messages/count_tokens",
        does: "The same, to count tokens.",
        takes: Some("VendorRequest"),
        gives: &[(200, "*")],
        refuses: ("VendorError", DOOR),
    },
    Operation {
        verb: "post",
        path: "/door/gemini/v1beta/models/{id}",
        does: "The same for Gemini: `MODEL:generateContent`, `MODEL:streamGenerateContent?alt=sse` and \
               `MODEL:countTokens`; below `/v1`, too.",
        takes: Some("VendorRequest"),
        gives: &[(200, "*")],
        refuses: ("VendorError", DOOR),
    },
    Operation {
        verb: "post",
        path: "/door/openai/v1/chat/completions",
        does: "The same for OpenAI's chat completions.",
        takes: Some("VendorRequest"),
        gives: &[(200, "*")],
        refuses: ("VendorError", DOOR),
    },
    Operation {
        verb: "post",
        path: "/door/openai/v1/responses",
        does: "The same for OpenAI's responses.",
        takes: Some("VendorRequest"),
        gives: &[(200, "*")],
        refuses: ("VendorError", DOOR),
    },
    Operation {
        verb: "get",
        path: "/door/openai/v1/models",
        does: "The models that the vendor has.",
        takes: None,
        gives: &[(200, "*")],
        refuses: ("VendorError", &[401, 403, 404, 429, 502, 503]),
    },
];

/// The document.
pub fn document() -> Value {
    let mut paths = Object::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path.to_owned()).or_insert_with(|| json!({}));
        path[operation.verb] = operation.document();
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Pintle",
            "description": "Agents behind hooks and rules, over HTTP.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "security": [{ "token": [] }, { "key": [] }, { "door": [] }, {}],
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "key": { "type": "apiKey", "in": "header", "name": "x-api-key" },
                "door": { "type": "apiKey", "in": "header", "name": "x-pintle-key" },
            },
            "schemas": schemas::all(),
        },
    })
}

impl Operation {
    fn document(&self) -> Value {
        let mut responses = Object::new();
        for (status, schema) in self.gives {
            responses.insert(status.to_string(), self.answer(*status, schema));
        }
        let (schema, statuses) = self.refuses;
        for status in statuses {
            if !responses.contains_key(&status.to_string()) {
                let refusal = json!({ "description": words(*status), "content": content(schema) });
                responses.insert(status.to_string(), refusal);
            }
        }
        let mut document = json!({ "summary": self.does, "responses": responses });
        match self.takes {
            Some("*") => {
                let types = media_type::taken().iter();
                let content: Object = types.map(|kind| ((*kind).to_owned(), json!({}))).collect();
                document["requestBody"] = json!({ "required": true, "content": content });
            }
            Some(schema) => document["requestBody"] = json!({ "required": true, "content": content(schema) }),
            None => {}
        }
        if self.path.contains("{id}") {
            let mut schema = json!({ "type": "string" });
            if self.path.starts_with("/v1/media/") {
                schema["pattern"] = json!("^[0-9a-f]{32}$");
            }
            document["parameters"] = json!([{ "name": "id", "in": "path", "required": true, "schema": schema }]);
        }
        if self.refuses.1 == TURN {
            document["parameters"] = parameters();
        }
        document
    }

    fn answer(&self, status: u16, schema: &str) -> Value {
        let content = match schema {
            "*" => json!({ "*/*": {} }),
            _ => content(schema),
        };
        let mut answer = json!({ "description": words(status), "content": content });
        if self.refuses.1 == TURN {
            answer["content"]["text/event-stream"] = json!({ "schema": { "type": "string" } });
        }
        answer
    }
}

fn content(schema: &str) -> Value {
    json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{schema}") } } })
}

/// The headers of a turn.
fn parameters() -> Value {
    let headers = HEADERS.iter().map(|(name, does)| {
        json!({ "name": name, "in": "header", "required": false, "description": does, "schema": { "type": "string" } })
    });
    Value::Array(headers.collect())
}

/// The headers that requests may have.
const HEADERS: &[(&str, &str)] = &[
    ("X-Pintle-Session", "names a conversation that Pintle keeps: only the last message counts"),
    (
        "Idempotency-Key",
        "names the request: a second one of that name joins the run of the first, or gets what came of it, for 24 hours",
    ),
    ("X-Pintle-Key", "an API key, below `/door` only; every other header with a key is the vendor's there"),
    ("X-Pintle-User", "the user in whose name it is asked; with the gateway token only"),
    ("X-Pintle-Tenant", "the tenant, by slug or id; with the gateway token only"),
];

/// What statuses mean.
const STATUSES: &[(u16, &str, &str)] = &[
    (200, "", "done"),
    (201, "", "kept"),
    (
        400,
        "`invalid_request`, `context_length_exceeded`",
        "the request is malformed, and the message names what; or the conversation is too long for the model",
    ),
    (401, "`unauthorized`", "no key, a wrong key, or a key without the right to do this"),
    (
        403,
        "`hook_blocked`, `hook_stopped`, `forbidden_origin`, `tenant_access_revoked`",
        "a gate refused the prompt, a hook stopped the turn before it began, the request is cross-origin, or the \
         tenant is not the caller's",
    ),
    (404, "`not_found`", "there is no such agent or file, or it belongs to another user"),
    (408, "`body_timeout`", "no data of the body arrived for 30 s"),
    (
        409,
        "`session_busy`, `approval_pending`, `outcome_unknown`",
        "the session is busy with another turn, a call waits for approval, or the first request of this name \
         was cut off and its outcome is unknown",
    ),
    (
        413,
        "`body_too_large`",
        "the body is longer than `gateway.max_body`, a file than 25 MiB, or a body below `/door` than 64 MiB",
    ),
    (
        415,
        "`unsupported_media_type`",
        "files of that type are not taken, nor are compressed bodies; below `/door` gzip, zstd and br are",
    ),
    (422, "`idempotency_key_reused`", "the name was already used for a different request"),
    (429, "`resource_exhausted`", "too often; `Retry-After` says when. Below `/door` also: the budget is spent"),
    (502, "`turn_failed`", "the model gave no answer, or below `/door` one that cannot be read"),
    (
        503,
        "`unavailable`, `model_rate_limited`",
        "the server is shutting down, or the store does not answer; or the model's provider limits how often it is asked, \
         and `Retry-After` has what it asks for",
    ),
    (507, "`media_quota`", "the tenant's files reach the quota `gateway.media_quota_mb`"),
];

fn words(status: u16) -> &'static str {
    STATUSES.iter().find(|(known, ..)| *known == status).map_or("", |(_, _, what)| what)
}

const HEAD: &str = "\
# HTTP

Generated from the code by `cargo xtask gen`. `GET /openapi.json` says the same to programs; [the guide](../guide/gateway.md) says what it is for.

| path | does |
|---|---|
";

/// The page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for Operation { verb, path, does, .. } in OPERATIONS {
        let _infallible = writeln!(page, "| `{} {path}` | {does} |", verb.to_uppercase());
    }
    page.push_str("| `GET /ws` | [the WebSocket](websocket.md) |\n\n## Headers\n\n| header | meaning |\n|---|---|\n");
    for (name, does) in HEADERS {
        let _infallible = writeln!(page, "| `{name}` | {does} |");
    }
    page.push_str(
        "\nEvery answer has `X-Request-Id`; those of turns `X-Pintle-Turn`, for `pintle why`, and `X-Pintle-Hook-Ms`, the \
         time that hooks took until then. Refusals have `x-should-retry`: SDKs try again by themselves, and this says \
         when that helps and does nothing twice.\n\n## Statuses\n\n| status | `code` | means |\n|---|---|---|\n",
    );
    for (status, code, what) in STATUSES {
        let _infallible = writeln!(page, "| {status} | {code} | {what} |");
    }
    page.push_str(
        "\n## Members of requests\n\n*Read*: it does what it does elsewhere. *Ignored*: it is taken, and the operator's \
         settings of the agent count. *Refused*: 400 with its name, but for a value that means the default, such as \
         `null`, `1`, `\"auto\"` or an empty list. Anything else is refused with its name.\n",
    );
    for (path, members) in [("/v1/chat/completions", openai::MEMBERS), ("/v1/messages", anthropic::MEMBERS)] {
        let _infallible = write!(page, "\n### `{path}`\n\n| member | |\n|---|---|\n");
        for (name, member) in members {
            let word = match member {
                Member::Read => "read",
                Member::Ignored => "ignored",
                Member::OnlyDefault => "refused",
            };
            let _infallible = writeln!(page, "| `{name}` | {word} |");
        }
    }
    page.push_str(MESSAGES);
    let types: Vec<String> = media_type::taken().iter().map(|kind| format!("`{kind}`")).collect();
    let _infallible = writeln!(
        page,
        "\n## Files\n\nAt most 25 MiB each, of the types {}. The first bytes are held against the declared type.",
        types.join(", ")
    );
    page
}

const MESSAGES: &str = "
## Messages

At most 200, the last one the user's. Besides `role` and `content`, `_hook`, `_skill` and `_sig` are read as Pintle sent them; the Anthropic dialect takes role `system` where `_hook` stands. Parts of a user's message:

| part | in `/v1/chat/completions` | in `/v1/messages` |
|---|---|---|
| text | `text` | `text` |
| an image | `image_url` with a `data:` URL or `media://ID` | `image` with `source` `base64`, `url` (`media://ID`) or `file` |
| a file | `file` with `file_data` (a `data:` URL) or `file_id` | `document` with `source` `base64`, `text`, `url` (`media://ID`) or `file` |

Nothing is fetched for a client: other URLs are refused. A model learns of a file by its type and a neutral name, such as `image.png`: no gate looks at the name that a client gives. In a history from another model, calls, their results and thoughts are left out.

## Answers

The member `pintle` has `user`, the prompt as the gates left it with its signature, and `hooks`, the texts of skills that stay: `name` `role` `content` `skill` `timing` `id` `sig`, and `at`, its place in the answer in UTF-16 units. In a stream it comes in its place. What a hook or a tool says to the user stands in the answer as a paragraph of its own, and where a hook stops the turn, so does who did it and why. `media` has the files for the user, as references. Every 15 seconds a quiet stream has a comment, which names the approval that a call waits for.

| the turn | `finish_reason` | `stop_reason` |
|---|---|---|
| has its answer | `stop` | `end_turn` |
| was stopped by a hook, or its answer was withheld by the provider or refused by the model | `content_filter` | `refusal` |
| spent all its rounds, or its answer was cut at a bound of the model | `length` | `max_tokens` |
| failed | an error event | an error event |
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_that_is_named_is_there() {
        let document = document();
        let text = document.to_string();
        for part in text.split("#/components/schemas/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
        }
        for operation in OPERATIONS {
            let statuses = operation.gives.iter().map(|(status, _)| status).chain(operation.refuses.1);
            statuses.for_each(|status| assert!(!words(*status).is_empty(), "{status}"));
        }
    }
}
