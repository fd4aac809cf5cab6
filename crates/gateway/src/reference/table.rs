//! The table: every method, event and shape of the protocol, in the notation of [`super::notation`].

use pintle_domain::breaker::BreakerPolicy;
use pintle_domain::checkpoint::CHECKPOINTS;
use pintle_domain::fault::FaultKind;
use pintle_domain::rule::{AGENT_EVENTS, Decision, Edition, Fallback, HandlerType, HookScope, Source};
use pintle_domain::store::KeyScope;
use pintle_rules::admin::CallerRole;

use super::rows::{MethodRow, Row, method, row};
use crate::error::ErrorCode;

mod events;
mod pages;

pub(super) use events::{EVENTS, RUN_EVENTS, RUN_HEAD};

/// The first request of a connection.
pub(super) const CONNECT: MethodRow = method(
    "connect",
    "{ token?: string, user_id?: string, tenant_id?: string, tenant_hint?: string, tenant_scope?: string, \
     consoleKey?: string, protocolVersion?: 3, protocol_version?: unknown, sender_id?: string, locale?: string, client?: unknown, \
     version?: unknown, pairing?: unknown }",
    "{ protocol: 3, role: CallerRole, user_id: string, tenant_id: string, is_owner: boolean, \
     is_master_scope: boolean, edition: Edition, server: { name: string, version: string }, tenant_name: string, \
     tenant_slug: string, scopes: KeyScope[] }",
    "the first request of a connection; `scopes` are what it may do of what its role allows",
);

