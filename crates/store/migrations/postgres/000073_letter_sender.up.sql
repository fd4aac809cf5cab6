-- Who left a letter, as JSON: it is not delivered once they may not talk to agents any more. Null from a node that does not
-- know of it.
ALTER TABLE node_mail ADD COLUMN sender TEXT;
