"""Power cuts: which contents of a file system survive them.

`cutting.py` has a target make the cuts. `judge.py` compares what was found with `tree.py`, the
model of what may be left. `outcomes.py` counts verdicts. docs/models/power-cuts.md says what a file
system must guarantee.
"""
