DROP TABLE node_news;
DROP TABLE node_mail;
DROP TABLE nodes;
DROP INDEX sessions_open;
CREATE TABLE holders (
    place      BIGINT NOT NULL PRIMARY KEY,
    tenant_id  TEXT   NOT NULL,
    session_id TEXT   NOT NULL,
    pid        BIGINT NOT NULL,
    host       TEXT   NOT NULL,
    boot       TEXT   NOT NULL, -- which run of that machine
    token      UUID   NOT NULL
);
CREATE INDEX holders_by_name ON holders USING hash (session_id);
DROP TABLE leases;
