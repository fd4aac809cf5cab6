ALTER TABLE console_sessions DROP COLUMN seal;
ALTER TABLE console_links DROP COLUMN seal;
ALTER TABLE api_keys DROP COLUMN seal;
ALTER TABLE members DROP COLUMN seal;
