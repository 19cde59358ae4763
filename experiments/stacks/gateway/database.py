"""A reading a second into SQLite with a write-ahead log, for five minutes."""

import sqlite3
import time

database = sqlite3.connect("readings.db", isolation_level=None)
database.execute("pragma journal_mode = wal")
database.execute("pragma synchronous = normal")
database.execute("create table if not exists readings(at integer, celsius real)")
for second in range(300):
    database.execute("insert into readings values(?, ?)", (second, 20 + second % 10 / 10))
    time.sleep(1)
