"""Measured power: what instruments write, read; what it says of idle and load; into a profile."""
