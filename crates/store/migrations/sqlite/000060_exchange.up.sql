-- What a gateway keeps beside conversations: files that clients handed over, in pieces; requests that may come a second
-- time; codes of texts that passed the gates.
CREATE TABLE uploads (
    id           TEXT    NOT NULL PRIMARY KEY, -- 32 hexadecimal digits
    tenant_id    TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    session_id   TEXT,                         -- of the session that took it
    content_type TEXT    NOT NULL,
    file_name    TEXT    NOT NULL,
    size_bytes   INTEGER NOT NULL,
    sha256       TEXT    NOT NULL,
    created_at   TEXT    NOT NULL              -- RFC 3339, UTC, in whole microseconds
) STRICT;

CREATE INDEX uploads_by_session ON uploads (tenant_id, session_id);
CREATE INDEX uploads_by_time ON uploads (created_at) WHERE session_id IS NULL;

CREATE TABLE upload_pieces (
    upload_id TEXT    NOT NULL,
    number    INTEGER NOT NULL,
    content   BLOB    NOT NULL,
    PRIMARY KEY (upload_id, number)
) STRICT;

CREATE TABLE repeats (
    name       TEXT NOT NULL PRIMARY KEY, -- a digest
    tenant_id  TEXT NOT NULL,
    session_id TEXT NOT NULL,             -- empty where the request is the whole conversation
    turn_id    TEXT NOT NULL,
    digest     TEXT NOT NULL,             -- of what was asked
    owner      TEXT NOT NULL,             -- the process that works it
    began_at   TEXT NOT NULL,             -- RFC 3339, UTC, in whole microseconds
    outcome    TEXT                       -- JSON, once it is over
) STRICT;

CREATE INDEX repeats_by_turn ON repeats (turn_id);
CREATE INDEX repeats_by_session ON repeats (tenant_id, session_id);
CREATE INDEX repeats_by_time ON repeats (began_at);

CREATE TABLE passed_texts (
    code TEXT NOT NULL PRIMARY KEY,
    at   TEXT NOT NULL -- RFC 3339, UTC, in whole microseconds
) STRICT;

CREATE INDEX passed_texts_by_time ON passed_texts (at);
