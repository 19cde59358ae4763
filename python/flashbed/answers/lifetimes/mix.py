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
    DAY_S,
    YEAR_S,
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
from flashbed.answers.lifetimes.given import UPDATE
from flashbed.answers.lifetimes.subject import Subject
from flashbed.base.errors import InputError
from flashbed.plan.case import NAME_WORDS
from flashbed.plan.case_units import OF_PROGRAMS

__all__ = ["HottestBlock", "LargestPart", "Mix", "mixes_of"]


TEN_YEARS_DAYS = 3652.5


@dataclass(frozen=True)
class HottestBlock:
    """Erases of the block that ends the flash, at most.

    `per_day` is its rate at the low end. With UBI that is the mean block's, and the hottest is
    `ahead` erases ahead of it at most; None without such a bound.
    """

    per_day: float | None
    ahead: int | None

    @property
    def in_ten_years(self) -> float | None:
        """Erases that it has after ten years, at most."""
        return None if self.per_day is None else self.per_day * TEN_YEARS_DAYS + (self.ahead or 0)

    def text(self, endurance: int) -> str:
        """The line of an answer."""
        said = f"<= {digits_small(self.per_day or 0)} erases a day"
        if self.ahead is not None:
            said += f" and {self.ahead:,} ahead of the mean"
        return f"{said}: <= {self.in_ten_years or 0:,.0f} of {endurance:,} in ten years"

    def json(self) -> dict[str, Any]:
        """All values; unknown is null."""
        return {
            "erases_per_day_max": self.per_day,
            "erases_ahead_max": self.ahead,
            "erases_in_ten_years_max": self.in_ten_years,
        }


@dataclass(frozen=True)
class LargestPart:
    """The program or update that wears the flash most, and the flash without it."""

    name: str
    share: float
    without: Estimate | None

    def json(self) -> dict[str, Any]:
        """All values; unknown is null, and so are years without an end."""
        left = self.without
        years = None if left is None else {"low": left.low, "high": left.high}
        return {"program": self.name, "share": self.share, "years_without": years}


@dataclass(frozen=True)
class Mix:
    """Programs on the same flash, with their names, and those of their product and stack."""

    programs: tuple[str, ...]
    parts: tuple[Subject, ...]
    product: str = ""
    stack: str = ""

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

    def hottest(self, found: Estimate, endurance: int) -> HottestBlock:
        """The block that ends the flash, as the low end of the answer has it."""
        low = found.levelled_by_ubi_low
        ahead = 2 * (self.parts[0].observed.wl_threshold or 0) if low is not None else None
        left = endurance - (ahead or 0)
        years = found.low if ahead is None else low
        return HottestBlock(per_day=left / (years * YEAR_S / DAY_S) if years else None, ahead=ahead)

    def largest(self, endurance: int) -> LargestPart | None:
        """The program or update that wears the flash most; None if it is not known."""
        shares = [share for share in self.shares() if share is not None]
        if not shares or len(self.parts) < 2:
            return None
        at = shares.index(max(shares))
        others = [part for n, part in enumerate(self.observed) if n != at]
        return LargestPart(self.programs[at], shares[at], estimate_mix(others, endurance))

    def rows(self) -> list[dict[str, Any]]:
        """A row for each part: its rate, page writes and erases a day, and its share."""
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
        product = f"{self.product}, {self.stack}: " if self.product else ""
        lines = [f"{product}{self._counted}, {self.name} on {first.target}"]
        lines.append(f"  {'flash':<14}{flash_text(first, endurance)}")
        lines += [f"  {line}" for line in self._table()]
        lines.append(f"  {'lifetime':<14}{self.answer(found)}")
        if found is not None:
            lines += self._limits(found, endurance)
        for number, note in enumerate(self.notes(found, source)):
            lines.append(f"  {'assumes' if number == 0 else '':<14}{note}")
        return "\n".join(lines)

    def answer(self, found: Estimate | None) -> str:
        """The years in words, or why there are none."""
        silent = self._silent
        if silent is not None:
            return f"{silent[0]}: {without_years(silent[1])}"
        if found is None:
            return "no end: nothing was written to the flash or erased"
        return years_text(found.low, found.high)

    @property
    def _counted(self) -> str:
        updates = sum(name.startswith(UPDATE) for name in self.programs)
        counts = ((len(self.parts) - updates, "program"), (updates, "update"))
        words = [f"{n:,} {word}{'' if n == 1 else 's'}" for n, word in counts if n]
        return " and ".join(words)

    def _limits(self, found: Estimate, endurance: int) -> list[str]:
        """The hottest block, and the part that wears the flash most."""
        block, part = self.hottest(found, endurance), self.largest(endurance)
        lines = []
        if block.per_day is not None:
            lines.append(f"  {'hottest block':<14}{block.text(endurance)}")
        if part is not None:
            without = "no end"
            if part.without is not None:
                without = years_text(part.without.low, part.without.high)
            lines.append(f"  {'most wear':<14}{part.name}: {part.share:.1%}; without it {without}")
        return lines

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
            said.append("every run ends with sync(): what it leaves in cache is written")
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
        block = None if found is None else self.hottest(found, endurance)
        part = None if found is None else self.largest(endurance)
        return {
            "name": self.name,
            "product": self.product or None,
            "stack": self.stack or None,
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
            "hottest_block": None if block is None else block.json(),
            "most_wear": None if part is None else part.json(),
            "steady": found.steady if found else None,
            "assumes": self.notes(found, source),
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