/// What methods take and give.
const METHODS: &[MethodRow] = &[
    method(
        "agents.list",
        "{ allTenants?: boolean }",
        "{ agents: Agent[] }",
        "`allTenants`: owners only, each agent once for each tenant",
    ),
    method(
        "sessions.list",
        "{ agentId?: string, channel?: string, limit?: integer, offset?: integer, allTenants?: boolean }",
        "{ sessions: SessionLine[], total: integer, limit: integer, offset: integer }",
        "20 unless `limit` says otherwise, 200 at most; `allTenants`: owners only",
    ),
    method("sessions.preview", "{ key: string }", "{ key: string, messages: ShownMessage[], summary: string }", ""),
    method(
        "sessions.patch",
        "{ key: string, label?: string, model?: string, metadata?: object }",
        "{ ok: true }",
        "what is absent stays, an empty text clears, `metadata` is replaced whole; `model` is that of the turns that \
         begin from then on",
    ),
    method("sessions.delete", "{ key: string }", "{ ok: true }", ""),
    method(
        "sessions.reset",
        "{ key: string }",
        "{ ok: true }",
        "the conversation starts over; its journal keeps what was said",
    ),
    method(
        "sessions.compact",
        "{ key: string, keepLast?: integer }",
        "{ ok: true }",
        "the conversation goes on from its last messages: 4 unless `keepLast` says otherwise",
    ),
    method("chat.history", "{ agentId?: string, sessionKey?: string }", "{ messages: ShownMessage[] }", ""),
    method(
        "chat.session.status",
        "{ agentId?: string, sessionKey?: string }",
        "{ isRunning: boolean, runId: string | null, activity: Activity | null, resumed?: true }",
        "`resumed` where the turn was cut, such as by a restart, and goes on",
    ),
    method(
        "chat.send",
        "{ message: string, messageId?: string, agentId?: string, sessionKey?: string, stream?: boolean, media?: string[], modelOverride?: string, \
         history?: HistoryMessage[], edits?: { place: integer, of: integer, at?: string }, skills?: string[], enableTools?: boolean }",
        "{ runId: string, content: string, usage: Usage, thinking?: string, media?: string[] } | \
         { injected: true, runId: string | null } | { cancelled: true } | { parked: true, approvalIds: string[] }",
        "when the run ends; `parked` where the server goes away while a person is waited for. With `edits` the message \
         takes the place of your message at `place`, from 0, of the `of` messages that `chat.history` has, once its \
         gates allow it; what came after it leaves the conversation and stays in its journal. `at` is its `created_at`: if \
         another message stands there by now, nothing is sent. `modelOverride` names any model (`PROVIDER/MODEL`) of a \
         provider of the configuration, whatever it costs",
    ),
    method(
        "chat.inject",
        "{ sessionKey: string, message: string, label?: string }",
        "{ ok: true, messageId: string }",
        "",
    ),
    method(
        "chat.abort",
        "{ sessionKey?: string, runId?: string }",
        "{ ok: true, aborted: boolean, runIds: string[] }",
        "one of both is needed",
    ),
    method("nodes.list", "{}", "{ nodes: Node[] }", "the processes that share one database"),
    method(
        "approvals.list",
        "{ all?: boolean, allTenants?: boolean }",
        "{ approvals: Approval[] }",
        "those that wait, unless `all`; `allTenants`: owners only; they answer in that tenant",
    ),
    method("approvals.get", "{ id: string }", "{ approval: Approval }", ""),
    method("approvals.approve", "{ id: string, reason?: string }", "{ approval: Approval }", ""),
    method("approvals.refuse", "{ id: string, reason?: string }", "{ approval: Approval }", ""),
    method("auth.sessions.list", "{}", "{ sessions: ConsoleSession[] }", "your own of the console"),
    method("auth.sessions.revoke", "{ id?: string, all?: boolean }", "{ ok: true, ended: integer }", "`id`, or `all`"),
    method(
        "api_keys.create",
        "{ name: string, scopes: KeyScope[], owner?: string, expiresIn?: integer }",
        "{ key: string, apiKey: ApiKey }",
        "`key` is shown once; `expiresIn` is in seconds",
    ),
    method("api_keys.list", "{}", "{ apiKeys: ApiKey[] }", ""),
    method(
        "api_keys.revoke",
        "{ id: string, reason?: string }",
        "{ ok: true }",
        "`reason` says why, in the audit chain",
    ),
    method("members.list", "{}", "{ members: Member[] }", ""),
    method("members.add", "{ userId: string, role: CallerRole }", "{ member: Member }", ""),
    method(
        "members.update",
        "{ userId: string, role?: CallerRole, enabled?: boolean, reason?: string }",
        "{ member: Member }",
        "`reason` says why, in the audit chain",
    ),
    method(
        "members.remove",
        "{ userId: string, reason?: string }",
        "{ ok: true }",
        "their keys and sessions go with them; `reason` says why, in the audit chain",
    ),
    method("tenants.list", "{}", "{ tenants: Tenant[], edition: Edition }", ""),
    method("tenants.create", "{ slug: string, name?: string }", "{ tenant: Tenant }", ""),
    method(
        "tenants.update",
        "{ tenantId: string, enabled: boolean, reason?: string }",
        "{ tenant: Tenant }",
        "`tenantId` is an id or a slug; `reason` says why, in the audit chain",
    ),
    method(
        "hooks.watch",
        "{ on: boolean, hookId?: string }",
        "{ on: boolean }",
        "from then on `hooks.execution` comes for this hook, or for all",
    ),
    method(
        "webhooks.list",
        "{}",
        "{ endpoints: WebhookEndpoint[], deliveries: WebhookDelivery[] }",
        "`deliveries` are those that are not made",
    ),
    method("webhooks.retry", "{ id: string }", "{ retried: integer }", "`id` is that of a delivery, or of an endpoint"),
    method(
        "hooks.list",
        "{ event?: CheckpointName, scope?: HookScope, agentId?: string, enabled?: boolean }",
        "{ hooks: Hook[], configured: ConfiguredHook[], notArmed: GuardLine[] }",
        "in running order; `configured` are the hooks of the configuration and the texts of skills, which run before \
         and after the rules; `notArmed` are those of all of them that are on and not proven to work",
    ),
    method("hooks.get", "{ hookId: string }", "{ hook: Hook }", ""),
    method("hooks.create", "HookInput", "{ hookId: string, warnings?: string[] }", ""),
    method(
        "hooks.update",
        "{ hookId: string, updates: HookUpdates, ifVersion?: integer, reason?: string }",
        "{ hookId: string, version: integer, warnings?: string[] }",
        "`reason` is for updates with `enabled: false`: it says why, as with `hooks.toggle`",
    ),
    method(
        "hooks.import",
        "{ hooks: HookInput[], overwrite?: boolean, dryRun?: boolean }",
        "{ hooks: ImportedHook[] }",
        "all or none, in one transaction; a hook that has the scope, event and name of a record is that hook: with \
         `overwrite` it becomes what the record says, and secrets whose mask the record has stay today's. `dryRun` \
         writes nothing and says what would come of each",
    ),
    method(
        "hooks.delete",
        "{ hookId: string, reason?: string }",
        "{ hookId: string }",
        "`reason` says why, in the change log; where there is none, the change log has none",
    ),
    method(
        "hooks.toggle",
        "{ hookId: string, enabled: boolean, reason?: string }",
        "{ hookId: string, enabled: boolean }",
        "`reason` says why somebody switches it off: it is kept as `disabled_reason` until it is on again",
    ),
    method(
        "hooks.reset",
        "{ hookId: string, tenantId?: string }",
        "{ hookId: string, enabled: boolean }",
        "`tenantId` is for owners",
    ),
    method(
        "hooks.test",
        "{ config?: HookInput, hookId?: string, sampleEvent?: SampleEvent, dryRun?: boolean }",
        "{ result: HookTestResult }",
        "`config` or `hookId`; an operator tries rules that there are, `config` takes an admin",
    ),
    method(
        "hooks.history",
        "{ tenantId?: string, hookId?: string, event?: CheckpointName, decision?: Decision, fault?: FaultWord, \
         executionId?: string, sessionId?: string, agentId?: string, since?: string, until?: string, limit?: integer, \
         cursor?: string }",
        "{ executions: Execution[], nextCursor: string }",
        "`tenantId` is for owners, who without it see every tenant; newest first; 50 unless `limit` says otherwise, 200 \
         at most; `nextCursor` is empty at the end; with `executionId` only that one, if you see it",
    ),
    method(
        "hooks.execution.get",
        "{ id: string }",
        "{ ...Execution, errorDetail: string | null, stdout: OutputHead | null, stderr: OutputHead | null }",
        "with what is sealed, but what a global hook wrote is for owners; that it was read is recorded",
    ),
    method(
        "hooks.chain",
        "{ event: CheckpointName, agentId?: string, toolName?: string, toolInput?: object }",
        "{ chain: ChainLine[], configured: ConfiguredChainLine[] }",
        "nothing is run; `configured` are the hooks of the configuration and the texts of skills at this checkpoint",
    ),
    method("hooks.budget.get", "{}", "Budget", ""),
    method(
        "hooks.budget.set",
        "{ tenantId: string, budgetTotal: integer, reason?: string }",
        "Budget",
        "It is a line of the change log; `reason` says why",
    ),
];

