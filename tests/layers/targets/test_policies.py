"""Policies of the user's: they decide, they are part of the stack, and bad ones end in a line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest

from flashbed.api.policy_check import checked
from flashbed.base.errors import InputError, RunError
from flashbed.plan.stacks import one_stack, stacks
from flashbed.stack.policies import built_in, policies_of
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program
from flashbed.targets.sim import SimTarget

pytestmark = pytest.mark.extension
FILE_PAGES = 512


def of(decision: str, name: str, fs: str = "jffs2") -> Stack:
    return one_stack(
        [f"fs={fs}", "partition.blocks=96", "read_ahead_kib=128", f"policy.{decision}={name}"]
    )


def reads(*pages: int) -> str:
    lines = ["flashbed-ops 1", "open 0 f ro", *(f"read 0 {page * 4096} 4096" for page in pages)]
    return "\n".join([*lines, "close 0", ""])


def program(stack: Stack, body: str, case_id: str = "case") -> Program:
    writes = (f"write 0 {page * 4096} 4096 1 0" for page in range(FILE_PAGES))
    lines = ["flashbed-ops 1", "open 0 f rw,create", *writes, "close 0", "sync", "drop_caches"]
    return Program(
        case_id=case_id, stack=stack, prepare="\n".join([*lines, "prepared", ""]), body=body
    )


def adds(*programs: Program) -> list[int]:
    """Pages that each program brought into the page cache."""
    tables = [batch.cases for batch in SimTarget().run(programs) if batch.cases.width]
    found = pl.concat(tables).select("case_id", "cache_adds")
    counts = dict(found.iter_rows())
    return [counts[each.case_id] for each in programs]


def failure(stack: Stack, body: str) -> str:
    (batch,) = SimTarget().run([program(stack, body)])
    (failed,) = batch.failures
    return failed.message


EIGHT = """
class Eight(ReadAhead):
    def on_miss(self, request):
        return Window(request.page, 8)
