/** What the gateway sends and takes, as `docs/reference/websocket.md` and the published record have it. */

export type Role = "viewer" | "operator" | "admin" | "owner";
export type Edition = "lite" | "standard";

export interface Welcome {
  readonly protocol: number;
  readonly role: Role;
  readonly user_id: string;
  readonly tenant_id: string;
  readonly tenant_name?: string;
  readonly tenant_slug?: string;
  readonly is_master_scope: boolean;
  readonly edition: Edition;
  readonly server: { readonly name: string; readonly version: string };
}

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
export type JsonObject = { readonly [name: string]: Json };

export const EVENTS = [
  "session_start",
  "user_prompt_submit",
  "pre_tool_use",
  "post_tool_use",
  "subagent_start",
  "subagent_stop",
  "stop",
] as const;
export type HookEvent = (typeof EVENTS)[number];
/** The events at which a hook decides; at the others it only looks. */
export const GATES: readonly HookEvent[] = ["user_prompt_submit", "pre_tool_use", "subagent_start"];

export const HANDLERS = ["command", "http", "prompt", "script"] as const;
export type Handler = (typeof HANDLERS)[number];
export const SCOPES = ["tenant", "agent", "global"] as const;
export type Scope = (typeof SCOPES)[number];
export type Fallback = "block" | "allow";
export type Breaker = "all" | "faults" | "off";
export const DECISIONS = ["allow", "block", "ask", "error", "timeout"] as const;
export type Decision = (typeof DECISIONS)[number];

export interface Hook {
  readonly id: string;
  readonly tenant_id: string;
  readonly agent_ids: readonly string[];
  readonly event: HookEvent;
  readonly handler_type: Handler;
  readonly scope: Scope;
  readonly name: string;
  readonly config: JsonObject;
  readonly config_hidden?: boolean;
  readonly matcher: string;
  readonly if_expr: string;
  readonly timeout_ms: number;
  readonly on_timeout: Fallback;
  readonly priority: number;
  readonly enabled: boolean;
  readonly version: number;
  readonly source: "builtin" | "user";
  readonly may_rewrite: boolean;
  readonly breaker: Breaker;
  readonly on_trip: Fallback;
  readonly tripped_at: string | null;
  readonly disabled_reason: string;
  readonly metadata: JsonObject;
  readonly created_by: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface TestResult {
  readonly decision: Decision;
  readonly durationMs: number;
  readonly reason?: string;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly statusCode?: number;
  readonly nonJson?: boolean;
  readonly warnings?: readonly string[];
  readonly error?: string;
  readonly updatedInput?: Json;
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
}

export interface Execution {
  readonly id: string;
  readonly hook_id: string | null;
  readonly hook_name: string;
  readonly hook_version: number;
  readonly handler_type: Handler;
  readonly agent_id: string | null;
  readonly session_key: string | null;
  readonly turn_id: string | null;
  readonly trace_id: string | null;
  readonly event: HookEvent;
  readonly tool_name: string | null;
  readonly tool_call_id: string | null;
  readonly input_hash: string | null;
  readonly decision: Decision;
  readonly reason: string | null;
  readonly duration_ms: number;
  readonly error: string | null;
  readonly errorDetail?: string | null;
  readonly metadata: JsonObject;
  readonly created_at: string;
}

export interface ExecutionPage {
  readonly executions: readonly Execution[];
  readonly nextCursor: string;
}

export interface ChainRow {
  readonly hookId: string;
  readonly name: string;
  readonly scope: Scope;
  readonly priority: number;
  readonly state: "on" | "off" | "tripped" | "broken";
  readonly wouldRun: boolean;
  readonly reason: string;
}

export interface Agent {
  readonly id: string;
  readonly uuid: string;
  readonly name: string;
  readonly model: string;
  readonly isRunning: boolean;
}

export interface SessionRow {
  readonly key: string;
  readonly messageCount: number;
  readonly created: string;
  readonly updated: string;
  readonly label?: string | null;
  readonly agentId: string;
  readonly channel: string;
  readonly waiting?: unknown;
  readonly userId?: string;
}

export interface ToolCall {
  readonly id: string;
  readonly function?: { readonly name: string; readonly arguments: string | JsonObject };
  readonly name?: string;
  readonly arguments?: JsonObject;
}

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
  readonly thinking?: string;
  readonly tool_calls?: readonly ToolCall[];
  readonly tool_call_id?: string;
  readonly origin?: string;
  readonly created_at?: string;
}

