"""The command `space`: where the space of a partition went, and whether files fit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flashbed.base.errors import InputError, RunError
from flashbed.base.human import bytes_text
from flashbed.base.sizes import size_bytes
from flashbed.cli.laid_out import print_table
from flashbed.cli.options import Format, FsName, OnBoard, StackSet, chosen
from flashbed.cli.progress import say
from flashbed.cli.remarks import say_doubts
from flashbed.plan.stacks import ChosenStack, stacks
from flashbed.stack.chips import ChipError
from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.names import escaped

if TYPE_CHECKING:
    from flashbed.answers.space.ledger import Ledger
    from flashbed.api.fitting import Fits
    from flashbed.api.fitting_image import MadeImage
    from flashbed.stack.stack import Stack

__all__ = ["register"]

_COMPRESSIBLE_MAX = 90
_TIMES = {
    "chip.read_array_ns": 60_000, "chip.program_array_ns": 250_000, "chip.erase_array_ns": 2_000_000
}  # fmt: skip
_AXES = (
    "board",
    "kernel",
    "fs",
    "mount",
    "compressor",
    "chip",
    "corner",
    "controller",
    "partition",
    "layout",
)
_JFFS2 = "jffs2"
_UBIFS = "ubifs"


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "space",
        epilog="Examples: `flashbed space` · `flashbed space --set fs=jffs2,ubifs --partition 16MiB"
        "` · `flashbed space --set chip=W25N01GV --partition 85MiB --image rootfs/` · "
        "`flashbed space --files 30MiB --compressible 50`",
    )(space)


@dataclass(kw_only=True)
class _Answer:
    """The answer about a stack; what was not asked is None."""

    stack: Stack
    words: str
    ledger: Ledger
    volume: Stack
    device_lebs: int = 0
    """Those that UBI has for volumes."""
    fastmap_blocks: int = 0
    """Those of the partition that are not the stack's."""
    volume_lebs: int | None = None
    written: dict[int, int] = field(default_factory=dict)
    smallest: int | None = None
    fits: Fits | None = None
    smallest_for_files: int | None = None
    image: MadeImage | None = None


def space(
    *,
    fs: FsName = None,
    board: OnBoard = None,
    settings: StackSet = None,
    partition: Annotated[
        str | None,
        typer.Option("--partition", metavar="SIZE,...", help="The MTD partition: 85MiB, or chip."),
    ] = None,
    volume: Annotated[
        str | None,
        typer.Option("--volume", metavar="SIZE", help="A UBI volume in it; default: all of UBI."),
    ] = None,
    compressible: Annotated[
        str | None,
        typer.Option(
            "--compressible", metavar="PERCENT,...",
            help="Share of zeroes in the files; 0 is random data. Default: 0,50.",
        ),
    ] = None,
    files: Annotated[
        str | None,
        typer.Option("--files", metavar="SIZE", help="Files of 1 MiB that must fit: 30MiB."),
    ] = None,
    fastmap: Annotated[
        bool, typer.Option("--fastmap", help="Of a kernel with CONFIG_MTD_UBI_FASTMAP.")
    ] = False,
    image: Annotated[
        Path | None,
        typer.Option("--image", metavar="FOLDER", help="A folder whose image must fit."),
    ] = None,
    max_lebs: Annotated[
        int | None,
        typer.Option("-c", metavar="LEBS", min=1, help="mkfs.ubifs -c. Default: the volume's."),
    ] = None,
    journal: Annotated[
        str | None, typer.Option("-j", metavar="SIZE", help="mkfs.ubifs -j. Default: its own.")
    ] = None,
    output: Format = "text",
) -> None:  # fmt: skip
    """Says where the space of a partition goes, and whether files or an image fit.

    Exit status 1 says by how much they do not fit. docs/guide/does-it-fit.md is the guide.
    """
    kinds = _percents(compressible)
    found = [
        _answered(each, partition=size, volume=volume, fastmap=fastmap, kinds=kinds)
        for each in _stacks(chosen(settings, fs=fs, board=board))
        for size in (partition or "").split(",")
    ]
    say_doubts(one.stack.board for one in found)
    if files is not None:
        _fill(found, size_bytes("--files", files), kinds[0])
    if image is not None:
        bud_bytes = None if journal is None else size_bytes("-j", journal)
        _make(found, image, max_lebs, bud_bytes)
    elif max_lebs is not None or journal is not None:
        raise InputError("-c and -j are of mkfs.ubifs: --image FOLDER names what it makes")
    if output == "json":
        print(json.dumps([_json(one) for one in found], indent=1))
    else:
        _print(found, kinds)
    refused = [line for one in found for line in _refused(one)]
    if refused:
        raise RunError("; ".join(dict.fromkeys(refused)))


