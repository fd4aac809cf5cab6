DROP INDEX leases_worked;
DROP TABLE door_holds;
