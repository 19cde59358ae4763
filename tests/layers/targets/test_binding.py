"""Rust and Python meet with types: `flashbed._sim` raises and gives what its stub says."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import flashbed
from flashbed.stack.conditions import Faults
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program
from flashbed.targets.sim import cases_of

STUB = Path(flashbed.__file__).with_name("_sim.pyi")
HEAD = "flashbed-ops 1\n"
PREPARE = f"{HEAD}prepared\n"
BOARD, KERNEL = load_board("emulated"), load_kernel("6.1")

pytestmark = pytest.mark.extension


def program(body: str) -> Program:
    return Program(
        case_id="a",
        stack=Stack(board=BOARD, kernel=KERNEL, fs="jffs2", read_ahead_kib=0),
        prepare=PREPARE,
        body=HEAD + body,
        record_wear=True,
    )


def documented(nodes: list[ast.stmt]) -> Iterator[tuple[ast.stmt, bool]]:
    """What a module or class of the stub holds, and whether it has a docstring."""
    for node, after in zip(nodes, [*nodes[1:], None], strict=True):
        if isinstance(node, ast.ClassDef):
            yield node, ast.get_docstring(node) is not None
            yield from documented(node.body)
        elif isinstance(node, ast.FunctionDef):
            yield node, ast.get_docstring(node) is not None
        elif isinstance(node, ast.AnnAssign):
            yield node, isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)


def columns(table: str) -> list[str]:
    (found,) = (
        node
        for node in ast.parse(STUB.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == table
    )
    return [ast.unparse(node.target) for node in found.body if isinstance(node, ast.AnnAssign)]


def test_everything_in_the_stub_is_documented() -> None:
    found = list(documented(ast.parse(STUB.read_text()).body))
    assert len(found) > 100
    assert [ast.unparse(node) for node, is_documented in found if not is_documented] == []


def test_every_argument_of_a_class_is_in_its_docstring() -> None:
    for node, _ in documented(ast.parse(STUB.read_text()).body):
        if isinstance(node, ast.FunctionDef) and node.name == "__new__":
            text = ast.get_docstring(node) or ""
            missing = [arg.arg for arg in node.args.kwonlyargs if f"`{arg.arg}`" not in text]
            assert missing == []


def test_the_columns_are_those_of_the_stub() -> None:
    from flashbed._sim import Recorded, run_cases

    recorded = Recorded(requests=True, flash=True, wear=True, flush=True, waits=True)
    cases = cases_of([program("open 0 f rw,create\nwrite 0 0 4096 1 0\nfsync 0\nclose 0\n")])
    given = run_cases(BOARD.sim_json, KERNEL.sim_json, cases, recorded, 1)
    assert given.failures == []
    assert list(given.cases) == columns("CaseColumns")
    assert list(given.requests) == columns("RequestColumns")
    assert list(given.flash) == columns("FlashColumns")
    assert list(given.wear) == columns("WearColumns")
    for table in (given.cases, given.requests, given.flash, given.wear):
        assert {type(values) for values in table.values()} == {bytes}


def test_the_phases_of_spi_nand_are_what_its_operations_take() -> None:
    """`flashbed chip show --arithmetic` worked them out a second time."""
    from flashbed._sim import Recorded, run_cases, spi_phases

    board = BOARD.changed({"chip": {"part": "W25N01GV"}})
    assert board.spi is not None
    stack = Stack(board=board, kernel=KERNEL, fs="mtd", read_ahead_kib=0)
    body = "open 0 partition rw\nwrite 0 0 2048 1 0\nread 0 0 2048\n"
    cases = cases_of([replace(program(body), stack=stack)])
    given = run_cases(board.sim_json, KERNEL.sim_json, cases, Recorded(requests=True), 1)
    assert given.failures == []
    _, programmed, read = memoryview(given.requests["flash_time_ns"]).cast("q")
    spi, chip = json.dumps(board.spi.sim_tables), board.chip
    whole = chip.page_bytes + chip.oob_bytes
    phases = spi_phases(spi, "program", chip.program_array_ns, whole)
    assert sum(phase[2] for phase in phases) == programmed
    phases = spi_phases(spi, "read", chip.read_array_ns, chip.page_bytes)
    assert sum(phase[2] for phase in phases) == read
    assert [name for name, *_ in spi_phases(spi, "erase", chip.erase_array_ns, 0)] == [
        "write enable", "row", "array"
    ]  # fmt: skip


def test_a_broken_file_of_operations_has_line_code_and_detail() -> None:
    from flashbed._sim import FormatError, body_offset, check_operations

    for function in (check_operations, body_offset):
        with pytest.raises(FormatError, match=r"^line 2: unknown-operation: ") as raised:
            function(f"{HEAD}juggle 3\n")
        assert (raised.value.line, raised.value.code) == (2, "unknown-operation")
        assert str(raised.value).endswith(f": {raised.value.detail}")


def test_a_case_that_is_not_modelled_says_what() -> None:
    from flashbed._sim import Recorded, run_cases

    bodies = "sql_open a 1 fsync PRAGMA user_version\nsql_close a\n", "open 0 a\n", "sync\n"
    cases = cases_of([program(body) for body in bodies])
    given = run_cases(BOARD.sim_json, KERNEL.sim_json, cases, Recorded(), 2)
    refused, broken = given.failures
    assert (refused.case_index, refused.kind, refused.what) == (
        0,
        "not modelled",
        "sql in the simulator",
    )
    assert refused.message == "line 2: sql_open: sql in the simulator is not modelled"
    assert (broken.case_index, broken.kind, broken.what) == (1, "failed", None)


def test_folders_that_are_moved_into_each_other_end_where_no_path_is_longer() -> None:
    """Each move renames all below: 20,000 of them took hours."""
    from flashbed._sim import Recorded, run_cases

    moves = "".join(f"mkdir d{n}\nrename d{n - 1} d{n}/x\n" for n in range(1, 2100))
    bodies = f"mkdir d0\n{moves}", "mkdir d0\nmkdir d1\nrename d0 d1/x\nrmdir d1/x\n"
    cases = cases_of([program(body) for body in bodies])
    given = run_cases(BOARD.sim_json, KERNEL.sim_json, cases, Recorded(), 2)
    refused = given.failures[0]
    assert [each.case_index for each in given.failures] == [0], given.failures[-1].message
    assert refused.what == "a folder moved below a path of more than 4,096 bytes"


def test_a_file_system_that_cannot_be_made_says_why() -> None:
    from flashbed._sim import NotModelled, fresh_space

    chip = BOARD.chip.model_copy(update={"page_bytes": 512, "oob_bytes": 16})
    small_pages = BOARD.model_copy(update={"chip": chip})
    with pytest.raises(NotModelled, match=r"is not modelled$") as raised:
        fresh_space(small_pages.sim_json, KERNEL.sim_json, "yaffs2", [])
    assert raised.value.what.startswith("yaffs2 on flash pages below")
    partition = BOARD.partition.model_copy(update={"blocks": 8})
    tiny = BOARD.model_copy(update={"partition": partition})
    with pytest.raises(ValueError, match="blocks") as other:
        fresh_space(tiny.sim_json, KERNEL.sim_json, "ubifs", [])
    assert not isinstance(other.value, NotModelled)


def test_a_file_system_that_there_is_not_is_a_value_error() -> None:
    from flashbed._sim import Case, Chip

    with pytest.raises(ValueError, match=r"^no file system 'ext4': jffs2, "):
        Case(fs="ext4", prepare=PREPARE, body=HEAD, read_ahead_kib=0, chip=Chip())


def test_what_the_sink_raises_ends_the_call() -> None:
    from flashbed._sim import Piece, Recorded, run_cases

    full = OSError("no space left on device")

    def sink(piece: Piece) -> None:
        assert (piece.case_index, piece.file_names) == (0, ["f"])
        raise full

    endless = "read 0 0 1\n" * 70_000 + "compute 1000000000000\n" * 100_000
    cases = cases_of([program(f"open 0 f rw,create\n{endless}close 0\n")])
    recorded = Recorded(requests=True)
    given = run_cases(BOARD.sim_json, KERNEL.sim_json, cases, recorded, 1, sink)
    assert given.interrupted is full
    assert (dict(given.cases), given.failures) == ({}, [])


def test_programs_that_begin_alike_share_a_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bad blocks were drawn for each case: three quarters of the time of short ones."""
    calls = []

    def bad(*_: object) -> tuple[int, ...]:
        calls.append(0)
        return ()

    monkeypatch.setattr(Faults, "bad", bad)
    cases_of([program("sync\n") for _ in range(5)])
    assert len(calls) == 1
