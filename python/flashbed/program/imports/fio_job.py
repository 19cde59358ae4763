"""Imports fio's job files.

Jobs with the same start run side by side, request by request; `stonewall` waits for all jobs before
it. Requests follow one another: a synchronous file system has one of a program in flight, whatever
the engine. Left out: what fio_options.py ignores or refuses.
"""

from __future__ import annotations

import heapq
import itertools
import posixpath
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from flashbed.program.imports.fio_engines import Step, steps_of
from flashbed.program.imports.fio_file import FioJob, jobs_of
from flashbed.program.imports.fio_iolog import calls_of_log
from flashbed.program.imports.fio_offsets import Region, blocks_of, kind_of
from flashbed.program.imports.fio_options import NOTED
from flashbed.program.imports.lines import check_name
from flashbed.program.imports.writing import recorded
from flashbed.program.recording.about import About, shortened
from flashbed.program.recording.calls import EXISTED, Call
from flashbed.stack.names import escaped

__all__ = ["import_fio_job"]

_REQUESTS_MAX = 1_000_000
_TASKS_MAX = 1024
_FILES_MAX = 100_000
_THERE_BYTES_MAX = 1 << 33
_REQUEST_BYTES_MAX = 1 << 30
_ON_NAMES = ("filecreate", "filestat", "filedelete", "dircreate", "dirstat", "dirdelete")
_OFF = ("0", "none")
LACKS = (
    "the offsets that fio would draw: random ones are drawn here, each block once unless the job"
    " says otherwise",
    "what fio writes: it counts as incompressible",
    "times: requests follow one another at once, except for thinktime, rate and startdelay",
)


@dataclass
class _Files:
    """The files of one copy of a job: their names, and the part of each that it uses."""

    names: list[bytes]
    region: Region
    amount: int
    """Bytes to move in each file."""


