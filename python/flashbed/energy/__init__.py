"""Energy of recorded cases: pure folds over tables, with the constants of a board's profile.

Two conventions, told apart in every table and never added up (docs/energy.md). Both are of power
above idle. No constant has a default: what a board's profile does not give is null.

`constants.py` is what a profile says and loads at start-up; `fold.py` works on tables.
"""
