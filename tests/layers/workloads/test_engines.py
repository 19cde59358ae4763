"""Requests through another engine are replayed as their program made them."""

from __future__ import annotations

import re

import pytest

from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import plan
from flashbed.plan.workloads.engines import operations

EXPERIMENT = load_experiment("engines/requests")
SETTLE_NS = 10_000_000_000


def case(pattern: str, requests: int = 100, fs: str = "ubifs") -> Case:
    return Case(
        experiment="engines/x", board="emulated", kernel="6.1", fs=fs, read_ahead_kib=0,
        pattern=pattern, requests=requests, request_bytes=600, file_bytes=0, seed=1,
        compressor="none",
    )  # fmt: skip


def replayed(pattern: str) -> tuple[str, list[str]]:
    folder = EXPERIMENT.workload.recordings
    assert folder is not None
    prepare, body = operations(case(pattern), SETTLE_NS, folder)
    return prepare, body.splitlines()


def test_every_case_has_its_recording() -> None:
    folder = EXPERIMENT.workload.recordings
    assert folder is not None
    for planned in plan(EXPERIMENT, {}):
        prepare, body = operations(planned.case, SETTLE_NS, folder)
        assert prepare
        assert body


@pytest.mark.parametrize("pattern", ["sqlite-select", "berkeleydb-update", "lmdb-join"])
def test_the_inode_is_held_over_the_mark_and_nothing_waits(pattern: str) -> None:
    _, lines = replayed(pattern)
    held = [number for number, line in enumerate(lines) if " 1023" in line]
    assert lines[held[0]].startswith("open 1023 requests.")
    assert lines[-1] == "close 1023"
    assert lines[held[0] + 1 : held[0] + 3] == ["drop_caches", "mark"]
    assert not lines[held[0] + 3].startswith("compute"), "the program's start"
    assert not any(line.startswith("pause") for line in lines)
    assert any(line.startswith("compute") for line in lines)


def test_an_engine_reads_what_it_was_asked_for() -> None:
    """A hundred records of 600 bytes lie on seventeen pages of 4 KiB; others say on which."""
    _, lines = replayed("berkeleydb-select")
    places = {line.split()[2] for line in lines if re.fullmatch(r"read \d+ \d+ 4096", line)}
    assert 17 < len(places) < 2 * 17


def test_a_case_without_a_recording_says_which() -> None:
    with pytest.raises(
        InputError, match=r"no recording of 7 requests of 600 bytes.*lmdb-join-7-600"
    ):
        operations(case("lmdb-join", requests=7), SETTLE_NS, "experiments/engines/recordings")
