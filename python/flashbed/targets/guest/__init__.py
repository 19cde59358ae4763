"""Guests: real kernels whose only program is the agent, `/init` (agent/board/init.c).

This is what the emulated board and user-mode Linux share. A job goes in and a stream comes out
(agent/PROTOCOL.md); a boot that dies costs the running case. Each of the two adds
how it is started and which kernel it has.
"""