"""


@pytest.mark.parametrize("fs", ["jffs2", "yaffs2", "ubifs"])
def test_a_policy_in_python_chooses_the_window(
    write_policy: Callable[[str], None], fs: str
) -> None:
    write_policy(EIGHT)
    body = reads(0, 100, 200)
    assert adds(program(of("read_ahead", "mine.Eight", fs), body)) == [24]
    assert adds(program(of("read_ahead", "none", fs), body)) == [3]
    assert adds(program(of("read_ahead", "kernel", fs), body)) == [6]


def test_a_policy_is_told_what_the_kernel_knows(write_policy: Callable[[str], None]) -> None:
    write_policy("""
    class Told(ReadAhead):
        def on_miss(self, request):
            told = (request.page, request.wanted_pages, request.file_pages, request.max_pages)
            last = (request.window_start, request.window_pages, request.marked_pages)
            assert told == (0, 1, 512, 32) and last == (0, 0, 0) or (
                told == (12, 1, 512, 32) and last == (0, 12, 4)
                and request.cached_before == 12 and request.missing_pages == 32
                and request.previous_page == 12
            ), (told, last, request.cached_before, request.missing_pages, request.previous_page)
            return Window(request.page, 12, 8) if request.page == 0 else None
        def on_marker(self, request):
            assert (request.page, request.cached_before, request.missing_pages) == (8, 8, 0)
            return None
    """)
    assert adds(program(of("read_ahead", "mine.Told"), reads(*range(13)))) == [13]


def test_cases_begin_with_equal_policies(write_policy: Callable[[str], None]) -> None:
    write_policy("""
    class Grows(ReadAhead):
        def __init__(self):
            self.pages = [0]
        def on_miss(self, request):
            self.pages[0] += self.random.choice([1, 2])
            return Window(request.page, self.pages[0])
    """)
    stack = of("read_ahead", "mine.Grows")
    alone = adds(program(stack, reads(0, 100, 200, 300)))
    together = adds(*(program(stack, reads(0, 100, 200, 300), f"case{n}") for n in range(3)))
    assert together == alone * 3


def test_the_text_of_its_file_is_part_of_a_stack(write_policy: Callable[[str], None]) -> None:
    write_policy(EIGHT)
    first = of("read_ahead", "mine.Eight")
    assert first == of("read_ahead", "mine.Eight")
    write_policy(EIGHT.replace("8", "9"))
    assert first != of("read_ahead", "mine.Eight")
    kernels, unnamed = of("read_ahead", "kernel"), one_stack(["fs=jffs2", "partition.blocks=96"])
    assert kernels.policies == ()
    assert replace(kernels, read_ahead_kib=None) == unnamed


BAD = {
    "return 1 // 0": "mine.py:6: Bad.on_miss: ZeroDivisionError: integer division or modulo by",
    "return 'x'": "mine.py: Bad.on_miss: ValueError: returned 'x'; it returns a Window of a start",
    "return Window(0, 1 << 30)": "a window has at most 1048576 pages",
    "return Window(0, 4, 4)": "and its marker is one of them",
    "raise ValueError('a\\nb')": "mine.py:6: Bad.on_miss: ValueError: a b",
    "raise SystemExit": "mine.py:6: Bad.on_miss: SystemExit",
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_policy_ends_its_case_alone_with_a_line(
    write_policy: Callable[[str], None], what: str
) -> None:
    write_policy(f"""
    class Bad(ReadAhead):
        def on_miss(self, request):
            if request.page == 7:
                {what}
            return None
    """)
    stack = of("read_ahead", "mine.Bad")
    good, bad = program(stack, reads(1, 2), "good"), program(stack, reads(1, 7), "bad")
    (batch,) = SimTarget().run([good, bad])
    assert batch.cases["case_id"].to_list() == ["good"]
    (failed,) = batch.failures
    assert failed.case_id == "bad"
    assert BAD[what].replace(":6:", ":7:") in failed.message
    assert failed.message.startswith("policies/")
    assert "\n" not in failed.message


def test_a_policy_that_cannot_be_copied_is_named(write_policy: Callable[[str], None]) -> None:
    write_policy("""
    class Bad(ReadAhead):
        def __init__(self):
            self.numbers = (n for n in range(3))
        def on_miss(self, request):
            return None
    """)
    assert "Bad.__deepcopy__: TypeError: cannot pickle 'generator'" in failure(
        of("read_ahead", "mine.Bad"), reads(1)
    )


def test_wrong_names_are_refused(write_policy: Callable[[str], None]) -> None:
    write_policy(EIGHT)
    for decision, name, said in (
        ("read_ahead", "nope", "no such policy; there are kernel, none, requested"),
        ("read_ahead", "other.Eight", r"policies/other.py: no such file"),
        ("read_ahead", "mine.Nine", "no class Nine of a policy; there are Eight"),
        ("victim", "mine.Eight", "Eight is a ReadAhead, for policy.read_ahead"),
        ("victim", "Mine", "victim: 'Mine' is no policy: kernel, a built-in one, or MODULE"),
    ):
        with pytest.raises(InputError, match=said):
            of(decision, name)
    write_policy("1 // 0\n")
    with pytest.raises(InputError, match=r"policies/mine.py:3: ZeroDivisionError"):
        of("victim", "mine.Greedy")
    write_policy("class\n")
    with pytest.raises(InputError, match=r"policies/mine.py:3: SyntaxError: invalid syntax"):
        of("victim", "mine.Greedy")


def test_the_kernels_own_is_no_change() -> None:
    one, other = stacks(["policy.victim=kernel,greedy"])
    assert one.stack.policies == ()
    assert one.stack.only_simulated is None
    assert other.stack.only_simulated is not None


def test_every_built_in_policy_holds() -> None:
    for decision in ("read_ahead", "victim"):
        for name in built_in(decision):
            for each in checked(policies_of({decision: name})[0], cuts=3, seed=2):
                assert each.wrong == (), (name, each)
                assert each.recovered == each.cuts


def test_a_policy_that_answers_otherwise_the_second_time_is_noticed(
    write_policy: Callable[[str], None],
) -> None:
    write_policy("""
    MEMORY = []
    class Remembers(Victim):
        def choose(self, now_ns, why, blocks):
            MEMORY.append(why)
            return len(MEMORY) % len(blocks) if blocks.dirty_bytes[len(MEMORY) % len(blocks)] else 0
    """)
    (policy,) = policies_of({"victim": "mine.Remembers"})
    first = next(iter(checked(policy, cuts=0, seed=1)))
    assert first.decisions > 0
    assert first.wrong == ("two runs differ: it uses more than what it is told and self.random",)


def test_a_check_ends_with_the_line_of_a_policy_that_fails(
    write_policy: Callable[[str], None],
) -> None:
    write_policy("""
    class Bad(Victim):
        def choose(self, now_ns, why, blocks):
            return len(blocks)
    """)
    (policy,) = policies_of({"victim": "mine.Bad"})
    with pytest.raises(RunError, match=r"jffs2: policies/mine.py: Bad.choose: .* there are \d+ bl"):
        list(checked(policy, cuts=0, seed=1))
