"""Advice in words: what to take and why, what each setting does, what a power cut takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from flashbed.answers.advice.front import Row, Rows
from flashbed.answers.advice.settings import PROMISES, READS, Combination
from flashbed.answers.analysis.compared_choices import effect, versus
from flashbed.base.human import time_text
from flashbed.plan.workloads.fewer_syncs import SYNCS

__all__ = ["Durability", "durability_lines", "effects", "headline", "short", "weaker_lines"]

_ASKS_READS = ("read_ahead_kib", "advice", "mount")
_WINDOW_SHORT_READS = 20
_S_NS = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Durability:
    """What was found after power cuts of a choice."""

    cuts: int
    judged: bool = True
    """Whether some cut found a file that the program had finished, or a database."""
    not_recovered: int = 0
    damaging: int = 0
    """Cuts after which a file of the program was empty, mixed or missing."""
    lost_ns: int = 0
    """The most of the program's time whose work was gone."""
    lost_transactions: int = 0
    """The most transactions that had returned and were gone."""
    kept_by: str | None = None
    """The call that was left out most often."""

    def takes_more_than(self, other: Durability) -> bool:
        """Whether a power cut takes more than with another choice; a second more is none."""
        mine, theirs = self._rank, other._rank
        if mine != theirs:
            return mine > theirs
        later = self.lost_ns > other.lost_ns + _S_NS
        return later or self.lost_transactions > other.lost_transactions

    @property
    def _rank(self) -> int:
        if self.not_recovered or self.damaging:
            return 2
        return 1 if self.lost_ns or self.lost_transactions else 0

    @property
    def word(self) -> str:
        """The word of docs/models/advice.md."""
        return next(self._words(), self._nothing)

    @property
    def _nothing(self) -> str:
        return "keeps all" if self.judged else "no finished file was there to be lost"

    def _words(self) -> Iterator[str]:
        bad = max(self.not_recovered, self.damaging)
        if bad:
            yield f"may damage ({bad} of {self.cuts} cuts)"
        if self.lost_transactions:
            last = "commit" if self.lost_transactions == 1 else f"{self.lost_transactions} commits"
            yield f"may lose the last {last}"
        if self.lost_ns:
            yield f"may lose the last {time_text(self.lost_ns)}"

    @property
    def words(self) -> str:
        """All that was found, the worst first."""
        return ", ".join(self._words()) or self._nothing


def headline(advised: Combination, now: Combination, rows: Rows, measure: str) -> str:
    """What to take, and what that gains over now."""
    if advised == now:
        return f"keep {now.label}: nothing better was found of which a power cut takes no more"
    label, today = f"take {advised.label}", f"now ({now.label})"
    found = versus(rows[advised], rows[now], (label, today), by=measure)
    return found or f"{label}: no difference from {today}"


def short(choice: Combination, base: Combination) -> str:
    """What a choice sets beside a base."""
    new = tuple(pair for pair in choice.sets if pair not in base.sets)
    return Combination(new).label or choice.label


def effects(
    alone: Sequence[Combination],
    base: Combination,
    rows: Rows,
    *,
    calls: Mapping[str, int],
    measure: str,
) -> list[str]:
    """A line for each setting that does something; those that do nothing share one, with why."""
    lines: list[str] = []
    none: dict[str, list[str]] = {}
    for choice in alone:
        name = short(choice, base)
        said = effect(rows[choice], rows[base], by=measure)
        if said is None:
            (key,) = [key for key, value in choice.sets if (key, value) not in base.sets]
            none.setdefault(key, []).append(name)
        else:
            lines.append(f"{name}: {said}")
    for key, names in none.items():
        why = _why_none(key, rows[base], calls)
        lines.append(f"{'; '.join(names)}: no effect{f', {why}' if why else ''}")
    return lines


def _why_none(key: str, row: Row, calls: Mapping[str, int]) -> str | None:
    """Why a setting does nothing, as far as counts say."""
    syncs = sum(calls.get(name, 0) for name in SYNCS)
    if key in _ASKS_READS:
        if not sum(calls.get(name, 0) for name in READS):
            return "the program reads no file"
        reads = row["page_reads"]
        if reads is not None and reads < _WINDOW_SHORT_READS:
            return f"the program makes the chip read {reads:,} pages only"
        return None
    if key.startswith("vm."):
        if syncs:
            return f"the program syncs {syncs:,} {'times' if syncs > 1 else 'time'} itself"
        return "the program is over before data is old"
    if key == "compressor" and syncs:
        return f"each of its {syncs:,} syncs fills up a page"
    return None


def durability_lines(
    found: Mapping[Combination, Durability], *, now: Combination, advised: Combination,
    apart: Sequence[Combination], rows: Rows, calls: Mapping[str, int], measure: str,
) -> list[str]:  # fmt: skip
    """What a power cut takes: of now and the best, then with each setting that stands apart."""
    lines = []
    for choice, cut in found.items():
        if choice not in apart:
            mark = "take " if choice == advised else ""
            mark = "now " if choice == now and not mark else mark
            lines.append(f"{mark}{choice.label}: {cut.words}")
    none: dict[tuple[str, str], list[str]] = {}
    for choice in apart:
        name = short(choice, advised)
        gained = effect(rows[choice], rows[advised], by=measure)
        key, value = next(pair for pair in choice.sets if pair not in advised.sets)
        taken = f": {found[choice].words}" if choice in found else ""
        if (key, value) in PROMISES:
            taken += f"; {PROMISES[key, value]}"
        if gained is None:
            why = _why_none(key, rows[advised], calls)
            none.setdefault((f", {why}" if why else "", taken), []).append(name)
        else:
            lines.append(f"{name}: {gained}{taken}")
    lines += [f"{'; '.join(names)}: no effect{why}{taken}" for (why, taken), names in none.items()]
    return lines


def weaker_lines(
    weaker: Sequence[Combination], advised: Combination, rows: Rows,
    found: Mapping[Combination, Durability], *, measure: str,
) -> list[str]:  # fmt: skip
    """What would be better, if a power cut may take more."""
    lines = []
    for choice in weaker:
        gained = effect(rows[choice], rows[advised], by=measure)
        taken = f": {found[choice].words}" if choice in found else ""
        lines.append(f"{choice.label}: {gained}{taken}")
    return lines
