"""The command `trace`: records what the layers of the stack do."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.base.errors import InputError, RunError
from flashbed.base.files import OPERATIONS_BYTES_MAX, read_characters, whole
from flashbed.base.locking import held
from flashbed.base.own_folder import check_folder
from flashbed.base.paths import shown
from flashbed.cli.boards import Erase, allowed, shown_target
from flashbed.cli.options import CaseId, Out, Set, known
from flashbed.cli.progress import bar, say
from flashbed.plan.stacks import one_stack
from flashbed.stack.names import escaped
from flashbed.targets.ssh.address import ChosenTarget, is_address, is_board, parse_address

if TYPE_CHECKING:
    from flashbed.bench.tracing.record import TraceOptions
    from flashbed.bench.tracing.trace import Trace
    from flashbed.targets.base import Program

__all__ = ["register"]

HERE = "host"
FORMATS = ("perfetto", "csv", "flashmon")
LEVELS = ("nand", "page", "mtd")
CASES_SHOWN = 3
FLASHMON_LOG = "flashmon.log"
TRACES = Path("results") / "trace"
PERFETTO = "trace.perfetto-trace"


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "trace",
        epilog="Examples: `flashbed trace --on emulator --flash --vfs --func 'jffs2_write_*' "
        "--set fs=jffs2 --set pattern=insert --set requests=500 --export perfetto sqlite/requests`"
        " · `flashbed trace --on uml --set fs=jffs2 my.ops` · "
        "`sudo flashbed trace --vfs -- tar xf archive.tar`",
    )(trace)


def trace(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WHAT...",
            help="An experiment or a file of operations; with --on host, a command to run.",
        ),
    ] = None,
    flash: Annotated[bool, typer.Option("--flash", help="Trace flash operations.")] = False,
    *,
    vfs: Annotated[bool, typer.Option("--vfs", help="Trace VFS and page cache.")] = False,
    func: Annotated[
        list[str] | None,
        typer.Option("--func", metavar="NAME", help="Trace kernel functions; * and ? match."),
    ] = None,
    on: Annotated[
        str,
        typer.Option("--on", metavar="TARGET", help="host, ssh://USER@HOST, emulator, uml, sim."),
    ] = HERE,
    settings: Set = None,
    case: CaseId = None,
    export: Annotated[
        list[str] | None,
        typer.Option(
            "--export",
            metavar="|".join(FORMATS),
            callback=known("--export", FORMATS),
            help="Also write this format.",
        ),
    ] = None,
    out: Out = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=0.001, help="Stop after this time, on host.")
    ] = None,
    points: Annotated[
        str | None,
        typer.Option(
            "--points",
            metavar="|".join(LEVELS),
            callback=known("--points", LEVELS),
            help="Which functions --flash probes.",
        ),
    ] = None,
    buffer_kib: Annotated[
        int | None,
        typer.Option("--buffer-kib", min=4, help="Event buffer of each processor."),
    ] = None,
    read: Annotated[
        Path | None,
        typer.Option(
            "--read", metavar="FILE", help="Read a board's stream or Flashmon's log instead."
        ),
    ] = None,
    cost: Annotated[
        bool, typer.Option("--cost", help="Also run the case without tracers, and compare.")
    ] = False,
    erase: Erase = None,
) -> None:
    """Traces the layers of the stack while something runs, keeps tables, prints a summary.

    Without --flash, --vfs or --func it traces the first two. docs/guide/trace.md lists what each
    target can trace. With --on ssh://USER@HOST, WHAT is a command; with --erase or a directory, a
    case.
    """
    from flashbed.bench.tracing.record import TraceOptions, trace_of_file
    from flashbed.targets import check_target

    plain = not (flash or vfs or func)
    options = TraceOptions(
        flash=flash or plain,
        vfs=vfs or plain,
        functions=tuple(func or ()),
        points=points,
        buffer_kib=buffer_kib,
    )
    words = what or []
    if read is not None:
        name = read.stem
        if words or settings or case or cost or on != HERE:
            raise InputError("--read: allows only --export and --out, and nothing to run")
        traced = trace_of_file(read)
    elif on == HERE or _is_bare_board(on, erase):
        _check_command(words)
        if settings or case or cost:
            raise InputError("--set, --case, --cost: not for a command; --on names a target")
        name = Path(words[0]).name if words else shown_target(on)
        traced = _command(words, options, seconds, on)
    else:
        check_target(on, HERE)
        target = allowed(on, erase)
        if len(words) != 1:
            raise InputError(f"--on {on}: takes one experiment or file of operations")
        program = _program(words[0], settings or [], case=case, on=target)
        name = program.case_id
        traced = _case(program, target, options, cost=cost)
    with held(out or TRACES, wait=True):
        _give(traced, _replaced(out) if out else _free(name), export or [])


_INPUTS = {".ops": "a file of operations", ".rec": "a recording", ".toml": "an experiment"}


def _check_command(words: Sequence[str]) -> None:
    """Raises `InputError` for a single word that is no command but an input of a target."""
    from flashbed.plan.experiment import experiment_names

    if len(words) != 1:
        return
    (word,) = words
    kind = _INPUTS.get(Path(word).suffix)
    if kind is None and shutil.which(word) is None and word in experiment_names():
        kind = "an experiment"
    if kind is not None:
        raise InputError(f"{word}: {kind}, not a command; --on says where to run it: --on sim")


def _replaced(out: Path) -> Path:
    """The folder of --out. Says so if it holds a trace, which is then replaced."""
    from flashbed.bench.tracing.trace import TABLES, facts_of, is_trace, is_written

    exports = (*(f"{table}.csv" for table in TABLES), FLASHMON_LOG, PERFETTO)
    if is_trace(out):
        check_folder(out, lambda name: name in exports or is_written(name))
        say(f"flashbed: {shown(out)}: replaces the trace of {facts_of(out).name}")
        for file in exports:
            (out / file).unlink(missing_ok=True)
    return out


def _free(name: str) -> Path:
    """A folder name in results/trace that is not taken yet."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name) or "trace"
    numbered = (TRACES / f"{plain}-{number}" for number in itertools.count(2))
    return next(
        place for place in itertools.chain([TRACES / plain], numbered) if not place.exists()
    )


