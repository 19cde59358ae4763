"""The result of recording a program, and the facts that all of our recordings lack.

`flashbed exec` imports it before its kernel starts, so this module does not load polars.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from flashbed.program.recording.about import About

if TYPE_CHECKING:
    from flashbed.targets.recorder.wire import StreamFacts

__all__ = ["CONTENTS_THERE", "LACKS", "RecordedRun"]

CONTENTS_THERE = "The contents of files that were there before."
LACKS = (
    "Accesses to mapped files are known when a mapping goes, or is synced: a page that is in the"
    " page table then counts as read once, one that has changed as written once.",
    CONTENTS_THERE,
    "What programs did to the files that were not recorded.",
)


@dataclass(kw_only=True)
class RecordedRun:
    """The result of recording a program."""

    path: Path
    about: About
    status: int = 0
    complete: bool = False
    calls: Counter[str] = field(default_factory=Counter)
    existed: int = 0
    files: set[bytes] = field(default_factory=set)
    tasks: int = 0
    written_bytes: int = 0
    read_bytes: int = 0
    without_contents: int = 0
    end: StreamFacts | None = None
    begin: StreamFacts | None = None

    @property
    def failed(self) -> str | None:
        """Why the program was not recorded, from the recorder; None if it was."""
        return self.end.text("failed") if self.end is not None else None
