DROP TABLE events;
DROP FUNCTION pintle_digest(text);
