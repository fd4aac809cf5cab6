// Generated from the code by `cargo xtask gen`.

/** The version of the protocol. */
export const PROTOCOL = 3;

export type CallerRole = "viewer" | "operator" | "admin" | "owner";

export type KeyScope = "operator.read" | "operator.write" | "operator.approvals" | "operator.pairing" | "operator.guard" | "operator.admin";

export type Edition = "lite" | "standard";

export type MessageRole = "system" | "user" | "assistant" | "tool";

export type ApprovalState = "waiting" | "approved" | "refused" | "used" | "void" | "expired";

export type CheckpointName = "session_start" | "user_prompt_submit" | "after_user_input" | "before_planning" | "before_each_agent" | "before_first_agent" | "before_llm" | "after_llm" | "before_tool" | "pre_tool_use" | "approve_tool" | "after_tool" | "post_tool_use" | "after_tool_call" | "subagent_start" | "subagent_stop" | "stop" | "runtime";

export type HookEvent = "session_start" | "user_prompt_submit" | "pre_tool_use" | "post_tool_use" | "subagent_start" | "subagent_stop" | "stop";

export type HandlerType = "command" | "http" | "prompt" | "script";

export type HookScope = "global" | "tenant" | "agent";

export type HookSource = "builtin" | "user";

export type Fallback = "block" | "allow";

export type BreakerPolicy = "all" | "faults" | "off";

export type FaultWord = "cannot_start" | "timed_out" | "killed" | "bad_exit" | "unreadable" | "too_large" | "protocol_error" | "panicked" | "cancelled" | "condition_failed" | "unavailable";

export type Decision = "allow" | "block" | "ask" | "error" | "timeout";

export type ErrorCode = "INVALID_REQUEST" | "UNAVAILABLE" | "NOT_LINKED" | "NOT_PAIRED" | "AGENT_TIMEOUT" | "UNAUTHORIZED" | "NOT_FOUND" | "ALREADY_EXISTS" | "RESOURCE_EXHAUSTED" | "FAILED_PRECONDITION" | "INTERNAL" | "TENANT_ACCESS_REVOKED" | "NOT_IMPLEMENTED";

export type GuardState = "broken" | "tripped" | "unproven" | "armed" | "disabled";

export type TurnOutcome = "allowed" | "blocked" | "asked" | "faulted";

export type TurnEnding = "running" | "waiting" | "completed" | "failed" | "stopped" | "cut";

export type TurnSpanKind = "round" | "model" | "call" | "tool" | "checkpoint";

/** `differs` are the agents of which it takes no turns, because most nodes have another configuration of them */
export type Node = {
  readonly id: string;
  readonly name: string;
  readonly self: boolean;
  readonly online: boolean;
  readonly version: string;
  readonly schemaLevel: number;
  readonly addresses: readonly string[];
  readonly turns: number;
  readonly configDigest: string;
  readonly differs: readonly string[];
  readonly silentMs: number;
};

/** An agent; `id` is its name in the configuration, `uuid` its id in the records of a tenant; `tenantId` only with `allTenants`. */
export type Agent = {
  readonly id: string;
  readonly uuid: string;
  readonly name: string;
  readonly model: string | null;
  readonly provider: string | null;
  readonly agentType: string;
  readonly status: string;
  readonly isRunning: boolean;
  readonly tenantId?: string;
};

/** A conversation in a listing; `userId` where it is another user's, `waiting` counts its open approvals; `tenantId` only with `allTenants`. */
export type SessionLine = {
  readonly key: string;
  readonly messageCount: number;
  readonly created: string;
  readonly updated: string;
  readonly label: string;
  readonly agentId: string;
  readonly channel: string;
  readonly waiting: number;
  readonly model?: string;
  readonly metadata?: { readonly [member: string]: unknown };
  readonly userId?: string;
  readonly tenantId?: string;
};

/** A call of a tool, as it stands in a message of the model: `arguments` are JSON text. */
export type ToolCallPart = {
  readonly id: string;
  readonly type: string;
  readonly function: { readonly name: string; readonly arguments: string };
  readonly extra_content?: unknown;
};

/** A message of a conversation; `media` are the files that came with it, `skill` is the one whose text it is, and `turn_id` the turn that it stands in, where that is known. */
export type ShownMessage = {
  readonly role: MessageRole;
  readonly content: string;
  readonly thinking?: string;
  readonly tool_calls?: readonly ToolCallPart[];
  readonly tool_call_id?: string;
  readonly media?: readonly string[];
  readonly origin?: string;
  readonly skill?: string;
  readonly turn_id?: string;
  readonly created_at?: string;
};

/** A message as a front end keeps it, and sends it back. */
export type HistoryMessage = {
  readonly role: MessageRole;
  readonly content?: string;
  readonly tool_calls?: readonly ToolCallPart[];
  readonly tool_call_id?: string;
  readonly _hook?: string;
  readonly _skill?: string;
  readonly _sig?: string;
};

/** What model calls cost, in tokens. */
export type Usage = {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
};

/** What a run does. In `chat.session.status` the phase can also be `tool`; on the socket, a tool's start is the event `tool.call`. */
export type Activity = {
  readonly phase: "thinking" | "tool" | "compacting";
  readonly tool?: string;
  readonly iteration: number;
};

/** Where a call would run. */
export type CallPlace = {
  readonly workspace?: string;
  readonly shell?: string;
  readonly server?: { readonly name: string; readonly runs: string; readonly digest: string };
};

/** A call that waits for a person, and what they said; `subAgent` says whether a sub-agent wants it. `shell` comes with `approvals.get`; `tenantId` is for owners. */
export type Approval = {
  readonly id: string;
  readonly agent_id: string;
  readonly session_id: string;
  readonly turn_id: string;
  readonly tool_call_id: string;
  readonly tool: string;
  readonly arguments: { readonly [member: string]: unknown };
  readonly digest: string;
  readonly by: string;
  readonly reason: string;
  readonly changed_from?: { readonly [member: string]: unknown };
  readonly again_because?: string;
  readonly place?: CallPlace;
  readonly asked_at: string;
  readonly expires_at: string;
  readonly usable_seconds?: number;
  readonly state: ApprovalState;
  readonly answered_by?: string;
  readonly note?: string;
  readonly sessionKey?: string;
  readonly subAgent: boolean;
  readonly approvers: Approvers;
  readonly shell?: ShellFacts;
  readonly tenantId?: string;
};

