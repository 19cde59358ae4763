"""Portions run by the workers of a Dask cluster; what comes of them is sent back as Parquet files.

Invariants:
1. What comes of a portion is given once, whole, whatever workers and scheduler do meanwhile: a
   portion is asked for until its result is here, and asked for anew if the scheduler forgot it.
2. A few portions a worker are at the scheduler at once, so neither it nor this process holds more.
3. A worker has the code of this process, or it is told apart by one line.
"""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from distributed import Client, Future
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker

from flashbed import __version__
from flashbed.errors import FlashbedError, InputError, RunError
from flashbed.running.portion import Job, Part, Portion, energy_code, run_portion
from flashbed.targets import code_sha256, load_target
from flashbed.targets.base import Failure, Unavailable

__all__ = ["check_address", "parts_of_cluster"]

_ADDRESS = re.compile(r"(tcp|tls)://[A-Za-z0-9.\-\[\]:]{1,255}:[0-9]{1,5}")
CONNECT_S = 10.0
WAIT_S = 600.0
"""How long a scheduler that went away is waited for."""
RESULT_S = 60.0
LOOK_S = 0.02
COUNT_S = 1.0
"""How often the workers are counted."""
PORTIONS_EACH = 2
"""At the scheduler, for each thread of a worker: it is never without."""
_GONE = (CommClosedError, OSError, TimeoutError, CancelledError, FutureCancelledError)
Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class _SentPart:
    """A `Part`, its files in memory."""

    files: dict[str, bytes]
    measured: int
    kept: int
    failures: tuple[Failure, ...]


def check_address(address: str) -> None:
    """Raises `InputError` for what is no address of a scheduler."""
    if not _ADDRESS.fullmatch(address):
        raise InputError(f"--scheduler {address}: not tcp://HOST:PORT")


def parts_of_cluster(
    address: str, job: Job, portions: Iterator[Portion], below: Path, progress: Progress
) -> Iterator[tuple[int, Part]]:
    """The parts of portions in any order, each with the number of its portion.

    Parts are folders below `below`. `progress(what, cases_done)` counts all cases. Raises what a
    portion raises, and `RunError` if no scheduler answers.
    """
    cluster = _Cluster(address, job, progress)
    try:
        cluster.connect(CONNECT_S)
        for portion, sent in cluster.results(portions):
            for part in sent:
                yield portion.number, _kept(part, below)
    finally:
        cluster.close()


def _kept(part: _SentPart, below: Path) -> Part:
    """A part, its files in a new folder."""
    folder = None
    if part.files:
        folder = Path(tempfile.mkdtemp(prefix=".part.", dir=below))
        for name, content in part.files.items():
            (folder / name).write_bytes(content)
        folder.chmod(0o755)
    return Part(folder, part.measured, part.kept, part.failures)


def _run(job: Job, portion: Portion) -> list[_SentPart]:
    """Runs a portion: on the worker."""
    if (code_sha256(job.target), energy_code()) != (job.code, job.energy_code):
        raise RunError(f"a worker has other code (flashbed {__version__}); install the same there")
    sent = []
    with tempfile.TemporaryDirectory(prefix="flashbed-portion.") as folder:
        target = load_target(job.target)
        for part in run_portion(job, portion, target, Path(folder), lambda _what, _done: None):
            files = {}
            if part.folder is not None:
                files = {path.name: path.read_bytes() for path in sorted(part.folder.iterdir())}
            sent.append(_SentPart(files, part.measured, part.kept, part.failures))
    return sent


