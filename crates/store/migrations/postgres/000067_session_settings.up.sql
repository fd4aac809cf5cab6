-- What somebody says of a session, beside what its journal tells. NULL is like an empty text.
ALTER TABLE sessions ADD COLUMN label TEXT;
ALTER TABLE sessions ADD COLUMN model TEXT;
ALTER TABLE sessions ADD COLUMN metadata TEXT;
