-- Hooks that are kept as rows, of all scopes; `tenant_id` is the sentinel's for global ones.
CREATE TABLE agent_hooks (
    id              UUID         PRIMARY KEY,
    tenant_id       UUID         NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    agent_ids       UUID[]       NOT NULL DEFAULT '{}',
    event           VARCHAR(32)  NOT NULL CHECK (event IN ('session_start', 'user_prompt_submit', 'pre_tool_use',
                                                           'post_tool_use', 'stop', 'subagent_start',
                                                           'subagent_stop')),
    handler_type    VARCHAR(16)  NOT NULL CHECK (handler_type IN ('command', 'http', 'prompt', 'script')),
    scope           VARCHAR(16)  NOT NULL CHECK (scope IN ('global', 'tenant', 'agent')),
    name            VARCHAR(255),
    config          JSONB        NOT NULL DEFAULT '{}',
    matcher         TEXT,
    if_expr         TEXT,
    timeout_ms      INT          NOT NULL DEFAULT 5000,
    on_timeout      VARCHAR(16)  NOT NULL DEFAULT 'block' CHECK (on_timeout IN ('block', 'allow')),
    priority        INT          NOT NULL DEFAULT 0,
    enabled         BOOLEAN      NOT NULL DEFAULT TRUE,
    version         INT          NOT NULL DEFAULT 1,
    source          VARCHAR(16)  NOT NULL DEFAULT 'user' CHECK (source IN ('builtin', 'user')),
    may_rewrite     BOOLEAN      NOT NULL DEFAULT FALSE,
    breaker         VARCHAR(16)  NOT NULL DEFAULT 'all' CHECK (breaker IN ('all', 'faults', 'off')),
    on_trip         VARCHAR(16)  NOT NULL DEFAULT 'block' CHECK (on_trip IN ('block', 'allow')),
    tripped_at      TIMESTAMPTZ,
    disabled_reason VARCHAR(32)  NOT NULL DEFAULT '',
    metadata        JSONB        NOT NULL DEFAULT '{}',
    created_by      TEXT,
    created_at      TIMESTAMPTZ  NOT NULL DEFAULT now(),
    updated_at      TIMESTAMPTZ  NOT NULL DEFAULT now()
);

-- A tripped hook is switched off and still answers for its event.
CREATE INDEX idx_hooks_lookup ON agent_hooks (tenant_id, event) WHERE enabled OR tripped_at IS NOT NULL;

-- What each execution came to. It outlives its hook.
CREATE TABLE hook_executions (
    id           UUID         PRIMARY KEY,
    hook_id      UUID         REFERENCES agent_hooks (id) ON DELETE SET NULL,
    hook_name    VARCHAR(255) NOT NULL,
    hook_version INT          NOT NULL,
    handler_type VARCHAR(16)  NOT NULL CHECK (handler_type IN ('command', 'http', 'prompt', 'script')),
    tenant_id    UUID         NOT NULL,
    agent_id     UUID,
    session_id   VARCHAR(500),
    turn_id      UUID,
    event_id     UUID         NOT NULL,
    trace_id     VARCHAR(64),
    event        VARCHAR(32)  NOT NULL CHECK (event IN ('session_start', 'user_prompt_submit', 'pre_tool_use',
                                                        'post_tool_use', 'stop', 'subagent_start',
                                                        'subagent_stop')),
    tool_name    VARCHAR(256),
    tool_call_id VARCHAR(128),
    input_hash   CHAR(64),
    decision     VARCHAR(16)  NOT NULL CHECK (decision IN ('allow', 'block', 'ask', 'error', 'timeout')),
    reason       VARCHAR(256),
    duration_ms  INT          NOT NULL DEFAULT 0,
    retry        INT          NOT NULL DEFAULT 0,
    dedup_key    VARCHAR(128),
    error        VARCHAR(256),
    error_detail BYTEA, -- encrypted
    metadata     JSONB        NOT NULL DEFAULT '{}',
    created_at   TIMESTAMPTZ  NOT NULL DEFAULT now()
);

CREATE UNIQUE INDEX hook_executions_once ON hook_executions (dedup_key) WHERE dedup_key IS NOT NULL;
CREATE INDEX hook_executions_by_tenant ON hook_executions (tenant_id, created_at DESC, id DESC);
CREATE INDEX hook_executions_by_hook ON hook_executions (hook_id, created_at DESC, id DESC);
CREATE INDEX hook_executions_by_session ON hook_executions (session_id, created_at);
CREATE INDEX hook_executions_by_age ON hook_executions (created_at);

-- Tokens of prompt hooks, by calendar month (UTC).
CREATE TABLE tenant_hook_budget (
    tenant_id      UUID        PRIMARY KEY REFERENCES tenants (id) ON DELETE CASCADE,
    month_start    DATE        NOT NULL,
    budget_total   BIGINT      NOT NULL DEFAULT 1000000,
    used           BIGINT      NOT NULL DEFAULT 0,
    remaining      BIGINT      GENERATED ALWAYS AS (budget_total - used) STORED,
    last_warned_at TIMESTAMPTZ,
    metadata       JSONB       NOT NULL DEFAULT '{}',
    updated_at     TIMESTAMPTZ NOT NULL DEFAULT now()
);
