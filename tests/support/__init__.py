"""What tests share: fakes, harnesses, boards and data; no test is here."""

from __future__ import annotations

from pathlib import Path

__all__ = ["PROJECT", "SMALL"]

PROJECT = Path(__file__).resolve().parents[2]
"""The checkout that is tested."""
SMALL = Path(__file__).parent / "small.toml"
"""A small experiment with everything that a figure of a paper has."""
