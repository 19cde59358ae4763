"""Real SQLite, run once over a file system that only writes down what it is asked (docs/sqlite.md).

SQLite's input and output do not depend on how long an I/O takes, so one run gives the operation
list for every target. `settings.py` are the pragmas an experiment can vary, `vfs.py` is what
SQLite's unix VFS would have asked of Linux, `work.py` what a statement costs the processor, and
`recording.py` puts them together. `board.py` has SQLite run on the board instead.
"""
