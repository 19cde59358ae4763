"""Hostile inputs: every file format and every command's options, drawn by their grammar and bent.

Whatever is drawn, the program ends with status 0, or with status 2 and one line; a case that fails,
or a recording of which nothing can be said, is status 1 and lines of its own. `make fuzz-inputs`
draws more.
"""
