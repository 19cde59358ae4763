"""Cells of two bits of kernel/flashbed_nand: pages that share them, and Linux' SLC mode."""

from __future__ import annotations

import pytest

from tests.support.nand import COPY_LOG, HARDWARE, PROGRAM, SHOW_BREACHES, SHOW_COUNTS, Boot, load

pytestmark = pytest.mark.uml

PAGE, PAGES = 2048, 64
BLOCK = PAGE * PAGES
MLC: dict[str, object] = {**HARDWARE, "bits_per_cell": 2, "pairing": "dist3"}
SEEDS = range(1, 13)
"""Of torn programs: some take effect whole or not at all."""


def changed_pages(boot: Boot, chip: dict[str, object], cut: int) -> set[tuple[int, ...]]:
    """Pages before page `cut` that read otherwise once its program was cut, for each seed."""
    reads = [f"read {at * PAGE} {PAGE}" for at in range(cut)]
    script = [load(chip), f"write 0 {cut * PAGE} 1", *reads, "ctl record"]
    script += [f"write {cut * PAGE} {PAGE} 2"]
    for seed in SEEDS:
        script += [f"ctl rewind 1 {seed}", *reads]
    found = [line.detail for line in boot(script).results if line.command == "read"]
    before, rounds = found[:cut], (found[at : at + cut] for at in range(cut, len(found), cut))
    return {tuple(at for at in range(cut) if after[at] != before[at]) for after in rounds}


def test_a_program_that_is_cut_takes_the_page_with_it_that_shares_its_cells(boot: Boot) -> None:
    """Page 6 is the second of the pair whose first page is 3."""
    assert changed_pages(boot, MLC, 6) == {(), (3,)}


def test_a_first_page_and_a_chip_of_slc_take_no_other_with_them(boot: Boot) -> None:
    assert changed_pages(boot, MLC, 7) == {()}
    assert changed_pages(boot, dict(HARDWARE), 6) == {()}


def test_in_slc_mode_the_partition_has_the_first_pages_of_pairs(boot: Boot) -> None:
    chip = {**MLC, "slc_mode": 1}
    script = [load(chip), f"write 0 {BLOCK} 1", f"read 0 {BLOCK}", COPY_LOG, SHOW_BREACHES]
    done = boot(script, "fresh ubifs", "put a 90000 1", "unmount", "mount ubifs", "check a 90000 1")
    assert done.results[1].detail == done.results[2].detail
    programs = [row.page for row in done.operations() if row.kind == PROGRAM]
    assert programs == list(range(PAGES)), "two blocks of the partition, numbered as it does"
    assert not done.results[4].detail


@pytest.mark.parametrize("fs", ["jffs2", "ubifs"])
def test_linux_refuses_file_systems_without_it_in_its_own_words(boot: Boot, fs: str) -> None:
    done = boot([load(MLC), f"fresh {fs}", SHOW_COUNTS], fail=True, loud=True)
    assert done.results[1].error == 22
    if fs == "ubifs":
        assert "ubi: refuse attaching mtd0 - MLC NAND is not supported" in done.console


def test_impossible_cells_are_refused(boot: Boot) -> None:
    for wrong in ({"bits_per_cell": 4}, {"pairing": "dist3"}, {"slc_mode": 1}):
        done = boot([load(wrong)], fail=True)
        assert done.results[0].error == 22
        assert len(done.module_lines()) == 1


def mounts_that_fail(boot: Boot, chip: dict[str, object]) -> int:
    """Of 30 power cuts in a file that is written to UBIFS."""
    script = [load(chip), "fresh ubifs", "ctl record", "put a 90000 1", "unmount"]
    for change in (1, 3, 5, 8, 12):
        for seed in range(1, 7):
            script += [f"ctl rewind {change} {seed}", "mount ubifs", "unmount"]
    done = boot(script, fail=True)
    errors = {line.error for line in done.results if line.command == "mount"}
    assert errors <= {0, 5}
    return sum(line.error == 5 for line in done.results if line.command == "mount")


def test_linux_cannot_mount_ubifs_in_slc_mode_after_a_page_was_torn(boot: Boot) -> None:
    """mtd_io_emulated_slc() reads too little there, so UBI makes EIO of EBADMSG."""
    assert mounts_that_fail(boot, dict(HARDWARE)) == 0
    assert mounts_that_fail(boot, {**MLC, "slc_mode": 1}) > 5
