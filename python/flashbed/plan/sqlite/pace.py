"""The pace of a program's requests: how long it sleeps between two, or when each is due.

At a rate, a task that does nothing but pause keeps the due times (docs/reference/operations.md).
The program waits for a task that was spawned at such a time: it sleeps until the time has come, and
begins at once where it has passed. So a late request does not delay those after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from flashbed.base.errors import InputError

__all__ = ["UNPACED", "Pace"]

_CLOCK, _DUE = 1, 2
"""The task whose own time is a due time, and the one that the program waits for."""


@dataclass(frozen=True)
class Pace:
    """Operations before the first request, between two, and after the last."""

    first: tuple[str, ...] = ()
    between: tuple[str, ...] = ()
    last: tuple[str, ...] = ()

    @classmethod
    def of(cls, pause_ns: int, period_ns: int | None) -> Self:
        """Raises `InputError` where both are given."""
        if pause_ns and period_ns is not None:
            raise InputError("pause_ns: the program has database.transactions_per_s; give one")
        if period_ns is not None:
            due = (
                f"task {_CLOCK}",
                f"pause {period_ns}",
                f"spawn {_DUE}",
                "task 0",
                f"wait {_DUE}",
            )
            return cls((f"spawn {_CLOCK}",), due, (*due, f"wait {_CLOCK}"))
        return cls(between=(f"pause {pause_ns}",)) if pause_ns else cls()

    @property
    def has_tasks(self) -> bool:
        """Whether its operations are those of version 2."""
        return bool(self.first)


UNPACED = Pace()
"""Each request follows the one before it."""
