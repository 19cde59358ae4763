"""Guests: real kernels whose only program is the agent, `/init` (agent/board/init.c).

What the emulated board and user-mode Linux have in common: a job goes in, a stream comes out
(docs/formats.md), a boot that dies costs the case it was running. Each of the two says how it is
started and which kernel it has.
"""
