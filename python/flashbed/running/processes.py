"""Runs tasks in processes of this machine, as many at once as there are jobs.

Invariants:
1. Every result of every task is yielded once, in any order.
2. A process gets a task only if it fits into memory, or if no other task runs.
3. When this process ends in any way, the others and their guests end too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from time import monotonic
from typing import Any

from flashbed.base.errors import RunError
from flashbed.running.memory import MemoryBudget
from flashbed.running.worker import ENDED, PART, RAISED, SAID, WorkerTask
from flashbed.targets.guest.children import dies_with_us

__all__ = ["run_in_processes", "start_ahead"]

Progress = Callable[[str, int], None]
LOOK_S = 0.5
"""Seconds a task waits until memory is checked again."""
LAST_WORDS_S = 10.0
"""Seconds an interrupted process has to send its finished results."""
_ENDS_S = 5.0


def run_in_processes(
    tasks: Iterator[tuple[WorkerTask, int]], jobs: int, progress: Progress
) -> Iterator[tuple[WorkerTask, Any]]:
    """Yields results of tasks; each task comes with the bytes of memory that it claims.

    `progress(what, cases_done)` counts all cases. Raises what a task raises, and `RunError` if a
    process ended. At Ctrl-C, finished results are yielded first.
    """
    pool = _Pool(tasks=tasks, jobs=jobs, progress=progress)
    try:
        yield from pool.answers()
    except KeyboardInterrupt:
        yield from pool.last_words()
        raise
    finally:
        pool.close()


@dataclass(kw_only=True)
class _Process:
    """A process, its task, and how many of the task's cases are done."""

    process: subprocess.Popen[bytes]
    connection: Connection
    task: WorkerTask | None = None
    claimed_bytes: int = 0
    done: int = 0


_ahead: dict[int, _Process] = {}
"""Processes started before their tasks are known."""


def start_ahead(jobs: int) -> None:
    """Starts processes for the next tasks. They end with this process."""
    for number in range(jobs):
        if number not in _ahead:
            _ahead[number] = _started(number)


def _started(number: int) -> _Process:
    ours, theirs = Pipe()
    with theirs:
        process = subprocess.Popen(
            [
                # Without -P Python would import a `polars` from the working folder.
                *dies_with_us(), sys.executable, "-P", "-m", "flashbed.running.worker",
                str(theirs.fileno()), str(number),
            ],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # this process passes Ctrl-C on, once
            env={**os.environ, "POLARS_MAX_THREADS": "1"},
        )  # fmt: skip
    return _Process(process=process, connection=ours)


@dataclass(kw_only=True)
class _Pool:
    tasks: Iterator[tuple[WorkerTask, int]]
    jobs: int
    progress: Progress
    workers: list[_Process] = field(default_factory=list)
    waiting: tuple[WorkerTask, int] | None = None
    """The next task to start."""
    memory: MemoryBudget = field(default_factory=MemoryBudget)
    done: int = 0
    """Cases of tasks that have ended."""

    def answers(self) -> Iterator[tuple[WorkerTask, Any]]:
        """Yields the answers of all tasks."""
        self.waiting = next(self.tasks, None)
        self._give()
        while any(worker.task for worker in self.workers):
            for worker in self._heard(LOOK_S):
                yield from self._handled(worker)
            self._give()

    def _heard(self, seconds: float) -> list[_Process]:
        """The processes that have sent something."""
        busy = {worker.connection: worker for worker in self.workers if worker.task}
        return [busy[ready] for ready in wait(list(busy), seconds) if isinstance(ready, Connection)]

    def _give(self) -> None:
        """Starts tasks in idle processes as long as there is memory."""
        while self.waiting is not None and self.memory.has(self.waiting[1]):
            worker = next((worker for worker in self.workers if worker.task is None), None)
            if worker is None and len(self.workers) == self.jobs:
                return
            if worker is None:
                worker = _ahead.pop(len(self.workers), None) or _started(len(self.workers))
                self.workers.append(worker)
            worker.task, worker.claimed_bytes = self.waiting
            self.memory.claimed_bytes += worker.claimed_bytes
            with suppress(BrokenPipeError):  # its end is noticed when it is read from
                worker.connection.send(worker.task)
            self.waiting = next(self.tasks, None)

    def _handled(self, worker: _Process) -> Iterator[tuple[WorkerTask, Any]]:
        """Handles one answer."""
        assert worker.task is not None, "only processes with a task are read from"
        try:
            kind, answer = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            worker.task = None
            raise RunError(f"a process of --jobs {_ended(worker.process)}; {_GO_ON}") from None
        if kind == PART:
            yield worker.task, answer
        elif kind == SAID:
            what, worker.done = answer
            self._say(what)
        else:
            self.done += worker.task.cases
            self.memory.claimed_bytes -= worker.claimed_bytes
            worker.task, worker.done = None, 0
            if kind == RAISED:
                raise answer
            assert kind == ENDED, kind
            self._say(f"{self.jobs} processes")

    def _say(self, what: str) -> None:
        self.progress(what, self.done + sum(worker.done for worker in self.workers))

    def last_words(self) -> Iterator[tuple[WorkerTask, Any]]:
        """What interrupted processes have finished."""
        for worker in self.workers:
            with suppress(ProcessLookupError):
                worker.process.send_signal(signal.SIGINT)
        until_s = monotonic() + LAST_WORDS_S
        while any(worker.task for worker in self.workers):
            left_s = until_s - monotonic()
            heard = self._heard(left_s) if left_s > 0 else []
            if not heard:
                return
            for worker in heard:
                with suppress(KeyboardInterrupt, RunError):
                    yield from self._handled(worker)

    def close(self) -> None:
        """Ends the processes: idle ones end by themselves, the others are killed."""
        for worker in self.workers:
            worker.connection.close()
            if worker.task is not None:
                worker.process.kill()
        for worker in self.workers:
            try:
                worker.process.wait(_ENDS_S)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()


_GO_ON = "finished cases are kept, the same command continues after them"


def _ended(process: subprocess.Popen[Any]) -> str:
    try:
        status = process.wait(_ENDS_S)
    except subprocess.TimeoutExpired:
        return "broke its connection"
    return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
