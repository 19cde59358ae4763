CREATE TABLE visits (zip VARCHAR(5), at INTEGER);
-- measured
SELECT city, state FROM ZipCodes WHERE zip = '48104';
SELECT zip FROM ZipCodes WHERE city = 'Springfield' AND state = 'IL';
INSERT INTO visits VALUES ('48104', 1);
SELECT count(*) FROM ZipCodes WHERE state = 'MT';
SELECT zip, city FROM ZipCodes WHERE zip BETWEEN '94000' AND '94100';
UPDATE visits SET at = at + 1 WHERE zip = '48104';
