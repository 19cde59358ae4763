"""Recordings of programs: their calls, their file, their translation into operations."""
