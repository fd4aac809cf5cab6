-- What a call that waits leaves: its evidence in one row, committed before the call runs. It is put into its tables, and
-- its entries into the chain, within a second and whenever the file is opened or asked for evidence. The rows are places
-- that are used again and again, a page each: a commit then writes one page.
CREATE TABLE evidence_tail (
    slot      INTEGER PRIMARY KEY, -- the last digits of number
    number    INTEGER NOT NULL,    -- counts the commits
    tenant_id TEXT    NOT NULL,    -- whose chain it belongs to
    seq       INTEGER NOT NULL,    -- the place there of its first entry
    entries   INTEGER NOT NULL,    -- how many it has
    evidence  BLOB    NOT NULL
) STRICT;

-- Up to which number all stands where it belongs.
CREATE TABLE evidence_folded (
    id        INTEGER PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    number    INTEGER NOT NULL
) STRICT;

INSERT INTO evidence_folded (id, number) VALUES (1, 0);

-- Nothing is looked for by it: a chain is cut at a signature, whose table knows the time.
DROP INDEX audit_log_by_age;
