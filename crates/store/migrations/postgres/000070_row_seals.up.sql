-- What proves that Pintle wrote the row: `ENTRY.CODE`, the row of the audit chain that tells of it, or 0, and a code over
-- all that the row says. Null where no key seals, and in what was there before this step until it is sealed once.
ALTER TABLE members ADD COLUMN seal TEXT;
ALTER TABLE api_keys ADD COLUMN seal TEXT;
ALTER TABLE console_links ADD COLUMN seal TEXT;
ALTER TABLE console_sessions ADD COLUMN seal TEXT;
