-- Conversations: the journal is the truth, append-only; `seq` is the order of keeping over all sessions, and so the
-- order within each. One row of `sessions` says what listings need of a journal, so that they read none.
CREATE TABLE sessions (
    number     INTEGER PRIMARY KEY,
    tenant_id  TEXT    NOT NULL,
    session_id TEXT    NOT NULL,
    agent_id   TEXT    NOT NULL, -- of the newest entry
    parent     TEXT,             -- session_id of the one that it works for, if it began as a sub-agent's
    created_at TEXT    NOT NULL, -- RFC 3339, UTC
    updated_at TEXT    NOT NULL, -- RFC 3339, UTC
    title      TEXT    NOT NULL,
    turns      INTEGER NOT NULL,
    open_turn  TEXT,
    opened     INTEGER NOT NULL, -- whether a process came and did not say that it left
    last_end   TEXT,
    last_entry INTEGER NOT NULL, -- the seq of its newest entry: times may go back, this does not
    UNIQUE (tenant_id, session_id)
) STRICT;

CREATE INDEX sessions_by_parent ON sessions (tenant_id, parent) WHERE parent IS NOT NULL;

CREATE TABLE journal (
    seq     INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (number),
    at      TEXT    NOT NULL, -- RFC 3339, UTC
    body    TEXT    NOT NULL  -- JSON, one entry
) STRICT;

CREATE INDEX journal_by_session ON journal (session);

-- Who took a session last. It counts only while the lock beside the file is held.
CREATE TABLE holders (
    tenant_id  TEXT    NOT NULL,
    session_id TEXT    NOT NULL,
    pid        INTEGER NOT NULL,
    started    INTEGER,           -- clock ticks after boot, to tell the process from a later one of that number
    PRIMARY KEY (tenant_id, session_id)
) STRICT, WITHOUT ROWID;

-- Questions for persons. `body` is the question as it was asked; what became of it stands in columns of their own.
CREATE TABLE approvals (
    seq          INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE,
    tenant_id    TEXT    NOT NULL,
    session_id   TEXT    NOT NULL,
    turn_id      TEXT    NOT NULL,
    tool_call_id TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    answered_by  TEXT,
    note         TEXT    NOT NULL,
    body         TEXT    NOT NULL  -- JSON
) STRICT;

CREATE INDEX approvals_by_call ON approvals (tenant_id, session_id, turn_id, tool_call_id);
CREATE INDEX approvals_that_wait ON approvals (tenant_id, session_id) WHERE state = 'waiting';