@dataclass
class _Cluster:
    """The scheduler, and what it has been asked for."""

    address: str
    job: Job
    progress: Progress
    run: str = field(default_factory=lambda: secrets.token_hex(8))
    client: Client | None = None
    asked: dict[int, tuple[Portion, Future[Any]]] = field(default_factory=dict)
    times: int = 0
    """How often something was asked for: every key is new."""
    done: int = 0
    room: int = PORTIONS_EACH
    counted_s: float = 0.0

    def connect(self, patience_s: float) -> None:
        """Finds the scheduler. Raises `RunError` if none answers for so long."""
        until_s = monotonic() + patience_s
        while True:
            try:
                self.client = Client(
                    self.address, timeout=min(patience_s, CONNECT_S), set_as_default=False
                )
                return
            except (TimeoutError, *_GONE, ValueError):
                if monotonic() >= until_s:
                    raise RunError(
                        f"--scheduler {self.address}: no scheduler answers; `dask scheduler` starts"
                        " one, and the same command goes on"
                    ) from None
                self.progress(f"waiting for {self.address}", self.done)
                sleep(COUNT_S)

    def close(self) -> None:
        """Lets go of everything that was asked for."""
        client, self.client = self.client, None
        if client is not None:
            with suppress(*_GONE):
                client.cancel([future for _, future in self.asked.values()], force=True)
            with suppress(*_GONE):
                client.close(timeout=CONNECT_S)
        self.asked.clear()

    def results(self, portions: Iterator[Portion]) -> Iterator[tuple[Portion, list[_SentPart]]]:
        """What comes of all portions, as it comes."""
        more = True
        while more or self.asked:
            if self.client is None or self.client.status != "running":
                self._connect_again()
            while more and len(self.asked) < self._room():
                portion = next(portions, None)
                if portion is None:
                    more = False
                else:
                    self._ask(portion)
            finished = [number for number in self.asked if self._has_ended(number)]
            for number in finished:
                portion = self.asked[number][0]
                sent = self._result(number)
                if sent is not None:
                    self.done += len(portion.cases)
                    self.progress(f"{self.room // PORTIONS_EACH} workers", self.done)
                    yield portion, sent
            if not finished:
                sleep(LOOK_S)

    def _room(self) -> int:
        """How many portions may be at the scheduler."""
        if self.client is not None and monotonic() - self.counted_s >= COUNT_S:
            self.counted_s = monotonic()
            with suppress(*_GONE):
                threads = sum(self.client.nthreads().values())
                self.room = PORTIONS_EACH * max(1, threads)
                if not threads:
                    self.progress(f"waiting for a worker of {self.address}", self.done)
        return self.room

    def _ask(self, portion: Portion) -> None:
        assert self.client is not None, "connected"
        self.times += 1
        key = f"flashbed-{self.run}-{self.times}"
        future = self.client.submit(_run, self.job, portion, key=key, pure=False)
        self.asked[portion.number] = (portion, future)

    def _has_ended(self, number: int) -> bool:
        """Whether something is to be done about a portion."""
        return bool(self.asked[number][1].status != "pending")

    def _result(self, number: int) -> list[_SentPart] | None:
        """What came of a portion; None if it was lost, and is asked for again."""
        portion, future = self.asked[number]
        try:
            sent: list[_SentPart] = future.result(timeout=RESULT_S)
        except _GONE:
            if self.client is not None and self.client.status == "running":
                with suppress(*_GONE):
                    self._ask(portion)
            return None
        except KilledWorker as why:
            raise RunError(
                f"--scheduler {self.address}: workers ended one after the other while they ran"
                f" {portion.cases[0].case_id} and what comes with it: {why.task}"
            ) from None
        except (FlashbedError, Unavailable):
            raise
        except Exception as why:
            raise RunError(f"on a worker: {type(why).__name__}: {why}") from None
        del self.asked[number]
        future.release()
        return sent

    def _connect_again(self) -> None:
        """After the scheduler went away: a new one knows nothing of what was asked for."""
        waiting = [portion for portion, _ in self.asked.values()]
        client, self.client = self.client, None
        if client is not None:
            with suppress(*_GONE):
                client.close(timeout=CONNECT_S)
        self.connect(WAIT_S)
        for portion in waiting:
            self._ask(portion)
