-- Who was a member and was taken out, until somebody adds them again: their turns end, and nobody speaks for them.
CREATE TABLE removed_members (
    tenant_id UUID NOT NULL REFERENCES tenants (id),
    user_id   VARCHAR(255) NOT NULL,
    at        TIMESTAMPTZ NOT NULL,
    actor     TEXT NOT NULL,
    PRIMARY KEY (tenant_id, user_id)
);
