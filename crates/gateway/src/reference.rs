//! The protocol in words, for the page `docs/reference/websocket.md`: what each method takes and gives, and which events
//! there are. A test sees to it that no method is missing.

use std::fmt::Write as _;

use crate::error::ErrorCode;
use crate::roles::methods;

/// What methods take and give.
const METHODS: &[(&str, &str, &str)] = &[
    ("agents.list", "", "`agents`: `id` `uuid` `name` `model` `provider` `agentType` `status` `isRunning`"),
    ("sessions.list", "`agentId?` `channel?` `limit=20` `offset`", "`sessions` `total` `limit` `offset`"),
    ("sessions.preview", "`key`", "`key` `messages` `summary`"),
    ("sessions.delete", "`key`", "`ok`"),
    ("chat.history", "`agentId?` `sessionKey?`", "`messages`"),
    ("chat.session.status", "`agentId?` `sessionKey?`", "`isRunning` `runId` `activity`"),
    (
        "chat.send",
        "`message` `messageId?` `agentId?` `sessionKey?` `stream?` `media?` `modelOverride?` `history?` `skills?` `enableTools=true`",
        "when the run ends: `runId` `content` `usage` `thinking?`; or `injected`, `cancelled`, or `parked` with \
         `approvalIds` where the server goes away",
    ),
    ("chat.inject", "`sessionKey` `message` `label?`", "`ok` `messageId`"),
    ("chat.abort", "`sessionKey?` `runId?`", "`ok` `aborted` `runIds`"),
    ("approvals.list", "`all=false`", "`approvals`"),
    ("approvals.get", "`id`", "`approval`"),
    ("approvals.approve", "`id` `reason?`", "`approval`"),
    ("approvals.refuse", "`id` `reason?`", "`approval`"),
    ("hooks.list", "`event?` `scope?` `agentId?` `enabled?`", "`hooks`, in running order"),
    ("hooks.get", "`hookId`", "`hook`"),
    ("hooks.create", "the record", "`hookId` `warnings?`"),
    ("hooks.update", "`hookId` `updates` `ifVersion?`", "`hookId` `version` `warnings?`"),
    ("hooks.delete", "`hookId`", "`hookId`"),
    ("hooks.toggle", "`hookId` `enabled`", "`hookId` `enabled`"),
    ("hooks.reset", "`hookId` `tenantId?`", "`hookId` `enabled`"),
    ("hooks.test", "`config` or `hookId`; `sampleEvent` `dryRun=true`", "`result`"),
    (
        "hooks.history",
        "`hookId?` `event?` `decision?` `sessionId?` `agentId?` `since?` `until?` `limit=50` `cursor?`",
        "`executions` `nextCursor`",
    ),
    ("hooks.execution.get", "`id`", "the row with `errorDetail`; that it was read is recorded"),
    ("hooks.chain", "`event` `agentId?` `toolName?` `toolInput?`", "`chain`"),
    ("hooks.budget.get", "", "`monthStart` `budgetTotal` `used` `remaining`"),
    ("hooks.budget.set", "`tenantId` `budgetTotal`", "the same"),
];

/// The events of a run.
const RUN_EVENTS: &[(&str, &str)] = &[
    ("run.started", "`message` as the gates left it, and its `sig`: what a client keeps of it"),
    ("chunk", "`content`: a piece of the answer, with `stream`"),
    ("thinking", "`content`: what the model thought, with `stream`"),
    ("tool.call", "`name` `id` `arguments`, as permitted"),
    ("tool.result", "`name` `id` `is_error` `arguments`, and the first 1,000 characters of `result`"),
    ("activity", "`phase`: thinking or compacting, `iteration`"),
    ("block.reply", "`content`: an answer that calls of tools followed, or what a tool says to the user"),
    ("run.retrying", "`attempt` `maxAttempts`"),
    ("hook.blocked", "`hookId` `name` `event` `reason`, of a call `toolCallId` `tool` `arguments`, as hooks left them"),
    ("approval.waiting", "`approvalId` `tool`"),
    ("approval.decided", "`approvalId` `state`"),
    ("run.completed", "`content` `usage`"),
    ("run.failed", "`error`"),
    ("run.cancelled", ""),
];

/// The other events.
const EVENTS: &[(&str, &str)] = &[
    ("approvals.created", "the approval, to those who may answer it"),
    ("approvals.decided", "the same, once somebody answered or it went void"),
    ("approvals.expired", "the same, once nobody answered in time"),
    ("shutdown", "`deadlineMs`: nothing new is begun, and what is under way has so long"),
];

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

The first request is `connect`, with `token?` `user_id?` `tenant_id?` or `tenant_hint?`, and `protocolVersion?` (3). Empty texts are like none. Then requests are answered as they finish, at most 16 at once. An incoming message has at most 512 KiB. Up to 256 events wait for a client that reads slowly; further ones are dropped, and `seq` has a gap; responses and `hook` frames are never dropped, and a client that leaves more than 4 MiB is closed. A client that says nothing, not even a pong, is closed after 60 seconds.

A session is `agent:AGENT:ws:direct:NAME`, each user's own. Administrators see those of others as `agent:AGENT:ws:USER:NAME`. Without a key `main` is meant, and without an agent the default one.
";

/// The page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("\n## Methods\n\n| method | least role | params | payload |\n|---|---|---|---|\n");
    for method in methods() {
        let (_, params, payload) = METHODS.iter().find(|(name, ..)| *name == method.name).unwrap_or(&("", "", ""));
        let _infallible = writeln!(page, "| `{}` | {} | {params} | {payload} |", method.name, method.least.word());
    }
    page.push_str(
        "\nWhoever did not say who they are, on their own machine, is an operator who answers no approvals and tries no \
         rules out.\n",
    );
    page.push_str(
        "\n## Events of a run\n\nEvent `agent`, to the connections of its user and to administrators, with `type` \
         `agentId` `runId` `sessionKey` `userId` `channel` `chatId`; of a sub-agent also `parentAgentId` and \
         `delegationId`.\n\n| `type` | `payload` |\n|---|---|\n",
    );
    rows(&mut page, RUN_EVENTS);
    page.push_str("\n## Other events\n\n| event | payload |\n|---|---|\n");
    rows(&mut page, EVENTS);
    page.push_str(
        "\n## Errors\n\n`error` has `code` and `message`, and where they help `details`, `retryable` and \
         `retryAfterMs`.\n\n| code | over HTTP |\n|---|---|\n",
    );
    for code in ErrorCode::ALL {
        let _infallible = writeln!(page, "| `{}` | {} |", code.word(), code.status());
    }
    page
}

fn rows(page: &mut String, rows: &[(&str, &str)]) {
    for (name, what) in rows {
        let _infallible = writeln!(page, "| `{name}` | {what} |");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_explained_and_none_beside() {
        let mut there: Vec<&str> = methods().iter().map(|method| method.name).collect();
        let mut explained: Vec<&str> = METHODS.iter().map(|(name, ..)| *name).collect();
        there.sort_unstable();
        explained.sort_unstable();
        assert_eq!(there, explained);
    }
}
