-- One row for one event, append-only; `seq` is the order of keeping. The hooks are one JSON array: they are written
-- and read together, and one insert per event keeps the commit before a tool call short.
CREATE TABLE events (
    seq          INTEGER PRIMARY KEY,
    event_id     TEXT    NOT NULL,
    at           TEXT    NOT NULL, -- RFC 3339, UTC
    event        TEXT    NOT NULL,
    checkpoint   TEXT    NOT NULL,
    tenant_id    TEXT    NOT NULL,
    agent_id     TEXT    NOT NULL,
    session_id   TEXT    NOT NULL,
    turn_id      TEXT    NOT NULL,
    iteration    INTEGER NOT NULL,
    tool_call_id TEXT,
    tool         TEXT,
    is_test      INTEGER NOT NULL,
    ruling       TEXT    NOT NULL,
    text         TEXT,
    permit       TEXT,
    substituted  INTEGER NOT NULL,
    hooks        TEXT    NOT NULL  -- JSON array, one object for each registered hook
) STRICT;

CREATE INDEX events_by_id ON events (event_id);
CREATE INDEX events_by_turn ON events (turn_id);
CREATE INDEX events_by_tool ON events (tool) WHERE tool IS NOT NULL;
