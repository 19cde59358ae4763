"""Fixtures of the layers' tests."""

from tests.nand import boot, made

__all__ = ["boot", "made"]
