"""Runs real SQLite once, over a file system that only records its calls (docs/models/sqlite.md).

SQLite's calls do not depend on how long I/O takes, so one run gives the operations for every
target. `vfs.py` makes the system calls of SQLite's unix VFS on Linux, `work.py` prices a
statement's processor time, `recorder.py` combines them. plan/database.py has the settings that an
experiment can vary. `on_board.py` lets SQLite run on the board instead.
"""
