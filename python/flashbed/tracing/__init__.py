"""Traces of every layer of the stack: recorded, kept, summed up, written for other tools.

docs/tracing.md says what the tracers show; the agent has them (agent/tracing/).
"""
