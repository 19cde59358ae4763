"""Draws the kind, place and length of a fio job's requests.

Random places are drawn here and differ from fio's: each block once, unless the job allows
repetitions or has a distribution. Left out: alignment of blocks, fio's own generators.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from flashbed.program.imports.fio_file import FioJob
from flashbed.program.imports.fio_options import Split

__all__ = ["FioRequest", "Region", "blocks_of", "kind_of", "requests_of"]

_GOLDEN = 0x9E3779B97F4A7C15
_KINDS = ("read", "write", "trim")
_BLOCK_BYTES = 4096


@dataclass(frozen=True)
class Region:
    """The part of a file that a job uses."""

    begin: int
    length: int


@dataclass(frozen=True)
class FioRequest:
    """A request: `read`, `write` or `trim`."""

    kind: str
    offset: int
    length: int


def blocks_of(job: FioJob) -> tuple[Split, Split, Split]:
    """The block sizes of reads, writes and trims."""
    found = job.splits("bssplit") or job.splits("bsrange")
    if found is not None:
        return found
    one = [Split(((size or _BLOCK_BYTES, 100),)) for size in job.triple("bs")]
    return one[0], one[1], one[2]


def kind_of(job: FioJob) -> tuple[str, int, bool]:
    """What a job does, the number behind the colon, and whether its places are random."""
    words, _, after = job.text("rw", "read").partition(":")
    return words.removeprefix("rand"), _signed(after), words.startswith("rand")


def _signed(text: str) -> int:
    digits = text.removeprefix("-")
    if not digits:
        return 0
    unit = {"k": 10, "m": 20, "g": 30}.get(digits.lower().rstrip("ib")[-1:], 0)
    value = int("".join(filter(str.isdigit, digits))) << unit
    return -value if text.startswith("-") else value


def requests_of(
    job: FioJob, region: Region, amount: int, draw: random.Random
) -> Iterator[FioRequest]:
    """Requests in a region until `amount` bytes are done."""
    what, after, is_random = kind_of(job)
    blocks = blocks_of(job)
    is_random = is_random or any(job.triple("percentage_random"))
    places = _random(job, region, blocks=blocks, run=after, draw=draw) if is_random else None
    positions: dict[str, int] = {}
    done = 0
    while done < amount:
        kind = _direction(job, what, draw)
        length = _length(blocks[_KINDS.index(kind)], draw)
        if places is not None:
            at = places(length)
        else:
            first = max(0, region.length + after) if after < 0 else 0
            at = positions.get(kind, first)
            if not 0 <= at < region.length:
                if after:
                    return  # fio ends at the end of a file that it reads with holes
                at = first
            positions[kind] = at + length + after
        length = min(length, region.length - at)
        if length <= 0:
            return
        yield FioRequest(kind, region.begin + at, length)
        done += length
        if what == "trimwrite":
            yield FioRequest("write", region.begin + at, length)


def _even(blocks: tuple[Split, Split, Split]) -> bool:
    """Whether all blocks have the same size."""
    first = blocks[0].sizes
    return len(first) == 1 and all(split.sizes == first and not split.low for split in blocks)


def _direction(job: FioJob, what: str, draw: random.Random) -> str:
    if what == "rw":
        reads = job.number("rwmixread", 100 - job.number("rwmixwrite", 50))
        return "read" if draw.random() * 100 < reads else "write"
    return "trim" if what.startswith("trim") else what


def _length(split: Split, draw: random.Random) -> int:
    if split.low:
        return split.low * draw.randint(1, max(1, split.high // split.low))
    if len(split.sizes) == 1:
        return split.sizes[0][0]
    sizes = [size for size, _ in split.sizes]
    return draw.choices(sizes, [share for _, share in split.sizes])[0]


def _random(
    job: FioJob,
    region: Region,
    *,
    blocks: tuple[Split, Split, Split],
    run: int,
    draw: random.Random,
) -> Callable[[int], int]:
    """A function that gives the place of the next request of a length."""
    unit = min(split.least for split in blocks)
    count = max(1, region.length // unit)
    distribution = job.distribution()
    one = _of_distribution(distribution, count, draw) if distribution else None
    if one is None and (job.number("norandommap") or not _even(blocks) or run > 1):
        one = lambda: draw.randrange(count)  # noqa: E731
    if one is None:
        one = _each_once(count, draw)
    percent = max(job.triple("percentage_random")) if "percentage_random" in job.values else 100
    last = [0, 0]

    def place(length: int) -> int:
        again = last[1] % run if run > 1 else 0
        last[1] += 1
        follows = again or (percent < 100 and draw.random() * 100 >= percent)
        at = last[0] if follows and last[0] < region.length else one() * unit
        last[0] = at + length
        return at

    return place


def _each_once(count: int, draw: random.Random) -> Callable[[], int]:
    left: list[int] = []

    def one() -> int:
        if not left:
            left.extend(range(count - 1, -1, -1))
            draw.shuffle(left)
        return left.pop()

    return one


def _of_distribution(
    distribution: tuple[str, tuple[float, ...], tuple[tuple[int, int], ...]],
    count: int,
    draw: random.Random,
) -> Callable[[], int]:
    """Draws a block by a distribution, all approximated; ranks are spread over the file."""
    kind, numbers, zones = distribution
    if kind == "zoned":
        return _zones(zones, count, draw)
    if kind in ("normal", "gauss"):
        deviation = (numbers[0] if numbers else 1.0) / 100 * count
        return lambda: min(count - 1, max(0, round(draw.gauss(count / 2, deviation))))
    if kind == "pareto":
        h = min(max(numbers[0] if numbers else 0.2, 0.0001), 0.9999)
        power = math.log(h) / math.log(1 - h)
        return lambda: _spread(int((count - 1) * draw.random() ** power), count)
    theta = numbers[0] if numbers else 1.1
    theta = theta + 1e-6 if abs(theta - 1) < 1e-6 else min(theta, 20.0)
    top = count ** (1 - theta) - 1
    return lambda: _spread(int((top * draw.random() + 1) ** (1 / (1 - theta))) - 1, count)


def _spread(rank: int, count: int) -> int:
    return (max(0, rank) * _GOLDEN) % count


def _zones(
    zones: tuple[tuple[int, int], ...], count: int, draw: random.Random
) -> Callable[[], int]:
    begins = [sum(size for _, size in zones[:number]) for number in range(len(zones))]
    shares = [share for share, _ in zones]

    def one() -> int:
        (number,) = draw.choices(range(len(zones)), shares)
        at = begins[number] + draw.random() * zones[number][1]
        return min(count - 1, int(count * at / 100))

    return one
