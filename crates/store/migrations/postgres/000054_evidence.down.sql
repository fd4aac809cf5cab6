-- The program has put the rows into events_before.
DROP TABLE events;
DROP TABLE hook_sets;
DROP TABLE turns;
CREATE TABLE events (
    seq          BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id     TEXT    COLLATE "C" NOT NULL,
    at           TEXT    NOT NULL, -- RFC 3339, UTC, to the nanosecond
    event        TEXT    NOT NULL,
    checkpoint   TEXT    NOT NULL,
    tenant_id    TEXT    NOT NULL,
    agent_id     TEXT    NOT NULL,
    session_id   TEXT    NOT NULL,
    turn_id      TEXT    NOT NULL,
    iteration    BIGINT  NOT NULL,
    tool_call_id TEXT,
    tool         TEXT,
    is_test      BOOLEAN NOT NULL,
    ruling       TEXT    NOT NULL,
    text         TEXT,
    permit       TEXT,
    substituted  BOOLEAN NOT NULL,
    hooks        TEXT    NOT NULL  -- JSON array, one object for each registered hook
);
INSERT INTO events (event_id, at, event, checkpoint, tenant_id, agent_id, session_id, turn_id, iteration, tool_call_id, tool, is_test, ruling, text, permit, substituted, hooks)
    SELECT event_id, at, event, checkpoint, tenant_id, agent_id, session_id, turn_id, iteration, tool_call_id, tool, is_test, ruling, text, permit, substituted, hooks
    FROM events_before ORDER BY seq;
DROP TABLE events_before;
CREATE INDEX events_by_id ON events (left(event_id, 64));
CREATE INDEX events_by_turn ON events USING hash (turn_id);
CREATE INDEX events_by_tool ON events USING hash (tool) WHERE tool IS NOT NULL;
