"""What commands say of boards before they run: warnings, and what an answer rests on."""

from __future__ import annotations

from collections.abc import Iterable

from flashbed.cli.progress import say
from flashbed.stack.doubts import doubts, remarks
from flashbed.stack.profiles import Board

__all__ = ["say_doubts", "say_remarks", "say_unlike", "warn"]


def warn(lines: Iterable[str]) -> None:
    """Prints each line once as a warning; a run continues."""
    for line in dict.fromkeys(lines):
        say(f"flashbed: WARNING: {line}")


def say_unlike(releases: Iterable[str]) -> None:
    """Warns of a board's kernels that have no profile, and what is not known of them."""
    from flashbed.stack.nearest_kernel import nearest

    warn(unlike for release in sorted(set(releases)) if (unlike := nearest(release).unlike))


def say_doubts(boards: Iterable[Board]) -> None:
    """Warns of boards whose numbers no chip has, and whose ECC is too weak."""
    warn(line for board in boards for line in doubts(board))


def say_remarks(boards: Iterable[Board]) -> None:
    """`say_doubts`, and what a command that prints no table of answers has to say of its boards."""
    known = list(boards)
    say_doubts(known)
    for line in remarks(*known):
        say(f"flashbed: {line}")
