"""Power cuts: what of a file system's content survives them.

`run.py` has the cuts made by a target, `judge.py` holds what was found against `tree.py`, the model
of what may be left; `summary.py` counts. docs/powercut.md says what is asked of a file system.
"""
