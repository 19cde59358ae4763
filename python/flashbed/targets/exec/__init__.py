"""Runs any program of this machine on a flash file system: what it wrote, and what that cost.

`request` says what runs on which stack and what the program may see, `executors` knows what runs
it, `outcome` reads the result, `account` prints it. docs/guide/my-program.md is the guide.
"""
