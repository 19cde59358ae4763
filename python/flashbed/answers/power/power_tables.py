"""Text tables of instruments: plain CSV, exports of sigrok, Otii and Joulescope, sensor logs.

A table has comments, a header with units, and rows of numbers. Comments begin with `#`, `;` or `%`.
A comment directly above the rows with as many fields is the header. Fields are separated by commas,
tabs or semicolons (then `,` is the decimal point). sigrok puts names and rate into its comments
(libsigrok src/output/csv.c).
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from flashbed.answers.power.recording import Channel, Floats, PowerRecording, recording
from flashbed.answers.power.units import LOGIC, TIME, Column, column, frequency_hz, quantity
from flashbed.base.errors import InputError

__all__ = ["Windows", "read_table", "read_windows"]

_COMMENTS = ("#", ";", "%")
_SCALE = re.compile(r"[#;%]\s*(in_[a-z]+\d*)_scale\s*[=:]\s*([0-9.eE+-]+)\s*$")


@dataclass(frozen=True)
class _Preamble:
    """Everything above the rows."""

    header: list[str]
    separator: str
    first_row: int
    comments: list[str]


def read_table(
    name: str, data: bytes, units: Mapping[str, str], rate_hz: float | None
) -> PowerRecording:
    """A text table as a recording. `units` are for columns without one. Raises `InputError`."""
    text = data.decode("utf-8-sig", "replace")
    preamble = _preamble(name, text)
    columns = _columns(preamble, units)
    values = _values(name, text, preamble)
    sampled_hz = rate_hz or _sampled_hz(preamble.comments)
    time_s = _time_s(name, columns, values, sampled_hz)
    channels = []
    for at, each in enumerate(columns):
        if each.unit in ("V", "A", "W"):
            channels.append(Channel(each.name, each.unit, values[at] * each.factor))
        elif each.unit in (LOGIC, ""):
            channels += _two_levels(each, values[at])
    if not any(channel.unit != LOGIC for channel in channels):
        there = ", ".join(field.strip() for field in preamble.header)
        raise InputError(
            f"{name}: no column with a unit of V, A or W, as in `I_cpu (mA)`; there are {there}"
            " (--unit COLUMN=UNIT gives a column its unit)"
        )
    return recording(name, time_s, channels)


def _preamble(name: str, text: str) -> _Preamble:
    comments: list[str] = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        separator = _separator(line)
        fields = line.split(separator)
        if line.startswith(_COMMENTS) and not _numeric(fields):
            comments.append(line)
            continue
        if not _numeric(fields):
            return _Preamble(fields, separator, number + 1, comments)
        above = comments[-1].lstrip("".join(_COMMENTS)).split(separator) if comments else []
        if len(above) != len(fields):
            raise InputError(f"{name}: line {number + 1}: no header above it that names units")
        return _Preamble(above, separator, number, comments[:-1])
    raise InputError(f"{name}: no table in it")


def _separator(line: str) -> str:
    plain = re.sub(r'"[^"]*"', "", line.lstrip("".join(_COMMENTS)))
    counts = {sign: plain.count(sign) for sign in ("\t", ";", ",")}
    best = max(counts, key=lambda sign: counts[sign])
    return ";" if counts[";"] and counts["\t"] == 0 else best


def _numeric(fields: Sequence[str]) -> bool:
    """Whether a line's fields are numbers or empty."""
    words = [field.strip().strip('"').replace(",", ".") for field in fields]
    known = [word for word in words if word]
    return bool(known) and all(re.fullmatch(_FLOAT, word) for word in known)


_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|nan|NaN|-?inf")


def _columns(preamble: _Preamble, units: Mapping[str, str]) -> list[Column]:
    scales = {}
    for comment in preamble.comments:
        scale = _SCALE.match(comment)
        if scale and re.fullmatch(_FLOAT, scale[2]):
            scales[scale[1]] = float(scale[2])
    columns = [column(field, scales) for field in preamble.header]
    columns = _with_sigrok(columns, preamble.comments)
    known = {each.name for each in columns}
    for wanted, unit in units.items():
        given = quantity(unit)
        if given is None or wanted not in known:
            why = "no such unit" if given is None else f"no such column; there are {sorted(known)}"
            raise InputError(f"--unit {wanted}={unit}: {why}")
        columns = [
            replace(each, unit=given[0], factor=given[1]) if each.name == wanted else each
            for each in columns
        ]
    return columns


def _with_sigrok(columns: list[Column], comments: Sequence[str]) -> list[Column]:
    """Adds names from sigrok's list of channels, if the header has units only."""
    sampled_hz = _sampled_hz(comments)
    if columns and columns[0].name == "Time" and sampled_hz:
        # Its unit is the first of 1, m, u, n, ... in which a sample is at least 1.
        thousands = next(power for power in range(6) if 1000**power >= sampled_hz or power == 5)
        columns = [Column("Time", TIME, 1000.0**-thousands), *columns[1:]]
    listed = next((line for line in comments if re.match(r"; Channels \(\d+/\d+\):", line)), None)
    if listed is None:
        return columns
    names = [each.strip() for each in listed.partition(":")[2].split(",")]
    timed = bool(columns) and columns[0].unit == TIME
    measured = columns[1:] if timed else columns
    if len(names) != len(measured) or not any(each.unit for each in measured):
        return columns
    named = [replace(each, name=name) for each, name in zip(measured, names, strict=True)]
    return columns[:1] + named if timed else named