/** Who may answer: users and roles, whoever sees it where none are named, and not the user who asked where somebody else has to. `you` says whether you may. */
export type Approvers = {
  readonly named: readonly string[] | null;
  readonly otherThanAsker: boolean;
  readonly asker: string | null;
  readonly you: boolean;
};

/** What a shell text would do, as far as reading it tells. */
export type ShellFacts = {
  readonly commands: readonly { readonly name: string; readonly argv: readonly string[]; readonly cwd: string; readonly depth: number }[];
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  readonly deletes: readonly string[];
  readonly urls: readonly string[];
  readonly outside: readonly string[];
  readonly pipes_to_interpreter: boolean;
  readonly unknown: boolean;
  readonly unknown_why: string;
};

/** A hook as it is kept, without secrets; `config` is hidden where it is not yours, `trips` are for owners. */
export type Hook = {
  readonly id: string;
  readonly tenant_id: string;
  readonly agent_ids: readonly string[];
  readonly event: CheckpointName;
  readonly handler_type: HandlerType;
  readonly scope: HookScope;
  readonly name: string;
  readonly config: { readonly [member: string]: unknown };
  readonly config_hidden?: true;
  readonly matcher: string;
  readonly if_expr: string;
  readonly timeout_ms: number;
  readonly on_timeout: Fallback;
  readonly priority: number;
  readonly enabled: boolean;
  readonly version: number;
  readonly source: HookSource;
  readonly may_rewrite: boolean;
  readonly breaker: BreakerPolicy;
  readonly on_trip: Fallback;
  readonly tripped_at: string | null;
  readonly disabled_reason: string;
  readonly metadata: { readonly [member: string]: unknown };
  readonly created_by: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly trips?: readonly { readonly tenant_id: string; readonly tripped_at: string }[];
};

/** What became of a record, or would: `differs` says in what the hook that is there is another one, `error` why the record is refused. */
export type ImportedHook = {
  readonly outcome: "created" | "same" | "updated" | "refused";
  readonly name?: string;
  readonly hookId?: string;
  readonly differs?: readonly string[];
  readonly error?: string;
  readonly warnings?: readonly string[];
};

/** What may be said of a hook; members that are the server's are taken and ignored. */
export type HookSettings = {
  readonly name?: string;
  readonly matcher?: string;
  readonly if_expr?: string;
  readonly timeout_ms?: number;
  readonly on_timeout?: Fallback | "";
  readonly priority?: number;
  readonly enabled?: boolean;
  readonly agent_ids?: readonly string[];
  readonly agent_id?: string;
  readonly may_rewrite?: boolean;
  readonly breaker?: BreakerPolicy | "";
  readonly on_trip?: Fallback | "";
  readonly metadata?: { readonly [member: string]: unknown };
  readonly tenant_id?: string;
  readonly id?: unknown;
  readonly version?: unknown;
  readonly source?: unknown;
  readonly tripped_at?: unknown;
  readonly disabled_reason?: unknown;
  readonly created_by?: unknown;
  readonly created_at?: unknown;
  readonly updated_at?: unknown;
};

/** A hook as it is made. */
export type HookInput = HookSettings & {
  readonly event: HookEvent;
  readonly handler_type: HandlerType;
  readonly scope: HookScope;
  readonly config: { readonly [member: string]: unknown };
};

/** What is to change of a hook: what is absent stays, an empty text clears, `config` is replaced whole. */
export type HookUpdates = HookSettings & {
  readonly event?: HookEvent;
  readonly handler_type?: HandlerType;
  readonly scope?: HookScope;
  readonly config?: { readonly [member: string]: unknown };
};

/** An event that somebody makes up, to see what a hook says. */
export type SampleEvent = {
  readonly toolName?: string;
  readonly toolInput?: { readonly [member: string]: unknown };
  readonly rawInput?: string;
};

/** What came of a test; members that its handler does not have are absent. */
export type HookTestResult = {
  readonly decision: Decision;
  readonly durationMs: number;
  readonly reason?: string;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly statusCode?: number;
  readonly nonJson?: true;
  readonly warnings?: readonly string[];
  readonly error?: string;
  readonly updatedInput?: unknown;
  readonly matcherMatched: boolean;
  readonly celResult?: boolean;
  readonly celError?: string;
  readonly effective: "allow" | "block" | "ask";
  readonly rewrite?: string;
  readonly additionalContext?: string;
  readonly injectionDetected?: boolean;
  readonly fault?: string;
  readonly model?: string;
  readonly tokens?: number;
  readonly hook?: string;
  readonly chain?: readonly { readonly hook: string; readonly decision: Decision; readonly reason?: string }[];
};

/** What a hook did once; `hook_id` is null once the hook is deleted. */
export type Execution = {
  readonly id: string;
  readonly hook_id: string | null;
  readonly hook_name: string;
  readonly hook_version: number;
  readonly handler_type: HandlerType;
  readonly tenant_id: string;
  readonly agent_id: string | null;
  readonly session_key: string | null;
  readonly turn_id: string | null;
  readonly event_id: string;
  readonly trace_id: string | null;
  readonly event: CheckpointName;
  readonly tool_name: string | null;
  readonly tool_call_id: string | null;
  readonly input_hash: string | null;
  readonly decision: Decision;
  readonly reason: string | null;
  readonly duration_ms: number;
  readonly retry: number;
  readonly dedup_key: string | null;
  readonly error: string | null;
  readonly metadata: { readonly [member: string]: unknown };
  readonly created_at: string;
};

/** The beginning of what a command or a script wrote, up to 2,000 characters; `cut` says whether there was more. */
export type OutputHead = {
  readonly text: string;
  readonly cut: boolean;
};

