"""What a path leads to: a link, a device, a pipe, a socket, a folder, nothing.

What flashbed writes replaces plain files only. Below a folder of results, which may be a
stranger's, it never writes, removes or descends through a link.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile.calls import Call, Content, Kind, Worker, lay_out
from tests.hostile.conftest import Kept
from tests.hostile.good import EXPERIMENT, OPERATIONS, fewer, lines_of, toml_of
from tests.hostile.test_recordings import PROGRAM, packed

pytest.importorskip("flashbed._sim", reason="the simulator is not compiled; make build")

pytestmark = pytest.mark.timeout(100_000)

OUTPUTS: tuple[tuple[str, ...], ...] = (
    ("report", "good", "--out"), ("ops", "cut", "a.rec", "--first", "1", "-o"),
    ("ops", "cut", "a.ops", "--first", "1", "-o"), ("ops", "anonymise", "a.rec", "-o"),
    ("ops", "merge", "a.rec", "a.rec", "-o"), ("import", "fio-job", "a.fio", "-o"),
    ("playground", "a.rec", "-o"), ("report", "traced", "--out"),
)  # fmt: skip
"""Commands without the file that they write."""
ENDS: dict[str, Content] = {
    "a device": "/dev/null", "a pipe": Kind.PIPE, "a socket": Kind.SOCKET, "a folder": None,
    "deep": Kind.DEEP, "a link to a file": "victim", "a link to a pipe": "pipe",
    "a link to itself": "out", "a link to nothing": "nothing/at/all", "a full disk": "/dev/full",
    "a link to standard output": "/proc/self/fd/1", "a process's memory": "/proc/self/mem",
    "below a file": "victim/x", "a long name": "x" * 300,
}  # fmt: skip
FOLDERS: tuple[tuple[str, ...], ...] = (
    ("run", "x.toml", "--out", "good"), ("run", "x.toml", "--set", "requests=9", "--out", "good"),
    ("powercut", "x.toml", "--on", "sim", "--out", "good"), ("report", "good"),
    ("trace", "--on", "sim", "--flash", "a.ops", "--export", "csv", "--out", "traced"),
    ("power", "draw", "good"), ("report", "traced"), ("merge", "good", "good", "-o", "new"),
)  # fmt: skip
"""Commands that write into a folder that is there."""
PLANTED = (
    "profiles", "parts", "parts/.part.x", "parts/000001", "parts/000001/cases.parquet", ".lock",
    "profiles/board-emulated.toml", "run.json", "experiment.toml", "cases.parquet", "report.html",
    "requests.parquet", ".parts.1", ".parts.merging", "playground.html", "trace.json",
    "flash.csv", "power.svg", "not_measured.parquet", "finished.parquet", "shard.json",
)  # fmt: skip


class Planted(dict[str, Content]):
    """Files by their names, too long for a message."""

    def __repr__(self) -> str:
        return f"{len(self)} files"


@pytest.fixture(scope="module")
def files(result: Kept) -> Planted:
    """What the commands read."""
    return Planted({
        **result, "x.toml": toml_of(EXPERIMENT), "a.rec": packed(list(PROGRAM)),
        "a.ops": lines_of(OPERATIONS), "a.fio": b"[a]\nrw=write\nsize=4k\n",
        "victim": b"precious", "pipe": Kind.PIPE,
    })  # fmt: skip


def _kind(path: Path) -> tuple[int, str]:
    return path.lstat().st_mode & 0o170000, str(path.readlink()) if path.is_symlink() else ""


@fewer
@given(arguments=st.sampled_from(OUTPUTS), end=st.sampled_from(sorted(ENDS)))
def test_an_output_replaces_plain_files_only(
    worker: Worker, files: Planted, arguments: tuple[str, ...], end: str
) -> None:
    """`-o /dev/null` renamed a file over the machine's own."""
    call = Call((*arguments, "out"), {**files, "out": ENDS[end]})
    if end == "a long name":
        call = Call((*arguments, str(ENDS[end])), files)
    work = worker.folder / "work"
    found = worker.finding(call)
    if found is not None:  # the command could not write: status 1
        assert end in ("a full disk", "below a file", "a process's memory"), found
        assert found.startswith("status 1: flashbed: "), found
        assert found.count("\n") == 1, found
    if end != "a long name":
        shutil.rmtree(worker.folder / "before", ignore_errors=True)
        lay_out(worker.folder / "before", call.files)
        assert _kind(work / "out") == _kind(worker.folder / "before" / "out")
    assert (work / "victim").read_bytes() == b"precious"
    assert not Path("/dev/playground.html").exists()
    assert not Path("/dev/out.parts").exists()


def test_a_pipe_that_is_read_gets_the_whole_file(
    worker: Worker, files: Planted, tmp_path: Path
) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    arguments = ("ops", "cut", "a.rec", "--first", "9", "-o", str(pipe))
    status, said = worker.ends(Call(arguments, files))
    reader.join()
    assert status == 0, said
    assert read[0][:4] == read[0][-4:] == b"PAR1"


@pytest.fixture
def victims(worker: Worker) -> Iterator[Path]:
    """Folders and files that are none of a command's business."""
    folder = worker.folder / "victims"
    tree: dict[str, Content] = {
        "folder/.part.abc/thesis.txt": b"precious", "folder/board-emulated.toml": b"precious",
        "folder/000001/cases.parquet": b"precious", "file": b"precious",
        "folder/.run.json.x": b"precious", "folder/000001/.a.b": b"precious",
    }  # fmt: skip
    lay_out(folder, tree)
    yield folder
    shutil.rmtree(folder)


def _content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


@fewer
@given(
    arguments=st.sampled_from(FOLDERS),
    name=st.sampled_from(PLANTED),
    end=st.sampled_from(("folder", "file", "nothing", "a pipe", "deep", "its name")),
)
def test_a_folder_of_results_leads_nowhere_else(
    worker: Worker, files: Planted, victims: Path, arguments: tuple[str, ...], name: str,
    end: str,
) -> None:  # fmt: skip
    """`profiles` or `parts` that was a link to a folder: `run` wrote and removed there."""
    before = _content(victims)
    folder = "traced" if "traced" in arguments else "good"
    planted: dict[str, Content] = {
        path: content for path, content in files.items() if not path.startswith(f"{folder}/{name}")
    }
    ends: dict[str, Content] = {"a pipe": Kind.PIPE, "deep": Kind.DEEP, "its name": Kind.OTHER_NAME}
    planted[f"{folder}/{name}"] = ends.get(end, str(victims / end))
    found = worker.finding(Call(arguments, planted))
    assert found is None, found
    assert _content(victims) == before
