ALTER TABLE sessions DROP COLUMN metadata;
ALTER TABLE sessions DROP COLUMN model;
ALTER TABLE sessions DROP COLUMN label;