/** A hook in its place, and why it would not run, if it would not. */
export type ChainLine = {
  readonly hookId: string;
  readonly name: string;
  readonly scope: HookScope;
  readonly priority: number;
  readonly state: "on" | "off" | "tripped" | "broken";
  readonly wouldRun: boolean;
  readonly reason: string;
};

/** What a tenant may spend on judges this month, in tokens. */
export type Budget = {
  readonly monthStart: string;
  readonly budgetTotal: number;
  readonly used: number;
  readonly remaining: number;
};

/** A device that is signed in to the console. */
export type ConsoleSession = {
  readonly id: string;
  readonly device: string;
  readonly role: CallerRole;
  readonly createdAt: string;
  readonly seenAt: string;
  readonly current: boolean;
};

/** An API key, without its secret. */
export type ApiKey = {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly owner: string;
  readonly scopes: readonly KeyScope[];
  readonly role: CallerRole;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  readonly createdAt: string;
  readonly createdBy: string;
};

/** A user of a tenant. */
export type Member = {
  readonly userId: string;
  readonly role: CallerRole;
  readonly enabled: boolean;
  readonly disabledAt: string | null;
  readonly createdAt: string;
  readonly createdBy: string;
};

/** A tenant. */
export type Tenant = {
  readonly id: string;
  readonly slug: string;
  readonly name: string;
  readonly enabled: boolean;
  readonly createdAt: string;
};

/** Somebody who is told what happens, and how far they are. */
export type WebhookEndpoint = {
  readonly id: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly tenant: string | null;
  readonly seq: number;
  readonly waiting: number;
  readonly failed: number;
  readonly stoppedAt: string | null;
};

/** Something that a receiver was not told yet. */
export type WebhookDelivery = {
  readonly id: string;
  readonly endpointId: string;
  readonly tenantId: string | null;
  readonly event: string;
  readonly seq: number;
  readonly at: string;
  readonly attempts: number;
  readonly nextAt: string | null;
  readonly failedAt: string | null;
  readonly error: string | null;
};

/** Why a request is refused. */
export type ApiError = {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details?: unknown;
  readonly retryable?: boolean;
  readonly retryAfterMs?: number;
};

/** What a client sends. */
export type RequestFrame = {
  readonly type: "req";
  readonly id: string;
  readonly method: string;
  readonly params?: { readonly [member: string]: unknown } | null;
};

/** The answer to the request with its `id`. */
export type ResponseFrame = { readonly type: "res"; readonly id: string; readonly ok: true; readonly payload: unknown } | { readonly type: "res"; readonly id: string; readonly ok: false; readonly error: ApiError };

/** Something happened. */
export type EventFrame = {
  readonly type: "event";
  readonly event: string;
  readonly payload: unknown;
  readonly seq: number;
};

/** A text of a skill that stays: the client that keeps the conversation keeps it in its place. */
export type HookFrame = {
  readonly type: "hook";
  readonly name: string;
  readonly role: "system" | "user";
  readonly content: string;
  readonly skill: string;
  readonly timing: string;
  readonly id: unknown;
  readonly sig: string;
  readonly sessionKey: string;
  readonly runId: string;
  readonly seq: number;
};

/** A hook of the configuration, or a text of a skill, at one checkpoint; `agents` is empty where it is about all. `why` and `origin`, its place in a file, are for owners. */
export type ConfiguredHook = {
  readonly name: string;
  readonly family: string;
  readonly event: CheckpointName;
  readonly runs: "before" | "after";
  readonly priority: number;
  readonly state: GuardState;
  readonly step: string | null;
  readonly why: string | null;
  readonly agents: readonly string[];
  readonly matcher: string;
  readonly timeoutMs: number | null;
  readonly onFailure: string | null;
  readonly origin: string | null;
};

/** How hooks stand: those of the configuration and the rules that you see. */
export type GuardsSummary = {
  readonly counts: { readonly armed: number; readonly unproven: number; readonly broken: number; readonly tripped: number; readonly disabled: number };
  readonly notArmed: readonly GuardLine[];
};

/** A hook that somebody should look at; `step` is the step of its proof that failed. Of hooks of the configuration, `why` is for owners. */
export type GuardLine = {
  readonly name: string;
  readonly family: string;
  readonly hookId: string | null;
  readonly events: readonly CheckpointName[];
  readonly state: GuardState;
  readonly step: string | null;
  readonly why: string | null;
};

/** What hooks decided: each run counts once. `partial` says that there was more than is counted, and `since` from when on it is counted. */
export type DecisionsOverTime = {
  readonly since: string;
  readonly bucketMs: number;
  readonly partial: boolean;
  readonly buckets: readonly DecisionBucket[];
  readonly total: DecisionCounts;
};

/** How often hooks let something pass, refused it, asked a person, or failed. */
export type DecisionCounts = {
  readonly allowed: number;
  readonly blocked: number;
  readonly asked: number;
  readonly faults: number;
};

/** The counts of the time from `at` on. */
export type DecisionBucket = DecisionCounts & {
  readonly at: string;
};

/** What one hook did. */
export type HookCounts = DecisionCounts & {
  readonly name: string;
  readonly family: string;
  readonly runs: number;
  readonly p95Ms: number | null;
};

/** A line of the change log; `diff` is a JSON Patch without secrets. */
export type HookChange = {
  readonly id: string;
  readonly tenant_id: string;
  readonly hook_id: string | null;
  readonly hook_name: string | null;
  readonly at: string;
  readonly actor: string;
  readonly action: string;
  readonly version: number;
  readonly diff: unknown;
};

/** A matcher, held against names of tools. */
export type MatcherCheck = {
  readonly ok: boolean;
  readonly error?: string;
  readonly matches: readonly string[];
};

/** A condition; the place is that of the first error, where the parser says it. */
export type ConditionCheck = {
  readonly ok: boolean;
  readonly error?: string;
  readonly line?: number | null;
  readonly column?: number | null;
};

/** A hook as it was; `hook` has the members of `Hook` but its version and its times, without secrets. */
export type HookVersion = {
  readonly version: number;
  readonly at: string;
  readonly actor: string;
  readonly action: string;
  readonly hook: { readonly [member: string]: unknown };
};

