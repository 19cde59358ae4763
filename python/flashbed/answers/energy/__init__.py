"""Energy of recorded cases: pure folds over tables, with the constants of a board's profile.

There are two conventions, separate in every table and never added up (docs/models/energy.md). Both
give energy above idle. No constant has a default: what a board's profile does not give is null.

`constants.py` is loaded at start-up with the profiles; `fold.py` works on tables.
"""
