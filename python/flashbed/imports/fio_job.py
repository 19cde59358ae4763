"""Imports a subset of fio's job files; an unknown key is refused by name.

Jobs with the same start run side by side, request by request; `stonewall` waits for all jobs before
it. Offsets of random jobs are drawn here, each block once, and differ from fio's. Left out: engines
with several requests in flight, jobs that end by time, verification, rates, zones.
"""

from __future__ import annotations

import heapq
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from flashbed.imports.lines import ImportedError, lines_of, refuse
from flashbed.paths import shown
from flashbed.recording.about import About
from flashbed.recording.calls import EXISTED, Call
from flashbed.recording.file import RecordingWriter

__all__ = ["import_fio_job"]

LACKS = (
    "the offsets that fio would draw: random ones are drawn here, each block once",
    "what fio writes: it counts as incompressible",
    "times: requests follow one another at once, except for thinktime",
)
_BYTES_MAX = 1 << 33
_REQUESTS_MAX = 10_000_000
_SIZE = re.compile(r"(\d{1,12})([kmgtKMGT]?)(?:i?[bB])?\Z")
_RW = ("read", "write", "randread", "randwrite", "rw", "readwrite", "randrw")
_ENGINES = ("sync", "psync", "vsync", "pvsync", "pvsync2")
_IGNORED = frozenset(
    {
        "description",
        "group_reporting",
        "directory",
        "name",
        "new_group",
        "gtod_reduce",
        "disk_util",
        "invalidate",
        "fallocate",
        "create_serialize",
        "refill_buffers",
        "scramble_buffers",
        "norandommap",
        "random_generator",
        "exitall",
        "thread",
        "buffered",
        "write_bw_log",
        "write_lat_log",
        "write_iops_log",
        "write_iolog",
        "per_job_logs",
    }
)


@dataclass
class _Job:
    name: str
    line: int
    values: dict[str, int | str] = field(default_factory=dict)

    def number(self, key: str, default: int = 0) -> int:
        value = self.values.get(key, default)
        assert isinstance(value, int)
        return value

    def text(self, key: str, default: str) -> str:
        return str(self.values.get(key, default))


def _size(text: str) -> int:
    found = _SIZE.match(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is no size")
    value = int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[found[2].lower()]
    if value > _BYTES_MAX:
        raise ValueError(f"{text[:40]!r}: {_BYTES_MAX >> 30} GiB at most")
    return value


def _count(text: str) -> int:
    if not text.isdigit() or len(text) > 9:
        raise ValueError(f"{text[:40]!r} is not a whole number")
    return int(text)


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"{text[:40]!r}: must be one of {', '.join(words)}")
        return text

    return read


def _file(text: str) -> str:
    if (
        text.startswith("/")
        or ":" in text
        or any(part in ("", ".", "..") for part in text.split("/"))
    ):
        raise ValueError(f"{text[:80]!r}: must be one file below the folder")
    return text


def _depth(text: str) -> int:
    if _count(text) != 1:
        raise ValueError("more than one request in flight")
    return 1


_KEYS: Mapping[str, Callable[[str], int | str]] = {
    "rw": _one_of(*_RW), "readwrite": _one_of(*_RW), "bs": _size, "blocksize": _size,
    "size": _size, "filesize": _size, "io_size": _size, "offset": _size, "filename": _file,
    "fsync": _count, "fdatasync": _count, "end_fsync": _count, "fsync_on_close": _count,
    "numjobs": _count, "stonewall": lambda text: _count(text or "1"), "thinktime": _count,
    "direct": _count, "sync": _count, "overwrite": _count, "ioengine": _one_of(*_ENGINES),
    "iodepth": _depth, "randseed": _count, "rwmixread": _count, "unlink": _count,
    "loops": _count, "nrfiles": _depth,
}  # fmt: skip
_SAME = {"readwrite": "rw", "blocksize": "bs", "filesize": "size", "wait_for_previous": "stonewall"}


def _jobs(path: Path) -> list[_Job]:
    """The jobs of a file, each with the settings of `[global]` sections before it."""
    usual: dict[str, int | str] = {}
    jobs: list[_Job] = []
    job: _Job | None = None
    for line, raw in lines_of(path):
        text = raw.decode("utf-8", "replace").strip()
        if not text or text[0] in "#;":
            continue
        if text.startswith("["):
            if not text.endswith("]") or len(text) < 3:
                raise refuse(path, line, "no [NAME]")
            job = _Job(text[1:-1], line, {} if text == "[global]" else dict(usual))
            if text != "[global]":
                jobs.append(job)
            continue
        key, _, value = (part.strip() for part in text.partition("="))
        key = _SAME.get(key, key)
        if job is None:
            raise refuse(path, line, f"{key[:40]}: before the first [NAME]")
        if key in _IGNORED:
            continue
        reader = _KEYS.get(key)
        if reader is None:
            raise refuse(path, line, f"{key[:40]}: unknown key; docs/imports.md lists the keys")
        try:
            job.values[key] = reader(value)
        except ValueError as why:
            raise refuse(path, line, f"{key}: {why}") from None
        if job.name == "global":
            usual = dict(job.values)
    if not jobs:
        raise ImportedError(f"{shown(path)}: no job")
    return jobs


