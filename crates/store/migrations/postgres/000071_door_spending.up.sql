-- What was spent at model doors: at each vendor, by each key, on each day of UTC. All nodes count in one row.
CREATE TABLE door_spending (
    tenant_id    UUID   NOT NULL REFERENCES tenants (id),
    vendor       TEXT   NOT NULL,
    payer        TEXT   NOT NULL,
    day          DATE   NOT NULL,
    tokens       BIGINT NOT NULL,
    nano_dollars BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, vendor, payer, day)
);
