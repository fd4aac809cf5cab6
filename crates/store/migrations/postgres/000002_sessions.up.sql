-- Conversations: the journal is the truth, append-only; `seq` is the order of keeping within each session. One row of
-- `sessions` says what listings need of a journal, so that they read none.
CREATE TABLE sessions (
    number     BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id  TEXT    NOT NULL,
    session_id TEXT    NOT NULL,
    agent_id   TEXT    NOT NULL, -- of the newest entry
    parent     TEXT,             -- session_id of the one that it works for, if it began as a sub-agent's
    created_at TEXT    NOT NULL, -- RFC 3339, UTC
    updated_at TEXT    NOT NULL, -- RFC 3339, UTC
    title      TEXT    NOT NULL,
    turns      BIGINT  NOT NULL,
    open_turn  TEXT,
    opened     BOOLEAN NOT NULL, -- whether a process came and did not say that it left
    last_end   TEXT,
    last_entry BIGINT  NOT NULL  -- the seq of its newest entry: times may go back, this does not
);

CREATE UNIQUE INDEX sessions_by_id ON sessions (pintle_digest(tenant_id), pintle_digest(session_id));
CREATE INDEX sessions_by_name ON sessions USING hash (session_id);
CREATE INDEX sessions_by_tenant ON sessions USING hash (tenant_id);
CREATE INDEX sessions_by_parent ON sessions USING hash (parent) WHERE parent IS NOT NULL;

CREATE SEQUENCE journal_seq;

CREATE TABLE journal (
    seq     BIGINT NOT NULL DEFAULT nextval('journal_seq') PRIMARY KEY,
    session BIGINT NOT NULL REFERENCES sessions (number),
    at      TEXT   NOT NULL, -- RFC 3339, UTC
    body    TEXT   NOT NULL  -- JSON, one entry
);

ALTER SEQUENCE journal_seq OWNED BY journal.seq;

CREATE INDEX journal_by_session ON journal (session, seq);

-- Who took a session last. It counts only while the advisory lock `place` is held. `token` names the store that took
-- it: one whose connection broke finds out by it that somebody else was here meanwhile.
CREATE TABLE holders (
    place      BIGINT NOT NULL PRIMARY KEY,
    tenant_id  TEXT   NOT NULL,
    session_id TEXT   NOT NULL,
    pid        BIGINT NOT NULL,
    host       TEXT   NOT NULL,
    boot       TEXT   NOT NULL, -- which run of that machine
    token      UUID   NOT NULL
);

CREATE INDEX holders_by_name ON holders USING hash (session_id);

-- Questions for persons. `body` is the question as it was asked; what became of it stands in columns of their own.
CREATE TABLE approvals (
    seq          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           TEXT   COLLATE "C" NOT NULL UNIQUE,
    tenant_id    TEXT   NOT NULL,
    session_id   TEXT   NOT NULL,
    turn_id      TEXT   NOT NULL,
    tool_call_id TEXT   NOT NULL,
    state        TEXT   NOT NULL,
    answered_by  TEXT,
    note         TEXT   NOT NULL,
    body         TEXT   NOT NULL  -- JSON
);

CREATE INDEX approvals_by_session ON approvals USING hash (session_id);
CREATE INDEX approvals_that_wait ON approvals USING hash (session_id) WHERE state = 'waiting';
