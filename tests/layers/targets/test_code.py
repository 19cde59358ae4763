"""Which code a kept result depends on: a change of any of it has the case run again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flashbed.base import code
from flashbed.base.code import PACKAGE, digest_of, modules_of, sources_of
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import plan
from flashbed.results.run_directory import RunDirectory
from flashbed.running.portion import code_sha256
from flashbed.running.runner import run_target
from flashbed.targets import TARGETS
from tests.support.fake import FakeTarget

BOARD = "flashbed.targets.ssh.board"
MODULES = sorted({module for module, _ in TARGETS.values()} | {BOARD})


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package as the targets' code, in a copy that a test may change."""
    copy = tmp_path / "flashbed"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    monkeypatch.setattr(code, "PACKAGE", copy)
    return copy


def change(file: Path) -> None:
    file.write_text(file.read_text() + "\n# changed\n")


@pytest.mark.parametrize(
    ("target", "file"),
    [
        ("uml", "targets/fullness.py"),
        ("uml", "program/sql.py"),
        ("uml", "program/operations.py"),
        ("emulator", "targets/guest/trace_rows.py"),
        ("board", "targets/guest/results.py"),
        ("sim", "stack/conditions.py"),
        ("sim-chip", "targets/fullness.py"),
    ],
)
def test_a_module_that_a_target_imports_is_among_its_code(
    package: Path, target: str, file: str
) -> None:
    """A list by hand had missed half of these: an old result stood after a change of them."""
    before = code_sha256(target)
    change(package / file)
    assert code_sha256(target) != before


def test_a_module_that_a_target_does_not_import_is_not(package: Path) -> None:
    before = {target: code_sha256(target) for target in ("sim", "uml")}
    for file in ("report/page.py", "targets/emulator/gc_choices.py", "targets/ssh/board.py"):
        change(package / file)
    assert {target: code_sha256(target) for target in before} == before


@pytest.mark.parametrize("module", MODULES)
def test_what_is_really_imported_is_found_by_reading(module: str) -> None:
    """The other way round does not hold: what functions import is found as well."""
    script = (
        f"import sys, {module}\nfor name, its in list(sys.modules.items()):\n"
        "    if name.split('.')[0] == 'flashbed' and its.__file__.endswith('.py'):\n"
        "        print(its.__file__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    imported = {Path(line) for line in done.stdout.splitlines()}
    assert imported
    assert imported <= set(modules_of(module))


def test_code_that_is_compiled_is_told_apart_by_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names without folders made one file of agent/board/board.c and kernel/nand/board.c."""
    monkeypatch.setenv("FLASHBED_ROOT", str(tmp_path))
    for name in ("agent/board", "agent/base", "kernel/nand", "sim/src/fs", "bind/src"):
        (tmp_path / name).mkdir(parents=True)
    files = {"agent/board/board.c": "one", "kernel/nand/board.c": "two",
             "sim/src/fs/mod.rs": "three", "kernel/nand/Kbuild": "four", "kernel/LICENSE": "five",
             "agent/base/base.h": "six"}  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    sources = sources_of("flashbed.targets.uml.uml_target")
    names = [name for name, _ in sources if "python" not in name]
    assert names == [
        "agent/base/base.h", "agent/board/board.c", "kernel/nand/Kbuild", "kernel/nand/board.c"
    ]  # fmt: skip
    assert "sim/src/fs/mod.rs" in dict(sources_of("flashbed.targets.sim"))
    seen = {module: digest_of(sources_of(module)) for module in MODULES}
    (tmp_path / "agent/board/board.c").write_text("two")
    (tmp_path / "kernel/nand/board.c").write_text("one")
    after = {module: digest_of(sources_of(module)) for module in MODULES}
    assert [m for m in MODULES if seen[m] == after[m]] == ["flashbed.targets.sim"]
    (tmp_path / "sim/src/fs/mod.rs").rename(tmp_path / "sim/src/mod.rs")
    assert digest_of(sources_of("flashbed.targets.sim")) != seen["flashbed.targets.sim"]


def test_a_change_of_code_has_the_cases_run_again(package: Path, small: Path) -> None:
    experiment = load_experiment("one")
    directory = RunDirectory.create(Path("r"), experiment.id)

    def measured() -> tuple[int, int]:
        done = run_target(
            experiment, plan(experiment), FakeTarget("emulator"), directory,
            trace_flash=False, progress=lambda *_: None,
        )  # fmt: skip
        return done.measured, done.kept

    cases, none = measured()
    assert (none, measured()) == (0, (0, cases))
    change(package / "targets" / "fullness.py")
    assert measured() == (cases, 0)
    (small / "kernel").mkdir()
    (small / "kernel" / "cells.c").write_text("int cells;\n")
    assert measured() == (cases, 0)
    assert measured() == (0, cases)
