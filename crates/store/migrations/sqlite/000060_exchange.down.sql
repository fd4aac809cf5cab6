DROP TABLE passed_texts;
DROP TABLE repeats;
DROP TABLE upload_pieces;
DROP TABLE uploads;
