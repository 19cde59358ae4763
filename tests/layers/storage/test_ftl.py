"""The flash translation layer against analysis, and against a count of its own map."""

from __future__ import annotations

import math
import random
import textwrap
from collections import OrderedDict
from pathlib import Path

import pytest

from flashbed.plan.stacks import one_stack
from flashbed.targets.base import Program
from flashbed.targets.sim import SimTarget

pytestmark = pytest.mark.extension
PAGE_BYTES, BLOCK_PAGES, RESERVED_BLOCKS = 2048, 64, 2
"""Of the usual board's chip, and of sim/src/block/ftl.rs."""
BLOCKS = 256


def shown_pages(spare_permille: int, blocks: int = BLOCKS) -> int:
    return (blocks - RESERVED_BLOCKS) * BLOCK_PAGES * (1000 - spare_permille) // 1000


def stack(*settings: str, blocks: int = BLOCKS) -> list[str]:
    return ["fs=ftl", f"partition.blocks={blocks}", "read_ahead_kib=0", *settings]


def counts(settings: list[str], prepare: list[str], body: list[str]) -> dict[str, int]:
    """Flash operations after the mark."""
    program = Program(
        case_id="case", stack=one_stack(settings, raw=True),
        prepare="\n".join(["flashbed-ops 1", *prepare, "prepared", ""]),
        body="\n".join(["flashbed-ops 1", *body, ""]), record_requests=False,
    )  # fmt: skip
    (batch,) = SimTarget().run([program])
    assert batch.failures == (), batch.failures
    names = ("flash_reads", "flash_programs", "flash_erases")
    return dict(zip(names, batch.cases.select(names).row(0), strict=True))


def amplification(spare_permille: int, *settings: str) -> float:
    """Of uniform random overwrites of pages, after the disk was overwritten four times."""
    pages = shown_pages(spare_permille)
    if any("map_pages" in setting for setting in settings):
        pages -= BLOCK_PAGES  # one more block is in reserve
    draw = random.Random(1).random
    prepare = ["open 0 partition rw,direct"]
    prepare += [f"write 0 {page * PAGE_BYTES} {PAGE_BYTES} 1 0" for page in range(pages)]
    body = ["open 0 partition rw,direct"]
    for number in range(6 * pages):
        if number == 4 * pages:
            body.append("mark")
        body.append(f"write 0 {int(draw() * pages) * PAGE_BYTES} {PAGE_BYTES} 2 0")
    settings = settings or (f"mount=ftl:spare_permille={spare_permille}",)
    chosen = stack(*settings)
    return counts(chosen, [*prepare, "close 0"], body)["flash_programs"] / (2 * pages)


def of_fewest_live(rho: float, pages: int) -> float:
    """The mean field of docs/models/ftl.md: a block is collected at `m` live pages.

    Blocks of j live pages, m < j, are a share of λ/j; the shares add up to 1, their live pages to
    rho times all pages. Of the m for which both hold, the share at m is from 0 to λ/m.
    """
    for m in range(pages):
        harmonic = sum(1 / live for live in range(m + 1, pages + 1))
        rate = (rho * pages - m) / (pages - m - m * harmonic)
        share = 1 - rate * harmonic
        if share >= 0 and 0 <= m * share <= rate:
            return rate / rho
    raise AssertionError("no m")


def of_oldest(rho: float) -> float:
    """Desnoyers 2012: a page of the oldest block lives with probability u = exp(-(1 - u) / rho)."""
    live = 0.5
    for _ in range(1000):
        live = math.exp(-(1 - live) / rho)
    return 1 / (1 - live)


def rho_of(spare_permille: int) -> float:
    return shown_pages(spare_permille) / ((BLOCKS - RESERVED_BLOCKS) * BLOCK_PAGES)


@pytest.mark.parametrize("spare_permille", [70, 100, 150, 200, 250, 300, 400])
def test_the_fewest_live_pages_amplify_as_the_mean_field_says(spare_permille: int) -> None:
    wanted = of_fewest_live(rho_of(spare_permille), BLOCK_PAGES)
    assert amplification(spare_permille) == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize("spare_permille", [70, 150, 250, 400])
