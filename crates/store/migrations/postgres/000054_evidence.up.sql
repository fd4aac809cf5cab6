-- Evidence in fewer bytes: what all events of a turn have in common stands in one row, what hooks had in common at
-- events of one kind in another, and ids are bytes. Rows of before are brought over by the program.
ALTER TABLE events RENAME TO events_before;
DROP INDEX events_by_id;
DROP INDEX events_by_turn;
DROP INDEX events_by_tool;
ALTER INDEX events_pkey RENAME TO events_before_pkey;
ALTER SEQUENCE events_seq_seq RENAME TO events_before_seq_seq;

-- Who acted; the order of numbers is the order of the first records.
CREATE TABLE turns (
    number     BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key        BYTEA   NOT NULL UNIQUE, -- 16 bytes of the SHA-256 of everything below up to is_test
    turn_id    BYTEA   NOT NULL,        -- 0 and the 16 bytes of a UUID, or 1 and a text
    tenant_id  TEXT    NOT NULL,
    agent_id   TEXT    NOT NULL,
    session_id TEXT    NOT NULL,
    is_test    BOOLEAN NOT NULL,
    began      BIGINT  NOT NULL,        -- nanoseconds since 1970, UTC
    prompt     TEXT                     -- its beginning, as long as the session is kept
);

CREATE INDEX turns_by_id ON turns (substring(turn_id from 1 for 64));
CREATE INDEX turns_by_session ON turns USING hash (session_id);

-- A dictionary: the hooks of an event, with what became of each, but for times and texts.
CREATE TABLE hook_sets (
    number    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest    BYTEA  NOT NULL UNIQUE, -- 16 bytes of the SHA-256 of hooks
    hooks     TEXT   NOT NULL,        -- JSON array, one object for each registered hook
    last_used BIGINT NOT NULL         -- the day, counted from 1970
);

-- One row for one event, append-only; `seq` is the order of keeping.
CREATE TABLE events (
    seq          BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id     BYTEA   NOT NULL, -- as turn_id
    turn         BIGINT  NOT NULL REFERENCES turns (number),
    at           BIGINT  NOT NULL, -- nanoseconds since 1970, UTC
    checkpoint   TEXT    NOT NULL,
    event        TEXT,             -- where it is not called like the checkpoint
    iteration    BIGINT  NOT NULL,
    tool_call_id TEXT,
    tool         TEXT,
    ruling       TEXT    NOT NULL,
    text         TEXT,
    permit       BYTEA,            -- SHA-256
    substituted  BOOLEAN NOT NULL,
    call         TEXT,             -- JSON: the arguments that the ruling decided on
    hooks        BIGINT  NOT NULL REFERENCES hook_sets (number),
    details      TEXT              -- JSON: times and texts of the hooks
);

CREATE INDEX events_by_id ON events (substring(event_id from 1 for 64));
CREATE INDEX events_by_turn ON events (turn, seq);
CREATE INDEX events_by_call ON events USING hash (tool_call_id) WHERE tool_call_id IS NOT NULL;
CREATE INDEX events_that_stop ON events (seq) WHERE ruling IN ('ask', 'deny', 'abort_turn', 'hard_abort');
