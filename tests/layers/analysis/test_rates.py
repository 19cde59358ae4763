"""What single cases and requests come to, and the workloads that are measured that way."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from flashbed.answers.analysis import extremes, per_request, rate_points, rates
from flashbed.answers.energy.fold import COMPONENTS, ENERGY_COLUMNS
from flashbed.answers.lifetimes.subject import CAUSES
from flashbed.base.errors import InputError
from flashbed.plan import case as plan_case
from flashbed.plan.case import Case
from flashbed.plan.workloads import operations
from flashbed.program.operations import parse

USUAL = {axis: str(plan_case.AXES[axis].usual) for axis in plan_case.CONDITIONS}

CASE = {
    "case_id": "a", "target": "sim", "board": "b", "kernel": "k", "fs": "jffs2",
    "pattern": "sequential", "requests": 2, "request_bytes": 4096, "time_ns": 4_000_000,
    "flash_time_ns": 1_000_000, "bytes": 8192, "flash_reads": 3, "flash_programs": 5,
    "flash_erases": 1, "file_bytes": 8192, "pause_ns": 0, "read_ahead_kib": 0, "window": "forced",
    "advice": "none", "ecc_corrected": 0, "ecc_failed": 0,
    **USUAL,
    **dict.fromkeys(ENERGY_COLUMNS), **{f"bytes_{cause}": 1024 for cause in CAUSES},
}  # fmt: skip


def request(
    seq: int, op: str, start: int, latency: int | None, flash: int
) -> dict[str, str | int | None]:
    return {
        "case_id": "a", "target": "sim", "seq": seq, "op": op, "start_ns": start,
        "latency_ns": latency, "flash_time_ns": flash, "offset_bytes": 4096 * seq, "result": 512,
    }  # fmt: skip


REQUESTS = [
    request(0, "write", start=0, latency=1_000_000, flash=200_000),
    request(1, "pause", start=1_000_000, latency=500, flash=600_000),
    request(2, "write", start=2_000_000, latency=3_000_000, flash=200_000),
]


def test_a_case_comes_to_rates() -> None:
    (row,) = rates(pl.DataFrame([CASE]), pl.DataFrame(REQUESTS)).to_dicts()
    assert row["response_ms"] == 2
    assert row["flash_response_ms"] == pytest.approx(0.2)
    assert row["throughput_mb_s"] == pytest.approx(2.048)
    assert row["flash_share_pct"] == 25
    assert row["flash_programs_per_request"] == 2.5
    assert row["background_flash_pct"] == 60
    assert row["seeds"] == 1
    assert row["read_end_kb"] is None


def test_the_last_byte_that_is_read_says_how_large_a_file_is_at_least() -> None:
    requests = [
        *REQUESTS,
        request(9, "read", start=0, latency=1, flash=0),
        request(3, "read", start=0, latency=1, flash=0),
    ]
    (row,) = rates(pl.DataFrame([CASE]), pl.DataFrame(requests)).to_dicts()
    assert row["read_end_kb"] == pytest.approx((9 * 4096 + 512) / 1000)


def test_the_mean_power_of_a_rail_is_the_energy_of_its_components_over_the_time() -> None:
    parts = dict.fromkeys(COMPONENTS, 1_000_000) | {"component_cpu_driver_nj": 3_000_000}
    timed = {**CASE, **parts, "time_ns": 10_000_000}
    (paused,) = rates(pl.DataFrame([timed]), pl.DataFrame(REQUESTS)).to_dicts()
    assert paused["component_cpu_mw"] is None  # part of it was taken while no operation ran
    (row,) = rates(pl.DataFrame([timed]), pl.DataFrame(REQUESTS[::2])).to_dicts()
    assert row["component_cpu_mw"] == pytest.approx(400)
    assert row["component_mem_mw"] == pytest.approx(500)
    unknown = {**timed, "component_flash_erase_nj": None}
    (row,) = rates(pl.DataFrame([unknown]), pl.DataFrame(REQUESTS[::2])).to_dicts()
    assert row["component_cpu_mw"] == pytest.approx(400)
    assert row["component_mem_mw"] is None


def test_what_a_target_does_not_know_is_no_point() -> None:
    untimed = [{**row, "latency_ns": None} for row in REQUESTS]
    types = {"latency_ns": pl.Int64}
    cases = pl.DataFrame([{**CASE, "time_ns": None}], schema_overrides={"time_ns": pl.Int64})
    rated = rates(cases, pl.DataFrame(untimed, schema_overrides=types))
    assert rate_points(rated, "response_ms").height == 0
    assert rate_points(rated, "flash_response_ms").height == 1


def test_flash_pages_belong_to_the_request_in_which_they_begin() -> None:
    starts = (0, 100, 1_500_000, 2_000_000, 9_000_000)
    flash = pl.DataFrame(
        [{"case_id": "a", "target": "sim", "kind": "program", "start_ns": at} for at in starts]
        + [{"case_id": "a", "target": "sim", "kind": "read", "start_ns": 50}]
    )
    single = per_request(pl.DataFrame([CASE]), pl.DataFrame(REQUESTS), flash, ("program",))
    assert single.select("request", "latency_ms", "flash_pages").rows() == [(1, 1, 3), (2, 3, 2)]
    starts_ns: list[Any] = [row["start_ns"] for row in REQUESTS if row["op"] != "pause"]
    assert single["arrival_ms"].to_list() == [(at - starts_ns[0]) / 1e6 for at in starts_ns]
    (furthest,) = extremes(pl.DataFrame([CASE]), pl.DataFrame(REQUESTS), flash).to_dicts()
    assert (furthest["longest_ms"], furthest["shortest_ms"]) == (3, 1)
    assert furthest["tail_flash_ms"] == pytest.approx(0.6)
    assert (furthest["most_flash_pages"], furthest["fewest_flash_pages"]) == (3, 2)
    untraced = per_request(
        pl.DataFrame([CASE]), pl.DataFrame(REQUESTS), pl.DataFrame(), ("program",)
    )
    assert untraced["flash_pages"].to_list() == [None, None]


def case(fs: str, pattern: str, requests: int, request_bytes: int, file_bytes: int) -> Case:
    return Case(
        experiment="x/y",
        board="emulated",
        kernel="6.1",
        fs=fs,
        read_ahead_kib=0,
        pattern=pattern,
        requests=requests,
        request_bytes=request_bytes,
        file_bytes=file_bytes,
        seed=1,
    )


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (
            "micro-write",
            case("jffs2", "sequential", requests=10, request_bytes=4096, file_bytes=40_960),
        ),
        (
            "micro-write",
            case("jffs2", "random", requests=10, request_bytes=4096, file_bytes=40_960),
        ),
        (
            "read-layout",
            case("ubifs", "fragmented", requests=10, request_bytes=4096, file_bytes=40_960),
        ),
        (
            "read-layout",
            case("jffs2", "fragmented-12", requests=10, request_bytes=4096, file_bytes=40_960),
        ),
        (
            "collection",
            case("jffs2", "fill-30", requests=10, request_bytes=4096, file_bytes=2_097_152),
        ),
        (
            "collection",
            case("jffs2", "fill-75-idle", requests=100, request_bytes=65_536, file_bytes=2_097_152),
        ),
        ("raw", case("mtd", "erase", requests=800, request_bytes=2048, file_bytes=4_194_304)),
        ("raw", case("mtd-driver", "write", requests=10, request_bytes=4096, file_bytes=40_960)),
        ("raw", case("mtdblock", "write", requests=10, request_bytes=4096, file_bytes=40_960)),
        ("raw", case("ubifs", "read", requests=20, request_bytes=4096, file_bytes=40_960)),
        ("raw", case("mtd", "read-random", requests=20, request_bytes=4096, file_bytes=40_960)),
    ],
)
def test_operations_are_ones_and_as_many_as_asked_for(kind: str, given: Case) -> None:
    prepare, body = operations(kind, given, 1000)
    assert parse(prepare)[-1].name == "prepared"
    names = [operation.name for operation in parse(body)]
    after = names[names.index("mark") + 1 :]
    assert sum(name in ("read", "write", "erase") for name in after) == given.requests


def test_idle_time_comes_after_every_so_many_bytes() -> None:
    _, body = operations(
        "collection",
        case("jffs2", "fill-75-idle", requests=16, request_bytes=65_536, file_bytes=2_097_152),
        0,
    )
    names = [operation.name for operation in parse(body)]
    assert names[names.index("mark") + 1 :] == (["write"] * 4 + ["pause"]) * 4


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (
            "micro-write",
            case("jffs2", "fragmented", requests=1, request_bytes=4096, file_bytes=4096),
        ),
        (
            "micro-write",
            case("jffs2", "sequential", requests=2, request_bytes=4096, file_bytes=4096),
        ),
        ("read-layout", case("jffs2", "random", requests=1, request_bytes=4096, file_bytes=4096)),
        ("collection", case("jffs2", "fill-100", requests=1, request_bytes=4096, file_bytes=4096)),
        ("collection", case("jffs2", "fill-30", requests=1, request_bytes=8192, file_bytes=4096)),
        ("raw", case("jffs2", "erase", requests=1, request_bytes=2048, file_bytes=4096)),
        ("raw", case("mtd", "write", requests=3, request_bytes=2048, file_bytes=4096)),
    ],
)
def test_a_case_that_cannot_be_is_refused(kind: str, given: Case) -> None:
    with pytest.raises(InputError, match=given.case_id):
        operations(kind, given, 0)


def test_a_file_is_rewritten_in_the_pieces_that_its_pattern_names() -> None:
    for pattern, piece_bytes in (("fragmented", 512), ("fragmented-12", 341)):
        prepare, _ = operations(
            "read-layout",
            case("jffs2", pattern, requests=10, request_bytes=4096, file_bytes=40_960),
            0,
        )
        sizes = [int(line.split()[3]) for line in prepare.splitlines() if line[:6] == "write "]
        assert sizes.count(piece_bytes) == 40_960 // piece_bytes


def test_reads_at_random_are_the_reads_in_order_in_another_order() -> None:
    bodies = [
        operations(
            "raw", case("mtd", pattern, requests=20, request_bytes=2048, file_bytes=40_960), 0
        )[1].splitlines()
        for pattern in ("read", "read-random")
    ]
    in_order, drawn = bodies
    assert in_order != drawn
    assert sorted(in_order) == sorted(drawn)
