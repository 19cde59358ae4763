"""Sequential cache reads of kernel/flashbed_nand, as Linux 6.12 uses them: time, log, content."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.base.paths import cache_folder
from flashbed.targets.uml.uml_kernel import cached_kernel
from tests.support.nand import (
    COPY_LOG,
    HARDWARE,
    SHOW_COUNTS,
    SOFTWARE,
    Boot,
    booting,
    load,
    made_for,
    numbers,
)

pytestmark = pytest.mark.uml

CACHED = {"cache_read_ns": 3_000, "column_change_ns": 0, "bus_read_ns": 105_600}
ARRAY_NS, CACHE_NS, BUS_NS = 25_000, 3_000, 105_600
PAGE, PAGES = 2048, 64


@pytest.fixture
def boot(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Boot:
    """Boots Linux 6.12."""
    kernel = cached_kernel(cache_folder(), "6.12")
    if kernel is None:
        pytest.skip("Linux 6.12 for user mode is not built: flashbed prepare --on uml-6.12")
    linux, image, _ = made_for(kernel.tree, "flashbed_nand-6.12", tmp_path_factory)
    return booting(linux, image, tmp_path)


def test_pages_in_order_cost_the_array_once_and_are_the_pages(boot: Boot) -> None:
    whole = PAGES * PAGE
    pages = [f"read {at * PAGE} {PAGE}" for at in range(4)]
    script = [load(SOFTWARE, CACHED), f"write 0 {whole} 1", "ctl clear", f"read 0 {whole}"]
    done = boot(script, COPY_LOG, pages, f"read 0 {4 * PAGE}", "unload")
    log = done.operations()
    assert [row.page for row in log] == list(range(PAGES))
    first, others = log[0].duration_ns, {row.duration_ns for row in log[1:]}
    assert (first, others) == (ARRAY_NS + CACHE_NS + BUS_NS, {CACHE_NS + BUS_NS})
    assert done.results[1].detail == done.results[3].detail


def test_a_short_transfer_waits_for_the_array(boot: Boot) -> None:
    script = [load(SOFTWARE, CACHED, bus_read_ns=21_120), "ctl clear", f"read 0 {3 * PAGE}"]
    done = boot(script, COPY_LOG)
    assert [row.duration_ns for row in done.operations()] == [
        ARRAY_NS + CACHE_NS + 21_120, ARRAY_NS + CACHE_NS, ARRAY_NS + CACHE_NS,
    ]  # fmt: skip


@pytest.mark.parametrize("chip", [{**HARDWARE, **CACHED}, SOFTWARE])
def test_other_engines_and_other_chips_read_page_by_page(
    boot: Boot, chip: dict[str, object]
) -> None:
    done = boot([load(chip), "ctl clear", f"read 0 {4 * PAGE}", COPY_LOG])
    times = {row.duration_ns for row in done.operations()}
    assert len(times) == 1
    assert min(times) > ARRAY_NS + 100_000


def test_linux_6_12_reads_the_wrong_pages_behind_the_end_of_a_block(boot: Boot) -> None:
    """It continues with READ CACHE SEQUENTIAL after READ CACHE END, which moves the page again."""
    script = [load(SOFTWARE, CACHED), f"write 0 {2 * PAGES * PAGE} 1", "ctl clear"]
    script += [f"read {60 * PAGE} {8 * PAGE}", COPY_LOG]
    script += [f"read {60 * PAGE} {4 * PAGE}", f"read {64 * PAGE} {4 * PAGE}", SHOW_COUNTS]
    done = boot(script)
    assert [row.page for row in done.operations()] == [60, 61, 62, 63, 63, 64, 65, 66]
    assert not numbers(done.results[-1])["uncorrectable"]


def test_without_power_a_sequence_ends_as_any_read_does(boot: Boot) -> None:
    script = [load(SOFTWARE, CACHED), f"write 0 {8 * PAGE} 1", "ctl cut 1 1"]
    script += [f"write {PAGES * PAGE} {PAGE} 2", f"read 0 {8 * PAGE}", "ctl on"]
    done = boot(script, f"read 0 {8 * PAGE}", fail=True)
    assert done.results[1].detail == done.results[-1].detail
    assert "WARNING" not in done.console
