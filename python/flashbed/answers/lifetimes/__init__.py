"""How long flash lasts: from measured erases, or a board's erase counters, to years.

`counters` parses the output of tools on a board, `observed` takes erases from tables and such
readings, `estimate` does the arithmetic, `estimate_text` prints it. docs/models/lifetime.md
explains all.
"""
