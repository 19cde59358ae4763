"""Builds the package: maturin, and around it the project's files that a wheel needs.

maturin packs the folder python/flashbed and nothing beside it. So boards, experiments, agent and
kernel, which stay at the root of the checkout, are copied to python/flashbed/data while a wheel is
built. Symbolic links would be shorter, but maturin follows none.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import maturin

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "packaged",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_ROOT = Path(__file__).resolve().parents[1]
_DATA = _ROOT / "python" / "flashbed" / "data"
FOLDERS = ("boards", "experiments", "policies", "agent", "kernel")
_KINDS = frozenset({
    *(".c", ".h", ".mk", ".toml", ".lock"),
    *(".cfg", ".parquet", ".postmark", ".py", ".sh", ".sql", ".txt", ""),
})  # fmt: skip
"""Sources and data; what a kernel's build leaves beside them is neither."""

get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist
get_requires_for_build_editable = maturin.get_requires_for_build_editable
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable
build_sdist = maturin.build_sdist
build_editable = maturin.build_editable


def packaged() -> list[Path]:
    """The files that become data of the package, relative to the checkout."""
    files = (file for folder in FOLDERS for file in sorted((_ROOT / folder).rglob("*")))
    return [
        file.relative_to(_ROOT)
        for file in files
        if file.is_file() and file.suffix in _KINDS and not file.name.startswith(".")
        and "__pycache__" not in file.parts
    ]  # fmt: skip


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """See PEP 517."""
    with _data():
        name: str = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
        return name


@contextmanager
def _data() -> Iterator[None]:
    """The copies, as long as maturin needs them."""
    shutil.rmtree(_DATA, ignore_errors=True)
    try:
        for file in packaged():
            copy = _DATA / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(_ROOT / file, copy)
        yield
    finally:
        shutil.rmtree(_DATA, ignore_errors=True)
