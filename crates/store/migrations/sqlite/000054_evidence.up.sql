-- Evidence in fewer bytes: what all events of a turn have in common stands in one row, what hooks had in common at
-- events of one kind in another, and ids are bytes. Rows of before are brought over by the program.
ALTER TABLE events RENAME TO events_before;
DROP INDEX events_by_id;
DROP INDEX events_by_turn;
DROP INDEX events_by_tool;

-- Who acted; the order of numbers is the order of the first records.
CREATE TABLE turns (
    number     INTEGER PRIMARY KEY,
    key        BLOB    NOT NULL UNIQUE, -- 16 bytes of the SHA-256 of everything below up to is_test
    turn_id    BLOB    NOT NULL,        -- 0 and the 16 bytes of a UUID, or 1 and a text
    tenant_id  TEXT    NOT NULL,
    agent_id   TEXT    NOT NULL,
    session_id TEXT    NOT NULL,
    is_test    INTEGER NOT NULL,
    began      INTEGER NOT NULL,        -- nanoseconds since 1970, UTC
    prompt     TEXT                     -- its beginning, as long as the session is kept
) STRICT;

CREATE INDEX turns_by_id ON turns (turn_id);
CREATE INDEX turns_by_session ON turns (session_id);

-- A dictionary: the hooks of an event, with what became of each, but for times and texts.
CREATE TABLE hook_sets (
    number    INTEGER PRIMARY KEY,
    digest    BLOB    NOT NULL UNIQUE, -- 16 bytes of the SHA-256 of hooks
    hooks     TEXT    NOT NULL,        -- JSON array, one object for each registered hook
    last_used INTEGER NOT NULL         -- the day, counted from 1970
) STRICT;

-- One row for one event, append-only; `seq` is the order of keeping.
CREATE TABLE events (
    seq          INTEGER PRIMARY KEY,
    event_id     BLOB    NOT NULL, -- as turn_id
    turn         INTEGER NOT NULL REFERENCES turns (number),
    at           INTEGER NOT NULL, -- nanoseconds since 1970, UTC
    checkpoint   TEXT    NOT NULL,
    event        TEXT,             -- where it is not called like the checkpoint
    iteration    INTEGER NOT NULL,
    tool_call_id TEXT,
    tool         TEXT,
    ruling       TEXT    NOT NULL,
    text         TEXT,
    permit       BLOB,             -- SHA-256
    substituted  INTEGER NOT NULL,
    call         TEXT,             -- JSON: the arguments that the ruling decided on
    hooks        INTEGER NOT NULL REFERENCES hook_sets (number),
    details      TEXT              -- JSON: times and texts of the hooks
) STRICT;

CREATE INDEX events_by_id ON events (event_id);
CREATE INDEX events_by_turn ON events (turn);
CREATE INDEX events_by_call ON events (tool_call_id) WHERE tool_call_id IS NOT NULL;
CREATE INDEX events_that_stop ON events (seq) WHERE ruling IN ('ask', 'deny', 'abort_turn', 'hard_abort');