/** One thing that `doctor` looked at. */
export type DoctorCheck = {
  readonly what: string;
  readonly name: string;
  readonly state: "ok" | "note" | "failed";
  readonly step: string | null;
  readonly message: string;
  readonly stderr: string;
};

/** What `doctor` found, and when; this server keeps it until it is run again. */
export type DoctorFindings = {
  readonly checks: readonly DoctorCheck[];
  readonly guards: { readonly armed: number; readonly total: number };
  readonly at: string;
};

/** A provider of models; it is not asked, but has its key. */
export type ProviderHealth = {
  readonly name: string;
  readonly url: string | null;
  readonly ok: boolean;
  readonly error: string | null;
};

/** The store, asked now. */
export type StoreHealth = {
  readonly kind: string;
  readonly url: string | null;
  readonly schemaLevel: number;
  readonly ok: boolean;
  readonly error: string | null;
  readonly answeredMs: number;
  readonly waitingJobs: number | null;
};

/** The child of a process hook. */
export type ProcessHookHealth = {
  readonly name: string;
  readonly state: "up" | "starting" | "down";
  readonly restarts: number;
  readonly answeredMsAgo: number | null;
  readonly fault: string | null;
  readonly why: string | null;
  readonly droppedEvents: number;
  readonly strayLines: number;
  readonly lastStderr: string | null;
};

/** An MCP server. */
export type McpServerHealth = {
  readonly name: string;
  readonly state: "up" | "down";
  readonly restarts: number;
  readonly tools: number;
  readonly why: string | null;
  readonly lastStderr: string | null;
};

/** What keeps a text of a skill out of conversations: the skill, the code of the finding, and the finding in words, for owners. */
export type SkillHealth = {
  readonly name: string;
  readonly code: string;
  readonly why: string | null;
};

/** A circuit breaker that is open, or to which outcomes count: it opens once `counted` reaches `threshold` within the window. `tenants` counts those for whom a global one is open, for owners. */
export type BreakerHealth = {
  readonly hookId: string;
  readonly name: string;
  readonly event: CheckpointName;
  readonly onTrip: Fallback;
  readonly trippedAt: string | null;
  readonly tenants: number;
  readonly counted: number;
  readonly threshold: number;
  readonly windowSeconds: number;
};

/** A turn in a listing; it ends `failed` where a hook ends the turn, and `stopped` where a hook or a person stops the run; `reason` says what was stopped last, `asked` counts calls that a person was asked about, `waiting` those nobody answered, `faults` the events at which a hook failed; `tenantId` is for owners. */
export type TurnLine = {
  readonly turnId: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly userId: string | null;
  readonly subAgent: boolean;
  readonly prompt: string | null;
  readonly startedAt: string;
  readonly endedAt: string | null;
  readonly ending: TurnEnding;
  readonly error?: string;
  readonly reason?: string;
  readonly calls: number;
  readonly blocked: number;
  readonly asked: number;
  readonly waiting: number;
  readonly faults: number;
  readonly tenantId?: string;
};

/** A turn as a waterfall. `parentSpanId` is the call that a sub-agent works for; `truncated` says that older events are left out; `costUsd` is the sum of its own model calls, as far as their prices are known. */
export type TurnDetail = {
  readonly turn: TurnLine;
  readonly parentTurnId: string | null;
  readonly parentSpanId: string | null;
  readonly durationMs: number;
  readonly spans: readonly TurnSpan[];
  readonly truncated: boolean;
  readonly costUsd?: string;
};

/** A bar: a round, a model call, a call of a tool with its run, or a checkpoint with its hooks. Times are milliseconds from the start of the turn; `call` are the arguments as the hooks left them, `usage` what a model call cost in tokens, where the provider reports it, and `costUsd` in dollars with nine decimals, where the model door to its vendor has a price for the model; cached input counts at the full price. */
export type TurnSpan = {
  readonly id: string;
  readonly parentId: string | null;
  readonly kind: TurnSpanKind;
  readonly name: string;
  readonly round: number;
  readonly startMs: number;
  readonly durationMs: number | null;
  readonly eventId?: string;
  readonly at?: string;
  readonly tool?: string;
  readonly toolCallId?: string;
  readonly ruling?: string;
  readonly answeredByHook?: true;
  readonly text?: string;
  readonly call?: TurnCall;
  readonly permit?: string;
  readonly digest?: string;
  readonly model?: string;
  readonly content?: string;
  readonly usage?: Usage;
  readonly costUsd?: string;
  readonly result?: string;
  readonly isError?: boolean;
  readonly hooks?: readonly TurnHook[];
};

/** A call of a model. `before` is the request that hooks were given, `after` what they made of it, null where they changed nothing; `complete` is false where the records do not keep all that they put there. */
export type SeenCall = {
  readonly round: number;
  readonly purpose: "plan" | "step" | "last_words";
  readonly before: SeenRequest;
  readonly after: SeenRequest | null;
  readonly complete: boolean;
  readonly changedBy: readonly string[];
  readonly notes: readonly string[];
};

/** What a model is sent. */
export type SeenRequest = {
  readonly model: string;
  readonly messages: readonly SeenMessage[];
  readonly tools: readonly string[];
};

/** A message that a model is sent, without secrets; `isNew` where no call before had it, `changed` in `after` where a hook changed it or put it there; `bytes` where only the beginning is shown. */
export type SeenMessage = {
  readonly role: MessageRole;
  readonly content: string;
  readonly tool_calls?: readonly ToolCallPart[];
  readonly tool_call_id?: string;
  readonly from: string;
  readonly skill?: string;
  readonly hook?: string;
  readonly isNew: boolean;
  readonly changed?: true;
  readonly bytes?: number;
};

/** What a hook did at a checkpoint, and when it ran last. With `allTenants`, those with `tenantId` are of that tenant, and those without of all together. */
export type HookCountsAt = HookCounts & {
  readonly event: CheckpointName;
  readonly lastAt: string | null;
  readonly tenantId?: string;
};

