"""Cases whose files are in the read-only root, which kernels and simulator read and copy up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flashbed.base.errors import InputError
from flashbed.base.paths import cache_folder
from flashbed.plan.stacks import one_stack
from flashbed.targets import load_target
from flashbed.targets.base import Batch, Program, RunOptions
from flashbed.targets.guest.root_files import root_image
from tests.support.over_root import NAMES, counted, drawn, over_root

LAYOUT = "layout=squashfs-overlay-ubifs"
PREPARE = """flashbed-ops 2
mkdir etc
open 0 etc/config rw,create
write 0 0 5000 1 50
close 0
open 0 data rw,create
write 0 0 131072 2 50
write 0 200000 70000 3 0
close 0
symlink etc/config link
open 0 gone rw,create
write 0 0 4096 4 0
close 0
sync
prepared
"""
BODY = """flashbed-ops 2
mark
open 0 link ro
read 0 0 8192
close 0
open 0 data ro
open 1 data rw
write 1 100 1 9 0
read 0 0 131072
read 1 131072 140000
fsync 1
close 1
close 0
unlink gone
stat gone
rename etc/config etc/new
open 0 etc/new rw,append
write 0 0 10 8 0
close 0
open 0 etc ro,directory
readdir 0
close 0
"""
KNOWN = {"dbench": "UBIFS' thread is preempted in its commit, which the program makes here"}
"""Program that ships -> why the simulator counts otherwise."""
SEEDS = range(16)
CHECKED = ("seq", "op", "result", "content_crc32")


def program(*settings: str) -> Program:
    """The program on a layout."""
    return Program(
        case_id="copied", stack=one_stack([LAYOUT, *settings]), prepare=PREPARE, body=BODY,
        check_contents=True, record_flush=True,
    )  # fmt: skip


def ran(target: str, given: Program) -> Batch:
    """What one case did."""
    (batch,) = load_target(target).run([given], RunOptions())
    assert [failure.message for failure in batch.failures] == []
    return batch


def flash(batch: Batch) -> tuple[object, ...]:
    """What it did to the flash."""
    columns = ("flash_reads", "flash_programs", "flash_erases", "flush_programs")
    return batch.cases.select(columns).row(0)


@pytest.mark.extension
def test_equal_preparations_give_equal_images() -> None:
    given = program("layout.files=root")
    image = root_image(given, cache=cache_folder())
    assert image == root_image(given, cache=cache_folder())
    other = replace(given, prepare=PREPARE.replace(" 4096 4 0", " 4096 5 0"))
    assert image != root_image(other, cache=cache_folder())


@pytest.mark.extension
def test_only_a_layer_has_files_in_its_root() -> None:
    with pytest.raises(InputError, match="two-slots has no layer over a root"):
        _ = one_stack(["layout=two-slots", "layout.files=root"])


@pytest.mark.uml
@pytest.mark.extension
def test_a_program_finds_in_the_root_what_its_preparation_makes() -> None:
    on_layer = ran("uml", program())
    for more in ([], ["layout.compressor=lzo", "layout.block_kib=4"]):
        in_root = ran("uml", program("layout.files=root", *more))
        assert in_root.requests.select(CHECKED).equals(on_layer.requests.select(CHECKED))
        assert flash(in_root) == flash(ran("uml", program("layout.files=root", *more)))
        first = in_root.requests.row(1, named=True)
        assert first["op"] == "read"
        assert first["flash_time_ns"] > 0


@pytest.mark.uml
@pytest.mark.extension
@pytest.mark.timeout(900)
def test_the_simulator_copies_up_as_the_kernel_does() -> None:
    programs = [over_root(name) for name in NAMES if name not in KNOWN]
    for kind in ("any", "calls", "reads", "maps"):
        programs += drawn(kind, SEEDS, "block_kib=16")
    assert counted("sim-chip", programs) == counted("uml", programs)


@pytest.mark.extension
def test_a_time_without_a_price_is_unknown() -> None:
    cases = ran("sim", program("layout.files=root")).cases
    assert cases["time_ns"].to_list() == [None]
    assert "copying up a root's files has no price" in cases["time_unknown"].item()


@pytest.mark.emulator
@pytest.mark.extension
@pytest.mark.timeout(900)
def test_the_emulated_board_does_the_same_to_the_flash() -> None:
    given = program("layout.files=root")
    assert flash(ran("emulator", given)) == flash(ran("uml", given))
