"""Fixtures of the layers' tests."""

from tests.support.nand import boot, boot_yaffs2, made
from tests.support.tracing import tracing_guest

__all__ = ["boot", "boot_yaffs2", "made", "tracing_guest"]