def _percents(text: str | None) -> list[int]:
    words = (text or "0,50").split(",")
    if not all(word.isdecimal() and int(word) <= _COMPRESSIBLE_MAX for word in words):
        raise InputError(f"--compressible {text}: percents from 0 to {_COMPRESSIBLE_MAX}")
    return list(dict.fromkeys(map(int, words)))


def _stacks(settings: Sequence[str]) -> list[ChosenStack]:
    """Those that are chosen; a chip whose times are not published has some that do not matter."""
    try:
        return stacks(settings, axes=_AXES)
    except ChipError:
        given = {each.partition("=")[0] for each in settings}
        times = [f"{key}={ns}" for key, ns in _TIMES.items() if key not in given]
        found = stacks([*settings, *times], axes=_AXES)
        say("flashbed: the chip's times are not published; space does not depend on them")
        return [
            replace(each, changes=tuple(one for one in each.changes if one[0] not in _TIMES))
            for each in found
        ]


def _answered(
    choice: ChosenStack,
    *,
    partition: str,
    volume: str | None,
    fastmap: bool,
    kinds: Sequence[int],
) -> _Answer:
    from flashbed.answers.space.fastmap import fastmap_blocks, with_fastmap
    from flashbed.api.fitting import (
        block_bytes_of,
        filled,
        in_blocks,
        ledger,
        smallest_mount,
        volume_stack,
    )

    stack = choice.stack
    if partition:
        chip = stack.board.chip.blocks - stack.board.partition.first_block
        whole = partition == "chip"
        blocks = chip if whole else size_bytes("--partition", partition) // block_bytes_of(stack)
        if not 0 < blocks <= chip:
            raise InputError(
                f"--partition {partition}: {blocks:,} erase blocks; the chip has {chip:,}"
            )
        stack = in_blocks(stack, blocks)
    words = " ".join(f"{name}={value}" for name, value in choice.changes)
    if fastmap and FILE_SYSTEMS[stack.fs].stands_on != "ubi":
        raise InputError(f"--fastmap: {stack.fs} is not on UBI")
    own_blocks = 0
    has_fastmap = stack.layout is not None and stack.layout.fastmap
    try:
        whole_space = ledger(stack)
        if fastmap and not has_fastmap:
            # UBI's volumes are those of a partition without these blocks.
            blocks = stack.board.partition.blocks
            own_blocks = fastmap_blocks(blocks, whole_space.facts["leb_bytes"])
            stack = in_blocks(stack, blocks - own_blocks)
            whole_space = ledger(stack)
    except InputError as why:
        least = smallest_mount(choice.stack)
        raise RunError(f"{_sized(stack)}: {why}{_least_words(stack, least)}") from None
    own, lebs, space = stack, None, whole_space
    if volume is not None:
        own, lebs, there_are = volume_stack(stack, size_bytes("--volume", volume))
        if lebs > there_are:
            raise RunError(
                f"--volume {volume}: {lebs:,} LEBs of {whole_space.facts['leb_bytes']:,} bytes; UBI"
                f" leaves {there_are:,} of this partition: {lebs - there_are:,} too many"
            )
        try:
            space = ledger(stack, own)
        except InputError as why:
            raise RunError(f"--volume {volume}, {lebs:,} LEBs: {why}") from None
    least = smallest_mount(stack)
    return _Answer(
        stack=stack, words=words or stack.fs,
        ledger=with_fastmap(space, own_blocks, block_bytes_of(stack)) if own_blocks else space,
        device_lebs=whole_space.facts.get("lebs", 0),
        fastmap_blocks=own_blocks,
        volume=own, volume_lebs=lebs, written={kind: filled(own, kind) for kind in kinds},
        smallest=None if least is None else least + own_blocks,
    )  # fmt: skip


def _sized(stack: Stack) -> str:
    blocks = stack.board.partition.blocks
    return f"{stack.fs} on {blocks:,} blocks"


def _least_words(stack: Stack, smallest: int | None) -> str:
    if smallest is None or smallest <= stack.board.partition.blocks:
        return ""
    return f"; the smallest partition that mounts has {_blocks_text(stack, smallest)}"


def _blocks_text(stack: Stack, blocks: int) -> str:
    from flashbed.api.fitting import block_bytes_of

    return f"{blocks:,} blocks, {bytes_text(blocks * block_bytes_of(stack))}"


