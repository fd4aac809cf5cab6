-- The program has put the rows into events_before.
DROP TABLE events;
DROP TABLE hook_sets;
DROP TABLE turns;
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
INSERT INTO events (event_id, at, event, checkpoint, tenant_id, agent_id, session_id, turn_id, iteration, tool_call_id, tool, is_test, ruling, text, permit, substituted, hooks)
    SELECT event_id, at, event, checkpoint, tenant_id, agent_id, session_id, turn_id, iteration, tool_call_id, tool, is_test, ruling, text, permit, substituted, hooks
    FROM events_before ORDER BY seq;
DROP TABLE events_before;
CREATE INDEX events_by_id ON events (event_id);
CREATE INDEX events_by_turn ON events (turn_id);
CREATE INDEX events_by_tool ON events (tool) WHERE tool IS NOT NULL;
