"""Fixtures of the layers' tests."""

from tests.nand import boot, boot_yaffs2, made
from tests.tracing import tracing_guest

__all__ = ["boot", "boot_yaffs2", "made", "tracing_guest"]