def _sampled_hz(comments: Sequence[str]) -> float | None:
    for line in comments:
        rate = re.match(r"; Samplerate: (.*)", line)
        if rate:
            return frequency_hz(rate[1])
    return None


def _values(name: str, text: str, preamble: _Preamble) -> list[Floats]:
    """The rows as columns of numbers; an empty field is NaN. Raises `InputError`."""
    width = len(preamble.header)
    try:
        frame = pl.read_csv(
            io.BytesIO(text.encode()),
            has_header=False,
            skip_rows=preamble.first_row,
            separator=preamble.separator,
            schema={str(at): pl.String() for at in range(width)},
            comment_prefix=None,
            quote_char='"',
        )
    except pl.exceptions.PolarsError:
        raise InputError(f"{name}: rows without the {width} fields of the header") from None
    found = []
    for at in range(width):
        words = frame[str(at)].str.strip_chars()
        if preamble.separator == ";":
            words = words.str.replace(",", ".", literal=True)
        numbers = words.cast(pl.Float64, strict=False)
        wrong = numbers.is_null() & (words != "") & words.is_not_null()
        if wrong.any() and not numbers.is_not_null().any():
            numbers = pl.Series([None] * frame.height, dtype=pl.Float64)  # a column of text
        elif wrong.any():
            row = int(wrong.arg_true()[0])
            raise InputError(
                f"{name}: line {preamble.first_row + row + 1}: {words[row]!r} in column"
                f" {preamble.header[at].strip()!r} is not a number"
            )
        found.append(numbers.fill_null(float("nan")).to_numpy().astype(np.float64))
    return found


def _time_s(
    name: str, columns: Sequence[Column], values: Sequence[Floats], sampled_hz: float | None
) -> Floats:
    for at, each in enumerate(columns):
        if each.unit == TIME:
            return values[at] * each.factor
    if sampled_hz is None:
        raise InputError(
            f"{name}: no column of time with a unit, as in `time (ms)`; --rate HZ gives the"
            " sample rate"
        )
    return np.arange(len(values[0]), dtype=np.float64) / sampled_hz


def _two_levels(each: Column, values: Floats) -> list[Channel]:
    """A channel that can be a marker: two levels, the lower as 0."""
    levels = np.unique(values[np.isfinite(values)])
    if levels.size == 0 or levels.size > 2:
        return []
    high = levels[-1] if levels.size == 2 or levels[-1] != 0 else 1.0
    return [Channel(each.name, LOGIC, np.where(np.isfinite(values), values == high, np.nan))]


Windows = list[tuple[float, float, str]]
"""Begin and end in seconds of the recording's time, and a label."""


def read_windows(name: str, data: bytes) -> Windows:
    """Reads windows: columns `start`, and `end`, `duration` or `latency`, with units.

    It also reads the `requests` table of a run, as `flashbed table DIR requests` prints it. Raises
    `InputError`.
    """
    try:
        frame = pl.read_csv(io.BytesIO(data), infer_schema=False)
    except pl.exceptions.PolarsError:
        raise InputError(f"{name}: not a CSV file") from None
    if "case_id" in frame.columns and frame["case_id"].n_unique() > 1:
        raise InputError(
            f"{name}: requests of {frame['case_id'].n_unique()} cases; a recording is of one"
        )
    columns = {at: column(at, {}) for at in frame.columns}
    timed = {each.name.lower(): at for at, each in columns.items() if each.unit == TIME}
    ends = [word for word in ("end", "duration", "latency") if word in timed]
    if "start" not in timed or not ends:
        raise InputError(
            f"{name}: no columns start and end (or duration, latency) with units, as in start_s"
        )
    numbers = {
        word: frame[timed[word]].cast(pl.Float64, strict=False) * columns[timed[word]].factor
        for word in ("start", ends[0])
    }
    start_s, end_s = numbers["start"], numbers[ends[0]]
    if start_s.null_count() or end_s.null_count():
        raise InputError(f"{name}: a row whose begin or end is not a number")
    if ends[0] != "end":
        end_s = start_s + end_s
    named = next((at for at in ("label", "op") if at in frame.columns), None)
    labels = frame[named].fill_null("").to_list() if named else [""] * frame.height
    rows = [row for row in zip(start_s, end_s, labels, strict=True) if row[2] != "pause"]
    if not rows or any(not end > start for start, end, _ in rows):
        raise InputError(f"{name}: no window in it, or one that ends before it begins")
    return sorted(rows)
