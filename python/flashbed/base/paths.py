"""Where files are: the project's, the user's, the cache, what is built.

docs/reference/environment.md has the table. There are three kinds of installation: a checkout (an
editable installation), a wheel whose files are in the package's folder `data`, and `FLASHBED_ROOT`,
which replaces either. Nothing here reads the files.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path

__all__ = [
    "agents_folder",
    "board_file",
    "board_files",
    "cache_folder",
    "chip_file",
    "chip_files",
    "experiment_file",
    "experiment_files",
    "in_checkout",
    "kernel_file",
    "kernel_files",
    "layout_files",
    "new_board_file",
    "new_chip_file",
    "new_policy_file",
    "own_file",
    "own_kernels_folder",
    "playground",
    "policy_file",
    "policy_files",
    "root",
    "sha256_of",
    "shown",
    "work_folder",
]

_PACKAGE = Path(__file__).resolve().parents[1]
_CHECKOUT = _PACKAGE.parents[1]
_PACKAGED = _PACKAGE / "data"
"""In a wheel: boards, experiments, agent and kernel, copied there by wheel_backend.py."""


def root() -> Path:
    """The folder of boards/, experiments/, agent/ and kernel/.

    That is `FLASHBED_ROOT`, the checkout this is imported from, or the package's own data.
    """
    given = os.environ.get("FLASHBED_ROOT")
    if given:
        return Path(given).resolve()
    return own_file()


def in_checkout() -> bool:
    """Whether `make` builds, below `root`. A wheel's files are built into the cache."""
    return root() != _PACKAGED


def cache_folder() -> Path:
    """The folder of downloads and builds: `FLASHBED_CACHE`, build/cache, or the user's cache."""
    given = os.environ.get("FLASHBED_CACHE")
    if given:
        return Path(given).resolve()
    if in_checkout():
        return root() / "build" / "cache"
    return user_cache_path("flashbed", appauthor=False)


def work_folder(name: str) -> Path:
    """Where a target keeps the files of a run while it runs."""
    if in_checkout():
        return root() / "build" / name
    return cache_folder() / "runs" / name


def agents_folder(digest: str) -> Path:
    """The folder of built agents; `digest` is that of their sources, unused in a checkout."""
    if in_checkout():
        return root() / "build" / "agent"
    return cache_folder() / f"agent-{digest}" / "agent"


def playground() -> Path:
    """The page that `make playground` makes (page/)."""
    return root() / "build" / "playground" / "index.html"


def _places() -> list[Path]:
    """The folders with boards/ and experiments/: the working folder, then `root`.

    If `FLASHBED_ROOT` is set, only that.
    """
    if os.environ.get("FLASHBED_ROOT"):
        return [root()]
    return _places_of_work()


def _places_of_work() -> list[Path]:
    """The working folder, unless it was removed, then `root`."""
    try:
        return list(dict.fromkeys([Path.cwd(), root()]))
    except FileNotFoundError:
        return [root()]


def policy_files() -> dict[str, Path]:
    """The files of the user's policies by module."""
    return _files("policies:*.py")


def policy_file(module: str) -> Path:
    """A file of policies; where there is none, that of the working folder."""
    found = _file("policies", f"{module}.py")
    return found if _is_there(found) else new_policy_file(module)


def new_policy_file(module: str) -> Path:
    """Where a file of policies is begun: in policies/ of the working folder."""
    return _places()[0] / "policies" / f"{module}.py"


def _files(pattern: str) -> dict[str, Path]:
    """Name within the folder, without suffix -> file; the user's files hide those of `root`."""
    found: dict[str, Path] = {}
    folder, _, names = pattern.partition(":")
    for place in _places():
        for file in sorted((place / folder).glob(names)):
            name = file.relative_to(place / folder).with_suffix("").as_posix()
            found.setdefault(name, file)
    return found


def board_files() -> dict[str, Path]:
    """The profiles of boards by name."""
    return _files("boards:*.toml")


def own_kernels_folder(cache: Path | None = None) -> Path:
    """The folder of the kernels that the user added, below the cache."""
    return (cache or cache_folder()) / "kernels"


def kernel_files() -> dict[str, Path]:
    """The profiles of kernels by name, those that came with added kernels too."""
    found = _files("boards/kernels:*.toml")
    for folder in sorted(own_kernels_folder().glob("*")):
        if (own := _own_kernel_file(folder.name)) is not None:
            found.setdefault(folder.name, own)
    return found


def _own_kernel_file(name: str) -> Path | None:
    """The profile that came with an added kernel."""
    file = own_kernels_folder() / name / f"{name}.toml"
    return file if _is_there(file) else None


def chip_files() -> dict[str, Path]:
    """The chips of the catalogue by name."""
    return _files("boards/chips:*.toml")


def layout_files() -> dict[str, Path]:
    """The layouts by name."""
    return _files("boards/layouts:*.toml")


def error_curve_files() -> dict[str, Path]:
    """The curves of bit errors by name."""
    return _files("boards/errors:*.toml")


def experiment_files() -> dict[str, Path]:
    """The experiments, by STUDY/NAME."""
    return _files("experiments:*/*.toml")


def _file(*parts: str) -> Path:
    """The first existing file; if there is none, its path below `root`."""
    places = [place.joinpath(*parts) for place in _places()]
    return next((file for file in places if _is_there(file)), places[-1])


def own_file(*parts: str) -> Path:
    """A file of the project itself, wherever its user's files are."""
    own = _CHECKOUT if (_CHECKOUT / "pyproject.toml").is_file() else _PACKAGED
    return own.joinpath(*parts)


def _is_there(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:  # a name that no folder can have
        return False


def board_file(name: str) -> Path:
    """The profile of a board."""
    return _file("boards", f"{name}.toml")


def new_board_file(name: str) -> Path:
    """Where a profile is begun: in boards/ of the working folder, or of `FLASHBED_ROOT`."""
    return _places()[0] / "boards" / f"{name}.toml"


def kernel_file(name: str) -> Path:
    """The profile of a kernel."""
    found = _file("boards", "kernels", f"{name}.toml")
    return found if _is_there(found) else _own_kernel_file(name) or found


def chip_file(name: str) -> Path:
    """A chip of the catalogue."""
    return _file("boards", "chips", f"{name}.toml")


def error_curve_file(name: str) -> Path:
    """A curve of bit errors."""
    return _file("boards", "errors", f"{name}.toml")


def new_chip_file(name: str) -> Path:
    """Where a chip is begun: in boards/chips/ of the working folder, or of `FLASHBED_ROOT`."""
    return _places()[0] / "boards" / "chips" / f"{name}.toml"


def experiment_file(name: str) -> Path:
    """The file of an experiment, STUDY/NAME, or of a study, STUDY."""
    return _file("experiments", f"{name}.toml")


def shown(path: Path) -> str:
    """A path in a message: relative to the working folder or the checkout if inside."""
    for base in _places_of_work():
        if path.is_relative_to(base):
            return str(path.relative_to(base))
    return str(path)


@cache
def _digest(path: Path, _changed_ns: int, _size_bytes: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex; cached while the file does not change."""
    status = path.stat()
    return _digest(path, status.st_mtime_ns, status.st_size)
