-- What a call that waits leaves: its evidence in one row, committed before the call runs. It is put into its tables, and
-- its entries into the chain, within a second and whenever the file is opened or asked for evidence.
CREATE TABLE evidence_tail (
    number    INTEGER PRIMARY KEY, -- the order of the commits
    tenant_id TEXT    NOT NULL,    -- whose chain it belongs to
    seq       INTEGER NOT NULL,    -- the place there of its first entry
    entries   INTEGER NOT NULL,    -- how many it has
    evidence  BLOB    NOT NULL
) STRICT;

-- Nothing is looked for by it: a chain is cut at a signature, whose table knows the time.
DROP INDEX audit_log_by_age;
