"""Prints an estimate as text and as JSON, with units and significant digits.

Years are an interval unless its ends differ by less than a reader would round away. Without a rate
there are none: the answer is then how to give one.
"""

from __future__ import annotations

from typing import Any

from flashbed.answers.lifetimes.estimate import (
    DAY_S,
    FEW_ERASES,
    USUAL_AMPLIFICATION,
    YEAR_S,
    Estimate,
    Interval,
    Observed,
)
from flashbed.answers.lifetimes.given import time_text
from flashbed.answers.lifetimes.subject import CAUSES, RoundWork, Subject
from flashbed.stack.doubts import remarks

__all__ = [
    "HOW_OFTEN",
    "as_json",
    "assumed_of",
    "digits_small",
    "flash_text",
    "notes",
    "replayed",
    "row",
    "text",
    "usual_guess_years",
    "without_years",
    "years_text",
]

LONG_YEARS = 1000.0
"""Beyond this something else ends first: data sheets promise ten years of retention."""
LARGE_SHARE = 0.1
"""A flush with more than this of the programmed bytes decides the answer..."""
OFTEN_PER_DAY = 48
"""...if it happens more often than this: UBIFS commits when its journal is full, not by time."""
NOT_FLUSHED = (
    "WARNING: what the round left in the page cache is not known and not in here;"
    " `flashbed lifetime` of the experiment knows it"
)
ALIKE = 1.15
"""Ends of an interval that differ by less are printed as one number."""
UNSYNCED_SHARE = 0.5
"""A program whose data comes to more than this from the flush is said to rest on unsynced data."""
HOW_OFTEN = "not known: how often does it run? `--rate 1/h` says once an hour"


def years_text(low: float | None, high: float | None) -> str:
    """An interval of years in words."""
    if high == 0:
        return "none: the endurance has been reached"
    if low is not None and low > LONG_YEARS:
        return f"over {LONG_YEARS:,.0f} years"
    if low is None and high is not None and high > LONG_YEARS:
        return f"over {LONG_YEARS:,.0f} years, or too little data"
    if low is None:
        return "too little data" if high is None else f"<= {_years(high)}"
    if high is None:
        return f">= {_years(low)}"
    if high <= low * ALIKE:
        return f"about {_years((low * high) ** 0.5)}"
    first = _in_unit(low)
    last = ("over 1,000", "years") if high > LONG_YEARS else _in_unit(high)
    unit = "" if first[1] == last[1] else f" {first[1]}"
    return f"{first[0]}{unit} to {last[0]} {last[1]}"


def _years(years: float) -> str:
    return " ".join(_in_unit(years))


def _in_unit(years: float) -> tuple[str, str]:
    if years >= 2:
        return _digits(years), "years"
    if years >= 1 / 6:
        return _digits(years * 12), "months"
    days = years * YEAR_S / DAY_S
    return (_digits(days), "days") if days >= 1 else (_digits(days * 24), "hours")


