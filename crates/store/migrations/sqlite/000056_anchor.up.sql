-- Which store this is: whoever knew it tells it from another one that stands in its place.
CREATE TABLE store_identity (
    id       INTEGER PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    store_id TEXT    NOT NULL
) STRICT;

INSERT INTO store_identity (id, store_id) VALUES (1, lower(hex(randomblob(16))));

-- Few rows of the chains are about rules, and they are looked for.
CREATE INDEX audit_log_changes ON audit_log (tenant_id, seq) WHERE kind IN ('change', 'trip');