/** A hook of the configuration or a text of a skill at an event: whether it would run, and if not why. */
export type ConfiguredChainLine = ConfiguredHook & {
  readonly wouldRun: boolean;
  readonly reason: string;
};

/** Arguments of a call without secrets; of long ones only the beginning. */
export type TurnCall = {
  readonly arguments?: { readonly [member: string]: unknown };
  readonly beginning?: string;
  readonly bytes?: number;
  readonly sha256?: string;
};

/** A hook at a checkpoint. Of one that did not run, `reason` says why, `compared`, `value` and `by` with what. `change` is a JSON Patch. */
export type TurnHook = {
  readonly name: string;
  readonly family: string;
  readonly checkpoint: CheckpointName;
  readonly ran: boolean;
  readonly startMs: number | null;
  readonly durationMs: number | null;
  readonly slotWaitMs?: number;
  readonly verdict?: string;
  readonly reason?: string;
  readonly by?: string;
  readonly value?: string;
  readonly compared?: { readonly pattern: string; readonly value: string };
  readonly fault?: string;
  readonly faultDetail?: string;
  readonly cause?: string;
  readonly change?: unknown;
  readonly dropped?: readonly string[];
  readonly warnings?: readonly string[];
  readonly again?: true;
  readonly execution?: TurnExecution;
};

/** What is kept of the execution of a rule at a checkpoint. */
export type TurnExecution = {
  readonly id: string;
  readonly hookId: string | null;
  readonly version: number;
  readonly handlerType: HandlerType;
  readonly decision: Decision;
  readonly effective?: string;
  readonly error?: string;
  readonly retry: number;
  readonly httpStatus?: number;
  readonly stdoutBytes?: number;
  readonly stderrBytes?: number;
  readonly model?: string;
  readonly tokens?: number;
  readonly cached?: true;
  readonly rewrite?: string;
};

