"""The subject of a lifetime estimate: a workload's round, its flash operations, the board.

`observed` reads subjects from runs. `flashbed exec` imports this module before its kernel starts,
so it does not load polars.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flashbed.answers.lifetimes.estimate import Estimate, Observed, estimate
from flashbed.stack.profiles import Board

__all__ = ["CAUSES", "RoundWork", "Subject"]

CAUSES = ("data", "metadata", "padding", "collection", "wear_levelling")
"""Causes of programmed bytes: the columns `bytes_*` of `cases`."""


@dataclass(frozen=True, kw_only=True)
class RoundWork:
    """A round: how long, how often, what the program wrote, what that did to the flash.

    `rounds_per_day` is None where no rate is known. `given_rate` says whether the user
    did; otherwise the program has a pace of its own, and rounds follow without a pause.
    `bytes_by_cause` adds up to what was programmed; real kernels do not report it. All counts
    include the flush after the round; `bytes_flushed` is what it programmed, `unsynced` the share
    of its data that only the flush wrote. `failed` is its calls that failed. None is unknown.
    """

    seconds: float | None
    rounds_per_day: float | None
    given_rate: bool
    bytes_written: int | None
    bytes_by_cause: Mapping[str, float] | None
    bytes_programmed: float | None
    bytes_erased: float | None
    programs: float | None = None
    bytes_flushed: int | None = None
    unsynced: float | None = None
    failed: int | None = None

    @property
    def lasts(self) -> bool:
        """Whether years can follow from it: it says how often it runs, and no call failed."""
        return self.rounds_per_day is not None and not self.failed

    def a_byte_written(self) -> dict[str, float | None]:
        """Bytes programmed, erased and of each cause per byte written; None is unknown."""
        counts: dict[str, float | None] = {
            "programmed": self.bytes_programmed, "erased": self.bytes_erased,
            **{name: (self.bytes_by_cause or {}).get(name) for name in CAUSES},
        }  # fmt: skip
        written = self.bytes_written
        return {
            name: count / written if count is not None and written else None
            for name, count in counts.items()
        }


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One subject of an estimate. `board` is None if no board was named.

    `axes` has the values of a case's axes, as the table `cases` holds them. `rounds` is how many
    rounds `observed` counts, after `rounds_before` in which free space was used; the workload's
    counts are then those of their mean. `unaged` says why it was not replayed so often.
    """

    name: str
    observed: Observed
    board: Board | None
    blocks_erased: int | None
    target: str | None = None
    fs: str | None = None
    workload: RoundWork | None = None
    axes: Mapping[str, Any] = field(default_factory=dict)
    rounds: int = 1
    rounds_before: int = 0
    unaged: str | None = None

    def lasting(self, endurance: int) -> Estimate | None:
        """Years until a block was erased so often; None if unknown, or if nothing wears."""
        if self.workload is not None and not self.workload.lasts:
            return None
        return estimate(self.observed, endurance)
