"""Runs any program of this machine on a flash file system: what it wrote, and what that cost.

`request` says what runs and what the program may see, `launch` runs it on user-mode Linux,
`outcome` reads the result, `account` prints it. docs/guide/my-program.md is the guide.
"""