/** What each method takes and gives. */
export type Methods = {
  /** Anybody; the first request of a connection; `scopes` are what it may do of what its role allows. */
  readonly "connect": {
    readonly params: { readonly token?: string; readonly user_id?: string; readonly tenant_id?: string; readonly tenant_hint?: string; readonly tenant_scope?: string; readonly consoleKey?: string; readonly protocolVersion?: 3; readonly protocol_version?: unknown; readonly sender_id?: string; readonly locale?: string; readonly client?: unknown; readonly version?: unknown; readonly pairing?: unknown };
    readonly payload: { readonly protocol: 3; readonly role: CallerRole; readonly user_id: string; readonly tenant_id: string; readonly is_owner: boolean; readonly is_master_scope: boolean; readonly edition: Edition; readonly server: { readonly name: string; readonly version: string }; readonly tenant_name: string; readonly tenant_slug: string; readonly scopes: readonly KeyScope[] };
  };
  /** Least role: viewer; `allTenants`: owners only, each agent once for each tenant. */
  readonly "agents.list": {
    readonly params: { readonly allTenants?: boolean };
    readonly payload: { readonly agents: readonly Agent[] };
  };
  /** Least role: viewer; 20 unless `limit` says otherwise, 200 at most; `allTenants`: owners only. */
  readonly "sessions.list": {
    readonly params: { readonly agentId?: string; readonly channel?: string; readonly limit?: number; readonly offset?: number; readonly allTenants?: boolean };
    readonly payload: { readonly sessions: readonly SessionLine[]; readonly total: number; readonly limit: number; readonly offset: number };
  };
  /** Least role: viewer. */
  readonly "sessions.preview": {
    readonly params: { readonly key: string };
    readonly payload: { readonly key: string; readonly messages: readonly ShownMessage[]; readonly summary: string };
  };
  /** Least role: operator; what is absent stays, an empty text clears, `metadata` is replaced whole; `model` is that of the turns that begin from then on. */
  readonly "sessions.patch": {
    readonly params: { readonly key: string; readonly label?: string; readonly model?: string; readonly metadata?: { readonly [member: string]: unknown } };
    readonly payload: { readonly ok: true };
  };
  /** Least role: operator. */
  readonly "sessions.delete": {
    readonly params: { readonly key: string };
    readonly payload: { readonly ok: true };
  };
  /** Least role: operator; the conversation starts over; its journal keeps what was said. */
  readonly "sessions.reset": {
    readonly params: { readonly key: string };
    readonly payload: { readonly ok: true };
  };
  /** Least role: operator; the conversation goes on from its last messages: 4 unless `keepLast` says otherwise. */
  readonly "sessions.compact": {
    readonly params: { readonly key: string; readonly keepLast?: number };
    readonly payload: { readonly ok: true };
  };
  /** Least role: viewer. */
  readonly "chat.history": {
    readonly params: { readonly agentId?: string; readonly sessionKey?: string };
    readonly payload: { readonly messages: readonly ShownMessage[] };
  };
  /** Least role: viewer; `resumed` where the turn was cut, such as by a restart, and goes on. */
  readonly "chat.session.status": {
    readonly params: { readonly agentId?: string; readonly sessionKey?: string };
    readonly payload: { readonly isRunning: boolean; readonly runId: string | null; readonly activity: Activity | null; readonly resumed?: true };
  };
  /** Least role: operator; when the run ends; `parked` where the server goes away while a person is waited for. With `edits` the message takes the place of your message at `place`, from 0, of the `of` messages that `chat.history` has, once its gates allow it; what came after it leaves the conversation and stays in its journal. `at` is its `created_at`: if another message stands there by now, nothing is sent. `modelOverride` names any model (`PROVIDER/MODEL`) of a provider of the configuration, whatever it costs. */
  readonly "chat.send": {
    readonly params: { readonly message: string; readonly messageId?: string; readonly agentId?: string; readonly sessionKey?: string; readonly stream?: boolean; readonly media?: readonly string[]; readonly modelOverride?: string; readonly history?: readonly HistoryMessage[]; readonly edits?: { readonly place: number; readonly of: number; readonly at?: string }; readonly skills?: readonly string[]; readonly enableTools?: boolean };
    readonly payload: { readonly runId: string; readonly content: string; readonly usage: Usage; readonly thinking?: string; readonly media?: readonly string[] } | { readonly injected: true; readonly runId: string | null } | { readonly cancelled: true } | { readonly parked: true; readonly approvalIds: readonly string[] };
  };
  /** Least role: operator. */
  readonly "chat.inject": {
    readonly params: { readonly sessionKey: string; readonly message: string; readonly label?: string };
    readonly payload: { readonly ok: true; readonly messageId: string };
  };
  /** Least role: operator; one of both is needed. */
  readonly "chat.abort": {
    readonly params: { readonly sessionKey?: string; readonly runId?: string };
    readonly payload: { readonly ok: true; readonly aborted: boolean; readonly runIds: readonly string[] };
  };
  /** Least role: viewer; newest first; 50 unless `limit` says otherwise, 200 at most; a page may be short, and `nextCursor` is empty at the end; `text` is looked for in reasons; `allTenants` and `tenantId`: owners only; owners also open turns of other tenants by ID. */
  readonly "turns.list": {
    readonly params: { readonly agentId?: string; readonly sessionKey?: string; readonly tool?: string; readonly decision?: TurnOutcome; readonly hook?: string; readonly text?: string; readonly since?: string; readonly until?: string; readonly limit?: number; readonly cursor?: string; readonly allTenants?: boolean; readonly tenantId?: string };
    readonly payload: { readonly turns: readonly TurnLine[]; readonly nextCursor: string };
  };
  /** Least role: viewer; all that records and the journal tell of one turn, with the turns of its sub-agents, oldest first. */
  readonly "turns.get": {
    readonly params: { readonly turnId: string };
    readonly payload: { readonly turn: TurnDetail; readonly subAgents: readonly TurnDetail[] };
  };
  /** Least role: viewer; what the model was sent in a round, 0 for the plan: made again from the journal and the records. */
  readonly "turns.seen": {
    readonly params: { readonly turnId: string; readonly round: number };
    readonly payload: { readonly call: SeenCall };
  };
  /** Least role: viewer; the last 24 hours unless `since` says otherwise; below admin, decisions are those of your own sessions; `approvalsWaiting` is null for those who may not answer; `allTenants`: owners only; `budget` is always that of your own tenant. */
  readonly "overview.get": {
    readonly params: { readonly since?: string; readonly allTenants?: boolean };
    readonly payload: { readonly since: string; readonly until: string; readonly guards: GuardsSummary; readonly approvalsWaiting: number | null; readonly decisions: DecisionsOverTime; readonly slowest: readonly HookCounts[]; readonly blocking: readonly HookCounts[]; readonly budget: Budget; readonly changes: readonly HookChange[] };
  };
  /** Least role: viewer; only the store is asked again; nodes, addresses, faults in words, lines of standard error and what `doctor.run` found last are for owners. */
  readonly "health.get": {
    readonly params: { readonly [member: string]: never };
    readonly payload: { readonly guards: GuardsSummary; readonly providers: readonly ProviderHealth[]; readonly store: StoreHealth; readonly nodes: readonly Node[]; readonly processHooks: readonly ProcessHookHealth[]; readonly mcpServers: readonly McpServerHealth[]; readonly skills: readonly SkillHealth[]; readonly breakers: readonly BreakerHealth[]; readonly budget: Budget; readonly doctor: DoctorFindings | null };
  };
  /** Least role: owner; what `pintle doctor` finds now, in a process of its own; one at a time, two minutes at most. */
  readonly "doctor.run": {
    readonly params: { readonly [member: string]: never };
    readonly payload: { readonly checks: readonly DoctorCheck[]; readonly guards: { readonly armed: number; readonly total: number }; readonly at: string };
  };
  /** Least role: owner; the processes that share one database. */
  readonly "nodes.list": {
    readonly params: { readonly [member: string]: never };
    readonly payload: { readonly nodes: readonly Node[] };
  };
  /** Least role: operator; those that wait, unless `all`; `allTenants`: owners only; they answer in that tenant. */
  readonly "approvals.list": {
    readonly params: { readonly all?: boolean; readonly allTenants?: boolean };
    readonly payload: { readonly approvals: readonly Approval[] };
  };
  /** Least role: operator. */
  readonly "approvals.get": {
    readonly params: { readonly id: string };
    readonly payload: { readonly approval: Approval };
  };
  /** Least role: operator. */
  readonly "approvals.approve": {
    readonly params: { readonly id: string; readonly reason?: string };
    readonly payload: { readonly approval: Approval };
  };
  /** Least role: operator. */
  readonly "approvals.refuse": {
    readonly params: { readonly id: string; readonly reason?: string };
    readonly payload: { readonly approval: Approval };
  };
  /** Least role: viewer; your own of the console. */
  readonly "auth.sessions.list": {
    readonly params: { readonly [member: string]: never };
    readonly payload: { readonly sessions: readonly ConsoleSession[] };
  };
  /** Least role: viewer; `id`, or `all`. */
  readonly "auth.sessions.revoke": {
    readonly params: { readonly id?: string; readonly all?: boolean };
    readonly payload: { readonly ok: true; readonly ended: number };
  };
  /** Least role: admin; `key` is shown once; `expiresIn` is in seconds. */
  readonly "api_keys.create": {
    readonly params: { readonly name: string; readonly scopes: readonly KeyScope[]; readonly owner?: string; readonly expiresIn?: number };
    readonly payload: { readonly key: string; readonly apiKey: ApiKey };
  };
  /** Least role: admin. */
  readonly "api_keys.list": {
    readonly params: { readonly [member: string]: never };
    readonly payload: { readonly apiKeys: readonly ApiKey[] };
  };
  /** Least role: admin; `reason` says why, in the audit chain. */
  readonly "api_keys.revoke": {
    readonly params: { readonly id: string; readonly reason?: string };
    readonly payload: { readonly ok: true };
  };
  /** Least role: admin. */
  readonly "members.list": {
    readonly params: { readonly [member: string]: never };
    readonly payload: { readonly members: readonly Member[] };
  };
  /** Least role: admin. */
  readonly "members.add": {
    readonly params: { readonly userId: string; readonly role: CallerRole };
    readonly payload: { readonly member: Member };
  };
  /** Least role: admin; `reason` says why, in the audit chain. */
  readonly "members.update": {
    readonly params: { readonly userId: string; readonly role?: CallerRole; readonly enabled?: boolean; readonly reason?: string };
    readonly payload: { readonly member: Member };
  };
  /** Least role: admin; their keys and sessions go with them; `reason` says why, in the audit chain. */
  readonly "members.remove": {
    readonly params: { readonly userId: string; readonly reason?: string };
    readonly payload: { readonly ok: true };
  };
  /** Least role: owner. */
  readonly "tenants.list": {
    readonly params: { readonly [member: string]: never };
    readonly payload: { readonly tenants: readonly Tenant[]; readonly edition: Edition };
  };
  /** Least role: owner. */
  readonly "tenants.create": {
    readonly params: { readonly slug: string; readonly name?: string };
    readonly payload: { readonly tenant: Tenant };
  };
  /** Least role: owner; `tenantId` is an id or a slug; `reason` says why, in the audit chain. */
  readonly "tenants.update": {
    readonly params: { readonly tenantId: string; readonly enabled: boolean; readonly reason?: string };
    readonly payload: { readonly tenant: Tenant };
  };
  /** Least role: viewer; whether they can be read, and which of the agent's tools a matcher is about; nothing is run. */
  readonly "hooks.check": {
    readonly params: { readonly matcher?: string; readonly condition?: string; readonly agentId?: string };
    readonly payload: { readonly tools: readonly string[]; readonly matcher: MatcherCheck | null; readonly condition: ConditionCheck | null };
  };
  /** Least role: viewer; what each hook did at each checkpoint, of the newest 5,000 events; below admin of your own sessions; `allTenants`: owners only, of the newest 5,000 events of all tenants, counted together and for each tenant. */
  readonly "hooks.counts": {
    readonly params: { readonly allTenants?: boolean };
    readonly payload: { readonly events: number; readonly hooks: readonly HookCountsAt[] };
  };
  /** Least role: viewer; from then on `hooks.execution` comes for this hook, or for all. */
  readonly "hooks.watch": {
    readonly params: { readonly on: boolean; readonly hookId?: string };
    readonly payload: { readonly on: boolean };
  };
  /** Least role: owner; `deliveries` are those that are not made. */
  readonly "webhooks.list": {
    readonly params: { readonly [member: string]: never };
    readonly payload: { readonly endpoints: readonly WebhookEndpoint[]; readonly deliveries: readonly WebhookDelivery[] };
  };
  /** Least role: owner; `id` is that of a delivery, or of an endpoint. */
  readonly "webhooks.retry": {
    readonly params: { readonly id: string };
    readonly payload: { readonly retried: number };
  };
  /** Least role: viewer; in running order; `configured` are the hooks of the configuration and the texts of skills, which run before and after the rules; `notArmed` are those of all of them that are on and not proven to work. */
  readonly "hooks.list": {
    readonly params: { readonly event?: CheckpointName; readonly scope?: HookScope; readonly agentId?: string; readonly enabled?: boolean };
    readonly payload: { readonly hooks: readonly Hook[]; readonly configured: readonly ConfiguredHook[]; readonly notArmed: readonly GuardLine[] };
  };
  /** Least role: viewer. */
  readonly "hooks.get": {
    readonly params: { readonly hookId: string };
    readonly payload: { readonly hook: Hook };
  };
  /** Least role: admin. */
  readonly "hooks.create": {
    readonly params: HookInput;
    readonly payload: { readonly hookId: string; readonly warnings?: readonly string[] };
  };
  /** Least role: admin; all or none, in one transaction; a hook that has the scope, event and name of a record is that hook: with `overwrite` it becomes what the record says, and secrets whose mask the record has stay today's. `dryRun` writes nothing and says what would come of each. */
  readonly "hooks.import": {
    readonly params: { readonly hooks: readonly HookInput[]; readonly overwrite?: boolean; readonly dryRun?: boolean };
    readonly payload: { readonly hooks: readonly ImportedHook[] };
  };
  /** Least role: admin; `reason` is for updates with `enabled: false`: it says why, as with `hooks.toggle`. */
  readonly "hooks.update": {
    readonly params: { readonly hookId: string; readonly updates: HookUpdates; readonly ifVersion?: number; readonly reason?: string };
    readonly payload: { readonly hookId: string; readonly version: number; readonly warnings?: readonly string[] };
  };
  /** Least role: admin; `reason` says why, in the change log; where there is none, the change log has none. */
  readonly "hooks.delete": {
    readonly params: { readonly hookId: string; readonly reason?: string };
    readonly payload: { readonly hookId: string };
  };
  /** Least role: admin; `reason` says why somebody switches it off: it is kept as `disabled_reason` until it is on again. */
  readonly "hooks.toggle": {
    readonly params: { readonly hookId: string; readonly enabled: boolean; readonly reason?: string };
    readonly payload: { readonly hookId: string; readonly enabled: boolean };
  };
  /** Least role: admin; `tenantId` is for owners. */
  readonly "hooks.reset": {
    readonly params: { readonly hookId: string; readonly tenantId?: string };
    readonly payload: { readonly hookId: string; readonly enabled: boolean };
  };
  /** Least role: operator; `config` or `hookId`; an operator tries rules that there are, `config` takes an admin. */
  readonly "hooks.test": {
    readonly params: { readonly config?: HookInput; readonly hookId?: string; readonly sampleEvent?: SampleEvent; readonly dryRun?: boolean };
    readonly payload: { readonly result: HookTestResult };
  };
  /** Least role: viewer; `tenantId` is for owners, who without it see every tenant; newest first; 50 unless `limit` says otherwise, 200 at most; `nextCursor` is empty at the end; with `executionId` only that one, if you see it. */
  readonly "hooks.history": {
    readonly params: { readonly tenantId?: string; readonly hookId?: string; readonly event?: CheckpointName; readonly decision?: Decision; readonly fault?: FaultWord; readonly executionId?: string; readonly sessionId?: string; readonly agentId?: string; readonly since?: string; readonly until?: string; readonly limit?: number; readonly cursor?: string };
    readonly payload: { readonly executions: readonly Execution[]; readonly nextCursor: string };
  };
  /** Least role: admin; with what is sealed, but what a global hook wrote is for owners; that it was read is recorded. */
  readonly "hooks.execution.get": {
    readonly params: { readonly id: string };
    readonly payload: Execution & { readonly errorDetail: string | null; readonly stdout: OutputHead | null; readonly stderr: OutputHead | null };
  };
  /** Least role: viewer; nothing is run; `configured` are the hooks of the configuration and the texts of skills at this checkpoint. */
  readonly "hooks.chain": {
    readonly params: { readonly event: CheckpointName; readonly agentId?: string; readonly toolName?: string; readonly toolInput?: { readonly [member: string]: unknown } };
    readonly payload: { readonly chain: readonly ChainLine[]; readonly configured: readonly ConfiguredChainLine[] };
  };
  /** Least role: viewer; `tenantId` is for owners, who without it see every tenant; the change log of one hook, also of a deleted one, or of all, newest first; 50 unless `limit` says otherwise, 200 at most; of one hook there is one page. */
  readonly "hooks.changes": {
    readonly params: { readonly tenantId?: string; readonly hookId?: string; readonly limit?: number; readonly cursor?: string };
    readonly payload: { readonly changes: readonly HookChange[]; readonly nextCursor: string };
  };
  /** Least role: viewer; newest first, as far back as the change log tells. */
  readonly "hooks.versions": {
    readonly params: { readonly hookId: string };
    readonly payload: { readonly versions: readonly HookVersion[] };
  };
  /** Least role: admin; its settings are again those of `version`; secrets stay today's, and so does whether it is on. */
  readonly "hooks.restore": {
    readonly params: { readonly hookId: string; readonly version: number; readonly ifVersion?: number };
    readonly payload: { readonly hookId: string; readonly version: number; readonly warnings?: readonly string[] };
  };
  /** Least role: viewer. */
  readonly "hooks.budget.get": {
    readonly params: { readonly [member: string]: never };
    readonly payload: Budget;
  };
  /** Least role: owner; It is a line of the change log; `reason` says why. */
  readonly "hooks.budget.set": {
    readonly params: { readonly tenantId: string; readonly budgetTotal: number; readonly reason?: string };
    readonly payload: Budget;
  };
};

