//! What is served over HTTP, in words for programs (OpenAPI 3.1) and for people (`docs/reference/http.md`): the table
//! of what is served, and the tables of members that requests are read with. Tests hold both against live answers.

use std::fmt::Write as _;

use pintle_domain::json::{Object, Value, json};
use pintle_domain::store::KeyScope;

use crate::media_type;
use crate::roles;
use crate::served::{Asks, Responder, Route, TURN, routes};
use crate::wire::{Member, anthropic, openai};

mod schemas;

/// The document.
pub fn document() -> Value {
    let mut paths = Object::new();
    for route in routes() {
        // Whatever a page has behind its address, there it is one name.
        let path = paths.entry(route.path.replace("{*", "{")).or_insert_with(|| json!({}));
        path[route.verb] = operation(&route);
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
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "key": { "type": "apiKey", "in": "header", "name": "x-api-key" },
                "door": { "type": "apiKey", "in": "header", "name": "x-pintle-key" },
                "session": { "type": "apiKey", "in": "header", "name": "x-pintle" },
                "cookie": {
                    "type": "apiKey", "in": "cookie", "name": "pintle_ID",
                    "description": "of the session: `ID` is the beginning of its id",
                },
            },
            "schemas": schemas::all(),
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut responses = Object::new();
    for (status, schema) in route.gives {
        responses.insert(status.to_string(), answer(route, *status, schema));
    }
    for status in route.refuses.statuses {
        if !responses.contains_key(&status.to_string()) {
            let refusal = json!({ "description": words(*status), "content": content(route.refuses.schema) });
            responses.insert(status.to_string(), refusal);
        }
    }
    let mut document = json!({ "summary": route.does, "responses": responses });
    match route.takes {
        Some("*") => {
            let types = media_type::taken().iter();
            let content: Object = types.map(|kind| ((*kind).to_owned(), json!({}))).collect();
            document["requestBody"] = json!({ "required": true, "content": content });
        }
        // Whoever signs out need say nothing.
        Some(schema) => {
            let required = route.by != Responder::SignOut;
            document["requestBody"] = json!({ "required": required, "content": content(schema) });
        }
        None => {}
    }
    if let Some(name) = in_path(route.path) {
        let mut schema = json!({ "type": "string" });
        if route.by == Responder::Medium {
            schema["pattern"] = json!("^[0-9a-f]{32}$");
        }
        document["parameters"] = json!([{ "name": name, "in": "path", "required": true, "schema": schema }]);
    }
    if route.refuses.statuses == TURN {
        document["parameters"] = parameters();
    }
    document["security"] = match route.asks {
        Asks::Nobody => json!([]),
        Asks::For("auth.switch") | Asks::Session => json!([{ "cookie": [], "session": [] }]),
        // Those of the server's own machine may have a door without one.
        Asks::DoorKey(_) => json!([{ "door": [] }, {}]),
        Asks::For(_) => json!([{ "token": [] }, { "key": [] }, { "cookie": [], "session": [] }, {}]),
    };
    document
}

/// The name of what changes in a path.
fn in_path(path: &str) -> Option<&str> {
    let (_, rest) = path.split_once('{')?;
    rest.split('}').next().map(|name| name.trim_start_matches('*'))
}

fn answer(route: &Route, status: u16, schema: &str) -> Value {
    let content = match schema {
        "*" => json!({ "*/*": {} }),
        _ => content(schema),
    };
    let mut answer = json!({ "description": words(status), "content": content });
    if route.refuses.statuses == TURN {
        answer["content"]["text/event-stream"] = json!({ "schema": { "type": "string" } });
    }
    answer
}

/// A row of the table of routes, for tests of who may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteRow {
    /// `GET` or `POST`.
    pub verb: &'static str,
    /// With what changes in braces.
    pub path: &'static str,
    /// Who is asked for: `nobody`, `session`, or the least role.
    pub least: &'static str,
    /// Whether somebody who did not say who they are may do it, where nobody has to.
    pub open: bool,
    /// The scope that a key needs, whatever the role of its user; empty where none is asked for.
    pub scope: &'static str,
    /// Whether it takes a body.
    pub takes: bool,
    /// The header that alone says who it is, where it is one.
    pub only_header: Option<&'static str>,
}

/// Every route, as it is served.
pub fn rows() -> Vec<RouteRow> {
    let row = |route: Route| {
        let of_role = |name| {
            roles::over_http(name).map_or(("none", false, ""), |row| {
                (row.least.word(), row.is_open(), row.scope().map_or("", KeyScope::word))
            })
        };
        let (least, open, scope) = match route.asks {
            Asks::Nobody => ("nobody", true, ""),
            Asks::Session => ("session", false, ""),
            Asks::For(name) => of_role(name),
            Asks::DoorKey(name) => (of_role(name).0, false, ""),
        };
        let verb = if route.verb == "post" { "POST" } else { "GET" };
        RouteRow {
            verb,
            path: route.path,
            least,
            open,
            scope,
            takes: route.takes.is_some(),
            only_header: matches!(route.asks, Asks::DoorKey(_)).then_some("X-Pintle-Key"),
        }
    };
    routes().map(row).collect()
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
    (
        "X-Pintle-Session",
        "names a conversation that Pintle keeps: only the last message counts. Only ASCII, without `/`, and without `@` at \
         its beginning; the key of the session, `agent:AGENT:http:USER:NAME`, has at most 256 bytes",
    ),
    (
        "Idempotency-Key",
        "names the request: a second one of that name joins the run of the first, or gets what came of it, for 24 hours. \
         Only ASCII, at most 255 bytes",
    ),
    ("X-Pintle-Key", "an API key, below `/door` only; every other header with a key is the vendor's there"),
    ("X-Pintle-User", "the user in whose name it is asked, in ASCII; with the gateway token only"),
    ("X-Pintle-Tenant", "the tenant, by slug or id; with the gateway token only"),
];