def _digits(value: float) -> str:
    """No digit after the point from 10 on."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def usual_guess_years(subject: Subject, endurance: int) -> float | None:
    """Years by capacity times endurance, divided by bytes written times the usual amplification."""
    work, blocks = subject.workload, subject.observed.blocks
    if not work or not work.lasts or not work.bytes_written or not subject.board or not blocks:
        return None
    chip = subject.board.chip
    budget = blocks * chip.pages_per_block * chip.page_bytes * endurance
    a_year = work.bytes_written * (work.rounds_per_day or 0) * YEAR_S / DAY_S
    return budget / (USUAL_AMPLIFICATION * a_year)


def notes(subject: Subject, found: Estimate | None, endurance_source: str) -> list[str]:
    """The assumptions of the figure, a sentence each, doubts last."""
    seen, work = subject.observed, subject.workload
    said = [f"endurance: {endurance_source}"]
    if work is None:
        said.append("the device continues to be used as it was in that time")
        if seen.erases is None:
            said.append(
                "ubinfo and max_ec know the worst block only; the kernel's log and debugfs more"
            )
    elif work.given_rate:
        said.append("every round wears the flash as the measured one did")
    elif work.lasts:
        said.append("rounds follow each other without a break, each as the measured one")
    if work and work.bytes_flushed:
        said.append("every round ends with sync(): what it leaves in cache is written")
    said += replayed(subject)
    if found is not None:
        said += assumed_of(seen, found)
    if subject.board is not None:
        said += remarks(subject.board)
    return said + _doubts(subject, found)


def replayed(subject: Subject) -> list[str]:
    """How often it ran until free space was used once, or why it did not."""
    said = []
    if subject.rounds_before:
        times = "once" if subject.rounds_before == 1 else f"{subject.rounds_before:,} times"
        said.append(
            f"it ran {times} to use up free space, and {times} more, which are measured; it rested"
            " between two runs until the kernel had written what was left in cache"
        )
    if subject.unaged is not None:
        said.append(f"free space was not used up: {subject.unaged}")
    return said


def assumed_of(seen: Observed, found: Estimate) -> list[str]:
    """What the two ends of an answer assume of collecting and levelling."""
    said = []
    if found.steady is False and seen.used is not None:
        said.append(
            f"the high end has no garbage collection, the low end the most that a partition with"
            f" {_percent(seen.used)} in use needs: too few blocks were erased to measure it"
        )
    if seen.wl_threshold is not None and found.levelled_by_ubi_low is not None:
        said.append(
            f"UBI moves data before blocks differ by more than {2 * seen.wl_threshold:,} erases"
        )
    elif found.levelling_seen.low is None and seen.used and found.low is not None:
        said.append(
            "at the low end the blocks with data that stays are never erased, and the others take"
            " their share"
        )
    return said


def _doubts(subject: Subject, found: Estimate | None) -> list[str]:
    seen, work = subject.observed, subject.workload
    doubts = [NOT_FLUSHED] if _unflushed(subject) and found else []
    is_left = work is not None and (work.bytes_flushed or subject.rounds_before)
    if work and work.unsynced is not None and work.unsynced > UNSYNCED_SHARE and is_left:
        by = "the kernel" if subject.rounds_before else "the sync()"
        doubts.append(
            f"WARNING: {_percent(work.unsynced)} of its data was in the page cache only when it"
            f" ended: never synced, lost if power fails, and written here by {by} after it"
        )
    if work and work.rounds_per_day and work.bytes_flushed:
        large = work.bytes_flushed > LARGE_SHARE * (work.bytes_programmed or 0)
        if large and work.rounds_per_day > OFTEN_PER_DAY:
            doubts.append(
                f"WARNING: {_percent(work.bytes_flushed / (work.bytes_programmed or 1))} of what is"
                " written comes from the sync() after each round, and no device syncs so often:"
                " record an hour of it, with its pauses"
            )
    if found is None:
        return doubts
    if found.steady is False and seen.used is None:
        doubts.append(
            f"WARNING: {seen.erases or 0:,.0f} blocks were erased and"
            f" {seen.programmed_blocks or 0:,.0f} written: free space was used up, and garbage"
            " collection had hardly started; measure a longer part, or after more writes"
        )
    alone = work is not None and seen.programmed_blocks is None
    if alone and seen.blocks and seen.erases is not None and seen.erases < seen.blocks:
        doubts.append(
            f"WARNING: {seen.erases:,.0f} erases on {seen.blocks:,} blocks: too few to say how"
            " evenly blocks wear"
        )
    if seen.worst is None:
        doubts.append("erases of single blocks are not known: uneven wear is not counted")
    return doubts


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "under 1%"


def text(subject: Subject, found: Estimate | None, endurance: int, endurance_source: str) -> str:
    """The answer and its parts, a fact per line."""
    seen, work = subject.observed, subject.workload
    lines = [subject.name + (f" on {subject.target}" if subject.target else "")]

    def fact(name: str, what: str) -> None:
        lines.append(f"  {name:<14}{what}")

    fact("flash", _flash(subject, endurance))
    if work:
        fact("workload", _workload(work))
    if found is None and (work is None or work.lasts):
        fact("lifetime" if work else "time left", _without_wear(subject))
        return "\n".join(lines)
    fact("erases", _erases(seen, found))
    if work and work.rounds_per_day and work.programs is not None:
        fact("", _a_day(subject, work, work.rounds_per_day))
    if work and work.bytes_flushed:
        fact("left in cache", f"{_bytes(work.bytes_flushed)} at the end, written by sync()")
    if work and work.bytes_written:
        fact("WAF", _amplification(work))
    if found is None:
        fact("lifetime", without_years(subject))
    else:
        fact("lifetime" if work else "time left", _years_and_why(seen, found, endurance))
        fact("", f"if all blocks wear alike: {_interval(found.perfect_levelling)}")
        fact("", f"if the worst block keeps this rate: {_seen(seen, found)}")
    guess = usual_guess_years(subject, endurance)
    if guess is not None:
        fact("", f"guessing a WAF of {USUAL_AMPLIFICATION}: {years_text(guess, guess)}")
    for number, note in enumerate(notes(subject, found, endurance_source)):
        fact("assumes" if number == 0 else "", note)
    return "\n".join(lines)


def without_years(subject: Subject) -> str:
    """Why there are no years."""
    work = subject.workload
    if work and work.failed:
        calls = "1 call" if work.failed == 1 else f"{work.failed:,} calls"
        return f"none: {calls} failed, so this is not what the program does to flash"
    return _without_wear(subject) if work and work.rounds_per_day else HOW_OFTEN


def _years_and_why(seen: Observed, found: Estimate, endurance: int) -> str:
    """The years; a bound with what it is made of."""
    said = years_text(found.low, found.high)
    if found.low is not None or found.high is None or seen.blocks is None:
        return said
    why = f"{seen.blocks:,} blocks x {endurance:,} erases"
    if seen.erases is not None and seen.erases < seen.blocks:
        why += "; fewer erases than blocks: too short to say more"
    return f"{said} ({why})"


def _interval(interval: Interval) -> str:
    return years_text(interval.low, interval.high)


def _seen(seen: Observed, found: Estimate) -> str:
    """The worst block's years, unless it was erased too rarely."""
    if seen.worst is None or seen.worst >= FEW_ERASES:
        return _interval(found.levelling_seen)
    times = {0: "no block was erased", 1: "no block was erased twice"}
    said = times.get(seen.worst, f"no block was erased more than {seen.worst} times")
    return f"{said}: too few to say"


