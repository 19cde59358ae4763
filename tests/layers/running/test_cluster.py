"""A Dask cluster gives the bytes of one process, whatever its workers and scheduler do."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from flashbed.base.errors import InputError, RunError
from flashbed.running.cluster import _Cluster, check_address
from flashbed.running.runner import TargetOutcome
from flashbed.running.ways import Way
from tests.layers.running.conftest import RunWay, same_bytes

pytestmark = [
    pytest.mark.extension,
    # distributed leaves a socket to the collector when its scheduler is killed.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
CASES = 96
HOST = "127.0.0.1"


@dataclass
class Cluster:
    """A scheduler and workers, each a process of its own."""

    folder: Path
    port: int
    scheduler: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"tcp://{HOST}:{self.port}"

    def _process(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self.folder / "log").open("ab")
        with log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{name}", *arguments],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, "POLARS_MAX_THREADS": "1"},
            )

    def start(self) -> None:
        where = ("--host", HOST, "--port", str(self.port), "--no-dashboard")
        self.scheduler = self._process("scheduler", *where)

    def add_workers(self, count: int) -> None:
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", HOST)
        for _ in range(count):
            self.workers.append(self._process("worker", self.address, *options))

    def kill_a_worker(self) -> None:
        worker = self.workers.pop(0)
        worker.kill()
        worker.wait()

    def restart(self, workers: int) -> None:
        """The scheduler is killed; workers of the old one end, as their manager would have them."""
        assert self.scheduler is not None
        self.scheduler.kill()
        self.scheduler.wait()
        while self.workers:
            self.kill_a_worker()
        self.start()
        self.add_workers(workers)

    def end(self) -> None:
        for process in [self.scheduler, *self.workers]:
            if process is not None:
                process.send_signal(signal.SIGKILL)
                process.wait()


@pytest.fixture
def cluster(small: Path, tmp_path: Path) -> Iterator[Cluster]:
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    folder = tmp_path / "dask"
    folder.mkdir()
    made = Cluster(folder, port)
    try:
        yield made
    finally:
        made.end()


def test_every_case_runs_once_while_workers_and_scheduler_go_and_come(
    run_way: RunWay, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected = []
    found = _Cluster.connect

    def connect(self: _Cluster, patience_s: float) -> None:
        connected.append(patience_s)
        found(self, patience_s)

    monkeypatch.setattr(_Cluster, "connect", connect)
    cluster.start()
    cluster.add_workers(4)
    strikes: list[tuple[int, Callable[[], None]]] = [
        (CASES // 6, cluster.kill_a_worker),
        (CASES // 3, partial(cluster.add_workers, 1)),
        (CASES // 2, partial(cluster.restart, 4)),
    ]

    def strike(_what: str, done: int, _of: int) -> None:
        while strikes and done >= strikes[0][0]:
            strikes.pop(0)[1]()

    outcome = run_way("cluster", Way(scheduler=cluster.address), progress=strike)
    assert outcome == TargetOutcome(target="sim", measured=CASES, kept=0, failures=())
    assert strikes == []
    assert len(connected) == 2
    run_way("one", Way(1))
    assert same_bytes("one", "cluster")


def test_a_run_goes_on_from_what_is_there(run_way: RunWay, cluster: Cluster) -> None:
    run_way("one", Way(1), settings=("seed=1",))
    cluster.start()
    cluster.add_workers(1)
    way = Way(scheduler=cluster.address)
    assert run_way("one", way) == TargetOutcome(
        target="sim", measured=CASES // 2, kept=CASES // 2, failures=()
    )
    run_way("whole", Way(1))
    assert same_bytes("one", "whole")


def test_what_a_worker_raises_is_the_same_line(run_way: RunWay, cluster: Cluster) -> None:
    cluster.start()
    cluster.add_workers(1)
    settings = ("pattern=sequential", "requests=8,1000000")
    with pytest.raises(InputError, match="pass the end of a file"):
        run_way("odd", Way(scheduler=cluster.address), settings=settings)


def test_a_worker_with_other_code_is_one_line(
    run_way: RunWay, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.start()
    cluster.add_workers(1)
    monkeypatch.setattr("flashbed.running.runner.code_sha256", lambda _target: "f" * 64)
    with pytest.raises(RunError, match=r"^a worker runs other code \(flashbed 0\.1\.0\)"):
        run_way("other", Way(scheduler=cluster.address))


def test_a_scheduler_that_does_not_answer_is_one_line(
    run_way: RunWay, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flashbed.running.cluster.CONNECT_S", 0.5)
    with pytest.raises(RunError, match="no scheduler answers; start one by `dask scheduler`"):
        run_way("none", Way(scheduler=cluster.address))


@pytest.mark.parametrize("address", ["", "localhost:8786", "http://a:1", "tcp://a", "tcp://a b:1"])
def test_an_address_has_a_form(address: str) -> None:
    with pytest.raises(InputError, match=r"not tcp://HOST:PORT$"):
        check_address(address)