export type ApprovalState = "waiting" | "approved" | "refused" | "used" | "void" | "expired";

export interface Approval {
  readonly id: string;
  readonly agent_id: string;
  readonly session_id: string;
  readonly sessionKey?: string;
  readonly turn_id: string;
  readonly tool_call_id: string;
  readonly tool: string;
  readonly arguments: JsonObject;
  readonly digest: string;
  readonly by: string;
  readonly reason: string;
  readonly changed_from?: JsonObject;
  readonly again_because?: string;
  readonly asked_at: string;
  readonly expires_at: string;
  readonly state: ApprovalState;
  readonly answered_by?: string;
  readonly note?: string;
}

/** What happens in a run. */
export interface AgentEvent {
  readonly type: string;
  readonly agentId: string;
  readonly runId: string;
  readonly sessionKey?: string;
  readonly payload?: JsonObject;
  readonly parentAgentId?: string;
  readonly delegationId?: string;
}

/** A text of a skill that stays in the conversation. */
export interface HookFrame {
  readonly type: "hook";
  readonly name: string;
  readonly role: "system" | "user";
  readonly content: string;
  readonly skill?: string;
  readonly timing?: string;
  readonly sessionKey?: string;
  readonly runId?: string;
}

/** The params and payload of each method that the pages use. */
export interface Methods {
  "agents.list": [Record<never, never>, { agents: Agent[] }];
  "sessions.list": [{ agentId?: string; limit?: number; offset?: number }, { sessions: SessionRow[]; total: number }];
  "sessions.delete": [{ key: string }, { ok: boolean }];
  "chat.history": [{ sessionKey: string }, { messages: ChatMessage[] }];
  "chat.session.status": [{ sessionKey: string }, { isRunning: boolean; runId: string | null }];
  "chat.send": [
    { sessionKey: string; message: string; stream: boolean },
    { runId?: string; content?: string; injected?: boolean; cancelled?: boolean; parked?: boolean },
  ];
  "chat.inject": [{ sessionKey: string; message: string }, { ok: boolean }];
  "chat.abort": [{ sessionKey: string }, { aborted: boolean }];
  "approvals.list": [{ all?: boolean }, { approvals: Approval[] }];
  "approvals.get": [{ id: string }, { approval: Approval }];
  "approvals.approve": [{ id: string; reason?: string }, { approval: Approval }];
  "approvals.refuse": [{ id: string; reason?: string }, { approval: Approval }];
  "hooks.list": [{ event?: HookEvent }, { hooks: Hook[] }];
  "hooks.get": [{ hookId: string }, { hook: Hook }];
  "hooks.create": [JsonObject, { hookId: string; warnings?: string[] }];
  "hooks.update": [
    { hookId: string; updates: JsonObject; ifVersion?: number },
    { hookId: string; version: number; warnings?: string[] },
  ];
  "hooks.delete": [{ hookId: string }, { hookId: string }];
  "hooks.toggle": [{ hookId: string; enabled: boolean }, { hookId: string; enabled: boolean }];
  "hooks.reset": [{ hookId: string }, { hookId: string; enabled: boolean }];
  "hooks.test": [
    { config?: JsonObject; hookId?: string; sampleEvent: JsonObject; dryRun?: boolean },
    { result: TestResult },
  ];
  "hooks.history": [
    {
      hookId?: string;
      event?: HookEvent;
      decision?: Decision;
      agentId?: string;
      sessionId?: string;
      since?: string;
      limit?: number;
      cursor?: string;
    },
    ExecutionPage,
  ];
  "hooks.execution.get": [{ id: string }, Execution];
  "hooks.chain": [
    { event: HookEvent; agentId?: string; toolName?: string; toolInput?: JsonObject },
    { chain: ChainRow[] },
  ];
}

export type Method = keyof Methods;
export type Params<M extends Method> = Methods[M][0];
export type Payload<M extends Method> = Methods[M][1];
