"""How long the flash lasts under a program that was run: what its counts say of that."""

from __future__ import annotations

from dataclasses import dataclass

from flashbed.answers.lifetimes.counters import wl_threshold_of
from flashbed.answers.lifetimes.estimate import DAY_S, USED_MAX, Estimate, Observed, dispersion
from flashbed.answers.lifetimes.estimate_text import notes, without_years
from flashbed.answers.lifetimes.given import early_erases, rounds_per_day
from flashbed.answers.lifetimes.subject import RoundWork, Subject
from flashbed.base.errors import InputError
from flashbed.targets.exec.outcome import ExecOutcome
from flashbed.targets.exec.request import ExecRequest

__all__ = ["Lasting", "lasting_of"]

SYNCS = ("sync", "syncfs")


@dataclass(frozen=True)
class Lasting:
    """The estimate of a program's run; `why` says why there are no years."""

    subject: Subject | None
    found: Estimate | None
    notes: list[str] | None
    why: str

    @property
    def runs_per_day(self) -> float | None:
        """How often it runs; None if no rate is known."""
        work = self.subject.workload if self.subject else None
        return work.rounds_per_day if work else None


def lasting_of(request: ExecRequest, outcome: ExecOutcome, rounds: float | None) -> Lasting:
    """The lifetime of the flash if the program runs `rounds` times a day."""
    endurance = request.board.endurance
    if outcome.unseen is not None or endurance is None:
        fit = request.board.fit
        whose = "the board" if fit is None else fit.part.name
        why = f"{whose} has no [endurance]" if endurance is None else "the flash was not seen"
        return Lasting(None, None, None, f"unknown: {why}")
    if outcome.failure is not None:
        why = f"none: {outcome.failure}, so this is not the work of a device"
        return Lasting(None, None, None, why)
    try:
        a_day = rounds_per_day(rounds, outcome.time_ns / 1e9, _busy_s(request, outcome), "none")
    except InputError as why_not:  # the rest of the answer is as it is
        return Lasting(None, None, None, str(why_not))
    subject = _subject(request, outcome, a_day, given=rounds is not None)
    worn = 0 if request.dump is None else request.dump.erases or 0
    if worn >= endurance.cycles:
        why = f"none: a block has {worn:,} erases, of {endurance.cycles:,}"
        return Lasting(subject, None, None, why)
    found = subject.lasting(endurance.cycles - worn)
    if found is None:
        return Lasting(subject, None, None, without_years(subject))
    source = f"{endurance.cycles:,} erases ({endurance.source})"
    return Lasting(subject, found, notes(subject, found, f"{source}{_less(request)}"), "")


def _less(request: ExecRequest) -> str:
    """What a device has behind it, as far as its dump says."""
    if request.dump is None:
        return ""
    if request.dump.erases is None:
        return ", as of a new chip: a dump of JFFS2 has no counters"
    return f", less the {request.dump.erases:,} that a block of the dump has"


def _busy_s(request: ExecRequest, outcome: ExecOutcome) -> float:
    """The time in which the program did not sleep: the chip's, and that of system calls."""
    calls = sum(call.calls for call in outcome.calls) * request.costs.each_ns
    return (max(0, outcome.ran.busy_ns) + calls) / 1e9


def _subject(
    request: ExecRequest, outcome: ExecOutcome, rounds: float | None, *, given: bool
) -> Subject:
    chip = request.board.chip
    block_bytes = chip.block_bytes
    programmed = outcome.bytes_programmed
    workload = RoundWork(
        seconds=outcome.time_ns / 1e9,
        rounds_per_day=rounds,
        given_rate=given,
        bytes_written=outcome.bytes_written if request.where == "uml" else None,
        bytes_by_cause=None,
        bytes_programmed=programmed,
        bytes_erased=sum(outcome.wear) * block_bytes,
        programs=outcome.programs,
        bytes_flushed=outcome.flushed.programs * outcome.page_bytes,
        unsynced=_unsynced(request, outcome),
    )
    blocks = len(outcome.wear)
    used = (request.put_bytes + _grown(request, outcome)) / (blocks * block_bytes)
    observed = Observed(
        seconds=DAY_S / rounds if rounds else None,
        blocks=blocks,
        erases=float(sum(outcome.wear)),
        worst=max(outcome.wear),
        dispersion=dispersion(outcome.wear),
        programmed_blocks=programmed / block_bytes,
        early_erases=early_erases(request.fs, outcome.ran.erases),
        used=min(USED_MAX, used),
        wl_threshold=wl_threshold_of(request.fs),
    )
    erased = sum(count > 0 for count in outcome.wear)
    return Subject(
        name=request.words[0],
        observed=observed,
        board=request.board,
        blocks_erased=erased,
        target=request.where,
        fs=request.fs,
        workload=workload,
    )


def _unsynced(request: ExecRequest, outcome: ExecOutcome) -> float | None:
    """The share of the page writes that the flush did, if the program never synced."""
    synced = any(file.syncs for file in outcome.files) or any(
        call.name in SYNCS for call in outcome.calls
    )
    if request.where != "uml" or not outcome.bytes_written or not outcome.programs:
        return None
    return 0.0 if synced else outcome.flushed.programs / outcome.programs


def _grown(request: ExecRequest, outcome: ExecOutcome) -> int:
    """The most that the program added to the data in use: what was written, or programmed."""
    if request.where != "uml":
        return outcome.bytes_programmed
    return min(outcome.bytes_written, outcome.bytes_programmed)
