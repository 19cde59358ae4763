"""Where the playground cannot be made, page/build.sh says so in one line and all else continues."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import PROJECT

TOOLS = ("sh", "dirname", "mkdir", "grep", "rm", "sed", "touch", "cat", "uname")
FAILS = "echo no network >&2\nexit 1"
LEFT_OUT = "make: {} (build/logs/playground.log): the playground is left out\n"
NO_COMPILER = "no compiler for WebAssembly could be fetched"
NO_ESBUILD = "esbuild could not be installed with npm"


def made(folder: Path, programs: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """page/build.sh in a tree and with a PATH of its own, where programs are such scripts."""
    (folder / "bin").mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found, name
        (folder / "bin" / name).symlink_to(found)
    for name, text in programs.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (folder / "bin" / name).chmod(0o755)
    page = folder / "tree" / "page"
    page.mkdir(parents=True)
    for name in ("build.sh", "npm.sh"):
        shutil.copy(PROJECT / "page" / name, page / name)
    return subprocess.run(
        [folder / "bin" / "sh", page / "build.sh"], env={"PATH": str(folder / "bin")},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("programs", "why"),
    [
        ({}, "npm is missing"),
        ({"npm": FAILS}, "Rust is missing"),
        ({"npm": FAILS, "node": FAILS, "cargo": FAILS}, NO_COMPILER),
        ({"npm": FAILS, "node": FAILS, "cargo": FAILS, "rustup": FAILS}, NO_COMPILER),
        (
            {"npm": FAILS, "node": FAILS, "cargo": FAILS, "apt-get": FAILS, "dpkg": FAILS},
            NO_COMPILER,
        ),
        (
            {"npm": FAILS, "node": FAILS, "cp": "", "cargo": "", "cmp": "exit 1",
             "rustup": "echo wasm32-unknown-unknown"},
            NO_ESBUILD,
        ),
    ],
    ids=["npm", "cargo", "target", "rustup", "apt", "esbuild"],
)  # fmt: skip
def test_what_is_missing_is_said_in_one_line(
    tmp_path: Path, programs: dict[str, str], why: str
) -> None:
    done = made(tmp_path, programs)
    assert done.stderr == LEFT_OUT.format(why)
    assert done.returncode == 0
    assert not (tmp_path / "tree/build/playground/index.html").exists()


def test_a_compiler_that_finds_a_mistake_is_not_called_missing(tmp_path: Path) -> None:
    """The page was left out, as if there were no compiler, where the crate did not compile."""
    rustup = {"rustup": "echo wasm32-unknown-unknown"}
    done = made(tmp_path, {"npm": "", "node": "", "cargo": FAILS, **rustup})
    assert done.stderr == LEFT_OUT.format("the simulator could not be compiled to WebAssembly")
    assert done.returncode == 0
