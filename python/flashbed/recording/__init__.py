"""Recordings of programs: their calls, the file that holds them, what they mean on a case."""
