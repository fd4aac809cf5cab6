-- What was spent at model doors: at each vendor, by each key, on each day of UTC. All nodes count in one row.
CREATE TABLE door_spending (
    tenant_id    TEXT    NOT NULL REFERENCES tenants (id), -- UUID
    vendor       TEXT    NOT NULL,
    payer        TEXT    NOT NULL,
    day          TEXT    NOT NULL, -- of UTC
    tokens       INTEGER NOT NULL,
    nano_dollars INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, vendor, payer, day)
) STRICT;
