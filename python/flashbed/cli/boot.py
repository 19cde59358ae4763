"""The command `boot`: how long a product takes from attaching its flash to its first files."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flashbed.base.errors import Interrupted, RunError
from flashbed.base.human import aligned, bytes_text, count_text, time_text
from flashbed.cli.options import Dump, Format, Image, Put, StackSet, Volume, known
from flashbed.cli.progress import say
from flashbed.cli.remarks import say_remarks
from flashbed.plan.stacks import stacks
from flashbed.stack.names import escaped

if TYPE_CHECKING:
    from flashbed.api.booting import CutFile, Cuts, MeasuredBoot

__all__ = ["register"]

TARGETS = ("emulator", "uml", "sim", "sim-chip")
CUTS_MAX = 100_000
_WHERE = {"emulator": "emulated board", "sim": "simulated"}
_BAR = 32
_SLOWEST = 5


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "boot",
        context_settings={"allow_interspersed_args": False},
        epilog="Examples: `flashbed boot --set layout=squashfs-overlay-ubifs --image rootfs/"
        " --read first-files.txt` · `flashbed boot --set layout=squashfs-overlay-ubifs"
        " --set layout.block_kib=4,64,256 --image rootfs/ --read first-files.txt`"
        " · `flashbed boot --set chip=W25N01GV --set layout.fastmap=0,1 …`",
    )(boot)


Before = Annotated[
    list[str] | None,
    typer.Argument(metavar="COMMAND...", help="What the device runs before; on uml."),
]
On = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="TARGET",
        help="emulator, sim: the processor's time too; uml, sim-chip: the flash's alone.",
        callback=known("--on", TARGETS),
    ),
]
Read = Annotated[
    Path | None,
    typer.Option(
        "--read",
        metavar="LIST",
        help="Files that it reads first: a path a line, or a log of strace.",
    ),
]
Off = Annotated[
    str,
    typer.Option(
        "--off",
        metavar="HOW",
        help="clean: it was unmounted; unclean: it lost its power as COMMAND ended.",
        callback=known("--off", ("clean", "unclean")),
    ),
]
NumberOfCuts = Annotated[
    int,
    typer.Option(
        "--cuts",
        metavar="N",
        min=0,
        max=CUTS_MAX,
        show_default=False,
        help="Boot after N power cuts while COMMAND runs: what boots, which files are there.",
    ),
]


def boot(
    words: Before = None,
    on: On = "emulator",
    *,
    settings: StackSet = None,
    image: Image = None,
    dump: Dump = None,
    volume: Volume = None,
    put: Put = None,
    read: Read = None,
    off: Off = "clean",
    cuts: NumberOfCuts = 0,
    output: Format = "text",
) -> None:
    """Says how long a boot takes from the flash on: attach, mounts, the first files.

    A boot loader and the start of the kernel come before and are not in it.
    docs/guide/boot-time.md is the guide.
    """
    from flashbed.api.booting import boots, files_of
    from flashbed.api.exec_options import ExecOptions
    from flashbed.targets.unavailable import Unavailable

    options = ExecOptions(
        words=words or [], on=on, put=put or [], env=[], memory=None, patience=None, keep=None,
        image=image or [], dump=dump, volume=volume,
    )  # fmt: skip
    found = stacks(settings or [], disks=False)
    say_remarks(one.stack.board for one in found)
    files = [] if read is None else files_of(read)
    try:
        booted = boots(options, found, off=off, files=files, cuts=cuts, say=_note)
    except Unavailable as why:
        raise RunError(str(why)) from None
    except KeyboardInterrupt:
        raise Interrupted("interrupted; nothing is kept of a boot") from None
    if output == "json":
        print(json.dumps({"boots": [_json(each) for each in booted]}, indent=1))
    else:
        for line in _text(booted):
            print(escaped(line))
    sys.exit(RunError.exit_status if any(each.failed or each.unread for each in booted) else 0)


def _note(what: str) -> None:
    say(f"flashbed: {what}")


def _text(booted: Sequence[MeasuredBoot]) -> list[str]:
    """A table of the parts for one stack; for several a row each, and what failed."""
    whole = [each for each in booted if each.failed is None]
    lines = []
    if whole and whole[0].cuts is not None:
        for each in whole:
            lines += _of_cuts(each, _choice(each, booted))
    elif len(booted) == 1 and whole:
        lines = [_headline(whole[0]), *_parts(whole[0]), *_slowest(whole[0])]
    elif whole:
        lines = [f"{len(booted)} stacks ({_where(whole[0])})", *_compared(whole)]
    for each in booted:
        name = _choice(each, booted) or each.request.fs
        if each.failed is not None:
            lines.append(f"not booted: {name}: {each.failed}")
        lines += [f"not read on {name}: {one.path}: {one.read}" for one in each.unread]
    return lines


def _where(booted: MeasuredBoot) -> str:
    where = _WHERE.get(booted.request.where, "user-mode")
    both = "the processor's time and the flash's"
    whose = both if booted.has_software_time else "the flash's time alone"
    return f"Linux {booted.request.kernel}, {where}: {whose}"


def _headline(booted: MeasuredBoot) -> str:
    request = booted.request
    what = request.stack.layout.name if request.stack.layout else request.fs
    return (
        f"{what} on {request.board.name} is up after {time_text(booted.time_ns)} ({_where(booted)})"
    )


def _of_cuts(booted: MeasuredBoot, choice: str) -> list[str]:
    """What boots after cuts, and what of each file is there."""
    cuts, request = booted.cuts, booted.request
    assert cuts is not None
    what = choice or (request.stack.layout.name if request.stack.layout else request.fs)
    where = "emulated board" if request.where == "emulator" else "user-mode"
    lines = [
        f"{what} on {request.board.name}: the power is cut in {cuts.count:,} of the"
        f" {cuts.changes:,} changes that {request.name} makes (Linux {request.kernel}, {where})"
    ]
    times = cuts.times_ns
    took = f": attach and mounts take {_range(times)}" if times else ""
    lines.append(f"  boots after {len(times):,} of {cuts.count:,} cuts{took}")
    for why, count in sorted(cuts.failed.items(), key=lambda each: (-each[1], each[0])):
        lines.append(f"  does not boot after {count:,}: {why}")
    if cuts.least_bytes is not None:
        before, after, least = map(
            bytes_text, (cuts.before_bytes, cuts.after_bytes, cuts.least_bytes)
        )
        lines.append(f"  df has {before} before, {after} after, and at least {least} after a cut")
    rows = [[each.path, _content(each)] for each in cuts.files]
    return [*lines, *(f"  {line}" for line in aligned(rows))]


def _range(times: Sequence[int]) -> str:
    least, most = time_text(min(times)), time_text(max(times))
    return least if least == most else f"{least} to {most}"


def _content(file: CutFile) -> str:
    """In how many cuts it is what."""
    told = {"unchanged" if file.same else "old": file.old, "new": file.new,
            "missing": file.missing, "neither old nor new": file.other}  # fmt: skip
    return ", ".join(f"{word} {count:,}" for word, count in told.items() if count) or "-"


def _parts(booted: MeasuredBoot) -> list[str]:
    """A row a part: its time, a bar that begins where it begins, what the chip does."""
    rows = [["", "elapsed", "chip busy", "page reads", "page writes", "erases", ""]]
    begins, whole = 0, booted.time_ns or 1
    for part in booted.parts:
        counts = (part.chip.reads, part.chip.programs, part.chip.erases)
        from_, to = (round(_BAR * at / whole) for at in (begins, begins + part.time_ns))
        bar = " " * from_ + "#" * max(1, to - from_)
        times = (time_text(part.time_ns), time_text(part.chip.busy_ns))
        rows.append([part.name, *times, *map(count_text, counts), bar])
        begins += part.time_ns
    chip = booted.chip
    total = map(count_text, (chip.reads, chip.programs, chip.erases))
    rows.append(["in all", time_text(booted.time_ns), time_text(chip.busy_ns), *total, ""])
    return [f"  {line}" for line in aligned(rows)]


def _slowest(booted: MeasuredBoot) -> list[str]:
    """The files that took longest."""
    read = [(each.path, each.read) for each in booted.files if not isinstance(each.read, str)]
    if len(read) < 2:
        return []
    most = sorted(read, key=lambda each: (-each[1].ns, each[0]))[:_SLOWEST]
    rows = [
        [path, time_text(each.ns), bytes_text(each.bytes),
         f"{count_text(each.chip.reads)} reads" if each.chip else ""]
        for path, each in most
    ]  # fmt: skip
    return ["  slowest to read:", *(f"    {line}" for line in aligned(rows))]


def _compared(booted: Sequence[MeasuredBoot]) -> list[str]:
    """A row a stack, the fastest first, with the parts in columns."""
    names = list(dict.fromkeys(_column(part.name) for each in booted for part in each.parts))
    rows = [["", "up after", "chip busy", "page reads", *names]]
    for each in sorted(booted, key=lambda each: each.time_ns):
        times: dict[str, int] = {}
        for part in each.parts:
            times[_column(part.name)] = times.get(_column(part.name), 0) + part.time_ns
        rows.append([
            _choice(each, booted), time_text(each.time_ns), time_text(each.chip.busy_ns),
            count_text(each.chip.reads), *(time_text(times.get(name)) for name in names),
        ])  # fmt: skip
    return [f"  {line}" for line in aligned(rows)]


def _column(part: str) -> str:
    """Stacks mount different file systems: their times are added up."""
    return "mounts" if part.startswith("mount ") or part == "overlay" else part


def _choice(one: MeasuredBoot, of: Sequence[MeasuredBoot]) -> str:
    """What is set for this stack and not for all."""
    told = [dict(each.request.changes) for each in of]
    own = dict(one.request.changes)
    varying = [name for name in own if len({str(each.get(name)) for each in told}) > 1]
    return ", ".join(f"{name}={own[name]}" for name in varying)


def _json(booted: MeasuredBoot) -> dict[str, Any]:
    request = booted.request
    return {
        "fs": request.fs,
        "layout": request.stack.layout.name if request.stack.layout else None,
        "board": request.board.name,
        "kernel": request.kernel,
        "on": request.where,
        "software_time": booted.has_software_time,
        "settings": dict(request.changes),
        "off": request.boot or None,
        "failed": booted.failed,
        "cuts": None if booted.cuts is None else _cuts_json(booted.cuts),
        "time_ns": None if booted.failed or booted.cuts else booted.time_ns,
        "parts": [
            {"name": part.name, "time_ns": part.time_ns, **vars(part.chip)}
            for part in booted.parts
        ],
        "files": [
            {"path": each.path, "failed": each.read}
            if isinstance(each.read, str)
            else {
                "path": each.path, "failed": None, "time_ns": each.read.ns,
                "bytes": each.read.bytes, **(vars(each.read.chip) if each.read.chip else {}),
            }
            for each in booted.files
        ],
    }  # fmt: skip


def _cuts_json(cuts: Cuts) -> dict[str, Any]:
    return {
        "cuts": cuts.count,
        "changes": cuts.changes,
        "booted": len(cuts.times_ns),
        "times_ns": list(cuts.times_ns),
        "failed": dict(cuts.failed),
        "df_bytes": {
            "before": cuts.before_bytes,
            "after": cuts.after_bytes,
            "least": cuts.least_bytes,
        },
        "files": [vars(each) for each in cuts.files],
    }