def _is_bare_board(on: str, erase: str | None) -> bool:
    """Whether `on` is a board on which only a command may run: no partition, no directory."""
    return is_address(on) and parse_address(on).directory is None and erase is None


def _command(words: list[str], options: TraceOptions, seconds: float | None, on: str) -> Trace:
    from flashbed.bench.tracing.record import ThisMachine, TracingPlace, trace_command
    from flashbed.targets.unavailable import Unavailable

    if not words and not seconds:
        raise InputError("needs a command to trace, or --seconds")
    try:
        place: TracingPlace = ThisMachine()
        if on != HERE:
            from flashbed.targets.ssh.traced_board import TracedBoard

            place = TracedBoard(parse_address(on))
        return trace_command(place, words, options, seconds)
    except Unavailable as why:
        raise RunError(f"not traced: {why}") from None


def _case(program: Program, on: ChosenTarget, options: TraceOptions, *, cost: bool) -> Trace:
    from flashbed.bench.tracing.record import trace_case
    from flashbed.targets import load_target
    from flashbed.targets.emulator.emulator_target import EmulatorTarget
    from flashbed.targets.unavailable import Unavailable

    probes = is_board(on) or str(on).startswith("emulator")
    target = EmulatorTarget(wait="busy") if on == "emulator" else load_target(on)
    if not probes and not options.flash:
        raise RunError(f"{on}: no kprobes there: only --flash can be traced")
    if not probes and (options.vfs or options.functions):
        say(f"flashbed: {on}: no kprobes there: the VFS and functions are not traced")
    try:
        with bar(f"tracing on {shown_target(on)}") as progress:
            return trace_case(
                target, program, options, probes=probes, cost=cost,
                progress=lambda text, done: progress(text, done, None),
            )  # fmt: skip
    except Unavailable as why:
        raise RunError(f"{shown_target(on)} not traced: {why}") from None


