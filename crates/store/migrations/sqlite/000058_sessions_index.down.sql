DROP INDEX sessions_by_newest;
