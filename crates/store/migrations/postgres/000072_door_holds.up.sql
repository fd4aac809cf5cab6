-- What requests under way at model doors may come to. A row counts until its time, and goes when what it came to is known.
CREATE TABLE door_holds (
    id           UUID        PRIMARY KEY,
    tenant_id    UUID        NOT NULL REFERENCES tenants (id),
    vendor       TEXT        NOT NULL,
    payer        TEXT        NOT NULL,
    node         TEXT        NOT NULL,
    tokens       BIGINT      NOT NULL,
    nano_dollars BIGINT      NOT NULL,
    until        TIMESTAMPTZ NOT NULL
);

CREATE INDEX door_holds_by_payer ON door_holds (tenant_id, vendor, payer);
CREATE INDEX door_holds_by_node ON door_holds (node);

-- The sessions of a tenant that somebody works.
CREATE INDEX leases_worked ON leases (tenant_id) WHERE owner IS NOT NULL;