/// What statuses mean.
const STATUSES: &[(u16, &str, &str)] = &[
    (101, "", "the protocol of the connection changes"),
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
    (405, "`method_not_allowed`", "the path takes other methods; `Allow` names them"),
    (408, "`body_timeout`", "no data of the body arrived for 30 s, or below `/door` not all of it within 60 s"),
    (
        409,
        "`session_busy`, `approval_pending`, `outcome_unknown`, `failed_precondition`, `already_exists`",
        "the session is busy with another turn, a call waits for approval, the first request of this name \
         was cut off and its outcome is unknown, or the message says what else has to be so first",
    ),
    (
        413,
        "`body_too_large`",
        "the body is longer than `gateway.max_body`, a file than 25 MiB, a body of `/auth/…` than 64 KiB, records of \
         machines under guard than 4 MiB, or a body below `/door` than 64 MiB",
    ),
    (
        415,
        "`unsupported_media_type`",
        "files of that type are not taken, nor are compressed bodies; below `/door` gzip, zstd and br are",
    ),
    (422, "`idempotency_key_reused`", "the name was already used for a different request"),
    (
        429,
        "`resource_exhausted`",
        "too often, and `Retry-After` says when; or too many turns in flight. Below `/door` also: the budget is spent",
    ),
    (500, "`internal`", "a fault of the server; its log says which"),
    (502, "`turn_failed`", "the model gave no answer, or below `/door` one that cannot be read"),
    (
        503,
        "`unavailable`, `model_rate_limited`",
        "the server is shutting down, or the store does not answer; or the model's provider limits how often it is asked, \
         and `Retry-After` has what it asks for",
    ),
    (507, "`media_quota`", "the tenant's files reach the quota `gateway.media_quota_mb`"),
];

/// Whether the table of statuses has the word `code` for `status`.
#[cfg(test)]
pub(crate) fn is_described(status: u16, code: &str) -> bool {
    STATUSES.iter().any(|(known, codes, _)| *known == status && codes.contains(&format!("`{code}`")))
}

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
    for Route { verb, path, by, does, .. } in routes() {
        let does = if by == Responder::Socket {
            "[The WebSocket](websocket.md), whose first request says who it is."
        } else {
            does
        };
        let _infallible = writeln!(page, "| `{} {}` | {does} |", verb.to_uppercase(), path.replace("{*", "{"));
    }
    page.push_str("\n## Headers\n\n| header | meaning |\n|---|---|\n");
    for (name, does) in HEADERS {
        let _infallible = writeln!(page, "| `{name}` | {does} |");
    }
    page.push_str(
        "\nEvery answer has `X-Request-Id`; those of turns `X-Pintle-Turn`, for `pintle why`, and `X-Pintle-Hook-Ms`, the \
         time that hooks took until then. Refusals have `x-should-retry`: SDKs try again by themselves, and this says \
         when that helps and does nothing twice. Pages of `gateway.allowed_origins` get the headers of CORS as well, and \
         their `OPTIONS` a 204.\n\n## Statuses\n\n| status | `code` | means |\n|---|---|---|\n",
    );
    for (status, code, what) in STATUSES {
        let _infallible = writeln!(page, "| {status} | {code} | {what} |");
    }
    page.push_str(
        "\nWhat is no request of HTTP is answered with 400, an address that is too long with 414 and a head that is too \
         long with 431, all three without a body, and the connection ends. So it does, without an answer, where a head is \
         not complete after 10 s.\n",
    );
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

At most 200, the last one the user's, with more than white space in it or with a file. Besides `role` and `content`, `_hook`, `_skill` and `_sig` are read as Pintle sent them; the Anthropic dialect takes role `system` where `_hook` stands. Parts of a user's message:

| part | in `/v1/chat/completions` | in `/v1/messages` |
|---|---|---|
| text | `text` | `text` |
| an image | `image_url` with a `data:` URL or `media://ID` | `image` with `source` `base64`, `url` (`media://ID`) or `file` |
| a file | `file` with `file_data` (a `data:` URL) or `file_id` | `document` with `source` `base64`, `text`, `url` (`media://ID`) or `file` |

A `file_id` is the `id` of a file, or its `reference`. Nothing is fetched for a client: other URLs are refused. A model learns of a file by its type and a neutral name, such as `image.png`: no gate looks at the name that a client gives. In a history from another model, calls, their results and thoughts are left out.

## Answers

The member `pintle` has `user`, the prompt as the gates left it with its signature, and `hooks`, the texts of skills that stay: `name` `role` `content` `skill` `timing` `id` `sig`, and `at`, its place in the answer in UTF-16 units. In a stream it comes in its place. What a hook or a tool says to the user stands in the answer as a paragraph of its own, and where a hook stops the turn, so does who did it and why. `media` has the files for the user, as references. Every 15 seconds a quiet stream has an SSE comment, with the ID of the approval that a call waits for.

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
        for route in routes() {
            let statuses = route.gives.iter().map(|(status, _)| status).chain(route.refuses.statuses);
            statuses.for_each(|status| assert!(!words(*status).is_empty(), "{status}"));
            let path = &document["paths"][&route.path.replace("{*", "{")];
            assert!(path[route.verb].is_object(), "{} {}", route.verb, route.path);
        }
    }
}
