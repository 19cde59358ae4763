"""`fb.record`: records a program as it runs on this machine or on a board over ssh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flashbed.base.errors import InputError, RunError
from flashbed.base.forks import need_threads
from flashbed.base.paths import shown
from flashbed.targets.recorder import session
from flashbed.targets.recorder.places import HerePlace, Place
from flashbed.targets.ssh.address import is_address, parse_address
from flashbed.targets.ssh.recorded_board import RecordedBoard
from flashbed.targets.unavailable import Unavailable

__all__ = ["HERE", "RecordedCommand", "place_of", "record"]

HERE = "host"


@dataclass(frozen=True, kw_only=True)
class RecordedCommand:
    """A recorded program; `fb.run(recording.path)` replays it."""

    path: Path
    exit_status: int
    calls: dict[str, int]
    """System call -> number of calls."""
    bytes_written: int
    bytes_read: int


def record(
    command: Sequence[str],
    out: str | Path,
    *,
    below: Sequence[str] = (),
    contents: bool = False,
    on: str = HERE,
) -> RecordedCommand:
    """Runs a command and records what it does to the files below the working folder.

    Args:
        command: The program and its arguments.
        out: The file to write, `NAME.rec`.
        below: Other folders whose files are recorded too.
        contents: Keeps the bytes written, not only how well they compress.
        on: `host`, or `ssh://USER@HOST[/DIRECTORY]`.

    Raises:
        errors.InputError: an argument is wrong.
        errors.RunError: nothing could be recorded.
    """
    need_threads("fb.record")
    path = Path(out)
    if not command:
        raise InputError("record: needs a command, as in ['ls']")
    if path.exists():
        raise InputError(f"{shown(path)}: exists already")
    try:
        place = place_of(on)
        try:
            done = session.record(place, command, path, below=below, contents=contents)
        finally:
            place.leave()
    except Unavailable as why:
        raise RunError(f"not recorded: {why}") from None
    return RecordedCommand(
        path=path,
        exit_status=done.status,
        calls=dict(done.calls),
        bytes_written=done.written_bytes,
        bytes_read=done.read_bytes,
    )


def place_of(on: str) -> Place:
    """The place where a program is recorded. Raises `InputError` and `Unavailable`."""
    if on == HERE:
        return HerePlace()
    if is_address(on):
        return RecordedBoard(parse_address(on))
    raise InputError(f"--on {on}: must be host, or ssh://USER@HOST[/DIRECTORY]")
