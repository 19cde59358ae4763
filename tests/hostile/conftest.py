"""A process for hostile calls, and good results to be damaged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.calls import Call, Worker, lay_out
from tests.hostile.good import EXPERIMENT, OPERATIONS, files_of, lines_of, toml_of
from tests.support import PROJECT as ROOT


@pytest.fixture(scope="module")
def worker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Worker]:
    """A process for calls, whose checkout has the profiles and one experiment.

    The number of calls of each test file is written to the file FLASHBED_FUZZ_LOG.
    """
    folder = tmp_path_factory.mktemp("hostile")
    root = folder / "root"
    boards = {
        f"boards/{path.relative_to(ROOT / 'boards')}": path.read_bytes()
        for path in (ROOT / "boards").rglob("*.toml")
    }
    boards["kernel/uml/config"] = (ROOT / "kernel" / "uml" / "config").read_bytes()
    small = (ROOT / "tests" / "support" / "small.toml").read_bytes()
    lay_out(root, {**boards, "experiments/small/one.toml": small})
    made = Worker(folder, root)
    yield made
    made.close()
    if "FLASHBED_FUZZ_LOG" in os.environ:
        with Path(os.environ["FLASHBED_FUZZ_LOG"]).open("a", encoding="utf-8") as log:
            print(request.node.name, made.calls, file=log)


class Kept(dict[str, bytes]):
    """Files by their names, too long for a message."""

    def __repr__(self) -> str:
        return f"{len(self)} files"


@pytest.fixture(scope="module")
def result(worker: Worker) -> Kept:
    """The files of a good result, and of a trace, by their names below `good` and `traced`."""
    run = ("run", "x.toml", "--out", "good", "--trace", "flash,wear")
    assert worker.ends(Call(run, {"x.toml": toml_of(EXPERIMENT)}))[0] == 0
    found = files_of(worker.folder / "work")
    trace = ("trace", "--on", "sim", "--flash", "x.ops", "--out", "traced")
    assert worker.ends(Call(trace, {"x.ops": lines_of(OPERATIONS)}))[0] == 0
    return Kept({**found, **files_of(worker.folder / "work")})
