DROP TABLE door_spending;
