"""Traces and job files of other programs, made into recordings (docs/imports.md)."""