@dataclass(kw_only=True)
class _Plan:
    path: Path
    size: int | None
    lacks: list[str] = field(default_factory=list)
    folder: str = ""
    requests: int = 0

    def lack(self, sentence: str) -> None:
        """Notes what is left out, once."""
        if sentence not in self.lacks:
            self.lacks.append(sentence)

    def names(self, job: FioJob, copy: int) -> list[str]:
        """The names of a copy's files, below `/` if the job file has absolute ones."""
        folders = [part for part in job.text("directory").split(":") if part]
        folder = folders[copy % len(folders)] if folders else ""
        given = job.text("filename")
        if given:
            parts = [part.replace("\0", ":") for part in given.replace("\\:", "\0").split(":")]
            names = [part for part in parts if part]
        else:
            form = job.text("filename_format") or "$jobname.$jobnum.$filenum"
            names = [
                form.replace("$jobname", job.name.replace("/", "_")).replace("$jobnum", str(copy))
                .replace("$filenum", str(number)).replace("$clientuid", "")
                for number in range(max(1, job.number("nrfiles", 1)))
            ]  # fmt: skip
        return [posixpath.normpath(posixpath.join("/", folder, name)) for name in names]

    def files(self, job: FioJob, copy: int) -> _Files:
        """The files of a copy, and where in them it reads and writes."""
        names = self.names(job, copy)
        count = len(names)
        each, whole = self._sizes(job, names)
        scale = self.size if self.size is not None and whole > self.size else None
        align = min(split.least for split in blocks_of(job))

        def scaled(value: int) -> int:
            return value if scale is None else value * scale // whole // align * align

        total = min(whole, scale or whole)
        begin = offset.of(total) if (offset := job.amount("offset")) else 0
        more = step.of(total) if (step := job.amount("offset_increment")) else 0
        begin = scaled(begin) + scaled(more) * copy
        length = min(scaled(each) or total, total - begin)
        if length <= 0:
            raise job.error("offset: behind the end of the file", "offset", "offset_increment")
        amount = job.amount("io_size") or (job.amount("size") if "filesize" in job.values else None)
        moved = scaled(amount.of(each)) // count if amount else length
        relative = [self._relative(name) for name in names]
        return _Files(relative, Region(begin, length), moved or length)

    def _sizes(self, job: FioJob, names: list[str]) -> tuple[int, int]:
        """Bytes that the job uses of each file, and how long a file is."""
        file, size = job.amount("filesize"), job.amount("size")
        each = 0
        if file is not None and not file.percent:
            each = file.number
        elif size is not None and not size.percent:
            each = size.number // len(names)
        offset, step = job.amount("offset"), job.amount("offset_increment")
        begin = offset.number if offset and not offset.percent else 0
        if step and not step.percent:
            begin += step.number * (self.copies(job) - 1)
        if each:
            return each, begin + each
        if self.size is None:
            device = any(name.startswith("/dev/") for name in names)
            why = "a device, whose size is not in the file" if device else "no size"
            raise job.error(f"{why}; --size SIZE says how large its files are", "filename")
        moved = job.amount("io_size")
        if begin and moved and not moved.percent and begin + moved.number > self.size:
            return moved.number, begin + moved.number
        return max(1, size.of(self.size) if size else self.size), max(self.size, begin + 1)

    def _relative(self, name: str) -> bytes:
        inside = self.folder.rstrip("/") + "/"
        return name[len(inside) :].encode()

    def check(self, jobs: list[FioJob]) -> None:
        """Refuses what no replay could do, before any of it is drawn."""
        files = tasks = 0
        for job in jobs:
            copies = max(1, job.number("numjobs", 1))
            tasks += copies
            if tasks > _TASKS_MAX:
                raise job.error(f"{tasks:,} jobs; {_TASKS_MAX:,} at most", "numjobs")
            files += copies * max(1, job.number("nrfiles", 1))
            if files > _FILES_MAX:
                raise job.error(f"{files:,} files; {_FILES_MAX:,} at most", "nrfiles")
            for split in blocks_of(job):
                if max(split.high, *(size for size, _ in split.sizes)) > _REQUEST_BYTES_MAX:
                    raise job.error(
                        f"a request of more than {_REQUEST_BYTES_MAX >> 30} GiB", "bs", "bsrange",
                        "bssplit",
                    )  # fmt: skip
        every = sorted({name for job in jobs if "read_iolog" not in job.values
                        for copy in range(self.copies(job))
                        for name in self.names(job, copy)})  # fmt: skip
        for name in every:
            try:
                check_name(name.encode())
            except ValueError as why:
                raise jobs[0].error(str(why), "filename", "directory") from None
        self.folder = posixpath.commonpath([posixpath.dirname(name) for name in every] or ["/"])
        for job in jobs:
            self._check_requests(job)

    def _check_requests(self, job: FioJob) -> None:
        if "read_iolog" in job.values:
            return
        files = self.files(job, 0)
        if job.text("ioengine") in _ON_NAMES:
            each = 1
        else:
            each = -(-files.amount // min(split.least for split in blocks_of(job)))
            if job.number("number_ios"):
                each = min(each, job.number("number_ios"))
        rounds = max(1, job.number("loops", 1)) if not self.paced(job) else 1
        many = each * len(files.names) * rounds * self.copies(job)
        many = max(many, self._by_rate(job))
        self.requests += many
        if self.requests > _REQUESTS_MAX:
            raise job.error(
                f"{self.requests:,} requests; {_REQUESTS_MAX:,} at most. --size SIZE makes the"
                " files smaller, loops=1 the job shorter", "size", "loops",
            )  # fmt: skip

    def _by_rate(self, job: FioJob) -> int:
        """Requests of a job that ends by time."""
        if not (job.number("time_based") and self.paced(job)):
            return 0
        seconds = job.number("runtime") / 1e9
        least = min(split.least for split in blocks_of(job))
        per_second = max(*job.triple("rate_iops"), *(rate / least for rate in job.triple("rate")))
        per_second *= 2 if kind_of(job)[0] == "rw" else 1
        if not per_second:
            blocks = max(1, job.number("thinktime_blocks", 1))
            per_second = blocks * 1e9 / job.number("thinktime")
        return int(min(seconds * per_second, 1e15)) * self.copies(job)

    @staticmethod
    def copies(job: FioJob) -> int:
        """How many tasks a job is."""
        return max(1, job.number("numjobs", 1))

    @staticmethod
    def paced(job: FioJob) -> bool:
        """Whether a job says how fast it goes."""
        return bool(job.number("thinktime") or any(job.triple("rate")) or any(
            job.triple("rate_iops")))  # fmt: skip

    def notes(self, job: FioJob) -> None:
        """Notes what a job has that the recording has not."""
        if job.number("iodepth", 1) > 1:
            self.lack("several requests in flight: each waits for the one before it (iodepth)")
        if job.number("time_based") and not self.paced(job):
            self.lack(
                "how often a job that ends by time goes round: once here; rate, rate_iops or"
                " thinktime in the job say how fast it is (time_based)"
            )
        if "verify" in job.values:
            self.lack("headers of verification: what was written is read again (verify)")
        if "trim" in kind_of(job)[0]:
            self.lack(
                "trims of a device: they are holes in a file, which flash file systems refuse"
            )
        if any(name.startswith("/dev/") for name in self.names(job, 0)):
            self.lack("the device: it is a file of the same name")
        if job.number("ramp_time"):
            self.lack("the time before fio measures (ramp_time)")
        for option in sorted(NOTED & job.values.keys()):
            if job.text(option) not in _OFF:
                self.lack(f"what an option of the job does: {option}")
        if self.size is not None:
            self.lack(f"the sizes of the job file: a file has {self.size:,} bytes at most (--size)")


def _there(plan: _Plan, jobs: list[FioJob]) -> Iterator[Call]:
    """What fio creates before it begins: files that are read, or overwritten; and folders."""
    sizes: dict[bytes, int] = {}
    folders: set[bytes] = set()
    total = 0
    for job in jobs:
        if "read_iolog" in job.values:
            continue
        engine = job.text("ioengine")
        reads = kind_of(job)[0] not in ("write", "trim", "trimwrite") and engine not in _ON_NAMES
        made = reads or job.number("overwrite") or job.number("verify_only")
        made = made or engine in ("filestat", "filedelete", "mmap", "ftruncate")
        for copy in range(plan.copies(job)):
            files = plan.files(job, copy)
            for name in files.names:
                folders.update(_above(name))
                if engine in ("dirstat", "dirdelete"):
                    folders.add(name)
                if not made:
                    continue
                before = sizes.get(name, 0)
                sizes[name] = max(before, files.region.begin + files.region.length)
                total += sizes[name] - before
                if total > _THERE_BYTES_MAX:
                    raise job.error(
                        f"more than {_THERE_BYTES_MAX >> 30} GiB of files that are there before;"
                        " --size SIZE makes them smaller", "size", "filesize",
                    )  # fmt: skip
    for path in sorted(folders):
        yield Call(
            task=0,
            start_ns=0,
            duration_ns=0,
            cpu_ns=None,
            name=EXISTED,
            arguments={"path": path, "length": 0, "mode": 0o040755},
        )
    for path, size in sizes.items():
        arguments: dict[str, int | bytes] = {"path": path, "length": size, "mode": 0o100644}
        yield Call(
            task=0, start_ns=0, duration_ns=0, cpu_ns=None, name=EXISTED, arguments=arguments
        )


def _above(name: bytes) -> Iterator[bytes]:
    parts = name.split(b"/")[:-1]
    return (b"/".join(parts[: count + 1]) for count in range(len(parts)))


def import_fio_job(path: Path, out: Path, size: int | None = None) -> About:
    """Makes a recording of a job file; `size` limits its files.

    Raises `ImportedError` with FILE:LINE.
    """
    jobs = jobs_of(path)
    plan = _Plan(path=path, size=size)
    plan.check(jobs)
    for job in jobs:
        plan.notes(job)
    command = shortened(("fio", path.name))
    about = About(source="fio job file", command=command, think="gaps", lacks=(*LACKS, *plan.lacks))
    return recorded(path, out, first=about, calls=_all(plan, jobs), last=lambda: about)


def _all(plan: _Plan, jobs: list[FioJob]) -> Iterator[Call]:
    yield from _there(plan, jobs)
    now_ns, number = 0, 0
    for group in _groups(jobs):
        tasks = [(job, copy) for job in group for copy in range(plan.copies(job))]
        running = [
            _Running(
                ready_ns=now_ns,
                turn=at,
                task=number + at,
                turns=max(1, job.number("flow", 1)),
                steps=_steps(plan, job, copy),
            )
            for at, (job, copy) in enumerate(tasks)
        ]
        number += len(tasks)
        for task in running if number > 1 else ():
            if task.task:
                yield Call(
                    task=0,
                    start_ns=now_ns,
                    duration_ns=0,
                    cpu_ns=None,
                    name="fork",
                    arguments={},
                    result=task.task,
                )
        for call in _side_by_side(running):
            yield call
            now_ns = max(now_ns, call.start_ns)


def _steps(plan: _Plan, job: FioJob, copy: int) -> Iterator[Step]:
    if "read_iolog" in job.values:
        yield from _of_log(job)
        return
    files = plan.files(job, copy)
    draw = random.Random(job.number("randseed", 1) + copy)
    yield from steps_of(job, files.names, region=files.region, amount=files.amount, draw=draw)


def _of_log(job: FioJob) -> Iterator[Step]:
    """The requests of a log that a job reads."""
    log = job.path.parent / job.text("read_iolog").split(":")[0]
    if not log.is_file():
        raise job.error(f"read_iolog: {escaped(str(log.name))[:80]}: no such file", "read_iolog")
    last_ns = 0
    for call in calls_of_log(log):
        if call.name == EXISTED:
            continue
        if call.start_ns > last_ns:
            yield Step("", {}, call.start_ns - last_ns)
            last_ns = call.start_ns
        yield Step(call.name, dict(call.arguments), call.result)


def _groups(jobs: list[FioJob]) -> Iterator[list[FioJob]]:
    """Jobs that run side by side."""
    group: list[FioJob] = []
    for job in jobs:
        waits = job.number("stonewall") or any(
            other.name == job.text("wait_for") for other in group
        )
        if waits and group:
            yield group
            group = []
        group.append(job)
    yield group


@dataclass(order=True, kw_only=True)
class _Running:
    """A job that runs; `turns` is how many requests it makes in its turn (flow)."""

    ready_ns: int
    turn: int
    task: int = field(compare=False)
    turns: int = field(compare=False)
    steps: Iterator[Step] = field(compare=False)


def _side_by_side(running: list[_Running]) -> Iterator[Call]:
    """A request of each job in turn; a job that waits is ready later."""
    heap = list(running)
    heapq.heapify(heap)
    turn, now_ns = len(heap), 0
    least = min((one.turns for one in running), default=1)
    while heap:
        job = heapq.heappop(heap)
        now_ns = max(now_ns, job.ready_ns)
        ended, ready_ns = True, now_ns
        for step in itertools.islice(job.steps, max(1, job.turns // least)):
            ended = False
            if not step.name:
                ready_ns = now_ns + step.result
                break
            yield Call(
                task=job.task,
                start_ns=now_ns,
                duration_ns=0,
                cpu_ns=None,
                name=step.name,
                arguments=step.arguments,
                result=step.result,
            )
        if not ended:
            turn += 1
            heapq.heappush(heap, replace(job, ready_ns=ready_ns, turn=turn))
