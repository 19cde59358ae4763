"""Fixtures of the layers' tests."""

from tests.nand import boot, boot_yaffs2, made

__all__ = ["boot", "boot_yaffs2", "made"]
