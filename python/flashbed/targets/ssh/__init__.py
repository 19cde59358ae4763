"""Boards over ssh (docs/reference/boards-over-ssh.md).

`address` names a board, `connection` is the ssh client, `facts` is what a board has and which cases
it cannot run, `board` is the target.
"""
