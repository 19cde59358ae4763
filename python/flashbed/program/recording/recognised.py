"""Recognises a recording by its first bytes and its metadata, without reading it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["ABOUT", "KEY", "is_recording", "parts_of"]

KEY = "flashbed-recording"
"""The key of the file's metadata; its value is JSON, the fields of `About`."""
ABOUT = "recording.json"
"""The file of metadata in an unfinished recording."""
_MAGIC = b"PAR1"
_TAIL_BYTES = 1 << 16


def is_recording(path: Path, *, named: bool = False) -> bool:
    """Whether a path looks like a recording: a Parquet file, or the parts of a killed recorder.

    `named` also requires a recording's metadata, because tables are Parquet too.
    """
    try:
        if path.is_dir():
            return (path / ABOUT).is_file()
        if not path.exists():
            return (parts_of(path) / ABOUT).is_file()
        if not path.is_file():
            return False
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return False
            if named:
                file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
                return KEY.encode() in file.read(_TAIL_BYTES)
            return True
    except (OSError, ValueError):
        return False


def parts_of(path: Path) -> Path:
    """The folder of an unfinished recording's parts."""
    return path.with_name(f"{path.name}.parts")
