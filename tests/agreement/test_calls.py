"""Metadata calls and mapped files: the simulator answers as the kernel does, and so does its flash.

Each program is for one call, alone and among writes, syncs, remounts and dropped caches. Results
and flash operations are compared one by one, on user-mode Linux, whose file systems are the
kernel's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import pytest

from flashbed.bench.fuzz.differences import FuzzOutcome, outcomes_of
from flashbed.program.operations import parse
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Failure, Program, RunOptions, Target
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.uml_target import UmlTarget
from tests.support.calls import PROGRAMS, REFUSED

pytestmark = [pytest.mark.uml, pytest.mark.extension]

HEADER = "flashbed-ops 2\n"
FILE_SYSTEMS = ["jffs2", "ubifs", "yaffs2"]


def program(fs: str, name: str, text: str) -> Program:
    body = HEADER + text.strip() + "\n"
    parse(body.encode())
    window = 64 if "window" in name else 16
    board = load_board("emulated")
    prepare = HEADER + "prepared\n"
    return Program(
        case_id=f"{fs}-{name}",
        stack=Stack(board=board, kernel=load_kernel("6.1"), fs=fs, read_ahead_kib=window),
        prepare=prepare,
        body=body,
    )


def in_user_mode(case: Program) -> Program:
    """The same on a simulator that is user-mode Linux, whose software takes no time."""
    return replace(
        case,
        stack=replace(
            case.stack,
            board=case.stack.board.without_software(),
            kernel=case.stack.kernel.in_user_mode,
        ),
    )


def outcomes(target: Target, programs: list[Program]) -> dict[str, FuzzOutcome | Failure]:
    found: dict[str, FuzzOutcome | Failure] = {}
    for batch in target.run(programs, RunOptions(trace_flash=True)):
        found |= {failure.case_id: failure for failure in batch.failures}
        found |= outcomes_of(batch, programs[0].stack.board.chip.page_bytes)
    return found


def told(outcome: FuzzOutcome) -> list[tuple[str, object]]:
    """Results and flash operations in one list, each operation's flash behind it."""
    lines: list[tuple[str, object]] = []
    flash = [(outcome.operation_of(index), op.key) for index, op in enumerate(outcome.flash)]
    for number, row in enumerate(outcome.rows):
        lines.append((f"{number} {row.op}", row.result))
        lines += [(f"{number} {row.op} on flash", key) for at, key in flash if at == number]
    return lines


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Mapping[str, FuzzOutcome | Failure], Mapping[str, FuzzOutcome | Failure]]:
    programs = [program(fs, name, text) for fs in FILE_SYSTEMS for name, text in PROGRAMS.items()]
    real = UmlTarget(work_dir=tmp_path_factory.mktemp("uml"))
    simulated = [in_user_mode(case) for case in programs]
    return outcomes(SimTarget(), simulated), outcomes(real, programs)


@pytest.mark.parametrize("fs", FILE_SYSTEMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_call_does_what_it_does_on_the_kernel(
    both: tuple[Mapping[str, FuzzOutcome | Failure], Mapping[str, FuzzOutcome | Failure]],
    fs: str,
    name: str,
) -> None:
    sim, real = (side[f"{fs}-{name}"] for side in both)
    assert isinstance(real, FuzzOutcome), real
    assert isinstance(sim, FuzzOutcome), sim
    for ours, kernels in zip_longest(told(sim), told(real)):
        assert ours == kernels
    assert len(real.rows) == len([line for line in PROGRAMS[name].split("\n") if line.strip()])


def test_jffs2s_thread_waits_until_a_summary_is_written_whole(tmp_path: Path) -> None:
    """A summary's pages but the first are one call into MTD, so the thread finds the chip locked.

    The simulator made two calls of it, and the thread read between them (gen_links: 4,394 reads
    for 10,657 after eight rounds).
    """
    names = [f"d/stress-ng-link-21-0-{number}" for number in range(4000)]
    turn = [f"link d/x {name}" for name in names] + [f"unlink {name}" for name in names]
    text = "\n".join(["mkdir d", "open 0 d/x rw,create", "close 0", *turn * 3])
    case = program("jffs2", "links", text)
    [sim] = outcomes(SimTarget(), [in_user_mode(case)]).values()
    [real] = outcomes(UmlTarget(work_dir=tmp_path), [case]).values()
    assert isinstance(sim, FuzzOutcome)
    assert isinstance(real, FuzzOutcome)
    assert any(op.key[0] == "erase" for op in real.flash)
    assert [op.key for op in sim.flash] == [op.key for op in real.flash]


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_modelled_is_refused_by_name(what: str) -> None:
    fs, text = REFUSED[what]
    case = program(fs, "refused", text)
    found = outcomes(SimTarget(), [case])
    [failure] = found.values()
    assert isinstance(failure, Failure)
    assert failure.not_modelled == what
