"""What strikes the program at any moment costs what was not finished, and nothing else.

`make chaos CHAOS="COUNT SEED"` runs more of them, drawn from another seed: the variables below.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from flashbed.base.paths import cache_folder
from tests.chaos.strikes import Command, Trial, Zygote, campaign, zygote
from tests.support import PROJECT
from tests.support.board import SshBoard

COUNT = int(os.environ.get("FLASHBED_CHAOS", "0"))
SEED = int(os.environ.get("FLASHBED_CHAOS_SEED", "1"))

ONE = ("--set", "fs=jffs2", "--set", "pattern=sequential", "--set", "requests=8", "--set", "seed=1")
FEW = ("--set", "kernel=6.1", "--set", "seed=1", "--set", "requests=8")
SIMULATED = (
    Command("run", ("run", "small/one", *FEW, "--out", "r")),
    Command("reproduce", ("reproduce", "small", "--on", "sim", *FEW, "--out", "r")),
    Command("write", ("run", "writes/few", "--trace", "flash,wear", "--out", "r")),
    Command("trace", ("trace", "writes/few", "--on", "sim", *ONE, "--out", "t")),
    Command(
        "powercut",
        (
            "powercut",
            "writes/few",
            "--on",
            "sim",
            "--samples",
            "3",
            "--set",
            "fs=jffs2",
            "--out",
            "r",
        ),
    ),
)
REPORT = Command("report", ("report", "r"), ("run", "small/one", *FEW, "--out", "r"))
"""What `reproduce` does too, and the slowest of them."""
USER_MODE = (
    Command("uml", ("run", "writes/few", "--on", "uml", "--out", "r")),
    Command(
        "validate",
        ("validate", "emulated", "--on", "uml", "--suite", "compressors", "--out", "v"),
    ),
)
EMULATED = (
    Command("emulator", ("run", "writes/few", "--on", "emulator", *ONE, "--out", "r")),
    Command(
        "emulator-trace", ("trace", "writes/few", "--on", "emulator", *ONE, "--flash", "--out", "t")
    ),
)
PREPARED = (
    Command("prepare", ("prepare", "--on", "uml"), builds=("flashbed_nand-*",)),
    Command(
        "prepare-emulator",
        ("prepare", "--on", "emulator"),
        builds=("flashbed_nand-*",),
    ),
)


def project(root: Path) -> None:
    """A project of its own, with one small experiment for each target."""
    for name in ("boards", "kernel", "agent"):
        shutil.copytree(PROJECT / name, root / name)
    (root / "build").mkdir()
    (root / "build" / "agent").symlink_to(PROJECT / "build" / "agent")
    for study, name, source in (
        ("small", "one", "support/small.toml"),
        ("writes", "few", "chaos/writes.toml"),
    ):
        (root / "experiments" / study).mkdir(parents=True)
        shutil.copy(PROJECT / "tests" / source, root / "experiments" / study / f"{name}.toml")


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """The program in a project of its own."""
    root = tmp_path_factory.mktemp("chaos") / "project"
    project(root)
    places = {"FLASHBED_ROOT": str(root), "FLASHBED_CACHE": str(cache_folder())}
    with zygote(root, places) as started:
        yield started


@pytest.fixture(scope="module")
def building(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """The same with a cache of its own: what was fetched is linked, what is built is its own."""
    root = tmp_path_factory.mktemp("prepare") / "project"
    project(root)
    cache = root.parent / "cache"
    cache.mkdir()
    for path in cache_folder().iterdir():
        if path.is_dir() and not path.name.startswith("flashbed_nand-"):
            (cache / path.name).symlink_to(path)
        elif path.suffix == ".json":
            shutil.copy(path, cache)
    with zygote(root, {"FLASHBED_ROOT": str(root), "FLASHBED_CACHE": str(cache)}) as started:
        yield started


@pytest.fixture(scope="module")
def reached(shared_board: SshBoard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """The program in a project of its own, and a board that it reaches over ssh."""
    root = tmp_path_factory.mktemp("reached") / "project"
    project(root)
    places = {
        "FLASHBED_ROOT": str(root), "FLASHBED_CACHE": str(cache_folder()),
        "FLASHBED_SSH": f"ssh -F {shared_board.config}",
    }  # fmt: skip
    with zygote(root, places) as started:
        yield started


@pytest.mark.extension
@pytest.mark.parametrize(
    "trial", campaign((*SIMULATED, REPORT) if COUNT else SIMULATED, COUNT or 12, SEED), ids=str
)
def test_on_the_simulator(trial: Trial, struck: Zygote, tmp_path: Path) -> None:
    struck.survive(trial, tmp_path)


@pytest.mark.uml
@pytest.mark.extension
@pytest.mark.parametrize("trial", campaign(USER_MODE, COUNT or 4, SEED), ids=str)
def test_on_user_mode_linux(trial: Trial, struck: Zygote, tmp_path: Path) -> None:
    struck.survive(trial, tmp_path)


@pytest.mark.emulator
@pytest.mark.extension
@pytest.mark.timeout(900)
@pytest.mark.parametrize("trial", campaign(EMULATED, COUNT, SEED), ids=str)
def test_on_the_emulator(trial: Trial, struck: Zygote, tmp_path: Path) -> None:
    struck.survive(trial, tmp_path)


KINDS_OF_BUILDS = ("kill", "terminate", "interrupt", "stop", "full", "read-only", "kill-all")


@pytest.mark.uml
@pytest.mark.emulator
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "trial",
    campaign(PREPARED if COUNT else PREPARED[:1], COUNT or 1, SEED, KINDS_OF_BUILDS),
    ids=str,
)
def test_while_it_is_prepared(trial: Trial, building: Zygote, tmp_path: Path) -> None:
    building.survive(trial, tmp_path)


BOARD = ("--on", "ssh://board", "--erase", "mtd0:flashbed")
REACHED = (Command("board", ("run", "writes/few", *BOARD, *ONE, "--out", "r"), timed=True),)


@pytest.mark.emulator
@pytest.mark.extension
@pytest.mark.timeout(900)
@pytest.mark.parametrize("trial", campaign(REACHED, COUNT, SEED), ids=str)
def test_on_a_board(trial: Trial, reached: Zygote, tmp_path: Path) -> None:
    reached.survive(trial, tmp_path)
