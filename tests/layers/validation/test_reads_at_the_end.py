"""A read at or beyond the end of a file, kernel by kernel.

Random programs on Linux 5.10 read a page of flash that the simulator did not: a read began beyond
the end of the file, but within its last page. generic_file_buffered_read() compares the position
with the end only when it has the page; filemap_read() of 5.12 does so before.
"""

from __future__ import annotations

import pytest

from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program
from flashbed.targets.sim import SimTarget

PREPARE = """flashbed-ops 1
open 0 a rw,create
write 0 0 6000 1 0
fsync 0
close 0
sync
prepared
"""


def _reads(kernel: str, offset: int) -> int:
    """Flash reads of a read of nothing."""
    body = f"flashbed-ops 1\ndrop_caches\nmark\nopen 0 a ro\nread 0 {offset} 100\nclose 0\n"
    stack = Stack(
        board=load_board("emulated"), kernel=load_kernel(kernel), fs="jffs2", read_ahead_kib=0
    )
    program = Program(case_id="end", stack=stack, prepare=PREPARE, body=body)
    (batch,) = SimTarget().run([program])
    assert batch.failures == ()
    return int(batch.cases["flash_reads"][0])


@pytest.mark.extension
@pytest.mark.parametrize("kernel", ["2.6.37", "4.0", "5.10", "6.1", "6.12", "7.3"])
def test_the_last_page_is_read_before_5_12_and_no_page_beyond_it(kernel: str) -> None:
    beyond = _reads(kernel, 8192)
    within = _reads(kernel, 7000)
    assert (within > beyond) == (kernel in ("2.6.37", "4.0", "5.10"))
