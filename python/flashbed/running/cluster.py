"""Runs portions on the workers of a Dask cluster; results come back as Parquet files.

Invariants:
1. The results of a portion are yielded once and whole, whatever workers and scheduler do meanwhile.
   A portion stays submitted until its result is here; if the scheduler lost it, it is resubmitted.
2. The scheduler has only a few portions per worker at a time, so memory is bounded there and here.
3. A worker runs the same code as this process, or refuses with one line.
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
from flashbed.base.errors import FlashbedError, InputError, RunError
from flashbed.running.portion import (
    Part,
    Portion,
    RunJob,
    code_sha256,
    energy_code,
    run_portion,
)
from flashbed.targets import load_target
from flashbed.targets.base import Failure
from flashbed.targets.unavailable import Unavailable

__all__ = ["check_address", "parts_of_cluster"]

_ADDRESS = re.compile(r"(tcp|tls)://[A-Za-z0-9.\-\[\]:]{1,255}:[0-9]{1,5}")
CONNECT_S = 10.0
WAIT_S = 600.0
"""Seconds to wait for a scheduler that went away."""
RESULT_S = 60.0
LOOK_S = 0.02
COUNT_S = 1.0
"""Seconds between two counts of the workers."""
PORTIONS_EACH = 2
"""Portions at the scheduler for each worker thread, so that none is ever idle."""
_GONE = (CommClosedError, OSError, TimeoutError, CancelledError, FutureCancelledError)
Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class _SentPart:
    """A `Part` with its files in memory."""

    files: dict[str, bytes]
    measured: int
    kept: int
    failures: tuple[Failure, ...]


def check_address(address: str) -> None:
    """Raises `InputError` for anything but a scheduler's address."""
    if not _ADDRESS.fullmatch(address):
        raise InputError(f"--scheduler {address}: not tcp://HOST:PORT")


def parts_of_cluster(
    address: str, job: RunJob, *, portions: Iterator[Portion], below: Path, progress: Progress
) -> Iterator[tuple[int, Part]]:
    """Yields the parts of portions in any order, each with the number of its portion.

    Parts are folders below `below`. `progress(what, cases_done)` counts all cases. Raises what a
    portion raises, and `RunError` if no scheduler answers.
    """
    cluster = _Cluster(address=address, job=job, progress=progress)
    try:
        cluster.connect(CONNECT_S)
        for portion, sent in cluster.results(portions):
            for part in sent:
                yield portion.number, _kept(part, below)
    finally:
        cluster.close()


def _kept(part: _SentPart, below: Path) -> Part:
    """Writes a part's files to a new folder."""
    folder = None
    if part.files:
        folder = Path(tempfile.mkdtemp(prefix=".part.", dir=below))
        for name, content in part.files.items():
            (folder / name).write_bytes(content)
        folder.chmod(0o755)
    return Part(folder, part.measured, part.kept, part.failures)


def _run(job: RunJob, portion: Portion) -> list[_SentPart]:
    """Runs a portion, on the worker."""
    if (code_sha256(job.target), energy_code()) != (job.code, job.energy_code):
        raise RunError(f"a worker runs other code (flashbed {__version__}); install the same there")
    sent = []
    with tempfile.TemporaryDirectory(prefix="flashbed-portion.") as folder:
        target = load_target(job.target)
        for part in run_portion(
            job, portion, target=target, below=Path(folder), progress=lambda _what, _done: None
        ):
            files = {}
            if part.folder is not None:
                files = {path.name: path.read_bytes() for path in sorted(part.folder.iterdir())}
            sent.append(_SentPart(files, part.measured, part.kept, part.failures))
    return sent


@dataclass(kw_only=True)
class _Cluster:
    """The scheduler, and the portions submitted to it."""

    address: str
    job: RunJob
    progress: Progress
    run: str = field(default_factory=lambda: secrets.token_hex(8))
    client: Client | None = None
    submitted: dict[int, tuple[Portion, Future[Any]]] = field(default_factory=dict)
    times: int = 0
    """Counts submissions, so that every key is new."""
    done: int = 0
    capacity: int = PORTIONS_EACH
    counted_s: float = 0.0

    def connect(self, patience_s: float) -> None:
        """Connects to the scheduler. Raises `RunError` if none answers in time."""
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
                        f"--scheduler {self.address}: no scheduler answers; start one by `dask"
                        " scheduler`, then repeat this command: it continues"
                    ) from None
                self.progress(f"waiting for {self.address}", self.done)
                sleep(COUNT_S)

    def close(self) -> None:
        """Cancels everything submitted."""
        client, self.client = self.client, None
        if client is not None:
            with suppress(*_GONE):
                client.cancel([future for _, future in self.submitted.values()], force=True)
            with suppress(*_GONE):
                client.close(timeout=CONNECT_S)
        self.submitted.clear()

    def results(self, portions: Iterator[Portion]) -> Iterator[tuple[Portion, list[_SentPart]]]:
        """Yields the results of all portions as they arrive."""
        more = True
        while more or self.submitted:
            if self.client is None or self.client.status != "running":
                self._connect_again()
            while more and len(self.submitted) < self._capacity():
                portion = next(portions, None)
                if portion is None:
                    more = False
                else:
                    self._ask(portion)
            finished = [number for number in self.submitted if self._has_ended(number)]
            for number in finished:
                portion = self.submitted[number][0]
                sent = self._result(number)
                if sent is not None:
                    self.done += len(portion.cases)
                    self.progress(f"{self.capacity // PORTIONS_EACH} workers", self.done)
                    yield portion, sent
            if not finished:
                sleep(LOOK_S)

    def _capacity(self) -> int:
        """How many portions may be at the scheduler."""
        if self.client is not None and monotonic() - self.counted_s >= COUNT_S:
            self.counted_s = monotonic()
            with suppress(*_GONE):
                threads = sum(self.client.nthreads().values())
                self.capacity = PORTIONS_EACH * max(1, threads)
                if not threads:
                    self.progress(f"waiting for a worker of {self.address}", self.done)
        return self.capacity

    def _ask(self, portion: Portion) -> None:
        assert self.client is not None, "connected"
        self.times += 1
        key = f"flashbed-{self.run}-{self.times}"
        future = self.client.submit(_run, self.job, portion, key=key, pure=False)
        self.submitted[portion.number] = (portion, future)

    def _has_ended(self, number: int) -> bool:
        """Whether a portion has finished, failed or been lost."""
        return bool(self.submitted[number][1].status != "pending")

    def _result(self, number: int) -> list[_SentPart] | None:
        """A portion's results; None if it was lost and resubmitted."""
        portion, future = self.submitted[number]
        try:
            sent: list[_SentPart] = future.result(timeout=RESULT_S)
        except _GONE:
            if self.client is not None and self.client.status == "running":
                with suppress(*_GONE):
                    self._ask(portion)
            return None
        except KilledWorker as why:
            raise RunError(
                f"--scheduler {self.address}: several workers ended while running"
                f" {portion.cases[0].case_id} and its portion: {why.task}"
            ) from None
        except (FlashbedError, Unavailable):
            raise
        except Exception as why:
            raise RunError(f"on a worker: {type(why).__name__}: {why}") from None
        del self.submitted[number]
        future.release()
        return sent

    def _connect_again(self) -> None:
        """Reconnects after the scheduler went away; a new one knows none of the portions."""
        waiting = [portion for portion, _ in self.submitted.values()]
        client, self.client = self.client, None
        if client is not None:
            with suppress(*_GONE):
                client.close(timeout=CONNECT_S)
        self.connect(WAIT_S)
        for portion in waiting:
            self._ask(portion)