def _fill(found: Sequence[_Answer], files_bytes: int, kind: int) -> None:
    from flashbed.api.fitting import fits, smallest_for_files

    for one in found:
        one.fits = fits(one.volume, files_bytes, kind)
        least = smallest_for_files(one.stack, files_bytes, kind)
        one.smallest_for_files = None if least is None else least + one.fastmap_blocks


def _make(
    found: Sequence[_Answer], folder: Path, max_lebs: int | None, journal_bytes: int | None
) -> None:
    from flashbed.api.fitting_image import make_image
    from flashbed.targets.unavailable import Unavailable

    for one in found:
        try:
            one.image = make_image(
                one.stack, one.ledger, folder, volume_lebs=one.volume_lebs, max_lebs=max_lebs,
                journal_bytes=journal_bytes, say=say,
            )  # fmt: skip
        except Unavailable as why:
            raise RunError(f"--image: {why}") from None


def _refused(one: _Answer) -> Iterator[str]:
    if one.fits is not None and not one.fits.fit:
        short = one.fits.files_bytes - one.fits.written_bytes
        yield (
            f"{one.words}: {bytes_text(one.fits.files_bytes)} of files do not fit:"
            f" {short:,} bytes too many"
        )
    if one.image is not None:
        yield from (f"{one.words}: {line}" for line in one.image.refused)


def _print(found: Sequence[_Answer], kinds: Sequence[int]) -> None:
    if len(found) > 1:
        _print_compared(found)
        for line in _crossings(found, kinds):
            print(escaped(line))
        return
    (one,) = found
    _print_parts(one)
    for line in _sentences(one):
        print(escaped(line))


def _print_parts(one: _Answer) -> None:
    import polars as pl

    whole = one.ledger.partition_bytes
    blocks = one.stack.board.partition.blocks + one.fastmap_blocks
    print(f"{one.stack.fs} on {_blocks_text(one.stack, blocks)}")
    rows = [
        (part.layer, part.name, part.units, part.bytes, part.meaning)
        for part in one.ledger.parts
        if part.bytes
    ]
    rows.append(("", "left for files", None, one.ledger.available_bytes, "what df calls available"))
    rows.append(("", "the partition", blocks, whole, ""))
    table = pl.DataFrame(
        {
            "layer": [row[0] for row in rows],
            "part": [row[1] for row in rows],
            "blocks": [row[2] for row in rows],
            "bytes ": [row[3] for row in rows],
            "share": [f"{row[3] / whole:.1%}".rjust(6) for row in rows],
            "for": [row[4] for row in rows],
        },
        schema_overrides={"blocks": pl.Int64, "bytes ": pl.Int64},
    )
    print_table(table, {"bytes ": "bytes"})


def _sentences(one: _Answer) -> Iterator[str]:
    space, stack = one.ledger, one.stack
    yield (
        f"df -k: {space.size_bytes >> 10} size, {space.available_bytes >> 10} available"
        + (": an unprivileged program's; root has its reserve too" if stack.fs == _UBIFS else "")
    )
    for kind, written in one.written.items():
        yield f"really written until it is full: {bytes_text(written)} of {_kind_text(kind)}"
    if one.smallest is not None:
        yield f"smallest partition that mounts: {_blocks_text(stack, one.smallest)}"
    facts = space.facts
    if "lebs" in facts:
        yield f"volume: {facts['lebs']:,} LEBs of {facts['leb_bytes']:,} bytes"
    if "bud_bytes" in facts:
        yield (
            f"journal: {facts['bud_bytes']:,} bytes of the main area, {facts['journal_bytes']:,}"
            " with its log"
        )
    yield from _files_sentences(one)
    yield from _image_sentences(one)


def _kind_text(kind: int) -> str:
    return "random data" if kind == 0 else f"data of which {kind} % is zeroes"


def _files_sentences(one: _Answer) -> Iterator[str]:
    if one.fits is None:
        return
    size = bytes_text(one.fits.files_bytes)
    if one.fits.fit:
        yield f"{size} of files fit; df calls {one.fits.available_bytes >> 10} KiB available then"
        yield (
            f"headroom: {bytes_text(one.fits.more_bytes)} can be written beside them, before what"
            " it replaces is removed"
        )
        again = "fits" if one.fits.more_bytes >= one.fits.files_bytes else "does not fit"
        yield f"a second copy of all of them, beside the first, {again}"
    if one.smallest_for_files is None:
        yield f"no partition of this chip holds {size} of files"
    else:
        yield f"smallest partition for them: {_blocks_text(one.stack, one.smallest_for_files)}"


