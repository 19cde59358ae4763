"""What a fio job calls: for each engine, its requests as calls on files."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from flashbed.program.imports.fio_file import FioJob
from flashbed.program.imports.fio_offsets import FioRequest, Region, kind_of, requests_of

__all__ = ["Step", "steps_of"]

_CREATE, _DIRECT, _SYNC, _DSYNC, _RW = 0o100, 0o40000, 0o4010000, 0o10000, 2
_PUNCH = 3
_ADDRESS = 1 << 44
_MAPPED_BYTES = 1 << 36
_FIRST = 3
"""The descriptor of a job's first file."""
Arguments = dict[str, int | bytes]


@dataclass(frozen=True, slots=True)
class Step:
    """A call; without a name the job waits `result` nanoseconds."""

    name: str
    arguments: Arguments = field(default_factory=dict)
    result: int = 0


def steps_of(
    job: FioJob, names: list[bytes], *, region: Region, amount: int, draw: random.Random
) -> Iterator[Step]:
    """The calls of one copy of a job."""
    if job.number("startdelay"):
        yield Step("", {}, job.number("startdelay"))
    if job.number("create_only"):
        return
    on_names = _ON_NAMES.get(job.text("ioengine"))
    if on_names is not None:
        for name in names:
            yield from on_names(name)
        return
    yield from _FioWorker(job=job, names=names, region=region, amount=amount, draw=draw).steps()


def _create(name: bytes) -> Iterator[Step]:
    yield Step("openat", {"path": name, "flags": _CREATE | _RW}, _FIRST)
    yield Step("close", {"descriptor": _FIRST})


_ON_NAMES: Mapping[str, Callable[[bytes], Iterator[Step]]] = {
    "filecreate": _create,
    "filestat": lambda name: iter([Step("stat", {"path": name})]),
    "filedelete": lambda name: iter([Step("unlink", {"path": name})]),
    "dircreate": lambda name: iter([Step("mkdir", {"path": name})]),
    "dirstat": lambda name: iter([Step("stat", {"path": name})]),
    "dirdelete": lambda name: iter([Step("rmdir", {"path": name})]),
}


