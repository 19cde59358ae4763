"""Runs cases in portions, here or elsewhere, with the same results (docs/parallel.md).

A portion is whole units of cases (plan/case_units.py). `portion.py` runs one and writes its results
as parts of a run directory. `ways.py` decides what runs the portions: this process, `processes.py`
or `cluster.py`.
"""
