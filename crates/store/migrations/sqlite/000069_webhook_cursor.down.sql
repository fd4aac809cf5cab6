DROP TABLE webhook_cursor;
DROP TABLE webhook_told;
