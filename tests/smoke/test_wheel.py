"""A wheel is whole: it has every file that is read, and runs in an empty folder without a checkout.

What a wheel holds is made cheaply: the package beside its data, on a path of their own. The `long`
test builds a wheel from an sdist and installs it; FLASHBED_WHEEL names one that is built already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from flashbed.base.paths import cache_folder
from flashbed.targets.uml.programs_kernel import SERIES, programs_kernel
from flashbed.targets.uml.uml_kernel import cached_kernel
from tests.support import PROJECT

SYSTEM = "/usr/bin:/bin"
"""No Rust is there, and nothing of the checkout's."""
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


def backend() -> ModuleType:
    """The build's own module, which is not part of the package."""
    spec = spec_from_file_location("wheel_backend", PROJECT / "bind" / "wheel_backend.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Installed:
    """A program in a folder of its own, with a home that is empty."""

    python: Path
    home: Path
    site: Path | None

    def run(self, *words: str, cache: Path | None = None) -> subprocess.CompletedProcess[str]:
        work = self.home / "work"
        work.mkdir(exist_ok=True)
        environment = {"PATH": SYSTEM, "HOME": str(self.home), "TMPDIR": str(self.home)}
        if self.site is not None:
            environment["PYTHONPATH"] = str(self.site)
        if cache is not None:
            environment["FLASHBED_CACHE"] = str(cache)
        start = "from flashbed.__main__ import main; main()"
        return subprocess.run(
            [self.python, "-c", start, *words], cwd=work, env=environment, capture_output=True,
            text=True, check=False,
        )  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """What a wheel holds, on a path of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    package = folder / "site" / "flashbed"
    shutil.copytree(
        PROJECT / "python" / "flashbed", package, ignore=shutil.ignore_patterns("__pycache__")
    )
    for file in backend().packaged():
        (package / "data" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PROJECT / file, package / "data" / file)
    return Installed(Path(sys.executable), folder, folder / "site")


def test_it_has_every_file_of_the_folders_that_are_read() -> None:
    listed = subprocess.run(
        ["git", "ls-files", *backend().FOLDERS], cwd=PROJECT, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("no repository, whose list of files is compared")
    names = listed.stdout.split()
    # A page beside the code is for readers of a checkout.
    kept = {name for name in names if not Path(name).name.startswith(".") and name[-3:] != ".md"}
    assert kept <= {str(file) for file in backend().packaged()}


@pytest.mark.extension
def test_it_runs_and_lists_in_an_empty_folder(wheel: Installed) -> None:
    listed = wheel.run("list")
    assert "readahead/figure3" in listed.stdout, listed.stderr
    ran = wheel.run(
        "run", "figure3", "--on", "sim", "--set", "fs=jffs2", "--set", "kernel=6.1",
        "--set", "board=emulated", "--set", "requests=8",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert (wheel.home / "work" / "results" / "readahead" / "figure3" / "cases.parquet").is_file()
    told = wheel.run("report", "results/readahead/figure3")
    assert told.returncode == 0, told.stderr


@pytest.mark.extension
def test_files_beside_the_work_come_first(wheel: Installed) -> None:
    boards = wheel.home / "work" / "boards"
    boards.mkdir(parents=True, exist_ok=True)
    text = (PROJECT / "boards" / "emulated.toml").read_text()
    (boards / "mine.toml").write_text(text.replace('name = "emulated"', 'name = "mine"'))
    ran = wheel.run(
        "run", "figure3", "--set", "board=mine", "--set", "kernel=6.1", "--set", "requests=8",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("module", "extra", "words"),
    [
        ("altair", "report", ["reproduce", "readahead", "--on", "sim"]),
        ("elftools", "emulator", ["run", "figure3", "--on", "emulator", "--set", "kernel=6.1"]),
        ("scipy", "calibrate", ["cost", "fit", "."]),
    ],
)
def test_a_missing_extra_is_one_line(
    wheel: Installed, module: str, extra: str, words: list[str]
) -> None:
    """An entry of None in `sys.modules` is a module that cannot be imported."""
    hidden = Installed(wheel.python, wheel.home, wheel.site)
    code = f"import sys; sys.modules[{module!r}] = None; from flashbed.__main__ import main; main()"
    done = subprocess.run(
        [hidden.python, "-c", code, *words], cwd=hidden.home, capture_output=True, text=True,
        env={"PATH": SYSTEM, "HOME": str(hidden.home), "PYTHONPATH": str(hidden.site)}, check=False,
    )  # fmt: skip
    assert done.returncode in (1, 2)
    said = [line for line in done.stderr.splitlines() if "pip install" in line]
    assert len(said) == 1, done.stderr
    assert said[0].endswith(f"{module} is not installed: pip install 'flashbed[{extra}]'")
    assert "Traceback" not in done.stderr
    if words[0] == "reproduce":
        assert not (hidden.home / "results").exists(), "cases ran, for nothing"


BESIDE = (
    "python/flashbed/data/boards/emulated.toml", "kernel/yaffs2/file.o",
    "kernel/yaffs2/.file.o.cmd", "kernel/yaffs2/yaffs2.mod.c", "kernel/yaffs2/Module.symvers",
    "experiments/programs/run/__pycache__/config.pyc",
)  # fmt: skip
"""What builds leave beside the sources."""


def sdist(tree: Path, out: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "maturin", "sdist", "--out", out], cwd=tree, capture_output=True,
        check=True,
    )  # fmt: skip
    (built,) = out.glob("flashbed-*.tar.gz")
    return built


def test_an_sdist_has_the_sources_and_nothing_that_is_built(tmp_path: Path) -> None:
    if shutil.which("cargo") is None:
        pytest.skip("cargo is missing")
    tree = tmp_path / "tree"
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "data")
    for folder in ("bind", "common", "image", "page/src", "python", "sim", *backend().FOLDERS):
        shutil.copytree(PROJECT / folder, tree / folder, ignore=ignored)
    for file in ("Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "pyproject.toml"):
        shutil.copyfile(PROJECT / file, tree / file)
    shutil.copyfile(PROJECT / "page" / "Cargo.toml", tree / "page" / "Cargo.toml")
    for file in BESIDE:
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        (tree / file).write_text("built\n")
    with tarfile.open(sdist(tree, tmp_path)) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    wanted = {str(file) for file in backend().packaged()}
    wanted |= {"bind/wheel_backend.py", "common/src/lib.rs", "sim/src/lib.rs", "Cargo.lock"}
    assert wanted <= names
    assert not names & set(BESIDE)
    assert not [name for name in names if name.endswith((".so", ".pyc"))]


def test_exec_needs_no_extra(wheel: Installed) -> None:
    """What the emulated board reads kernels with had been imported for every `exec`."""
    hidden = ("elftools", "altair", "jinja2", "scipy", "perfetto", "pyjls", "ziglang")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({hidden!r})); import flashbed.api.executing;"
        "from flashbed.__main__ import main; main()"
    )
    done = subprocess.run(
        [wheel.python, "-c", code, "exec", "--fs", "none", "--", "true"], cwd=wheel.home,
        env={"PATH": SYSTEM, "HOME": str(wheel.home), "PYTHONPATH": str(wheel.site)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, "fs=none" in done.stderr) == (2, True), done.stderr


def built_kernels(folder: Path) -> Path:
    """A cache with the kernels that are built already, and room for an agent."""
    folder.mkdir(exist_ok=True)
    for there in cache_folder().iterdir():
        if not there.name.endswith(".lock") and not (folder / there.name).exists():
            (folder / there.name).symlink_to(there)
    return folder


@pytest.mark.extension
@pytest.mark.uml
@pytest.mark.long
def test_it_compiles_its_agent_and_runs_real_kernels(wheel: Installed) -> None:
    """With the compiler of this machine, whose C library is not the one that `make` takes."""
    if cached_kernel(cache_folder(), SERIES[0], programs_kernel()) is None:
        pytest.skip("no kernel for programs: make uml")
    check_real_kernels(wheel)


def check_real_kernels(installed: Installed) -> None:
    cache = built_kernels(installed.home / "cache")
    ran = installed.run(
        "run", "figure3", "--on", "uml,sim", "--set", "fs=jffs2", "--set", "kernel=6.1",
        "--set", "board=emulated", "--set", "requests=8", "--out", "uml", cache=cache,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    done = installed.run("exec", "--", "sh", "-c", "echo 42 > a; sync; cat a", cache=cache)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "42\n"
    assert len(list(cache.glob("agent-*/agent/flashbed-agent-host"))) == 1


def built_wheel(folder: Path) -> Path:
    """The wheel that FLASHBED_WHEEL names, or one that is built from an sdist."""
    if "FLASHBED_WHEEL" in os.environ:
        return Path(os.environ["FLASHBED_WHEEL"]).resolve()
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"}
    subprocess.run(
        [
            *PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder,
            sdist(PROJECT, folder),
        ],
        env=environment, check=True,
    )  # fmt: skip
    (built,) = folder.glob("flashbed-*.whl")
    return built


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_wheel_that_is_built_and_installed_runs(tmp_path: Path) -> None:
    """Into an environment that has nothing else, so that nothing but its extras is missing."""
    built = built_wheel(tmp_path)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "empty"], check=True)
    python = tmp_path / "empty" / "bin" / "python"
    subprocess.run([*PIP, "--python", python, "install", f"{built}[report]"], check=True)
    installed = Installed(python, tmp_path, None)
    for words in (
        ["run", "figure3", "--on", "sim"], ["report", "results/readahead/figure3"], ["list"],
    ):  # fmt: skip
        done = installed.run(*words)
        assert done.returncode == 0, (words, done.stderr)
    if cached_kernel(cache_folder(), SERIES[0], programs_kernel()) is not None:
        check_real_kernels(installed)
