//! The events: those of runs, and the others.

use crate::reference::rows::{Row, row};

/// The events of a run: the `payload` of an event `agent`, by its `type`.
pub(in crate::reference) const RUN_EVENTS: &[Row] = &[
    row("run.started", "{ message: string, sig: string }", "the message as the gates left it: what a client keeps"),
    row("chunk", "{ content: string }", "a piece of the answer, with `stream`"),
    row("thinking", "{ content: string }", "the model's thinking, with `stream`"),
    row(
        "tool.call",
        "{ name: string, id: string, arguments: object }",
        "as permitted; empty for a call whose arguments cannot be read: its `tool.result` says why",
    ),
    row(
        "tool.result",
        "{ name: string, id: string, is_error: boolean, arguments: object, result: string, answeredByHook?: true }",
        "the first 1,000 characters of the result; `answeredByHook` where a hook answered in the tool's place",
    ),
    row("activity", "Activity", ""),
    row(
        "block.reply",
        "{ content: string }",
        "an answer that calls of tools followed, or what a tool says to the user",
    ),
    row("run.retrying", "{ attempt: integer, maxAttempts: integer }", ""),
    row(
        "hook.blocked",
        "{ hookId: string | null, name: string, event: CheckpointName, reason: string, toolCallId?: string, \
         tool?: string, arguments?: object }",
        "of a call, also its `arguments` as hooks left them",
    ),
    row("approval.waiting", "{ approvalId: string, tool: string, toolCallId: string }", ""),
    row("approval.decided", "{ approvalId: string, state: ApprovalState }", ""),
    row(
        "run.completed",
        "{ content: string, usage: Usage, media?: string[] }",
        "`media` are the files for the user: `GET /v1/media/ID`",
    ),
    row("run.failed", "{ error: string }", ""),
    row("run.cancelled", "", ""),
];

/// The other events.
pub(in crate::reference) const EVENTS: &[Row] = &[
    row("approvals.created", "Approval", "to those who may answer it"),
    row("approvals.decided", "Approval", "somebody answered, or it went void"),
    row("approvals.expired", "Approval", "nobody answered in time"),
    row(
        "hooks.changed",
        "{ hookId: string, action: string, version: integer | null, actor: string | null, epoch: integer }",
        "to viewers of the tenant; of a global hook to all",
    ),
    row(
        "hooks.breaker",
        "{ hookId: string, tenantId: string, state: \"open\" | \"closed\", reason: string | null, at: string }",
        "to viewers of the tenant",
    ),
    row("hooks.budget", "{ ...Budget, tenantId: string }", "once less than a fifth is left"),
    row("hooks.execution", "Execution", "to those who called `hooks.watch`; below admin of their own sessions"),
    row("shutdown", "{ deadlineMs: integer }", "no new turns begin; running turns end within this time"),
];

/// What stands beside `type` and `payload` in every event `agent`. `live` is false where the run was on another node:
/// then only its end comes, whole.
pub(in crate::reference) const RUN_HEAD: &str = "{ agentId: string, runId: string, sessionKey: string, \
                                                  parentAgentId?: string, delegationId?: string, userId: string, \
                                                  channel: string, chatId: string, live?: false }";
