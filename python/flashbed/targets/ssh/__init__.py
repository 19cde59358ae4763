"""Boards over ssh (docs/boards.md).

`address` is what a board is called, `connection` the ssh client, `facts` what a board has and what
of the cases it cannot do, `board` the target.
"""
