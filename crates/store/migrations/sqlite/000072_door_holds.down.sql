DROP TABLE door_holds;