/// The shapes that have a name.
const SHAPES: &[Row] = &[
    row(
        "Node",
        "{ id: string, name: string, self: boolean, online: boolean, version: string, schemaLevel: integer, \
         addresses: string[], turns: integer, configDigest: string, differs: string[], silentMs: integer }",
        "`differs` are the agents of which it takes no turns, because most nodes have another configuration of them",
    ),
    row(
        "Agent",
        "{ id: string, uuid: string, name: string, model: string | null, provider: string | null, \
         agentType: string, status: string, isRunning: boolean, tenantId?: string }",
        "An agent; `id` is its name in the configuration, `uuid` its id in the records of a tenant; `tenantId` only with \
         `allTenants`.",
    ),
    row(
        "SessionLine",
        "{ key: string, messageCount: integer, created: string, updated: string, label: string, agentId: string, \
         channel: string, waiting: integer, model?: string, metadata?: object, userId?: string, tenantId?: string }",
        "A conversation in a listing; `userId` where it is another user's, `waiting` counts its open approvals; `tenantId` \
         only with `allTenants`.",
    ),
    row(
        "ToolCallPart",
        "{ id: string, type: string, function: { name: string, arguments: string }, extra_content?: unknown }",
        "A call of a tool, as it stands in a message of the model: `arguments` are JSON text.",
    ),
    row(
        "ShownMessage",
        "{ role: MessageRole, content: string, thinking?: string, tool_calls?: ToolCallPart[], \
         tool_call_id?: string, media?: string[], origin?: string, skill?: string, turn_id?: string, \
         created_at?: string }",
        "A message of a conversation; `media` are the files that came with it, `skill` is the one whose text it is, and \
         `turn_id` the turn that it stands in, where that is known.",
    ),
    row(
        "HistoryMessage",
        "{ role: MessageRole, content?: string, tool_calls?: ToolCallPart[], tool_call_id?: string, _hook?: string, \
         _skill?: string, _sig?: string }",
        "A message as a front end keeps it, and sends it back.",
    ),
    row(
        "Usage",
        "{ prompt_tokens: integer, completion_tokens: integer, total_tokens: integer }",
        "What model calls cost, in tokens.",
    ),
    row(
        "Activity",
        "{ phase: \"thinking\" | \"tool\" | \"compacting\", tool?: string, iteration: integer }",
        "What a run does. In `chat.session.status` the phase can also be `tool`; on the socket, a tool's start is the \
         event `tool.call`.",
    ),
    row(
        "CallPlace",
        "{ workspace?: string, shell?: string, server?: { name: string, runs: string, digest: string } }",
        "Where a call would run.",
    ),
    row(
        "Approval",
        "{ id: string, agent_id: string, session_id: string, turn_id: string, tool_call_id: string, tool: string, \
         arguments: object, digest: string, by: string, reason: string, changed_from?: object, \
         again_because?: string, place?: CallPlace, asked_at: string, expires_at: string, usable_seconds?: integer, \
         state: ApprovalState, answered_by?: string, note?: string, sessionKey?: string, subAgent: boolean, \
         approvers: Approvers, shell?: ShellFacts, tenantId?: string }",
        "A call that waits for a person, and what they said; `subAgent` says whether a sub-agent wants it. `shell` comes \
         with `approvals.get`; `tenantId` is for owners.",
    ),
    row(
        "Approvers",
        "{ named: string[] | null, otherThanAsker: boolean, asker: string | null, you: boolean }",
        "Who may answer: users and roles, whoever sees it where none are named, and not the user who asked where somebody \
         else has to. `you` says whether you may.",
    ),
    row(
        "ShellFacts",
        "{ commands: { name: string, argv: string[], cwd: string, depth: integer }[], reads: string[], \
         writes: string[], deletes: string[], urls: string[], outside: string[], pipes_to_interpreter: boolean, \
         unknown: boolean, unknown_why: string }",
        "What a shell text would do, as far as reading it tells.",
    ),
    row(
        "Hook",
        "{ id: string, tenant_id: string, agent_ids: string[], event: CheckpointName, handler_type: HandlerType, \
         scope: HookScope, name: string, config: object, config_hidden?: true, matcher: string, if_expr: string, \
         timeout_ms: integer, on_timeout: Fallback, priority: integer, enabled: boolean, version: integer, \
         source: HookSource, may_rewrite: boolean, breaker: BreakerPolicy, on_trip: Fallback, \
         tripped_at: string | null, disabled_reason: string, metadata: object, created_by: string | null, \
         created_at: string, updated_at: string, trips?: { tenant_id: string, tripped_at: string }[] }",
        "A hook as it is kept, without secrets; `config` is hidden where it is not yours, `trips` are for owners.",
    ),
    row(
        "ImportedHook",
        "{ outcome: \"created\" | \"same\" | \"updated\" | \"refused\", name?: string, hookId?: string, \
         differs?: string[], error?: string, warnings?: string[] }",
        "What became of a record, or would: `differs` says in what the hook that is there is another one, `error` why \
         the record is refused.",
    ),
    row(
        "HookSettings",
        "{ name?: string, matcher?: string, if_expr?: string, timeout_ms?: integer, on_timeout?: Fallback | \"\", \
         priority?: integer, enabled?: boolean, agent_ids?: string[], agent_id?: string, may_rewrite?: boolean, \
         breaker?: BreakerPolicy | \"\", on_trip?: Fallback | \"\", metadata?: object, tenant_id?: string, \
         id?: unknown, version?: unknown, source?: unknown, tripped_at?: unknown, disabled_reason?: unknown, \
         created_by?: unknown, created_at?: unknown, updated_at?: unknown }",
        "What may be said of a hook; members that are the server's are taken and ignored.",
    ),
    row(
        "HookInput",
        "{ event: HookEvent, handler_type: HandlerType, scope: HookScope, config: object, ...HookSettings }",
        "A hook as it is made.",
    ),
    row(
        "HookUpdates",
        "{ event?: HookEvent, handler_type?: HandlerType, scope?: HookScope, config?: object, ...HookSettings }",
        "What is to change of a hook: what is absent stays, an empty text clears, `config` is replaced whole.",
    ),
    row(
        "SampleEvent",
        "{ toolName?: string, toolInput?: object, rawInput?: string }",
        "An event that somebody makes up, to see what a hook says.",
    ),
    row(
        "HookTestResult",
        "{ decision: Decision, durationMs: integer, reason?: string, stdout?: string, stderr?: string, \
         statusCode?: integer, nonJson?: true, warnings?: string[], error?: string, updatedInput?: unknown, \
         matcherMatched: boolean, celResult?: boolean, celError?: string, effective: \"allow\" | \"block\" | \"ask\", \
         rewrite?: string, additionalContext?: string, injectionDetected?: boolean, fault?: string, model?: string, \
         tokens?: integer, hook?: string, chain?: { hook: string, decision: Decision, reason?: string }[] }",
        "What came of a test; members that its handler does not have are absent.",
    ),
    row(
        "Execution",
        "{ id: string, hook_id: string | null, hook_name: string, hook_version: integer, handler_type: HandlerType, \
         tenant_id: string, agent_id: string | null, session_key: string | null, turn_id: string | null, \
         event_id: string, trace_id: string | null, event: CheckpointName, tool_name: string | null, \
         tool_call_id: string | null, input_hash: string | null, decision: Decision, reason: string | null, \
         duration_ms: integer, retry: integer, dedup_key: string | null, error: string | null, metadata: object, \
         created_at: string }",
        "What a hook did once; `hook_id` is null once the hook is deleted.",
    ),
    row(
        "OutputHead",
        "{ text: string, cut: boolean }",
        "The beginning of what a command or a script wrote, up to 2,000 characters; `cut` says whether there was more.",
    ),
    row(
        "ChainLine",
        "{ hookId: string, name: string, scope: HookScope, priority: integer, \
         state: \"on\" | \"off\" | \"tripped\" | \"broken\", wouldRun: boolean, reason: string }",
        "A hook in its place, and why it would not run, if it would not.",
    ),
    row(
        "Budget",
        "{ monthStart: string, budgetTotal: integer, used: integer, remaining: integer }",
        "What a tenant may spend on judges this month, in tokens.",
    ),
    row(
        "ConsoleSession",
        "{ id: string, device: string, role: CallerRole, createdAt: string, seenAt: string, current: boolean }",
        "A device that is signed in to the console.",
    ),
    row(
        "ApiKey",
        "{ id: string, name: string, prefix: string, owner: string, scopes: KeyScope[], role: CallerRole, \
         expiresAt: string | null, revokedAt: string | null, createdAt: string, createdBy: string }",
        "An API key, without its secret.",
    ),
    row(
        "Member",
        "{ userId: string, role: CallerRole, enabled: boolean, disabledAt: string | null, createdAt: string, \
         createdBy: string }",
        "A user of a tenant.",
    ),
    row("Tenant", "{ id: string, slug: string, name: string, enabled: boolean, createdAt: string }", "A tenant."),
    row(
        "WebhookEndpoint",
        "{ id: string, url: string, events: string[], tenant: string | null, seq: integer, waiting: integer, \
         failed: integer, stoppedAt: string | null }",
        "Somebody who is told what happens, and how far they are.",
    ),
    row(
        "WebhookDelivery",
        "{ id: string, endpointId: string, tenantId: string | null, event: string, seq: integer, at: string, \
         attempts: integer, nextAt: string | null, failedAt: string | null, error: string | null }",
        "Something that a receiver was not told yet.",
    ),
    row(
        "ApiError",
        "{ code: ErrorCode, message: string, details?: unknown, retryable?: boolean, retryAfterMs?: integer }",
        "Why a request is refused.",
    ),
    row(
        "RequestFrame",
        "{ type: \"req\", id: string, method: string, params?: object | null }",
        "What a client sends.",
    ),
    row(
        "ResponseFrame",
        "{ type: \"res\", id: string, ok: true, payload: unknown } | \
         { type: \"res\", id: string, ok: false, error: ApiError }",
        "The answer to the request with its `id`.",
    ),
    row("EventFrame", "{ type: \"event\", event: string, payload: unknown, seq: integer }", "Something happened."),
    row(
        "HookFrame",
        "{ type: \"hook\", name: string, role: \"system\" | \"user\", content: string, skill: string, \
         timing: string, id: unknown, sig: string, sessionKey: string, runId: string, seq: integer }",
        "A text of a skill that stays: the client that keeps the conversation keeps it in its place.",
    ),
];

