"""Several programs on one flash, each at its own rate: the lifetime, and the share of each.

Their erases of the long run add up, and so does what they use of the partition. Left out: what one
program's data costs another's garbage collection beyond that, and fewer commits of UBIFS where two
programs share a journal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashbed.answers.lifetimes.estimate import (
    Estimate,
    Observed,
    erases_per_day,
    estimate_mix,
    used_by,
)
from flashbed.answers.lifetimes.estimate_text import (
    assumed_of,
    digits_small,
    flash_text,
    notes,
    replayed,
    without_years,
    years_text,
)
from flashbed.answers.lifetimes.subject import Subject
from flashbed.base.errors import InputError
from flashbed.plan.case import NAME_WORDS
from flashbed.plan.case_units import OF_PROGRAMS

__all__ = ["Mix", "mixes_of"]


@dataclass(frozen=True)
class Mix:
    """Programs on the same flash, with their names."""

    programs: tuple[str, ...]
    parts: tuple[Subject, ...]

    @property
    def observed(self) -> list[Observed]:
        """What is known of each part."""
        return [part.observed for part in self.parts]

    def lasting(self, endurance: int) -> Estimate | None:
        """Years until a block was erased so often; None if unknown, or if nothing wears."""
        if self._silent is not None:
            return None
        return estimate_mix(self.observed, endurance)

    @property
    def _silent(self) -> tuple[str, Subject] | None:
        """The first part that no lifetime can follow from."""
        named = zip(self.programs, self.parts, strict=True)
        return next(((n, p) for n, p in named if p.workload and not p.workload.lasts), None)

    @property
    def axes(self) -> dict[str, Any]:
        """The axes of the flash."""
        of_flash = self.parts[0].axes.items()
        return {axis: value for axis, value in of_flash if axis not in OF_PROGRAMS}

    @property
    def name(self) -> str:
        """The axes of the flash, as in the name of a case."""
        axes = self.axes
        return "".join(word(axes[axis]) for axis, word in NAME_WORDS.items() if axis in axes)

    def shares(self) -> list[float | None]:
        """The share of each part in the erases of the long run."""
        each = [erases_per_day(one) if one.seconds else None for one in self.observed]
        known = [count for count in each if count is not None]
        whole = sum(known)
        if len(known) < len(each) or not whole:
            return [None for _ in each]
        return [count / whole for count in known]

    def rows(self) -> list[dict[str, Any]]:
        """A row for each part: its rate, page programs and erases a day, and its share."""
        rows = []
        for name, part, share in zip(self.programs, self.parts, self.shares(), strict=True):
            work = part.workload
            rounds = work.rounds_per_day if work else None
            programs = work.programs if work else None
            rows.append(
                {
                    "program": name,
                    "case": part.name,
                    "runs_per_day": rounds,
                    "programs_per_run": programs,
                    "programs_per_day": programs * rounds if programs and rounds else None,
                    "erases_per_day": erases_per_day(part.observed) if rounds else None,
                    "share": share,
                    "failed_calls": work.failed if work else None,
                }
            )
        return rows

    def text(self, endurance: int, source: str) -> str:
        """The answer and its parts, for a person."""
        found = self.lasting(endurance)
        first = self.parts[0]
        lines = [f"{len(self.parts)} programs, {self.name} on {first.target}"]
        lines.append(f"  {'flash':<14}{flash_text(first, endurance)}")
        lines += [f"  {line}" for line in self._table()]
        silent = self._silent
        if silent is not None:
            said = f"{silent[0]}: {without_years(silent[1])}"
        elif found is None:
            said = "no end: nothing was programmed or erased"
        else:
            said = years_text(found.low, found.high)
        lines.append(f"  {'lifetime':<14}{said}")
        for number, note in enumerate(self.notes(found, source)):
            lines.append(f"  {'stands on' if number == 0 else '':<14}{note}")
        return "\n".join(lines)

    def _table(self) -> list[str]:
        heads = [
            "program",
            "runs a day",
            "page writes each",
            "page writes a day",
            "erases a day",
            "share",
        ]
        cells = [heads]
        for row in self.rows():
            counts = ("runs_per_day", "programs_per_run", "programs_per_day", "erases_per_day")
            said = ["-" if row[name] is None else digits_small(row[name]) for name in counts]
            share = "-" if row["share"] is None else f"{row['share']:.1%}"
            cells.append([row["program"], *said, share])
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return [
            "  ".join(
                cell.ljust(width) if at == 0 else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in cells
        ]

    def notes(self, found: Estimate | None, source: str) -> list[str]:
        """The assumptions, and the doubts of each part by its name."""
        said = [f"endurance: {source}", "the erases of the programs add up"]
        if any(part.workload and part.workload.bytes_flushed for part in self.parts):
            said.append("every run ends with sync(): what it leaves in memory is written")
        for name, part in zip(self.programs, self.parts, strict=True):
            said += [f"{name}: {line}" for line in replayed(part)]
        if found is not None:
            said += assumed_of(used_by(self.observed), found)
        for name, part in zip(self.programs, self.parts, strict=True):
            doubts = notes(part, None, source)
            said += [
                f"WARNING: {name}: {doubt.removeprefix('WARNING: ')}"
                for doubt in doubts
                if doubt.startswith("WARNING")
            ]
        return said

    def json(self, endurance: int, source: str) -> dict[str, Any]:
        """All values; unknown is null."""
        found, first = self.lasting(endurance), self.parts[0]
        return {
            "name": self.name,
            "programs": self.rows(),
            "target": first.target,
            "fs": first.fs,
            "board": first.board.name if first.board else None,
            "endurance_cycles": endurance,
            "endurance_source": source,
            "blocks": first.observed.blocks,
            "used_share": used_by(self.observed).used,
            "mean_block_erases_per_day": found.mean_block_per_day if found else None,
            "years": {"low": found.low, "high": found.high} if found else None,
            "steady": found.steady if found else None,
            "stands_on": self.notes(found, source),
        }


def mixes_of(programs: Mapping[str, Sequence[Subject]]) -> list[Mix]:
    """A mix for each flash that every program ran on. Raises `InputError` if there is none."""
    flashes: dict[tuple[object, ...], dict[str, Subject]] = {}
    for name, subjects in programs.items():
        for subject in subjects:
            parts = flashes.setdefault(_flash_of(subject), {})
            if name in parts:
                raise InputError(
                    f"{name}: several of its cases are on one flash; --set chooses one"
                )
            parts[name] = subject
    whole = [parts for parts in flashes.values() if len(parts) == len(programs)]
    if not whole:
        raise InputError(
            f"{', '.join(programs)}: not on the same flash: --set gives all of them one file"
            " system, board and partition"
        )
    return [Mix(tuple(parts), tuple(parts.values())) for parts in whole]


def _flash_of(subject: Subject) -> tuple[object, ...]:
    """What has to be the same for programs that share a flash."""
    axes = (value for axis, value in subject.axes.items() if axis not in OF_PROGRAMS)
    return (subject.target, subject.observed.blocks, *axes)