def _image_sentences(one: _Answer) -> Iterator[str]:
    made = one.image
    if made is None:
        return
    yield made.command
    yield f"image: {made.image_bytes:,} bytes of {made.files_bytes:,} bytes of files"
    if made.needs is not None:
        needs = made.needs
        yield (
            f"it has {needs.lebs:,} LEBs and a journal of {needs.journal_bytes:,} bytes: the"
            f" smallest volume that mounts it has {needs.volume_lebs_min:,} LEBs"
        )
    if not made.fits:
        return
    yield f"it fits: {made.room_bytes - made.image_bytes:,} bytes are left"
    if made.needs is not None:
        two = 2 * made.needs.volume_lebs_min
        fit = "fit" if two <= one.device_lebs else "do not fit"
        yield f"two slots for updates: {two:,} LEBs, which {fit} UBI's {one.device_lebs:,}"
    yield from made.ubinize


def _print_compared(found: Sequence[_Answer]) -> None:
    import polars as pl

    whole = [one.ledger.partition_bytes for one in found]
    columns: dict[str, Any] = {
        "stack": [one.words for one in found],
        "partition_bytes": whole,
        "size_bytes": [one.ledger.size_bytes for one in found],
        "available_bytes": [one.ledger.available_bytes for one in found],
        "share": [
            f"{one.ledger.available_bytes / size:.1%}"
            for one, size in zip(found, whole, strict=True)
        ],
    }
    heads = {
        "partition_bytes": "partition", "size_bytes": "df size", "available_bytes": "df available",
    }  # fmt: skip
    for kind in found[0].written:
        columns[f"written_{kind}_bytes"] = [one.written[kind] for one in found]
        heads[f"written_{kind}_bytes"] = f"written, {kind} % zeroes"
    columns["smallest"] = [
        "-" if one.smallest is None else _blocks_text(one.stack, one.smallest) for one in found
    ]
    if found[0].fits is not None:
        columns["for the files"] = [
            "-" if one.smallest_for_files is None
            else _blocks_text(one.stack, one.smallest_for_files)
            for one in found
        ]  # fmt: skip
    print_table(pl.DataFrame(columns), heads)
    for one in found:
        for line in _image_sentences(one):
            print(escaped(f"{one.words}: {line}"))


def _crossings(found: Sequence[_Answer], kinds: Sequence[int]) -> Iterator[str]:
    """Where UBIFS begins to hold more than JFFS2 on one chip, for each kind of data."""
    from flashbed.api.fitting import crossing, filled

    one = next((each.stack for each in found if each.stack.fs == _JFFS2), None)
    two = next((each.stack for each in found if each.stack.fs == _UBIFS), None)
    chips = {each.stack.board.chip.model_dump_json() for each in found}
    if one is None or two is None or len(chips) > 1:
        return
    for kind in kinds:
        blocks = crossing(one, two, partial(filled, compressible=kind))
        if blocks is None:
            yield f"JFFS2 holds more {_kind_text(kind)} than UBIFS at every size of this chip"
        else:
            yield f"UBIFS holds more {_kind_text(kind)} from {_blocks_text(two, blocks)} on"


def _json(one: _Answer) -> dict[str, Any]:
    made = one.image
    return {
        "choice": one.words,
        "fs": one.stack.fs,
        "partition_bytes": one.ledger.partition_bytes,
        "parts": [
            {"layer": part.layer, "name": part.name, "units": part.units, "bytes": part.bytes}
            for part in one.ledger.parts
        ],
        "size_bytes": one.ledger.size_bytes,
        "available_bytes": one.ledger.available_bytes,
        "facts": dict(one.ledger.facts),
        "written": [
            {"compressible_pct": kind, "bytes": written} for kind, written in one.written.items()
        ],
        "smallest_blocks": one.smallest,
    } | ({} if one.fits is None else {
        "files": {
            "bytes": one.fits.files_bytes,
            "written_bytes": one.fits.written_bytes,
            "available_bytes": one.fits.available_bytes,
            "more_bytes": one.fits.more_bytes,
            "smallest_blocks": one.smallest_for_files,
        },
    }) | ({} if made is None else {
        "image": {
            "command": made.command, "files_bytes": made.files_bytes,
            "image_bytes": made.image_bytes, "room_bytes": made.room_bytes, "fits": made.fits,
            "refused": list(made.refused), "ubinize": list(made.ubinize),
            "lebs": None if made.needs is None else made.needs.lebs,
            "journal_bytes": None if made.needs is None else made.needs.journal_bytes,
            "volume_lebs_min": None if made.needs is None else made.needs.volume_lebs_min,
            "device_lebs": one.device_lebs,
        },
    })  # fmt: skip
