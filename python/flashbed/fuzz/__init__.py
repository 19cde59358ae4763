"""Differential testing: random programs on the simulator, a real kernel and an oracle.

A seed makes a program (`generator`); what each of its operations has to answer is known without a
kernel (`oracle`); it runs on both targets and the answers and the flash operations are compared in
order (`compare`, `bench`, `campaign`); a difference is made as short as it goes (`shrink`) and told
(`report`). docs/fuzzing.md is for whoever runs it. Nothing here knows which target it talks to.
"""
