-- Hooks that are kept as rows, of all scopes; `tenant_id` is the sentinel's for global ones.
CREATE TABLE agent_hooks (
    id              TEXT    NOT NULL PRIMARY KEY, -- UUID
    tenant_id       TEXT    NOT NULL REFERENCES tenants (id) ON DELETE CASCADE, -- UUID
    agent_ids       TEXT    NOT NULL DEFAULT '[]', -- JSON array of UUIDs
    event           TEXT    NOT NULL
                            CHECK (event IN ('session_start', 'user_prompt_submit', 'pre_tool_use',
                                'post_tool_use', 'stop', 'subagent_start', 'subagent_stop')),
    handler_type    TEXT    NOT NULL CHECK (handler_type IN ('command', 'http', 'prompt', 'script')),
    scope           TEXT    NOT NULL CHECK (scope IN ('global', 'tenant', 'agent')),
    name            TEXT    CHECK (length(name) <= 255),
    config          TEXT    NOT NULL DEFAULT '{}', -- JSON
    matcher         TEXT,
    if_expr         TEXT,
    timeout_ms      INTEGER NOT NULL DEFAULT 5000,
    on_timeout      TEXT    NOT NULL DEFAULT 'block' CHECK (on_timeout IN ('block', 'allow')),
    priority        INTEGER NOT NULL DEFAULT 0,
    enabled         INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
    version         INTEGER NOT NULL DEFAULT 1,
    source          TEXT    NOT NULL DEFAULT 'user' CHECK (source IN ('builtin', 'user')),
    may_rewrite     INTEGER NOT NULL DEFAULT 0 CHECK (may_rewrite IN (0, 1)),
    breaker         TEXT    NOT NULL DEFAULT 'all' CHECK (breaker IN ('all', 'faults', 'off')),
    on_trip         TEXT    NOT NULL DEFAULT 'block' CHECK (on_trip IN ('block', 'allow')),
    tripped_at      TEXT, -- RFC 3339, UTC
    disabled_reason TEXT    NOT NULL DEFAULT '' CHECK (length(disabled_reason) <= 32),
    metadata        TEXT    NOT NULL DEFAULT '{}', -- JSON
    created_by      TEXT,
    created_at      TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), -- RFC 3339, UTC
    updated_at      TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) -- RFC 3339, UTC
) STRICT;

-- A tripped hook is switched off and still answers for its event.
CREATE INDEX idx_hooks_lookup ON agent_hooks (tenant_id, event) WHERE enabled OR tripped_at IS NOT NULL;

-- What each execution came to. It outlives its hook.
CREATE TABLE hook_executions (
    id              TEXT    NOT NULL PRIMARY KEY, -- UUID
    hook_id         TEXT    REFERENCES agent_hooks (id) ON DELETE SET NULL, -- UUID
    hook_name       TEXT    NOT NULL CHECK (length(hook_name) <= 255),
    hook_version    INTEGER NOT NULL,
    handler_type    TEXT    NOT NULL CHECK (handler_type IN ('command', 'http', 'prompt', 'script')),
    tenant_id       TEXT    NOT NULL, -- UUID
    agent_id        TEXT, -- UUID
    session_id      TEXT    CHECK (length(session_id) <= 500),
    turn_id         TEXT, -- UUID
    event_id        TEXT    NOT NULL, -- UUID
    trace_id        TEXT    CHECK (length(trace_id) <= 64),
    event           TEXT    NOT NULL
                            CHECK (event IN ('session_start', 'user_prompt_submit', 'pre_tool_use',
                                'post_tool_use', 'stop', 'subagent_start', 'subagent_stop')),
    tool_name       TEXT    CHECK (length(tool_name) <= 256),
    tool_call_id    TEXT    CHECK (length(tool_call_id) <= 128),
    input_hash      TEXT    CHECK (length(input_hash) = 64),
    decision        TEXT    NOT NULL CHECK (decision IN ('allow', 'block', 'ask', 'error', 'timeout')),
    reason          TEXT    CHECK (length(reason) <= 256),
    duration_ms     INTEGER NOT NULL DEFAULT 0,
    retry           INTEGER NOT NULL DEFAULT 0,
    dedup_key       TEXT    CHECK (length(dedup_key) <= 128),
    error           TEXT    CHECK (length(error) <= 256),
    error_detail    BLOB, -- encrypted
    metadata        TEXT    NOT NULL DEFAULT '{}', -- JSON
    created_at      TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) -- RFC 3339, UTC
) STRICT;

CREATE UNIQUE INDEX hook_executions_once ON hook_executions (dedup_key) WHERE dedup_key IS NOT NULL;
CREATE INDEX hook_executions_by_tenant ON hook_executions (tenant_id, created_at DESC, id DESC);
CREATE INDEX hook_executions_by_hook ON hook_executions (hook_id, created_at DESC, id DESC);
CREATE INDEX hook_executions_by_session ON hook_executions (session_id, created_at);
CREATE INDEX hook_executions_by_age ON hook_executions (created_at);

-- Tokens of prompt hooks, by calendar month (UTC).
CREATE TABLE tenant_hook_budget (
    tenant_id       TEXT    NOT NULL PRIMARY KEY REFERENCES tenants (id) ON DELETE CASCADE, -- UUID
    month_start     TEXT    NOT NULL, -- YYYY-MM-DD
    budget_total    INTEGER NOT NULL DEFAULT 1000000,
    used            INTEGER NOT NULL DEFAULT 0,
    remaining       INTEGER GENERATED ALWAYS AS (budget_total - used) STORED,
    last_warned_at  TEXT, -- RFC 3339, UTC
    metadata        TEXT    NOT NULL DEFAULT '{}', -- JSON
    updated_at      TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) -- RFC 3339, UTC
) STRICT;
