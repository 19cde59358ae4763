"""Measured power: reads recordings of instruments, fits idle and load, updates profiles."""
