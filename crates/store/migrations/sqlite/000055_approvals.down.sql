ALTER TABLE approvals DROP COLUMN seal;
