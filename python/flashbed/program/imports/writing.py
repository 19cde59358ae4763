"""Writes the calls of an import as a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from flashbed.base.errors import InputError
from flashbed.base.paths import shown
from flashbed.program.imports.lines import ImportedError
from flashbed.program.recording.about import About
from flashbed.program.recording.calls import Call
from flashbed.program.recording.file import RecordingWriter

__all__ = ["recorded"]


def recorded(
    path: Path, out: Path, *, first: About, calls: Iterable[Call], last: Callable[[], About]
) -> About:
    """Writes the calls of a file, and the facts that `last` knows behind them.

    Raises `ImportedError`; nothing is left then.
    """
    with RecordingWriter(out, first) as writer:
        for call in calls:
            try:
                writer.add(call)
            except InputError:
                raise
            except ValueError as why:
                raise ImportedError(f"{shown(path)}: {why}") from None
        about = last()
        writer.set_about(about)
    return about
