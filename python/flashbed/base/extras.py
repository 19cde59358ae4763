"""Optional packages: what a plain installation leaves out, and how to install it."""

from __future__ import annotations

from importlib.util import find_spec

from flashbed.base.errors import MissingExtra

__all__ = ["missing_extra", "require"]

_EXTRAS = {
    "altair": "report",
    "dask": "dask",
    "distributed": "dask",
    "elftools": "emulator",
    "google": "trace",
    "jinja2": "report",
    "markupsafe": "report",
    "perfetto": "trace",
    "pyjls": "joulescope",
    "scipy": "calibrate",
    "vl_convert": "report",
    "ziglang": "emulator",
}
"""Module -> the extra of pyproject.toml that installs it."""


def missing_extra(error: ModuleNotFoundError) -> MissingExtra | None:
    """The error for a module that could not be imported; None if no extra contains it."""
    module = (error.name or "").split(".")[0]
    return MissingExtra(module, _EXTRAS[module]) if module in _EXTRAS else None


def require(extra: str) -> None:
    """Raises `MissingExtra` if a module of an extra is not installed; imports nothing.

    For commands that need it at the end of long work.
    """
    for module, owner in _EXTRAS.items():
        if owner == extra and find_spec(module) is None:
            raise MissingExtra(module, extra)
