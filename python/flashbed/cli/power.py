"""The commands of power: fit reads a recorded current, draw plots power over time."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.base.errors import InputError, RunError
from flashbed.base.files import output, own_file, read_text
from flashbed.base.paths import shown
from flashbed.cli.options import OUT, CaseId, Format
from flashbed.cli.progress import say
from flashbed.stack.names import escaped

if TYPE_CHECKING:
    from flashbed.answers.power.energy_fit import RailFit, WindowFit
    from flashbed.answers.power.measure import ReadingOptions, RecordingFit

__all__ = ["register"]

WINDOWS_SHOWN = 12
EPOCH_S = 1e6

Traces = Annotated[
    list[Path],
    typer.Argument(
        metavar="TRACE...",
        help="A recording: CSV with units in its header (also of Otii, Joulescope, sigrok, hwmon"
        " or iio), sigrok .sr, Joulescope .jls.",
    ),
]
RailProduct = Annotated[
    list[str] | None,
    typer.Option(
        "--rail", metavar="NAME=PRODUCT", help="How to compute a rail's power: `cpu=I_cpu*1.2V`,"
        " `mem=shunt/0.1ohm*3.3V`. Default: power columns, or each current times its voltage.",
    ),
]  # fmt: skip
Unit = Annotated[
    list[str] | None,
    typer.Option("--unit", metavar="CHANNEL=UNIT", help="A unit the file does not state: A0=mV."),
]
Rate = Annotated[
    str | None, typer.Option("--rate", metavar="HZ", help="Sample rate, if it has no times: 10kHz.")
]
Marker = Annotated[
    str | None,
    typer.Option("--marker", metavar="CHANNEL", help="High while the load runs; !D0: low."),
]
WindowFile = Annotated[
    Path | None,
    typer.Option(
        "--windows", metavar="FILE", help="When the load ran: CSV of start_s,end_s[,label], or the"
        " requests table of a run.",
    ),
]  # fmt: skip
Offset = Annotated[
    str,
    typer.Option(
        "--offset", metavar="SECONDS|edge", help="Added to the times of --windows; edge: aligns the"
        " first window with the first pulse of load.",
    ),
]  # fmt: skip
Accuracy = Annotated[
    float,
    typer.Option("--accuracy", metavar="PERCENT", help="The instrument's standard uncertainty."),
]
BoardName = Annotated[
    str | None, typer.Option("--board", metavar="NAME", help="The profile to write to.")
]
Write = Annotated[bool, typer.Option("--write", help="Write the mean powers into the profile.")]
Activity = Annotated[
    str | None,
    typer.Option("--activity", metavar="read|write|select", help="With --write: the load."),
]
Fs = Annotated[str | None, typer.Option("--fs", metavar="FS", help="With --write: file system.")]
Pattern = Annotated[
    str | None, typer.Option("--pattern", metavar="WORD", help="With --write: sequential, random.")
]
ReadAhead = Annotated[
    str | None, typer.Option("--read-ahead", metavar="on|off", help="With --write: read-ahead.")
]


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    power = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        help="Works out power and energy from recordings of current, and draws power over time"
        " (docs/reference/power-recording.md).",
    )
    power.command(
        "fit",
        epilog="Examples: `flashbed power fit trace.csv` · "
        "`flashbed power fit trace.sr --unit A0=V --rail cpu=A0/0.1ohm*1.2V --marker D0` · "
        "`flashbed power fit trace.jls --windows requests.csv --offset edge` · "
        "`flashbed power fit reads.csv --board emulated --write --activity read --fs jffs2`",
    )(fit)
    power.command(
        "draw",
        epilog="Examples: `flashbed power draw results/readahead/figure5` · "
        "`flashbed power draw results/readahead/figure5 --measured trace.csv --out power.html`",
    )(draw)
    app.add_typer(power, name="power")


def fit(
    traces: Traces,
    rail: RailProduct = None,
    *,
    unit: Unit = None,
    rate: Rate = None,
    marker: Marker = None,
    windows: WindowFile = None,
    offset: Offset = "0",
    accuracy: Accuracy = 0.0,
    board: BoardName = None,
    write: Write = False,
    activity: Activity = None,
    fs: Fs = None,
    pattern: Pattern = None,
    read_ahead: ReadAhead = None,
    output: Format = "text",
) -> None:
    """Fits the mean power above idle of each rail and the energy of each window.

    Each value has an uncertainty. A window is where a marker is high, where the load pulses, or
    what --windows lists. Exits with status 1 and one line if the recording does not allow a fit:
    no idle phase, a clipped signal, a gap, too much noise.
    """
    from flashbed.answers.power.measure import measure

    condition = {"activity": activity, "fs": fs, "pattern": pattern, "read_ahead": read_ahead}
    _check(condition, board, write=write)
    reading = _reading_options(
        rail, unit, rate=rate, marker=marker, windows=windows, offset=offset, accuracy=accuracy
    )
    found = [measure(path, reading) for path in traces]
    if output == "json":
        print(json.dumps({"power": [each.as_json() for each in found]}, indent=1))
    else:
        for each in found:
            _show(each, reading.accuracy)
    for each in found:
        _tell_left_out(each)
    for each in found:
        for rail_fit in each.fits:
            if rail_fit.mean_w is None:
                raise RunError(f"{each.trace.name}: {rail_fit.name}: {rail_fit.problem}")
    if write:
        given = {key: value for key, value in condition.items() if value is not None}
        _write(str(board), given, found, reading.accuracy)


def draw(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The results of a run.")],
    case: CaseId = None,
    *, measured: Annotated[
        Path | None,
        typer.Option(
            "--measured", metavar="TRACE", help="A recording to draw under it: its first window,"
            " above idle, from the case's begin."
        ),
    ] = None,
    rail: RailProduct = None,
    unit: Unit = None,
    rate: Rate = None,
    marker: Marker = None,
    component: Annotated[
        bool, typer.Option("--component", help="Split by component; needs --trace flash.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(*OUT, metavar="FILE", help=".svg or .html; default DIR/power.svg."),
    ] = None,
) -> None:  # fmt: skip
    """Plots the power of cases over time, above a measured recording if one is given."""
    from flashbed.report.power_page import draw_power

    file = out or own_file(directory / "power.svg")
    if file.suffix not in (".svg", ".html"):
        raise InputError(f"--out {file}: .svg or .html")
    convention = "component" if component else "paper"
    reading = None
    if measured is not None:
        reading = (
            measured,
            _reading_options(
                rail, unit, rate=rate, marker=marker, windows=None, offset="0", accuracy=0.0
            ),
        )
    elif rail or unit or rate or marker:
        raise InputError("--rail, --unit, --rate, --marker: only with --measured")
    draw_power(directory, case, convention=convention, recorded=reading, out=file)
    print(escaped(shown(file)))


def _check(condition: dict[str, str | None], board: str | None, *, write: bool) -> None:
    if write and (board is None or condition["activity"] is None):
        raise InputError("--write: needs --board and --activity")
    if not write and (board is not None or any(condition.values())):
        raise InputError("--board, --activity, --fs, --pattern, --read-ahead: only with --write")
    for name, words in (("activity", ("read", "write", "select")), ("read_ahead", ("on", "off"))):
        if condition[name] not in (None, *words):
            raise InputError(f"--{name.replace('_', '-')} {condition[name]}: {' or '.join(words)}")


def _reading_options(
    rail: Sequence[str] | None, unit: Sequence[str] | None, *, rate: str | None, marker: str | None,
    windows: Path | None, offset: str, accuracy: float,
) -> ReadingOptions:  # fmt: skip
    from flashbed.answers.power.measure import ReadingOptions
    from flashbed.answers.power.recording import parse_rails
    from flashbed.answers.power.units import frequency_hz

    if marker and windows:
        raise InputError("--marker and --windows: one of them")
    hertz = None if rate is None else frequency_hz(rate)
    if rate is not None and hertz is None:
        raise InputError(f"--rate {rate}: a frequency, as in 10kHz")
    units = dict(text.partition("=")[::2] for text in unit or [])
    for channel, name in units.items():
        if not name:
            raise InputError(f"--unit {channel}: CHANNEL=UNIT, as in A0=mV")
    if not 0 <= accuracy < 100:
        raise InputError(f"--accuracy {accuracy}: a percentage")
    return ReadingOptions(
        rails=parse_rails(rail or []), units=units, rate_hz=hertz, marker=marker,
        windows=windows, offset=_offset(offset), accuracy=accuracy / 100,
    )  # fmt: skip


def _offset(text: str) -> float | str:
    if text == "edge":
        return text
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise InputError(f"--offset {text}: seconds, or edge")
    return seconds


def _show(found: RecordingFit, accuracy: float) -> None:
    trace = found.trace
    windows = found.fits[0].windows
    rate = f"{1 / trace.step_s:,.6g}"
    print(f"{trace.name}: {trace.time_s.size:,} samples at {rate} Hz, {len(windows)} windows by"
          f" {found.by}")  # fmt: skip
    print(f"{'rail':10} {'idle (mW)':>22} {'above idle (mW)':>22} {'energy (mJ)':>22} {'S/N':>7}")
    for fit in found.fits:
        print(_row(fit, accuracy))
        if 1 < len(windows) <= WINDOWS_SHOWN:
            for number, window in enumerate(fit.windows, start=1):
                print(_window_row(number, window, trace.time_s[0]))


def _row(fit: RailFit, accuracy: float) -> str:
    known = [(each.energy_j or 0.0, each.energy_u_j or 0.0) for each in fit.windows
             if each.energy_j is not None]  # fmt: skip
    energy_j = sum(each_j for each_j, _ in known)
    # What the instrument is off by is the same in all windows.
    squares = [max(0.0, u_j**2 - (accuracy * each_j) ** 2) for each_j, u_j in known]
    energy_u_j = math.hypot(math.sqrt(sum(squares)), accuracy * energy_j)
    energy = _pair(energy_j, energy_u_j) if known else "-"
    snr = "-" if fit.snr_db is None else f"{fit.snr_db:.0f} dB"
    return (
        f"{fit.name:10} {_pair(fit.idle_w, fit.idle_u_w):>22} {_pair(fit.mean_w, fit.mean_u_w):>22}"
        f" {energy:>22} {snr:>7}"
    )


def _window_row(number: int, window: WindowFit, first_s: float) -> str:
    """A window's row; times since 1970 are shown relative to the recording's begin."""
    name = f"  {number} {window.label}".rstrip()
    zero_s = first_s if abs(first_s) > EPOCH_S else 0.0
    when = f"{window.begin_s - zero_s:.6g} to {window.end_s - zero_s:.6g} s"
    return (
        f"{name:10} {when:>22} {_pair(window.mean_w, window.mean_u_w):>22}"
        f" {_pair(window.energy_j, window.energy_u_j):>22}"
    )


def _pair(value: float | None, uncertainty: float | None) -> str:
    """A value in thousandths, rounded so that its uncertainty keeps two digits."""
    if value is None or uncertainty is None:
        return "-"
    value, uncertainty = value * 1e3, uncertainty * 1e3
    digits = 3 if uncertainty <= 0 else 1 - math.floor(math.log10(uncertainty))
    digits = min(max(digits, 0), 6)
    return f"{value:.{digits}f} +- {uncertainty:.{digits}f}"


def _tell_left_out(found: RecordingFit) -> None:
    """Prints one line per rail for the windows that were left out of its fit."""
    for fit in found.fits:
        left = [(n, each) for n, each in enumerate(fit.windows, start=1) if each.problem]
        if left and len(left) < len(fit.windows):
            number, first = left[0]
            more = f" (and {len(left) - 1} more)" if len(left) > 1 else ""
            say(f"power: {found.trace.name}: {fit.name}: window {number} is left out{more}:"
                f" {first.problem}")  # fmt: skip


def _write(
    board: str, condition: dict[str, str], found: Sequence[RecordingFit], accuracy: float
) -> None:
    """Writes the mean powers over all recordings into the profile, whole or not at all."""
    from flashbed.answers.power.board_energy import with_powers
    from flashbed.answers.power.energy_fit import mean_of
    from flashbed.stack.profiles import load_board

    names = [fit.name for fit in found[0].fits]
    if any([fit.name for fit in each.fits] != names for each in found):
        raise InputError("--write: the recordings have different rails")
    powers, said = {}, []
    for at, name in enumerate(names):
        windows = [window for each in found for window in each.fits[at].windows]
        mean_w, mean_u_w = mean_of(windows, accuracy)
        powers[name] = mean_w or 0.0
        said.append(f"{name} {_pair(mean_w, mean_u_w)} mW")
    count = sum(w.energy_j is not None for each in found for w in each.fits[0].windows)
    files = ", ".join(Path(each.trace.name).name for each in found)
    source = f"flashbed power fit {files}: {', '.join(said)} above idle, {count} windows by"
    profile = load_board(board)
    before = read_text(profile.path)
    text = with_powers(
        before, profile.path, condition=condition, powers_w=powers, said=f"{source} {found[0].by}"
    )
    with output(profile.path) as new:
        new.write_text(text, encoding="utf-8")
    say(f"power: wrote [energy] of {shown(profile.path)}")