def test_the_oldest_block_amplifies_as_lamberts_function_says(
    spare_permille: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/mine.py").write_text(
        textwrap.dedent("""
        from flashbed import Victim
        class Oldest(Victim):
            def choose(self, now_ns, why, blocks):
                sequence = blocks.sequence.tolist()
                return sequence.index(min(sequence))
        """)
    )
    wanted = of_oldest(rho_of(spare_permille))
    assert amplification(
        spare_permille, f"mount=ftl:spare_permille={spare_permille}", "policy.victim=mine.Oldest"
    ) == pytest.approx(wanted, rel=0.01)


def test_a_disk_that_is_written_in_order_moves_nothing() -> None:
    pages = shown_pages(100, blocks=32)
    lines = ["open 0 partition rw,direct"]
    lines += [f"write 0 {page * PAGE_BYTES} {PAGE_BYTES} 1 0" for page in range(pages)]
    body = [*lines[:1], "mark", *lines[1:], *lines[1:], *lines[1:]]
    found = counts(stack("mount=ftl:spare_permille=100", blocks=32), [*lines, "close 0"], body)
    assert found["flash_programs"] == 3 * pages
    assert found["flash_reads"] == 0
    assert found["flash_erases"] == 4 * pages // BLOCK_PAGES - 32 + RESERVED_BLOCKS


def test_parts_of_pages_are_read_before_they_are_written() -> None:
    opened = ["open 0 partition rw,direct"]
    whole = [*opened, "write 0 0 4096 1 0", "close 0"]
    for body, reads, programs in (
        (["write 0 512 512 2 0"], 1, 1),
        (["write 0 1536 1024 2 0"], 2, 2),
        (["write 0 8192 512 2 0"], 0, 1),
        (["read 0 0 4096"], 2, 0),
        (["read 0 8192 4096"], 0, 0),
        (["write 0 0 2048 2 0", "read 0 0 2048"], 1, 1),
    ):
        found = counts(stack(blocks=32), whole, [*opened, "mark", *body])
        assert (found["flash_reads"], found["flash_programs"]) == (reads, programs), body


def test_the_disk_ends_where_its_spare_begins() -> None:
    pages = shown_pages(250, blocks=32)
    body = [f"write 0 {(pages - 1) * PAGE_BYTES} {PAGE_BYTES} 1 0"]
    body += [f"write 0 {pages * PAGE_BYTES} {PAGE_BYTES} 1 0"]
    chosen = stack("mount=ftl:spare_permille=250", blocks=32)
    assert counts(chosen, [], ["open 0 partition rw,direct", *body])["flash_programs"] == 1