def _program(
    name: str,
    settings: list[str],
    *,
    case: str | None,
    on: ChosenTarget,
) -> Program:
    """The one case that the options choose."""
    from flashbed.plan.experiment import load_experiment
    from flashbed.plan.narrowing import parse_settings, plan
    from flashbed.running.programs import programs_of

    if name.endswith(".ops"):
        if case:
            raise InputError("--case: of an experiment, not of a file of operations")
        return _of_operations(Path(name), settings)
    experiment = load_experiment(name)
    planned = plan(experiment, parse_settings(settings))
    cases = [
        item.case for item in planned if is_board(on) or str(on).partition("-")[0] in item.targets
    ]
    if case is not None:
        cases = [found for found in cases if found.case_id == case]
    if len(cases) != 1:
        some = ", ".join(found.case_id for found in cases[:CASES_SHOWN])
        more = ", …" if len(cases) > CASES_SHOWN else ""
        raise InputError(
            f"{name}: {len(cases)} cases on {on}, only one can be traced; --set and --case choose"
            f"{f': {some}{more}' if cases else ''}"
        )
    (program,) = programs_of(experiment, cases)
    return replace(program, record_flush=False)  # a trace has no table for flushes


def _of_operations(path: Path, settings: list[str]) -> Program:
    """A file of operations as a case: the lines before `prepared` prepare it."""
    from flashbed._sim import FormatError, body_offset
    from flashbed.program.operations import header_of
    from flashbed.targets.base import Program

    stack = one_stack(settings, raw=True, disks=True)
    try:
        text = read_characters(path, OPERATIONS_BYTES_MAX)
        at = body_offset(text)
    except FormatError as why:
        raise InputError(f"{shown(path)}:{why.line}: {why.code}: {why.detail}") from None
    header = header_of(text)
    prepare, body = f"{header}\nprepared\n", text
    if at:
        prepare = text[:at]
        # Drops both texts before the file is read again: two long ones may not fit into memory.
        del text, body
        body = read_characters(path, OPERATIONS_BYTES_MAX, begin=f"{header}\n", skip=at)
    return Program(
        case_id=path.stem,
        stack=stack,
        prepare=prepare,
        body=body,
    )


def _give(traced: Trace, out: Path, formats: list[str]) -> None:
    """Keeps the trace, writes the requested formats beside it, prints the summary."""
    import polars as pl

    from flashbed.base.frames import as_csv, pieces
    from flashbed.bench.tracing.flashmon_log import written_log
    from flashbed.bench.tracing.summary import lines
    from flashbed.bench.tracing.trace import TABLES, LongTrace, keep

    keep(traced, out)
    if isinstance(traced, LongTrace):
        # Scanning one merged file takes less memory than scanning the pieces it was made of.
        kept = {name: pl.scan_parquet(out / f"{name}.parquet") for name in traced.long}
        traced = replace(traced, long=kept)
    if "csv" in formats:
        for name in TABLES:
            with whole(out / f"{name}.csv") as new, new.open("wb") as file:
                for number, piece in enumerate(pieces(pl.scan_parquet(out / f"{name}.parquet"))):
                    as_csv(piece).write_csv(file, include_header=number == 0)
    if "flashmon" in formats:
        with whole(out / FLASHMON_LOG) as new, new.open("w", encoding="utf-8") as log:
            for piece in pieces(pl.scan_parquet(out / "flash.parquet")):
                log.write(written_log(piece))
    if "perfetto" in formats:
        from flashbed.bench.tracing.perfetto import write_perfetto

        with whole(out / PERFETTO) as new:
            write_perfetto(traced, new)
    for line in lines(traced):
        print(line)
    print(escaped(shown(out.absolute())))
    if "not_probed" in traced.facts.info:
        say(f"flashbed: not probed: {traced.facts.info['not_probed'].replace(',', ', ')}")
    lost = traced.facts.lost
    if lost is None:
        raise RunError("the trace was cut off; what arrived is kept")
    if lost:
        raise RunError(f"{lost} events were lost; raise --buffer-kib")
