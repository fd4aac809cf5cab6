DROP TABLE approvals;
DROP TABLE holders;
DROP TABLE journal;
DROP TABLE sessions;
