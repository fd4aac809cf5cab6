//! The protocol as the page `docs/reference/websocket.md`.

use std::fmt::Write as _;

use super::protocol::Protocol;
use super::rows::Row;
use super::table;
use crate::error::ErrorCode;

const HEAD: &str = "\
# The WebSocket

Generated from the code by `cargo xtask gen`.

`pintle serve` speaks protocol 3 at `/ws`, one JSON text message a frame:

```json
{\"type\":\"req\",\"id\":\"1\",\"method\":\"x.y\",\"params\":{}}
{\"type\":\"res\",\"id\":\"1\",\"ok\":true,\"payload\":{}}
{\"type\":\"res\",\"id\":\"1\",\"ok\":false,\"error\":{\"code\":\"NOT_FOUND\",\"message\":\"…\"}}
{\"type\":\"event\",\"event\":\"agent\",\"payload\":{},\"seq\":7}
{\"type\":\"hook\",\"name\":\"…\",\"role\":\"system\",\"content\":\"…\",\"skill\":\"…\",\"timing\":\"…\",\"id\":\"…\",\"sig\":\"…\",\"sessionKey\":\"…\",\"runId\":\"…\",\"seq\":8}
```

The first request is `connect`; there, empty texts are like none. A `token` is the gateway token or an API key; `user_id` goes with the gateway token only, and a `consoleKey` with the cookie of its session. Once somebody may less than when they connected, the connection is closed with 1008 `access was revoked`, within a second. Then requests are answered as they finish, at most 16 at once. An incoming message has at most 512 KiB. Up to 256 events wait for a client that reads slowly; further ones are dropped, and `seq` has a gap; responses and `hook` frames are never dropped, and a client that leaves more than 4 MiB is closed. Whoever has not connected within 10 seconds is closed, and so is a client that says nothing for 60, not even a pong.

A session is `agent:AGENT:ws:direct:NAME`, each user's own. Administrators see those of others as `agent:AGENT:ws:USER:NAME`. Without a key `main` is meant, and without an agent the default one.

The same as JSON Schema: [websocket.json](../../schema/websocket.json). A client with its types: [clients/typescript](../../clients/typescript/README.md).

Types are written as in TypeScript. `?` is a member that may be absent; in params `null` is like none. `integer` is a whole number, `object` any object. Params have no other members; payloads may get more, which a client ignores.
";

/// The page.
pub(super) fn of(protocol: &Protocol) -> String {
    let mut page = HEAD.to_owned();
    page.push_str("\n## Methods\n\n| method | least role | params | payload | |\n|---|---|---|---|---|\n");
    for method in &protocol.methods {
        let (row, least) = (method.row, method.least.map_or("-", |role| role.word()));
        let (params, payload) = (code(row.params), code(row.payload));
        put(&mut page, format_args!("| `{}` | {least} | {params} | {payload} | {} |\n", method.name, row.note));
    }
    page.push_str(
        "\nA client on the same machine that does not sign in is an operator who cannot answer approvals or try rules \
         out.\n\n## Events of a run\n\nEvent `agent`, to the connections of its user and to administrators. Its \
         payload has `type`, `payload` and these members, the last two of them of a sub-agent:\n\n",
    );
    put(&mut page, format_args!("{}\n\n| `type` | `payload` | |\n|---|---|---|\n", code(table::RUN_HEAD)));
    rows(&mut page, table::RUN_EVENTS);
    page.push_str("\n## Other events\n\n| event | payload | |\n|---|---|---|\n");
    rows(&mut page, table::EVENTS);
    page.push_str("\n## Shapes\n\n| shape | members | |\n|---|---|---|\n");
    rows(&mut page, table::all_shapes());
    page.push_str("\n## Words\n\n| name | one of |\n|---|---|\n");
    for (name, words) in table::words().into_iter().filter(|(name, _)| *name != "ErrorCode") {
        put(&mut page, format_args!("| `{name}` | `{}` |\n", words.join("` `")));
    }
    page.push_str("\n## Errors\n\n| `ErrorCode` | over HTTP |\n|---|---|\n");
    for code in ErrorCode::ALL {
        put(&mut page, format_args!("| `{}` | {} |\n", code.word(), code.status()));
    }
    page
}

fn rows(page: &mut String, rows: impl IntoIterator<Item = &'static Row>) {
    for row in rows {
        put(page, format_args!("| `{}` | {} | {} |\n", row.name, code(row.of), row.note));
    }
}

/// A type in a cell of a table.
fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{}`", text.replace('|', "\\|")) }
}

fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    let _infallible = page.write_fmt(text);
}
