"""Any program of this machine on real file systems on flash: what it wrote, and what that cost.

`request` says what is run and what the program may see, `launch` runs it on user-mode Linux,
`outcome` reads what came of it, `account` says it. docs/exec.md is the guide.
"""