/// Every row of a method, those of pages of the console included.
pub(super) fn all_methods() -> impl Iterator<Item = &'static MethodRow> {
    METHODS.iter().chain(pages::METHODS)
}

/// Every shape.
pub(super) fn all_shapes() -> impl Iterator<Item = &'static Row> {
    SHAPES.iter().chain(pages::SHAPES)
}

/// The lists of words, from the types that have them.
pub(super) fn words() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut words = vec![
        ("CallerRole", CallerRole::ALL.iter().map(|role| role.word()).collect()),
        ("KeyScope", KeyScope::ALL.iter().map(|scope| scope.word()).collect()),
        ("Edition", Edition::ALL.iter().map(|it| it.word()).collect()),
        ("MessageRole", vec!["system", "user", "assistant", "tool"]),
        ("ApprovalState", vec!["waiting", "approved", "refused", "used", "void", "expired"]),
        ("CheckpointName", CHECKPOINTS.iter().map(|row| row.name).collect()),
        ("HookEvent", AGENT_EVENTS.iter().map(|it| it.name()).collect()),
        ("HandlerType", HandlerType::ALL.iter().map(|it| it.word()).collect()),
        ("HookScope", HookScope::ALL.iter().map(|it| it.word()).collect()),
        ("HookSource", Source::ALL.iter().map(|it| it.word()).collect()),
        ("Fallback", Fallback::ALL.iter().map(|it| it.word()).collect()),
        ("BreakerPolicy", BreakerPolicy::ALL.iter().map(|it| it.word()).collect()),
        ("FaultWord", FaultKind::ALL.iter().map(|it| it.word()).collect()),
        ("Decision", Decision::ALL.iter().map(|it| it.word()).collect()),
        ("ErrorCode", ErrorCode::ALL.iter().map(|it| it.word()).collect()),
    ];
    words.extend(pages::words());
    words
}
