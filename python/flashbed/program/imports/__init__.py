"""Turns traces and job files of other programs into recordings (docs/guide/other-tools.md)."""
