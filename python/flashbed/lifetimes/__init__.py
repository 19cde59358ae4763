"""How long flash lasts: from erases that were measured or read off a board to years.

`counters` reads what tools print on a board, `observed` takes erases from tables and from such
readings, `estimate` does the arithmetic, `words` says it. docs/lifetime.md explains all of it.
"""
