"""Page-cache replacement by policies, against replacements written another way."""

from __future__ import annotations

import math
import random
from collections import OrderedDict
from collections.abc import Callable

import pytest

from flashbed.base.errors import RunError
from flashbed.plan.stacks import one_stack
from flashbed.targets.base import Program
from flashbed.targets.sim import SimTarget

pytestmark = pytest.mark.extension
FILE_PAGES = 700
Uses = list[tuple[int, bool]]
"""Pages, and whether each is written."""


def capacity(free_kib: int) -> int:
    """Free pages above the low watermark (docs/models/vfs.md, mm/page_alloc.c)."""
    pages = free_kib // 4
    lowest = math.isqrt(pages * 64) // 4
    return pages - (lowest + lowest // 4)


def misses(policy: str, uses: Uses, free_kib: int, *, written: bool = False) -> dict[str, int]:
    """Pages that reads waited for, and page writes. `written`: nothing is written back by age."""
    prepare = [f"write 0 {page * 4096} 4096 1 0" for page in range(FILE_PAGES)]
    body = [
        f"write 0 {page * 4096} 4096 2 0" if writes else f"read 0 {page * 4096} 4096"
        for page, writes in uses
    ]
    never = ["vm.dirty_writeback_centisecs=0", "vm.dirty_ratio=100", "vm.dirty_background_ratio=99"]
    stack = one_stack(
        ["fs=ubifs", "partition.blocks=128", "read_ahead_kib=0", f"memory.free_kib={free_kib}",
         f"policy.reclaim={policy}", *(never if written else [])]
    )  # fmt: skip
    program = Program(
        case_id="case", stack=stack,
        prepare="\n".join(
            ["flashbed-ops 1", "open 0 f rw,create", *prepare, "close 0", "sync", "drop_caches",
             "prepared", ""]
        ),
        body="\n".join(["flashbed-ops 1", "mark", "open 0 f rw", *body, ""]),
    )  # fmt: skip
    (batch,) = SimTarget().run([program])
    for failure in batch.failures:
        raise RunError(failure.message)
    names = ("cache_misses", "flash_programs")
    return dict(zip(names, batch.cases.select(names).row(0), strict=True))


def zipf(count: int, seed: int, pages: int = FILE_PAGES, writes: float = 0.0) -> Uses:
    draw = random.Random(seed).random
    return [(int(pages ** draw()) - 1, draw() < writes) for _ in range(count)]


def loop(count: int, pages: int) -> Uses:
    return [(number % pages, False) for number in range(count)]


def of_lru(uses: Uses, room: int) -> int:
    cached: OrderedDict[int, None] = OrderedDict()
    missed = 0
    for page, _ in uses:
        missed += page not in cached
        cached[page] = None
        cached.move_to_end(page)
        if len(cached) > room:
            cached.popitem(last=False)
    return missed


def of_clean_first(uses: Uses, room: int) -> int:
    """Dirty pages are never written back, and there are fewer than room."""
    cached: OrderedDict[int, bool] = OrderedDict()
    missed = 0
    for page, writes in uses:
        if page not in cached:
            missed += not writes
            if len(cached) == room:
                del cached[next(page for page, dirty in cached.items() if not dirty)]
        cached[page] = cached.get(page, False) or writes
        cached.move_to_end(page)
    return missed


@pytest.mark.parametrize("free_kib", [512, 1024, 2048])
@pytest.mark.parametrize("uses", [zipf(8000, 1), zipf(8000, 2), loop(3000, 300)])
def test_lru_misses_what_an_lru_misses(uses: Uses, free_kib: int) -> None:
    expected = of_lru(uses, capacity(free_kib))
    assert misses("lru", uses, free_kib)["cache_misses"] == expected
    # Without dirty pages the others free the same.
    for policy in ("clean-first", "cflru", "lru-wsr"):
        assert misses(policy, uses, free_kib)["cache_misses"] == expected


@pytest.mark.parametrize("free_kib", [1024, 2048])
def test_clean_first_misses_what_another_one_misses(free_kib: int) -> None:
    uses = [(page if page < 80 or not writes else page % 80, writes)
            for page, writes in zipf(8000, 3, writes=0.3)]  # fmt: skip
    expected = of_clean_first(uses, capacity(free_kib))
    found = misses("clean-first", uses, free_kib, written=True)
    assert found["cache_misses"] == expected
    assert found["flash_programs"] == 0


def test_policies_that_spare_writes_write_less_than_lru() -> None:
    """Where nothing is synced, and memory is short: what they were made for."""
    draw = random.Random(4).random
    uses = [(int(draw() * 100), True) if draw() < 0.1 else (int(draw() * FILE_PAGES), False)
            for _ in range(10_000)]  # fmt: skip
    writes = {
        policy: misses(policy, uses, 1024, written=True)["flash_programs"]
        for policy in ("lru", "clean-first", "cflru", "lru-wsr")
    }
    assert 0 == writes["clean-first"] < writes["cflru"] < writes["lru-wsr"] < writes["lru"], writes


def test_a_policy_of_ones_own_is_one_of_the_built_in_ones(
    write_policy: Callable[[str], None],
) -> None:
    write_policy(
        """
        class Oldest(Reclaim):
            def choose(self, needed_pages, wanted_pages, pages):
                assert needed_pages <= wanted_pages
                assert list(pages.last_use) == sorted(pages.last_use)
                assert len(pages.file) == len(pages.page) == len(pages.is_dirty) == len(pages)
                return Reclaimed(range(needed_pages))


        class Kept(Reclaim):
            def choose(self, needed_pages, wanted_pages, pages):
                return Reclaimed([1], keep=[0])
        """
    )
    uses = zipf(4000, 7, writes=0.1)
    assert misses("mine.Oldest", uses, 1024) == misses("lru", uses, 1024)
    assert misses("mine.Kept", uses, 1024)["cache_misses"] > 0


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("Reclaimed([])", "names no page"),
        ("Reclaimed([0, 0])", "names page 0 twice"),
        ("Reclaimed([1], keep=[1])", "names page 1 twice"),
        ("Reclaimed([9999])", "names page 9999, and there are"),
        ("None", "returned None; it returns a Reclaimed"),
    ],
)
def test_what_is_no_answer_ends_the_case(
    answer: str, said: str, write_policy: Callable[[str], None]
) -> None:
    write_policy(
        f"""
        class Wrong(Reclaim):
            def choose(self, needed_pages, wanted_pages, pages):
                return {answer}
        """
    )
    with pytest.raises(RunError, match=said):
        misses("mine.Wrong", zipf(4000, 1), 1024)