class CountedFtl:
    """What docs/models/ftl.md says, in dictionaries: a count that shares no code with the layer."""

    def __init__(self, blocks: int, map_pages: int) -> None:
        self.entries = PAGE_BYTES // 4
        self.reserve = 3
        self.cached, self.room = OrderedDict[int, bool](), map_pages
        """Map page -> whether it changed, the one used last at the end."""
        self.where: dict[object, int] = {}
        """A data page's number, or ("map", number) -> its block."""
        self.live: dict[int, dict[object, None]] = {0: {}}
        """Block -> its live pages, in the order in which they were written."""
        self.opened = [0]
        self.written = 0
        self.erased = list(range(1, blocks))
        self.reads = self.programs = self.erases = 0

    def program(self, key: object) -> None:
        if self.written == BLOCK_PAGES:
            self.opened.append(self.erased.pop(0))
            self.live[self.opened[-1]] = {}
            self.written = 0
        if key in self.where:
            del self.live[self.where[key]][key]
        block = self.opened[-1]
        self.where[key] = block
        self.live[block][key] = None
        self.written += 1
        self.programs += 1

    def look_up(self, page: int, changes: bool) -> None:
        wanted = page // self.entries
        changed = self.cached.pop(wanted, None)
        if changed is None:
            if len(self.cached) == self.room:
                oldest, dirty = self.cached.popitem(last=False)
                if dirty:
                    self.program(("map", oldest))
            self.reads += ("map", wanted) in self.where
        self.cached[wanted] = bool(changed) or changes

    def make_space(self) -> None:
        while len(self.erased) < self.reserve:
            full = self.opened[:-1]
            victim = min(full, key=lambda block: (len(self.live[block]), full.index(block)))
            self.opened.remove(victim)
            moved = list(self.live[victim])
            for key in moved:
                self.reads += 1
                self.program(key)
            for number in sorted({key // self.entries for key in moved if isinstance(key, int)}):
                if number in self.cached:
                    self.cached[number] = True
                else:
                    self.reads += ("map", number) in self.where
                    self.program(("map", number))
            self.erases += 1
            self.erased.append(victim)

    def write(self, page: int) -> None:
        self.make_space()
        self.look_up(page, changes=True)
        self.program(page)

    def read(self, page: int) -> None:
        self.make_space()
        self.look_up(page, changes=False)
        self.reads += page in self.where


@pytest.mark.parametrize("map_pages", [1, 3, 8, 30])
@pytest.mark.parametrize("spare_permille", [200, 400])
def test_a_map_on_the_flash_costs_what_an_independent_count_says(
    spare_permille: int, map_pages: int
) -> None:
    blocks = 128
    shown = (blocks - 3) * BLOCK_PAGES * (1000 - spare_permille) // 1000
    counted = CountedFtl(blocks, map_pages)
    draw = random.Random(map_pages).random
    prepare = ["open 0 partition rw,direct"]
    for page in range(shown):
        prepare.append(f"write 0 {page * PAGE_BYTES} {PAGE_BYTES} 1 0")
        counted.write(page)
    body = ["open 0 partition rw,direct", "mark"]
    before = counted.reads, counted.programs, counted.erases
    at = 0
    for number in range(8000):
        # Runs of requests, so that the cache hits now and then.
        at = (at + 1) % shown if draw() < 0.6 else int(draw() * shown)
        if draw() < 0.3:
            body.append(f"read 0 {at * PAGE_BYTES} {PAGE_BYTES}")
            counted.read(at)
        else:
            body.append(f"write 0 {at * PAGE_BYTES} {PAGE_BYTES} {number} 0")
            counted.write(at)
    after = counted.reads, counted.programs, counted.erases
    chosen = stack(
        f"mount=ftl:spare_permille={spare_permille}+map_pages={map_pages}", blocks=blocks
    )
    found = counts(chosen, [*prepare, "close 0"], body)
    assert tuple(found.values()) == tuple(b - a for a, b in zip(before, after, strict=True))


def test_a_map_that_fits_is_read_once() -> None:
    all_of_it = amplification(400)
    assert amplification(400, "mount=ftl:spare_permille=400+map_pages=100") == pytest.approx(
        all_of_it, rel=0.03
    )
    assert amplification(400, "mount=ftl:spare_permille=400+map_pages=1") > 1.5 * all_of_it


def test_only_user_mode_has_one_besides() -> None:
    stack = one_stack(["fs=ftl"], raw=True)
    assert stack.only_simulated is None
    assert stack.only_in_user_mode == (
        "fs ftl: its flash translation layer is a model, which --on sim and --on uml have"
    )


@pytest.mark.parametrize("fs", ["ext4", "f2fs"])
def test_the_simulator_has_no_file_system_of_disks(fs: str) -> None:
    program = Program(
        case_id="case", stack=one_stack([f"fs={fs}"], disks=True),
        prepare="flashbed-ops 1\nprepared\n", body="flashbed-ops 1\nmark\n",
    )  # fmt: skip
    (batch,) = SimTarget().run([program])
    (failure,) = batch.failures
    assert failure.not_measured
    assert failure.message == f"fs {fs}: the simulator has no {fs}; --on uml runs the kernel's"