/** What every event of a run has. */
export type RunHead = {
  readonly agentId: string;
  readonly runId: string;
  readonly sessionKey: string;
  readonly parentAgentId?: string;
  readonly delegationId?: string;
  readonly userId: string;
  readonly channel: string;
  readonly chatId: string;
  readonly live?: false;
};

/** The payloads of the events of a run. */
export type RunEvents = {
  /** the message as the gates left it: what a client keeps */
  readonly "run.started": { readonly message: string; readonly sig: string };
  /** a piece of the answer, with `stream` */
  readonly "chunk": { readonly content: string };
  /** the model's thinking, with `stream` */
  readonly "thinking": { readonly content: string };
  /** as permitted; empty for a call whose arguments cannot be read: its `tool.result` says why */
  readonly "tool.call": { readonly name: string; readonly id: string; readonly arguments: { readonly [member: string]: unknown } };
  /** the first 1,000 characters of the result; `answeredByHook` where a hook answered in the tool's place */
  readonly "tool.result": { readonly name: string; readonly id: string; readonly is_error: boolean; readonly arguments: { readonly [member: string]: unknown }; readonly result: string; readonly answeredByHook?: true };
  readonly "activity": Activity;
  /** an answer that calls of tools followed, or what a tool says to the user */
  readonly "block.reply": { readonly content: string };
  readonly "run.retrying": { readonly attempt: number; readonly maxAttempts: number };
  /** of a call, also its `arguments` as hooks left them */
  readonly "hook.blocked": { readonly hookId: string | null; readonly name: string; readonly event: CheckpointName; readonly reason: string; readonly toolCallId?: string; readonly tool?: string; readonly arguments?: { readonly [member: string]: unknown } };
  readonly "approval.waiting": { readonly approvalId: string; readonly tool: string; readonly toolCallId: string };
  readonly "approval.decided": { readonly approvalId: string; readonly state: ApprovalState };
  /** `media` are the files for the user: `GET /v1/media/ID` */
  readonly "run.completed": { readonly content: string; readonly usage: Usage; readonly media?: readonly string[] };
  readonly "run.failed": { readonly error: string };
  readonly "run.cancelled": undefined;
};