@dataclass(kw_only=True)
class _FioWorker:
    """A job that reads and writes."""

    job: FioJob
    names: list[bytes]
    region: Region
    amount: int
    draw: random.Random
    clock_ns: int = 0
    done: dict[str, list[int]] = field(default_factory=dict)
    """Requests and bytes so far, by kind."""
    since_sync: dict[int, int] = field(default_factory=dict)
    written: list[tuple[int, FioRequest]] = field(default_factory=list)
    """What verification reads again."""

    def steps(self) -> Iterator[Step]:
        """Opens the files, makes the requests, syncs and closes."""
        job = self.job
        writes = kind_of(job)[0] != "read" and not job.number("verify_only")
        for number, name in enumerate(self.names):
            yield Step("openat", {"path": name, "flags": self._flags(writes)}, _FIRST + number)
            if job.text("ioengine") == "mmap":
                yield self._map(number)
        for number, request in self._requests():
            yield from self._paced(request)
            yield from self._request(number, request)
            yield from self._behind(number, request)
        yield from self._verified()
        for number in range(len(self.names)):
            if writes and (job.number("end_fsync") or job.number("fsync_on_close")):
                yield Step("fsync", {"descriptor": _FIRST + number})
            if writes and job.number("end_syncfs"):
                yield Step("syncfs", {"descriptor": _FIRST + number})
            yield Step("close", {"descriptor": _FIRST + number})
            if job.text("ioengine") == "mmap":
                address = _ADDRESS + number * _MAPPED_BYTES
                length = self.region.begin + self.region.length
                yield Step("munmap", {"address": address, "length": length})
        if job.number("unlink"):
            for name in self.names:
                yield Step("unlink", {"path": name})

    def _flags(self, writes: bool) -> int:
        job = self.job
        direct = job.number("direct") or ("buffered" in job.values and not job.number("buffered"))
        sync = {"sync": _SYNC, "dsync": _DSYNC}.get(job.text("sync"), 0)
        return (_DIRECT if direct else 0) | sync | (_CREATE | _RW if writes else 0)

    def _map(self, number: int) -> Step:
        length = self.region.begin + self.region.length
        arguments: Arguments = {"length": length, "mode": 3, "flags": 1,
                                "descriptor": _FIRST + number, "offset": 0}  # fmt: skip
        return Step("mmap", arguments, _ADDRESS + number * _MAPPED_BYTES)

    def _requests(self) -> Iterator[tuple[int, FioRequest]]:
        """The requests of all rounds, with the number of the file."""
        job = self.job
        paced = job.number("thinktime") or any(job.triple("rate")) or any(job.triple("rate_iops"))
        by_time = bool(job.number("time_based") and paced and job.number("runtime"))
        rounds = max(1, job.number("loops", 1)) if not job.number("time_based") else 1
        end_ns = job.number("runtime") if paced else 0
        many = job.number("number_ios")
        count = 0
        while rounds or by_time:
            rounds -= 1
            each = [requests_of(job, self.region, self.amount, self.draw) for _ in self.names]
            for found in self._in_turn(each):
                if (end_ns and self.clock_ns >= end_ns) or (many and count >= many):
                    return
                count += 1
                yield found
            if by_time and not count:
                return

    def _in_turn(self, each: list[Iterator[FioRequest]]) -> Iterator[tuple[int, FioRequest]]:
        """Requests of the files: in turn, at random, or one file after the other."""
        how, _, run = self.job.text("file_service_type", "roundrobin").partition(":")
        some = int(run) if run.isdigit() and len(run) < 9 and int(run) else 1
        left = list(range(len(each)))
        at = 0
        while left:
            at = self.draw.randrange(len(left)) if how == "random" else at % len(left)
            found = None
            for found in islice(each[left[at]], None if how == "sequential" else some):
                yield left[at], found
            if found is None:
                left.pop(at)
            else:
                at += 1

    def _paced(self, request: FioRequest) -> Iterator[Step]:
        """Waits until the job's rate allows the request."""
        job = self.job
        column = ("read", "write", "trim").index(request.kind)
        done = self.done.setdefault(request.kind, [0, 0])
        due_ns = 0
        for rate, so_far in ((job.triple("rate_iops")[column], done[0]),
                             (job.triple("rate")[column], done[1])):  # fmt: skip
            if rate:
                due_ns = max(due_ns, so_far * 10**9 // rate)
        if due_ns > self.clock_ns:
            yield Step("", {}, due_ns - self.clock_ns)
            self.clock_ns = due_ns
        done[0] += 1
        done[1] += request.length

    def _request(self, number: int, request: FioRequest) -> Iterator[Step]:
        engine, descriptor = self.job.text("ioengine"), _FIRST + number
        at, length = request.offset, request.length
        place: Arguments = {"descriptor": descriptor, "offset": at, "length": length}
        read = request.kind == "read" or bool(self.job.number("verify_only"))
        if engine == "mmap":
            address = _ADDRESS + number * _MAPPED_BYTES + at
            name = "mapped_read" if read else "mapped_write"
            yield Step(name, {"address": address, "length": length})
        elif engine == "ftruncate":
            yield Step("ftruncate", {"descriptor": descriptor, "length": at})
        elif engine == "falloc":
            mode = {"read": 1, "write": 0, "trim": _PUNCH}[request.kind]
            yield Step("fallocate", {**place, "mode": mode})
        elif request.kind == "trim":
            yield Step("fallocate", {**place, "mode": _PUNCH})
        else:
            yield Step("pread64" if read else "pwrite64", place, length)

    def _behind(self, number: int, request: FioRequest) -> Iterator[Step]:
        """What follows a request: syncs, verification, thinking."""
        job = self.job
        if request.kind == "write":
            since = self.since_sync[number] = self.since_sync.get(number, 0) + 1
            for key in ("fsync", "fdatasync"):
                every = job.number(key)
                if every and since % every == 0:
                    yield Step(key, {"descriptor": _FIRST + number})
            if self._verifies():
                self.written.append((number, request))
                backlog = job.number("verify_backlog")
                if backlog and len(self.written) >= backlog:
                    yield from self._verified()
        done = sum(count for count, _ in self.done.values())
        if job.number("thinktime") and done % max(1, job.number("thinktime_blocks", 1)) == 0:
            self.clock_ns += job.number("thinktime")
            yield Step("", {}, job.number("thinktime"))

    def _verifies(self) -> bool:
        job = self.job
        verify = job.text("verify", "0") not in ("0", "none", "null")
        return verify and bool(job.number("do_verify", 1)) and not job.number("verify_only")

    def _verified(self) -> Iterator[Step]:
        """Reads what was written."""
        for number, request in self.written:
            yield from self._request(number, FioRequest("read", request.offset, request.length))
        self.written.clear()
