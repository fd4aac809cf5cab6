DROP TABLE nodes;
DROP INDEX sessions_open;
