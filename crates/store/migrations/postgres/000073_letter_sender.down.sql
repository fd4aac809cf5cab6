ALTER TABLE node_mail DROP COLUMN sender;
