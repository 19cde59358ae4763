"""Differential testing: random programs on the simulator, a real kernel and an oracle.

A seed makes a program (`generator`). The oracle knows without a kernel what each operation must
return (`oracle`). The program runs on both targets; results and flash operations are compared in
order (`differences`, `bench`, `campaign`). A program that differs is shortened (`shrink`) and
printed (`report`). README.md is the guide. Nothing here knows which target it runs.
"""