def flash_text(subject: Subject, endurance: int) -> str:
    """The blocks of a subject's partition, and what they endure."""
    return _flash(subject, endurance)


def _flash(subject: Subject, endurance: int) -> str:
    blocks = subject.observed.blocks
    count = "an unknown number of blocks" if blocks is None else f"{blocks:,} good blocks"
    chip = subject.board.chip if subject.board else None
    size = f" of {chip.page_bytes * chip.pages_per_block // 1024} KiB" if chip else ""
    return f"{count}{size}, {endurance:,} erases each"


def _workload(work: RoundWork) -> str:
    parts = []
    if work.bytes_written is not None:
        parts.append(f"{_bytes(work.bytes_written)} written")
    if work.seconds is not None:
        parts.append(f"in {time_text(work.seconds)}")
    if work.rounds_per_day is None:
        return " ".join(parts)
    rate = f"{digits_small(work.rounds_per_day)} rounds a day"
    parts.append(f"{rate}" if work.given_rate else f"round after round ({rate})")
    return ", ".join([" ".join(parts[:-1]), parts[-1]]) if parts[:-1] else parts[-1]


def _erases(seen: Observed, found: Estimate | None) -> str:
    mean = None if found is None else found.mean_block_per_day
    if found is None:
        worst = "" if seen.worst is None else f", {seen.worst:,} of the worst block"
        return f"{seen.erases or 0:,.0f} a round{worst}"
    if seen.worst is None or found.worst_block_per_day is None:
        return f"mean block {digits_small(mean or 0)} a day"
    worst = f"worst block {digits_small(found.worst_block_per_day)} a day"
    if mean is None:
        return f"{worst} ({seen.worst:,} seen)"
    of = f"({seen.worst:,} seen, of {seen.erases or 0:,.0f} in all)"
    if found.steady is False and seen.worst < FEW_ERASES:
        return f"mean block {digits_small(mean)} a day {of}"
    return f"mean block {digits_small(mean)}, {worst} {of}"


def _a_day(subject: Subject, work: RoundWork, rounds: float) -> str:
    seen, counted = subject.observed, rounds / subject.rounds
    programs = (work.programs or 0) * rounds
    erases = (seen.erases or 0) * counted
    filled = seen.programmed_blocks
    blocks = "" if filled is None else f" ({digits_small(filled * counted)} blocks)"
    pages = f"{digits_small(programs)} page writes{blocks}"
    return f"{pages} and {digits_small(erases)} erases a day in all"


