-- The SHA-256 of a text: long foreign texts are kept apart by it, since a unique index has no room for them.
-- `convert_to` could change with the encoding of the database; ours is UTF-8 or the store is not opened.
CREATE FUNCTION pintle_digest(text) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT sha256(convert_to($1, 'UTF8')) $$;

-- One row for one event, append-only; `seq` is the order of keeping. The hooks are one JSON array: they are written
-- and read together. They are TEXT, not JSONB, which would change numbers and the order of members.
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

CREATE INDEX events_by_id ON events (left(event_id, 64));
CREATE INDEX events_by_turn ON events USING hash (turn_id);
CREATE INDEX events_by_tool ON events USING hash (tool) WHERE tool IS NOT NULL;
