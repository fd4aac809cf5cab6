CREATE INDEX sessions_open ON sessions (tenant_id) WHERE open_turn IS NOT NULL;

-- The node that serves this file, with what it says of itself.
CREATE TABLE nodes (
    id       TEXT    NOT NULL PRIMARY KEY,
    name     TEXT    NOT NULL,
    level    INTEGER NOT NULL, -- of the schema that it knows
    since_ms INTEGER NOT NULL,
    seen_ms  INTEGER NOT NULL, -- 0 once it left
    state    TEXT    NOT NULL, -- JSON
    cut      TEXT    NOT NULL  -- JSON: the sessions whose turns its end cut, until its next start has said so
) STRICT;