def _unflushed(subject: Subject) -> bool:
    """Whether a round may have left dirty data in memory that was not counted."""
    work = subject.workload
    if work is None or work.programs is None or work.bytes_written == 0:
        return False
    return work.bytes_flushed is None


def _without_wear(subject: Subject) -> str:
    if _unflushed(subject):
        return "unknown: nothing reached the flash yet; what was written may be in the page cache"
    return "no end: nothing was written to the flash or erased"


def _amplification(work: RoundWork) -> str:
    share = work.a_byte_written()
    line = (
        f"{share['programmed'] or 0:.2f} bytes reach the flash and {share['erased'] or 0:.2f} are"
        " erased per byte written"
    )
    parts = [f"{name.replace('_', ' ')} {share[name]:.2f}" for name in CAUSES if share[name]]
    return f"{line}: {', '.join(parts)}" if parts else line


def digits_small(value: float) -> str:
    """A number with three digits, or with all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"


def row(subject: Subject, found: Estimate | None) -> list[str]:
    """One line of a list: name, target, erases per day, amplification, lifetime."""
    work = subject.workload
    few = (subject.observed.worst or 0) < FEW_ERASES
    ratio = work.a_byte_written()["programmed"] if work else None
    doubt = " *" if any("WARNING" in doubt for doubt in _doubts(subject, found)) else ""
    nothing = "unknown" if _unflushed(subject) else "no end"
    if work and work.failed:
        nothing = f"none: {work.failed:,} calls failed"
    elif work and not work.rounds_per_day:
        nothing = "how often? --rate"
    return [
        subject.name,
        subject.target or "",
        digits_small(found.mean_block_per_day or 0) if found else "0",
        "-" if few or not found else digits_small(found.worst_block_per_day or 0),
        "-" if ratio is None else f"{ratio:.2f}",
        (years_text(found.low, found.high) if found else nothing) + doubt,
    ]


def as_json(
    subject: Subject, found: Estimate | None, endurance: int, endurance_source: str
) -> dict[str, Any]:
    """All values; unknown is null. `years` is null where nothing wears."""
    seen, work = subject.observed, subject.workload
    return {
        "name": subject.name,
        "target": subject.target,
        "fs": subject.fs,
        "board": subject.board.name if subject.board else None,
        "endurance_cycles": endurance,
        "endurance_source": endurance_source,
        "blocks": seen.blocks,
        "blocks_erased": subject.blocks_erased,
        "erases": seen.erases,
        "worst_block_erases": seen.worst,
        "rounds_per_day": work.rounds_per_day if work else None,
        "round_s": work.seconds if work else None,
        "bytes_written": work.bytes_written if work else None,
        "bytes_programmed": work.bytes_programmed if work else None,
        "bytes_erased": work.bytes_erased if work else None,
        "bytes_flushed": work.bytes_flushed if work else None,
        "programs_per_day": _times(work.programs, work.rounds_per_day) if work else None,
        "erases_per_day": _times(seen.erases, DAY_S / seen.seconds if seen.seconds else None),
        "rounds_before": subject.rounds_before,
        "rounds_measured": subject.rounds,
        "used_share": seen.used,
        "unsynced_share": work.unsynced if work else None,
        "failed_calls": work.failed if work else None,
        "bytes_by_cause": dict(work.bytes_by_cause) if work and work.bytes_by_cause else None,
        "amplification": work.a_byte_written()["programmed"] if work else None,
        "mean_block_erases_per_day": found.mean_block_per_day if found else None,
        "worst_block_erases_per_day": found.worst_block_per_day if found else None,
        "years": {"low": found.low, "high": found.high} if found else None,
        "years_perfect_levelling": _json(found.perfect_levelling) if found else None,
        "years_levelling_seen": _json(found.levelling_seen) if found else None,
        "years_guessed_amplification": usual_guess_years(subject, endurance),
        "steady": found.steady if found else None,
        "assumes": notes(subject, found, endurance_source),
    }


def _times(count: float | None, rounds: float | None) -> float | None:
    return None if count is None or rounds is None else count * rounds


def _json(interval: Interval) -> dict[str, float | None]:
    return {"low": interval.low, "value": interval.value, "high": interval.high}
