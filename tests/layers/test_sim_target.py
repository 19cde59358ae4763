"""The simulator's columns become tables with names and nulls."""

from __future__ import annotations

from array import array

import pytest

from flashbed.fuzz.generator import generate
from flashbed.profiles import load_board, load_kernel
from flashbed.targets.base import Program
from flashbed.targets.sim import NULL, SimTarget, batch_of


def program(case_id: str) -> Program:
    return Program(case_id, "jffs2", load_board("emulated"), load_kernel("6.1"), 0, "", "")


def column(*values: int) -> bytes:
    return array("q", values).tobytes()


def test_codes_become_names_and_the_least_integer_null() -> None:
    one = column(1)
    raw = {
        "cases": {"case_index": one, "time_ns": column(5), "fresh_bytes": column(2048 * 100),
                  "free_bytes": column(2048 * 40), "fresh_pages": column(7), "pages": column(87),
                  "flash_time_ns": column(3), "erase_count_mean_milli": column(1500)},
        "requests": {
            "case_index": column(1, 1),
            "seq": column(0, 1),
            "op_code": column(1, 0),
            "file_index": column(0, NULL),
            "offset_bytes": column(4096, NULL),
            "latency_ns": column(7, 8),
            "flash_time_ns": column(6, 0),
        },
        "flash": {"case_index": one, "seq": one, "start_ns": one, "kind": one, "block": column(2),
                  "task": column(0)},
        "wear": {},
        "surveys": [],
        "dice": [], "unpriced": [],
        "op_names": ["sync", "read"],
        "file_names": ["file.bin"],
        "kind_names": ["read", "program", "erase"],
        "task_names": ["foreground"],
        "failures": [("a", "no space left on device")],
    }  # fmt: skip
    batch = batch_of(raw, [program("a"), program("b")])
    assert batch.cases.to_dicts() == [
        {
            "case_id": "b",
            "time_ns": 5,
            "flash_time_ns": 3,
            "erase_count_mean": 1.5,
            "state_valid": 0.6,
            "state_invalid": pytest.approx(0.2),
            "read_ahead_kib": 0,
            "time_unknown": None,
        }
    ]
    assert batch.requests["flash_time_ns"].to_list() == [6, 0]
    assert batch.requests["op"].to_list() == ["read", "sync"]
    assert batch.requests["file"].to_list() == ["file.bin", None]
    assert batch.requests["offset_bytes"].to_list() == [4096, None]
    assert batch.flash.select("case_id", "kind", "task").row(0) == ("b", "program", "foreground")
    assert batch.failures[0].message == "no space left on device"


def test_a_run_in_which_every_case_failed_is_an_empty_table() -> None:
    raw = {"cases": {}, "requests": {}, "flash": {}, "wear": {}, "surveys": [], "dice": [],
           "unpriced": [], "op_names": [],
           "file_names": [], "kind_names": [], "task_names": [],
           "failures": [("a", "why")]}  # fmt: skip
    batch = batch_of(raw, [program("a")])
    assert (batch.cases.height, batch.requests.height, batch.flash.height) == (0, 0, 0)


def test_a_check_that_fails_at_the_first_of_its_pages_gives_the_chip_back() -> None:
    """JFFS2's thread reads erased blocks 4 KiB a call, two pages of this chip.

    The program meets wrong bits in the first of them, and then reads a file itself.
    """
    board, kernel = load_board("omap3evm"), load_kernel("6.1")
    program = generate("faults", "jffs2", 9122).program(board, kernel)
    (batch,) = SimTarget().run([program], trace_flash=False, progress=lambda *_: None)
    assert batch.cases.height + len(batch.failures) == 1