def _offsets(job: _Job, copy: int) -> Iterator[tuple[str, int, int]]:
    """`read` or `write`, offset and length of each request."""
    size, block = job.number("size"), job.number("bs", 4096)
    rw, begin = job.text("rw", "read"), job.number("offset")
    draw = random.Random(job.number("randseed", 1) + copy)
    for _ in range(max(1, job.number("loops", 1))):
        starts = list(range(0, size - size % block, block)) or [0]
        if rw.startswith("rand"):
            draw.shuffle(starts)
        for start in starts:
            kind = "write" if "write" in rw and rw != "readwrite" else "read"
            if rw in ("rw", "readwrite", "randrw"):
                kind = "read" if draw.random() * 100 < job.number("rwmixread", 50) else "write"
            yield kind, begin + start, min(block, size - start)


def _requests(
    job: _Job, path: bytes, copy: int
) -> Iterator[tuple[str, dict[str, int | bytes], int]]:
    """Calls of one job: name, arguments, result; `""` is thinktime."""
    flags = 2 | 0o100
    flags |= 0o40000 if job.number("direct") else 0
    flags |= 0o4010000 if job.number("sync") else 0
    writes = "write" in job.text("rw", "read") or job.text("rw", "read") in ("rw", "randrw")
    yield "openat", {"path": path, "flags": flags if writes else flags & ~0o102}, 3
    since = 0
    for kind, at, length in _offsets(job, copy):
        call = "pread64" if kind == "read" else "pwrite64"
        yield call, {"descriptor": 3, "offset": at, "length": length}, length
        since += kind == "write"
        for key, name in (("fsync", "fsync"), ("fdatasync", "fdatasync")):
            every = job.number(key)
            if kind == "write" and every and since % every == 0:
                yield name, {"descriptor": 3}, 0
        if job.number("thinktime"):
            yield "", {}, job.number("thinktime") * 1000
    if writes and (job.number("end_fsync") or job.number("fsync_on_close")):
        yield "fsync", {"descriptor": 3}, 0
    yield "close", {"descriptor": 3}, 0
    if job.number("unlink"):
        yield "unlink", {"path": path}, 0


def _there(jobs: list[_Job]) -> Iterator[Call]:
    """What fio creates before it begins: files that are read, or overwritten."""
    sizes: dict[bytes, int] = {}
    for job in jobs:
        reads = job.text("rw", "read") not in ("write", "randwrite")
        if reads or job.number("overwrite"):
            for copy in range(max(1, job.number("numjobs", 1))):
                path = _path(job, copy)
                sizes[path] = max(sizes.get(path, 0), job.number("offset") + job.number("size"))
    for path, size in sizes.items():
        arguments: dict[str, int | bytes] = {"path": path, "length": size, "mode": 0o100644}
        yield Call(0, 0, 0, None, EXISTED, arguments)


def _path(job: _Job, copy: int) -> bytes:
    """The file of a job: JOB.COPY.0, unless the job names one."""
    return job.text("filename", f"{job.name.replace('/', '_')}.{copy}.0").encode()


def import_fio_job(path: Path, out: Path) -> About:
    """Makes a recording of a job file. Raises `ImportedError` with FILE:LINE."""
    jobs = _jobs(path)
    total = 0
    for job in jobs:
        if not job.number("size") or not job.number("bs", 4096):
            raise refuse(path, job.line, f"{job.name[:40]}: size and bs must be above 0")
        each = job.number("size") // job.number("bs", 4096) * max(1, job.number("loops", 1))
        total += each * max(1, job.number("numjobs", 1))
    if total > _REQUESTS_MAX:
        raise ImportedError(f"{shown(path)}: {total:,} requests, {_REQUESTS_MAX:,} at most")
    about = About(source="fio job file", command=("fio", path.name), think="gaps", lacks=LACKS)
    with RecordingWriter(out, about) as writer:
        for call in _there(jobs):
            writer.add(call)
        now_ns, number = 0, 0
        for group in _groups(jobs):
            tasks = [
                (job, copy) for job in group for copy in range(max(1, job.number("numjobs", 1)))
            ]
            running = [(number + at, _requests(job, _path(job, copy), copy), now_ns)
                       for at, (job, copy) in enumerate(tasks)]  # fmt: skip
            number += len(tasks)
            for task, *_ in running if number > 1 else ():
                if task:
                    writer.add(Call(0, now_ns, 0, None, "fork", {}, task))
            for call in _side_by_side(running):
                writer.add(call)
                now_ns = max(now_ns, call.start_ns)
    return about


def _groups(jobs: list[_Job]) -> Iterator[list[_Job]]:
    group: list[_Job] = []
    for job in jobs:
        if job.number("stonewall") and group:
            yield group
            group = []
        group.append(job)
    yield group


_Running = tuple[int, Iterator[tuple[str, dict[str, int | bytes], int]], int]


def _side_by_side(running: list[_Running]) -> Iterator[Call]:
    """A request of each job in turn; a job with thinktime is ready later."""
    heap = [(ready_ns, turn, task, requests) for turn, (task, requests, ready_ns)
            in enumerate(running)]  # fmt: skip
    heapq.heapify(heap)
    turn, now_ns = len(heap), 0
    while heap:
        ready_ns, _, task, requests = heapq.heappop(heap)
        now_ns = max(now_ns, ready_ns)
        for name, arguments, result in requests:
            turn += 1
            if not name:
                heapq.heappush(heap, (now_ns + result, turn, task, requests))
                break
            yield Call(task, now_ns, 0, None, name, arguments, result)
            heapq.heappush(heap, (now_ns, turn, task, requests))
            break
