-- What others were told, for as long as somebody may notice it once more.
CREATE TABLE webhook_told (
    id          UUID NOT NULL PRIMARY KEY, -- of the delivery
    at          TIMESTAMPTZ NOT NULL
);

-- Until when everything that happened is in the outbox.
CREATE TABLE webhook_cursor (
    id          INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    at          TIMESTAMPTZ NOT NULL
);
