"""Fixtures of all tests: a small project of its own, and a target that needs nothing."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from flashbed.base import paths
from flashbed.base.paths import cache_folder
from flashbed.targets import TARGETS
from flashbed.targets.emulator.debian_kernel import CROSS_COMPILER
from flashbed.targets.uml.uml_kernel import cached_kernel
from flashbed.targets.unavailable import Unavailable
from tests.support import PROJECT, SMALL
from tests.support.board import SshBoard, parts, ssh_board
from tests.support.fake import FakeTarget

hypothesis.settings.register_profile("same every time", derandomize=True)
hypothesis.settings.load_profile("same every time")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--long`: what CI leaves out, which `make agreement` runs."""
    parser.addoption("--long", action="store_true", help="also tests marked long, samples whole")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist loadfile`, but that workers take one page of the guides at a time."""
    if config.getoption("dist") != "loadfile":
        return None
    scheduler = import_module("xdist.scheduler.loadfile").LoadFileScheduling(config, log)
    of_file = scheduler._split_scope
    scheduler._split_scope = lambda test: test if "/test_guides.py::" in test else of_file(test)
    return scheduler


@pytest.fixture
def project() -> Path:
    """The checkout that is tested."""
    return PROJECT


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own: complete profiles, one small experiment, nothing shared."""
    root = tmp_path / "project"
    shutil.copytree(PROJECT / "boards", root / "boards")
    board = (root / "boards" / "omap3evm.toml").read_text()
    emulated = board.replace('name = "omap3evm"', 'name = "emulated"')
    (root / "boards" / "emulated.toml").write_text(emulated)
    (root / "experiments" / "small").mkdir(parents=True)
    shutil.copy(SMALL, root / "experiments" / "small" / "one.toml")
    monkeypatch.setenv("FLASHBED_ROOT", str(root))
    monkeypatch.chdir(tmp_path)
    assert paths.root() == root
    return root


@pytest.fixture
def write_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Writes policies/mine.py of the working folder; its classes follow two imports."""
    monkeypatch.chdir(tmp_path)

    def written(text: str) -> None:
        begin = (
            "import random\nfrom flashbed import ReadAhead, Reclaim, Reclaimed, Victim, Window\n"
        )
        (tmp_path / "policies").mkdir(exist_ok=True)
        (tmp_path / "policies/mine.py").write_text(begin + textwrap.dedent(text))

    return written


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, FakeTarget]]:
    """`sim` and `emulator` replaced by targets that make numbers up, the same ones every time."""
    made = {name: FakeTarget(name) for name in ("sim", "emulator")}
    module = "tests.support.fake"
    for name in made:
        monkeypatch.setitem(TARGETS, name, (module, f"make_{name}"))
    FakeTarget.made.update(made)
    yield made
    FakeTarget.made.clear()


@pytest.fixture(scope="session")
def ssh_parts() -> None:
    """What tests need that boot a board of their own with `ssh_board`; skips them without it."""
    try:
        parts()
    except Unavailable as why:
        pytest.skip(str(why))


@pytest.fixture(scope="session")
def shared_board(
    ssh_parts: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SshBoard]:
    """One board with an ssh server for all tests that leave it as it was."""
    with ssh_board(tmp_path_factory.mktemp("board") / "shared") as board:
        yield board


def _longest(item: pytest.Item) -> float:
    """Seconds that a test may take, if it says so."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0.0


def _longest_files_first(items: list[pytest.Item]) -> None:
    """Workers take file after file: a long one that comes last is waited for by one alone."""
    longest: dict[Path, float] = {}
    for item in items:
        longest[item.path] = max(longest.get(item.path, 0.0), _longest(item))
    items.sort(key=lambda item: -longest[item.path])


def _without_long(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects what only `--long` runs."""
    if config.getoption("--long"):
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("long")]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is long, skips what needs something that is not there."""
    _without_long(config, items)
    _longest_files_first(items)
    missing = {}
    if find_spec("flashbed._sim") is None:
        missing["extension"] = "the simulator is not compiled: make build"
    if shutil.which("qemu-system-arm") is None:
        missing["emulator"] = "qemu-system-arm is missing"
    elif shutil.which(CROSS_COMPILER) is None:
        missing["emulator"] = f"{CROSS_COMPILER} is missing"
    elif not (PROJECT / "build" / "agent" / "flashbed-agent-armv7").is_file():
        missing["emulator"] = "the agent is not built: make build"
    if cached_kernel(cache_folder(), "6.1") is None:
        missing["uml"] = "user-mode Linux is not built: make uml"
    for marker, reason in missing.items():
        for item in items:
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))
