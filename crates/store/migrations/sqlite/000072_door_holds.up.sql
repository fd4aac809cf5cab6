-- What requests under way at model doors may come to. A row counts until its time, and goes when what it came to is known.
CREATE TABLE door_holds (
    id           TEXT    NOT NULL PRIMARY KEY, -- UUID
    tenant_id    TEXT    NOT NULL REFERENCES tenants (id), -- UUID
    vendor       TEXT    NOT NULL,
    payer        TEXT    NOT NULL,
    node         TEXT    NOT NULL,
    tokens       INTEGER NOT NULL,
    nano_dollars INTEGER NOT NULL,
    until        TEXT    NOT NULL -- RFC 3339, UTC
) STRICT;

CREATE INDEX door_holds_by_payer ON door_holds (tenant_id, vendor, payer);
CREATE INDEX door_holds_by_node ON door_holds (node);