/** An event of a run: the payload of an event `agent`. */
export type RunEvent = {
  [Kind in keyof RunEvents]: RunHead & { readonly type: Kind } & (RunEvents[Kind] extends undefined
      ? { readonly payload?: undefined }
      : { readonly payload: RunEvents[Kind] });
}[keyof RunEvents];

/** The payload of each event. */
export type Events = {
  /** To the connections of its user and to administrators. */
  readonly "agent": RunEvent;
  /** to those who may answer it */
  readonly "approvals.created": Approval;
  /** somebody answered, or it went void */
  readonly "approvals.decided": Approval;
  /** nobody answered in time */
  readonly "approvals.expired": Approval;
  /** to viewers of the tenant; of a global hook to all */
  readonly "hooks.changed": { readonly hookId: string; readonly action: string; readonly version: number | null; readonly actor: string | null; readonly epoch: number };
  /** to viewers of the tenant */
  readonly "hooks.breaker": { readonly hookId: string; readonly tenantId: string; readonly state: "open" | "closed"; readonly reason: string | null; readonly at: string };
  /** once less than a fifth is left */
  readonly "hooks.budget": Budget & { readonly tenantId: string };
  /** to those who called `hooks.watch`; below admin of their own sessions */
  readonly "hooks.execution": Execution;
  /** no new turns begin; running turns end within this time */
  readonly "shutdown": { readonly deadlineMs: number };
};
