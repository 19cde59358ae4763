"""The commands on flash images and dumps: show, new."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flashbed.api.images import extract, new_image
from flashbed.base.errors import InputError, RunError
from flashbed.base.files import output as output_file
from flashbed.base.human import aligned, bytes_text, count_text
from flashbed.base.paths import shown
from flashbed.cli.command_group import add_group
from flashbed.cli.options import OUT, Format, StackSet
from flashbed.cli.progress import say
from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.flash_image import read_image
from flashbed.stack.names import escaped

if TYPE_CHECKING:
    from flashbed._sim import Image, ImageFile, UbiImage

__all__ = ["register"]

_TYPES = {"file": "-", "folder": "d", "link": "l", "block": "b", "char": "c", "pipe": "p",
          "socket": "s"}  # fmt: skip
_NAMES = {"ubifs": "UBIFS", "jffs2": "JFFS2", "squashfs": "squashfs", "erofs": "EROFS",
          "empty": "nothing", "unknown": "nothing that flashbed reads"}  # fmt: skip
_BAR = 30

Rows = Iterator[tuple[str, str]]


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    add_group(
        app,
        "image",
        about="Shows what is in a flash image or in the dump of a device, and builds images.",
        commands={
            "show": (show, "rootfs.ubi --files"),
            "new": (new, "rootfs/ --set layout=two-slots --out root.squashfs"),
        },
    )


def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An image, or what nanddump wrote.")],
    output: Format = "text",
    *,
    files: Annotated[bool, typer.Option("--files", help="List the files too.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option("--extract", metavar="FOLDER", help="Copy its files into this new folder."),
    ] = None,
    volume: Annotated[
        str | None,
        typer.Option("--volume", metavar="NAME", help="Only this volume's files."),
    ] = None,
    block_kib: Annotated[
        int | None,
        typer.Option("--block-kib", metavar="KIB", help="Size of an erase block, if not found."),
    ] = None,
    page: Annotated[
        str | None,
        typer.Option(
            "--page",
            metavar="BYTES+OOB",
            help="Page and OOB in the file, as 2048+64, if not found.",
        ),
    ] = None,
) -> None:
    """Shows what is in an image of UBI, UBIFS, JFFS2, squashfs or EROFS.

    FILE is what ubinize, mkfs.ubifs, mkfs.jffs2, mksquashfs or mkfs.erofs made, or a dump of a
    device, with OOB or without. Exit status 1 if something in it is broken: each is one line.
    """
    page_bytes, oob_bytes = _page(page)
    block_bytes = None if block_kib is None else block_kib << 10
    image = read_image(file, page_bytes=page_bytes, oob_bytes=oob_bytes, block_bytes=block_bytes)
    chosen = _chosen(image, volume, file)
    if output == "json":
        print(json.dumps(_described(image, chosen, file, files=files), indent=1))
    else:
        for line in _lines(image, chosen, file, files=files):
            print(escaped(line))
    if folder is not None:
        _extract(image, chosen, folder)
    if image.problem_count:
        for line in image.problems:
            say(f"flashbed: {shown(file)}: {escaped(line)}")
        more = image.problem_count - len(image.problems)
        unseen = f", {more:,} of them not shown" if more else ""
        raise RunError(f"{shown(file)}: what is wrong: {image.problem_count:,}{unseen}")


def new(
    root: Annotated[Path, typer.Argument(metavar="FOLDER", help="What it holds.")],
    *,
    settings: StackSet = None,
    volume: Annotated[
        str | None,
        typer.Option("--volume", metavar="NAME", help="The layout's volume, if it has several."),
    ] = None,
    out: Annotated[Path, typer.Option(*OUT, metavar="FILE", help="The image.")],
) -> None:
    """Builds the image that --set layout=NAME has of a folder, as `exec` and `boot` build it.

    mksquashfs, mkfs.erofs or mkfs.ubifs of Debian makes it, without times and owners: the same
    folder gives the same image.
    """
    made = new_image(root, settings or [], volume=volume, say=lambda what: say(f"flashbed: {what}"))
    with output_file(out) as file:
        file.write_bytes(made)
    say(f"flashbed: image: wrote {shown(out)}, {bytes_text(len(made))}")


def _page(given: str | None) -> tuple[int | None, int | None]:
    if given is None:
        return None, None
    page, plus, oob = given.partition("+")
    if not page.isdecimal() or not (oob if plus else "0").isdecimal() or int(page) < 1:
        raise InputError(f"--page {given}: bytes of a page and of its OOB, as 2048+64")
    return int(page), int(oob or 0)


def _chosen(image: Image, volume: str | None, file: Path) -> list[int]:
    """The parts whose files are wanted."""
    everything = range(len(image.parts))
    if volume is None:
        return list(everything)
    ubi = image.ubi
    found = [at for at in everything if ubi is not None and ubi["volumes"][at]["name"] == volume]
    if not found:
        names = ", ".join(one["name"] for one in ubi["volumes"]) if ubi else "no volumes"
        raise InputError(f"--volume {volume}: {shown(file)} has {escaped(names)}")
    return found


def _described(
    image: Image, chosen: Sequence[int], file: Path, *, files: bool
) -> Mapping[str, Any]:
    parts: list[dict[str, Any]] = [dict(part) for part in image.parts]
    if files:
        for at in chosen:
            parts[at]["files"] = [_row(one) for one in image.files(at)]
    pages = image.pages
    return {
        "file": str(file),
        "pages": None if pages is None else {"page_bytes": pages[0], "oob_bytes": pages[1]},
        "ubi": image.ubi,
        "parts": parts,
        "problems": image.problems,
        "problem_count": image.problem_count,
    }


def _row(file: ImageFile) -> dict[str, Any]:
    return {
        "path": os.fsdecode(file.path),
        "kind": file.kind,
        "inode": file.inode,
        "bytes": file.bytes,
        "stored_bytes": file.stored_bytes,
        "mode": file.mode,
        "uid": file.uid,
        "gid": file.gid,
        "links": file.links,
        "mtime_s": file.mtime_s,
        "target": os.fsdecode(file.target) if file.kind == "link" else None,
        "device": file.device,
        "xattrs": file.xattrs,
        "compressors": file.compressors,
    }


def _lines(image: Image, chosen: Sequence[int], file: Path, *, files: bool) -> Iterator[str]:
    ubi, pages = image.ubi, image.pages
    with_oob = "" if pages is None else f", pages of {pages[0]} + {pages[1]} bytes of OOB"
    if ubi is not None:
        yield f"{shown(file)}: UBI{with_oob}"
        yield from _table(_ubi_rows(ubi))
        yield from _erase_lines(ubi)
        yield ""
        yield from _volume_lines(image, ubi)
    for at, part in enumerate(image.parts):
        content: Any = part["content"]
        name = _NAMES[content["format"]]
        if ubi is None:
            yield f"{shown(file)}: {name}{with_oob}"
        elif content["format"] in ("empty", "unknown"):
            continue
        else:
            yield ""
            yield f"volume {part['volume']} {ubi['volumes'][at]['name']}: {name}"
        yield from _table(_ROWS[content["format"]](content))
        if files and at in chosen:
            yield from _file_lines(image.files(at))


def _table(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"  {line}" for line in aligned(list(rows))]


def _ubi_rows(ubi: UbiImage) -> Rows:
    pebs = ubi["pebs"]
    yield "PEBs", f"{pebs['all']:,} of {bytes_text(ubi['peb_bytes'])}"
    held = ("used", "free", "stale", "blank", "bad", "corrupted")
    kinds: Mapping[str, Any] = pebs
    yield "", ", ".join(f"{kinds[kind]:,} {kind}" for kind in held)
    yield "page", f"{ubi['min_io_bytes']:,} B"
    yield "volume header", f"at {ubi['vid_offset']:,}, data at {ubi['data_offset']:,}"
    yield "LEB", f"{ubi['leb_bytes']:,} B"
    yield "image sequence", f"{ubi['image_sequence']}"
    fastmap = ubi["fastmap"]
    if fastmap is None:
        yield "fastmap", "none"
    else:
        whole = "whole" if fastmap["valid"] else "not whole"
        where = f"in PEB {fastmap['peb']}, {fastmap['pebs']} PEBs, version {fastmap['version']}"
        yield "fastmap", f"{where}, {whole}"
    erases = ubi["erases"]
    if erases is not None:
        mean = erases["mean_milli"] / 1000
        yield "erases", f"min {erases['min']:,}, mean {mean:,.1f}, max {erases['max']:,}"


def _erase_lines(ubi: UbiImage) -> Iterator[str]:
    """The histogram of the erase counters, if they differ."""
    erases = ubi["erases"]
    if erases is None or erases["min"] == erases["max"]:
        return
    most = max(one["pebs"] for one in erases["histogram"])
    rows = [("erases", "PEBs", "")]
    for one in erases["histogram"]:
        bar = "#" * -(-one["pebs"] * _BAR // most)
        span = f"{one['from']:,}" if one["from"] == one["to"] else f"{one['from']:,}-{one['to']:,}"
        rows.append((span, f"{one['pebs']:,}", bar))
    yield from (f"  {line}" for line in aligned(rows))


def _volume_lines(image: Image, ubi: UbiImage) -> Iterator[str]:
    rows = [("volume", "name", "type", "LEBs", "mapped", "data", "holds")]
    for volume, part in zip(ubi["volumes"], image.parts, strict=True):
        content: Any = part["content"]
        marks = [_NAMES[content["format"]]]
        marks += ["autoresize"] if volume["autoresize"] else []
        marks += ["an update was not finished"] if volume["upd_marker"] else []
        rows.append((
            str(volume["id"]), volume["name"], volume["kind"], f"{volume['lebs']:,}",
            f"{volume['mapped_lebs']:,}", bytes_text(volume["data_bytes"]), ", ".join(marks),
        ))  # fmt: skip
    yield from aligned(rows, left=3)


def _ubifs_rows(ubifs: Any) -> Rows:
    made, master, space = ubifs["superblock"], ubifs["master"], ubifs["space"]
    flags = ", ".join(made["flags"]) or "no flags"
    yield "format", f"{made['format_version']}, {made['key_hash']} hash, {flags}"
    yield "compressor", made["compressor"]
    yield "LEBs", f"{made['lebs']:,} of {made['leb_bytes']:,} B, at most {made['lebs_max']:,}"
    yield (
        "areas",
        (
            f"log {made['log_lebs']}, LPT {made['lpt_lebs']}, orphans {made['orphan_lebs']},"
            f" main {made['main_lebs']:,} LEBs; fanout {made['fanout']}"
        ),
    )
    yield "journal", f"<= {bytes_text(made['journal_bytes'])}"
    state = "unmounted" if master["clean"] else "not unmounted"
    left = ubifs["journal"]
    replayed = f"; {left['nodes']:,} nodes to replay" if left["nodes"] else ""
    yield "commit", f"{master['commit']:,}, {state}{replayed}"
    if space is not None:
        yield "used", f"{bytes_text(space['used_bytes'])}, index {bytes_text(space['index_bytes'])}"
        yield "obsolete", bytes_text(space["dirty_bytes"])
        yield "dead, dark", f"{bytes_text(space['dead_bytes'])}, {bytes_text(space['dark_bytes'])}"
        yield "empty LEBs", count_text(space["empty_lebs"])
    yield from _sum_rows(ubifs["files"])
    if space is not None:
        where = f"mounted in {space['lebs']:,} LEBs, {bytes_text(made['reserved_bytes'])} for root"
        yield "bytes free", f"{space['available_bytes']:,} ({where})"


def _jffs2_rows(jffs2: Any) -> Rows:
    guessed = " (guessed; --block-kib gives it)" if jffs2["block_bytes_by"] == "nodes" else ""
    yield "erase blocks", f"{jffs2['blocks']:,} of {bytes_text(jffs2['block_bytes'])}{guessed}"
    yield "", f"{jffs2['free_blocks']:,} free, {jffs2['bad_blocks']:,} bad"
    yield "byte order", f"{jffs2['endian']} endian"
    yield "clean markers", f"{jffs2['clean_markers']:,} in blocks"
    yield "summaries", count_text(jffs2["summaries"])
    yield (
        "nodes",
        (
            f"{jffs2['nodes']:,} valid, {jffs2['obsolete_nodes']:,} obsolete,"
            f" {jffs2['broken_nodes']:,} broken"
        ),
    )
    yield "used", bytes_text(jffs2["used_bytes"])
    yield (
        "obsolete",
        f"{bytes_text(jffs2['dirty_bytes'])}, wasted {bytes_text(jffs2['wasted_bytes'])}",
    )
    yield "free", bytes_text(jffs2["free_bytes"])
    yield from _sum_rows(jffs2["files"])
    where = f"mounted in {jffs2['blocks']:,} blocks"
    yield "bytes free", f"{jffs2['available_bytes']:,} ({where})"


def _squashfs_rows(squashfs: Any) -> Rows:
    yield "format", squashfs["version"]
    yield "compressor", squashfs["compressor"]
    yield "block", bytes_text(squashfs["block_bytes"])
    yield "inodes", f"{squashfs['inodes']:,}, {squashfs['fragments']:,} fragments"
    yield "bytes used", f"{squashfs['bytes']:,}"


def _erofs_rows(erofs: Any) -> Rows:
    yield "compressor", ", ".join(erofs["compressors"]) or "none"
    yield "block", bytes_text(erofs["block_bytes"])
    yield "inodes", count_text(erofs["inodes"])
    yield "bytes used", f"{erofs['bytes']:,}"


def _no_rows(_: Any) -> Rows:
    yield from ()


_ROWS = {
    "ubifs": _ubifs_rows,
    "jffs2": _jffs2_rows,
    "squashfs": _squashfs_rows,
    "erofs": _erofs_rows,
    "empty": _no_rows,
    "unknown": _no_rows,
}


def _sum_rows(sums: Mapping[str, Any]) -> Rows:
    kinds = [("files", "files"), ("folders", "folders"), ("links", "symbolic links"),
             ("others", "devices, pipes, sockets"),
             ("unnamed", "inodes without a name")]  # fmt: skip
    counts = [f"{sums[key]:,} {name}" for key, name in kinds if sums[key] or key == "files"]
    yield "holds", ", ".join(counts)
    nodes = ", ".join(f"{count:,} {name}" for name, count in sums["nodes"].items())
    stored = f"{bytes_text(sums['bytes'])}, stored in {bytes_text(sums['stored_bytes'])}"
    yield "data", stored + (f" (nodes: {nodes})" if nodes else "")


def _file_lines(files: Sequence[ImageFile]) -> Iterator[str]:
    if not files:
        return
    rows = [("mode", "links", "owner", "bytes", "stored", "changed", "path")]
    for file in files:
        path = os.fsdecode(file.path)
        if file.kind == "link":
            path += f" -> {os.fsdecode(file.target)}"
        size = f"{file.bytes:,}"
        if file.device is not None:
            size = f"{file.device[0]}, {file.device[1]}"
        rows.append((
            _TYPES.get(file.kind, "?") + f"{file.mode & 0o7777:04o}", f"{file.links:,}",
            f"{file.uid}:{file.gid}", size, f"{file.stored_bytes:,}", _date(file.mtime_s), path,
        ))  # fmt: skip
    yield from (f"  {line}" for line in aligned(rows))


def _date(seconds: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))
    except (ValueError, OverflowError, OSError):
        return "-"


def _extract(image: Image, chosen: Sequence[int], folder: Path) -> None:
    """Each volume in a folder of its own, if there are several."""
    with_files = [at for at in chosen if image.parts[at]["content"]["format"] in FILE_SYSTEMS]
    if not with_files:
        raise InputError("--extract: no files of UBIFS or JFFS2 are in it")
    for at in with_files:
        into = folder if len(with_files) == 1 else folder / f"volume{image.parts[at]['volume']}"
        copied, left_out = extract(image, at, into)
        for line in left_out:
            say(f"flashbed: {escaped(line)}")
        say(f"{shown(into)}: {copied:,} files, folders and links")
        if left_out:
            raise RunError(f"{shown(into)}: {len(left_out):,} could not be copied")
