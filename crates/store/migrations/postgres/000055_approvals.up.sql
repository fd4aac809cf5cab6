-- What a person was shown and what they said, under a key that is not in the database. Answers of before have none, and
-- are asked for again; questions of before get one when they are answered.
ALTER TABLE approvals ADD COLUMN seal TEXT;
