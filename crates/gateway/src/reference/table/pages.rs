//! The rows of what the pages of the console about turns and health ask for.

use crate::reference::rows::{MethodRow, Row, method, row};

/// What methods take and give.
pub(in crate::reference) const METHODS: &[MethodRow] = &[
    method(
        "turns.list",
        "{ agentId?: string, sessionKey?: string, tool?: string, decision?: TurnOutcome, hook?: string, text?: string, \
         since?: string, until?: string, limit?: integer, cursor?: string, allTenants?: boolean, tenantId?: string }",
        "{ turns: TurnLine[], nextCursor: string }",
        "newest first; 50 unless `limit` says otherwise, 200 at most; a page may be short, and `nextCursor` is empty at \
         the end; `text` is looked for in reasons; `allTenants` and `tenantId`: owners only; owners also open turns of other tenants by \
         ID",
    ),
    method(
        "turns.get",
        "{ turnId: string }",
        "{ turn: TurnDetail, subAgents: TurnDetail[] }",
        "all that records and the journal tell of one turn, with the turns of its sub-agents, oldest first",
    ),
    method(
        "turns.seen",
        "{ turnId: string, round: integer }",
        "{ call: SeenCall }",
        "what the model was sent in a round, 0 for the plan: made again from the journal and the records",
    ),
    method(
        "hooks.counts",
        "{ allTenants?: boolean }",
        "{ events: integer, hooks: HookCountsAt[] }",
        "what each hook did at each checkpoint, of the newest 5,000 events; below admin of your own sessions; \
         `allTenants`: owners only, of the newest 5,000 events of all tenants, counted together and for each tenant",
    ),
    method(
        "overview.get",
        "{ since?: string, allTenants?: boolean }",
        "{ since: string, until: string, guards: GuardsSummary, approvalsWaiting: integer | null, \
         decisions: DecisionsOverTime, slowest: HookCounts[], blocking: HookCounts[], budget: Budget, \
         changes: HookChange[] }",
        "the last 24 hours unless `since` says otherwise; below admin, decisions are those of your own sessions; \
         `approvalsWaiting` is null for those who may not answer; `allTenants`: owners only; `budget` is always that of \
         your own tenant",
    ),
    method(
        "health.get",
        "{}",
        "{ guards: GuardsSummary, providers: ProviderHealth[], store: StoreHealth, nodes: Node[], \
         processHooks: ProcessHookHealth[], mcpServers: McpServerHealth[], skills: SkillHealth[], breakers: BreakerHealth[], budget: Budget, \
         doctor: DoctorFindings | null }",
        "only the store is asked again; nodes, addresses, faults in words, lines of standard error and what `doctor.run` \
         found last are for owners",
    ),
    method(
        "doctor.run",
        "{}",
        "{ checks: DoctorCheck[], guards: { armed: integer, total: integer }, at: string }",
        "what `pintle doctor` finds now, in a process of its own; one at a time, two minutes at most",
    ),
    method(
        "hooks.changes",
        "{ tenantId?: string, hookId?: string, limit?: integer, cursor?: string }",
        "{ changes: HookChange[], nextCursor: string }",
        "`tenantId` is for owners, who without it see every tenant; the change log of one hook, also of a deleted one, or \
         of all, newest first; 50 unless `limit` says otherwise, 200 at most; of one hook there is one page",
    ),
    method(
        "hooks.check",
        "{ matcher?: string, condition?: string, agentId?: string }",
        "{ tools: string[], matcher: MatcherCheck | null, condition: ConditionCheck | null }",
        "whether they can be read, and which of the agent's tools a matcher is about; nothing is run",
    ),
    method(
        "hooks.versions",
        "{ hookId: string }",
        "{ versions: HookVersion[] }",
        "newest first, as far back as the change log tells",
    ),
    method(
        "hooks.restore",
        "{ hookId: string, version: integer, ifVersion?: integer }",
        "{ hookId: string, version: integer, warnings?: string[] }",
        "its settings are again those of `version`; secrets stay today's, and so does whether it is on",
    ),
];

