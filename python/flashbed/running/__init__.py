"""Cases run in portions, here or elsewhere, with the same results (docs/parallel.md).

A portion is whole units of cases (plan/case_units.py). `portion.py` runs one and writes what comes
of it as parts of a run directory. `ways.py` decides who does: this process, `processes.py` or
`cluster.py`.
"""
