"""Traces of every layer of the stack: recorded, kept, summarised, exported.

docs/guide/trace.md says what the tracers show; they are part of the agent (agent/tracing/).
"""