/// The shapes that have a name.
pub(in crate::reference) const SHAPES: &[Row] = &[
    row(
        "ConfiguredHook",
        "{ name: string, family: string, event: CheckpointName, runs: \"before\" | \"after\", priority: integer, \
         state: GuardState, step: string | null, why: string | null, agents: string[], matcher: string, \
         timeoutMs: integer | null, onFailure: string | null, origin: string | null }",
        "A hook of the configuration, or a text of a skill, at one checkpoint; `agents` is empty where it is about all. \
         `why` and `origin`, its place in a file, are for owners.",
    ),
    row(
        "GuardsSummary",
        "{ counts: { armed: integer, unproven: integer, broken: integer, tripped: integer, disabled: integer }, \
         notArmed: GuardLine[] }",
        "How hooks stand: those of the configuration and the rules that you see.",
    ),
    row(
        "GuardLine",
        "{ name: string, family: string, hookId: string | null, events: CheckpointName[], state: GuardState, \
         step: string | null, why: string | null }",
        "A hook that somebody should look at; `step` is the step of its proof that failed. Of hooks of the \
         configuration, `why` is for owners.",
    ),
    row(
        "DecisionsOverTime",
        "{ since: string, bucketMs: integer, partial: boolean, buckets: DecisionBucket[], total: DecisionCounts }",
        "What hooks decided: each run counts once. `partial` says that there was more than is counted, and `since` from \
         when on it is counted.",
    ),
    row(
        "DecisionCounts",
        "{ allowed: integer, blocked: integer, asked: integer, faults: integer }",
        "How often hooks let something pass, refused it, asked a person, or failed.",
    ),
    row("DecisionBucket", "{ at: string, ...DecisionCounts }", "The counts of the time from `at` on."),
    row(
        "HookCounts",
        "{ name: string, family: string, runs: integer, p95Ms: number | null, ...DecisionCounts }",
        "What one hook did.",
    ),
    row(
        "HookChange",
        "{ id: string, tenant_id: string, hook_id: string | null, hook_name: string | null, at: string, actor: string, \
         action: string, version: integer, diff: unknown }",
        "A line of the change log; `diff` is a JSON Patch without secrets.",
    ),
    row(
        "MatcherCheck",
        "{ ok: boolean, error?: string, matches: string[] }",
        "A matcher, held against names of tools.",
    ),
    row(
        "ConditionCheck",
        "{ ok: boolean, error?: string, line?: integer | null, column?: integer | null }",
        "A condition; the place is that of the first error, where the parser says it.",
    ),
    row(
        "HookVersion",
        "{ version: integer, at: string, actor: string, action: string, hook: object }",
        "A hook as it was; `hook` has the members of `Hook` but its version and its times, without secrets.",
    ),
    row(
        "DoctorCheck",
        "{ what: string, name: string, state: \"ok\" | \"note\" | \"failed\", step: string | null, message: string, \
         stderr: string }",
        "One thing that `doctor` looked at.",
    ),
    row(
        "DoctorFindings",
        "{ checks: DoctorCheck[], guards: { armed: integer, total: integer }, at: string }",
        "What `doctor` found, and when; this server keeps it until it is run again.",
    ),
    row(
        "ProviderHealth",
        "{ name: string, url: string | null, ok: boolean, error: string | null }",
        "A provider of models; it is not asked, but has its key.",
    ),
    row(
        "StoreHealth",
        "{ kind: string, url: string | null, schemaLevel: integer, ok: boolean, error: string | null, \
         answeredMs: integer, waitingJobs: integer | null }",
        "The store, asked now.",
    ),
    row(
        "ProcessHookHealth",
        "{ name: string, state: \"up\" | \"starting\" | \"down\", restarts: integer, answeredMsAgo: integer | null, \
         fault: string | null, why: string | null, droppedEvents: integer, strayLines: integer, \
         lastStderr: string | null }",
        "The child of a process hook.",
    ),
    row(
        "McpServerHealth",
        "{ name: string, state: \"up\" | \"down\", restarts: integer, tools: integer, why: string | null, \
         lastStderr: string | null }",
        "An MCP server.",
    ),
    row(
        "SkillHealth",
        "{ name: string, code: string, why: string | null }",
        "What keeps a text of a skill out of conversations: the skill, the code of the finding, and the finding in words, \
         for owners.",
    ),
    row(
        "BreakerHealth",
        "{ hookId: string, name: string, event: CheckpointName, onTrip: Fallback, trippedAt: string | null, \
         tenants: integer, counted: integer, threshold: integer, windowSeconds: integer }",
        "A circuit breaker that is open, or to which outcomes count: it opens once `counted` reaches `threshold` within \
         the window. `tenants` counts those for whom a global one is open, for owners.",
    ),
    row(
        "TurnLine",
        "{ turnId: string, sessionKey: string, agentId: string, userId: string | null, subAgent: boolean, \
         prompt: string | null, startedAt: string, endedAt: string | null, ending: TurnEnding, error?: string, reason?: string, \
         calls: integer, blocked: integer, asked: integer, waiting: integer, faults: integer, tenantId?: string }",
        "A turn in a listing; it ends `failed` where a hook ends the turn, and `stopped` where a hook or a person stops the \
         run; `reason` says what was stopped last, `asked` counts calls that a person was asked about, `waiting` those nobody answered, \
         `faults` the events at which a hook failed; `tenantId` is for owners.",
    ),
    row(
        "TurnDetail",
        "{ turn: TurnLine, parentTurnId: string | null, parentSpanId: string | null, durationMs: number, \
         spans: TurnSpan[], truncated: boolean, costUsd?: string }",
        "A turn as a waterfall. `parentSpanId` is the call that a sub-agent works for; `truncated` says that older \
         events are left out; `costUsd` is the sum of its own model calls, as far as their prices are known.",
    ),
    row(
        "TurnSpan",
        "{ id: string, parentId: string | null, kind: TurnSpanKind, name: string, round: integer, startMs: number, \
         durationMs: number | null, eventId?: string, at?: string, tool?: string, toolCallId?: string, ruling?: string, \
         answeredByHook?: true, text?: string, call?: TurnCall, permit?: string, digest?: string, model?: string, \
         content?: string, usage?: Usage, costUsd?: string, result?: string, isError?: boolean, hooks?: TurnHook[] }",
        "A bar: a round, a model call, a call of a tool with its run, or a checkpoint with its hooks. Times are \
         milliseconds from the start of the turn; `call` are the arguments as the hooks left them, `usage` what a model \
         call cost in tokens, where the provider reports it, and `costUsd` in dollars with nine decimals, where the \
         model door to its vendor has a price for the model; cached input counts at the full price.",
    ),
    row(
        "SeenCall",
        "{ round: integer, purpose: \"plan\" | \"step\" | \"last_words\", before: SeenRequest, \
         after: SeenRequest | null, complete: boolean, changedBy: string[], notes: string[] }",
        "A call of a model. `before` is the request that hooks were given, `after` what they made of it, null where they \
         changed nothing; `complete` is false where the records do not keep all that they put there.",
    ),
    row("SeenRequest", "{ model: string, messages: SeenMessage[], tools: string[] }", "What a model is sent."),
    row(
        "SeenMessage",
        "{ role: MessageRole, content: string, tool_calls?: ToolCallPart[], tool_call_id?: string, from: string, \
         skill?: string, hook?: string, isNew: boolean, changed?: true, bytes?: integer }",
        "A message that a model is sent, without secrets; `isNew` where no call before had it, `changed` in `after` where \
         a hook changed it or put it there; `bytes` where only the beginning is shown.",
    ),
    row(
        "HookCountsAt",
        "{ ...HookCounts, event: CheckpointName, lastAt: string | null, tenantId?: string }",
        "What a hook did at a checkpoint, and when it ran last. With `allTenants`, those with `tenantId` are of that tenant, \
         and those without of all together.",
    ),
    row(
        "ConfiguredChainLine",
        "{ ...ConfiguredHook, wouldRun: boolean, reason: string }",
        "A hook of the configuration or a text of a skill at an event: whether it would run, and if not why.",
    ),
    row(
        "TurnCall",
        "{ arguments?: object, beginning?: string, bytes?: integer, sha256?: string }",
        "Arguments of a call without secrets; of long ones only the beginning.",
    ),
    row(
        "TurnHook",
        "{ name: string, family: string, checkpoint: CheckpointName, ran: boolean, startMs: number | null, \
         durationMs: number | null, slotWaitMs?: number, verdict?: string, reason?: string, by?: string, value?: string, \
         compared?: { pattern: string, value: string }, fault?: string, faultDetail?: string, cause?: string, \
         change?: unknown, dropped?: string[], warnings?: string[], again?: true, execution?: TurnExecution }",
        "A hook at a checkpoint. Of one that did not run, `reason` says why, `compared`, `value` and `by` with what. \
         `change` is a JSON Patch.",
    ),
    row(
        "TurnExecution",
        "{ id: string, hookId: string | null, version: integer, handlerType: HandlerType, decision: Decision, \
         effective?: string, error?: string, retry: integer, httpStatus?: integer, stdoutBytes?: integer, \
         stderrBytes?: integer, model?: string, tokens?: integer, cached?: true, rewrite?: string }",
        "What is kept of the execution of a rule at a checkpoint.",
    ),
];

/// The lists of words.
pub(in crate::reference) fn words() -> Vec<(&'static str, Vec<&'static str>)> {
    use pintle_domain::store::TurnOutcome;

    use crate::guards::GuardState;
    use crate::turns::{SpanKind, TurnEnding};
    vec![
        ("GuardState", GuardState::ALL.iter().map(|it| it.word()).collect()),
        ("TurnOutcome", TurnOutcome::ALL.iter().map(|it| it.word()).collect()),
        ("TurnEnding", TurnEnding::ALL.iter().map(|it| it.word()).collect()),
        ("TurnSpanKind", SpanKind::ALL.iter().map(|it| it.word()).collect()),
    ]
}
