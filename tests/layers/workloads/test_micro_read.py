"""Offsets of random reads: on what they begin, where they end, and which are drawn twice."""

from __future__ import annotations

import random

import pytest

from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.workloads.micro_read import operations

FILE_BYTES = 300_000
"""No multiple of any size below."""


def offsets(pattern: str, requests: int, size: int, seed: int = 1) -> list[int]:
    case = Case(
        experiment="a/b", board="emulated", kernel="6.1", fs="jffs2", pattern=pattern,
        requests=requests, read_ahead_kib=128, seed=seed, file_bytes=FILE_BYTES, request_bytes=size,
    )  # fmt: skip
    _, body = operations(case, 0)
    reads = [line.split() for line in body.splitlines() if line.startswith("read ")]
    assert {int(words[3]) for words in reads} == {size}
    return [int(words[2]) for words in reads]


@pytest.mark.parametrize(
    ("pattern", "size", "step"),
    [("random", 2048, 2048), ("random", 10_000, 10_000), ("random-once", 2048, 2048),
     ("random-page", 2048, 4096), ("random-page", 10_000, 4096), ("random-byte", 2048, 1)],
)  # fmt: skip
def test_a_random_offset_is_any_multiple_of_its_step_at_which_the_request_fits(
    pattern: str, size: int, step: int
) -> None:
    places = range(0, FILE_BYTES - size + 1, step)
    drawn = {at for seed in range(40) for at in offsets(pattern, 20, size, seed)}
    assert drawn <= set(places)
    assert min(drawn) < FILE_BYTES / 20
    assert max(drawn) + size > FILE_BYTES * 19 / 20


def test_once_draws_every_place_once() -> None:
    places = FILE_BYTES // 2048
    whole = offsets("random-once", places, 2048)
    assert sorted(whole) == [2048 * place for place in range(places)]
    assert whole != sorted(whole)
    assert offsets("random-once", 10, 2048) == whole[:10]


def test_once_cannot_draw_more_requests_than_there_are_places() -> None:
    with pytest.raises(InputError, match="as many places"):
        offsets("random-once", FILE_BYTES // 2048 + 1, 2048)


@pytest.mark.parametrize("seed", [0, 1, 12, 2**32 - 1, 2**32, 2**40 + 3])
def test_draws_are_those_of_pythons_random(seed: int) -> None:
    draw, places = random.Random(seed).random, FILE_BYTES // 2048
    assert offsets("random", 50, 2048, seed) == [int(draw() * places) * 2048 for _ in range(50)]


def test_random_draws_some_place_twice() -> None:
    drawn = offsets("random", 146, 2048)
    assert len(set(drawn)) < len(drawn)
