"""Draws the pictures of the documents: the stack, a real trace of it, and a power cut.

docs/stack-trace.svg is of a real trace, whose folder is the only argument:

    flashbed trace --on emulator --flash --vfs \
        --func vfs_read --func vfs_write --func vfs_fsync_range --func ubifs_read_folio \
        --func ubifs_write_begin --func ubifs_write_end --func ubifs_fsync \
        --func ubi_eba_read_leb --func ubi_eba_write_leb --func mtd_read --func mtd_write \
        --set fs=ubifs --out trace docs/examples/stack.ops
    python docs/draw_pictures.py trace
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

import polars as pl

HERE = Path(__file__).parent
WIDTH = 720
STYLE = """
  text { font: 24px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--text) }
  .name { font-weight: 700; font-size: 28px }
  .amount { font-weight: 700; font-size: 25px; text-anchor: middle }
  .small { fill: var(--soft) }
  svg { --page: #ffffff; --box: #f1f4f8; --line: #c3ccd8; --text: #17202c; --soft: #4b5868;
        --read: #0b62c4; --write: #b04a00 }
  @media (prefers-color-scheme: dark) {
    svg { --page: #10151c; --box: #1c2430; --line: #3d4a5c; --text: #eef2f7; --soft: #aeb9c7;
          --read: #6db3ff; --write: #ffa45c }
  }
  .page { fill: var(--page) } .box { fill: var(--box); stroke: var(--line) }
  .read { fill: var(--read) } .write { fill: var(--write) }
  .axis { stroke: var(--line) }
  .cover { fill: var(--page); opacity: .88 }
  @media (prefers-reduced-motion: reduce) { .cover { display: none } }
"""

LAYERS = [
    ("Your program", "Calls read(), write() and|fsync().", "4 KiB", "4 KiB"),
    ("Page cache", "Keeps pages in memory, reads|ahead, and writes later.", "4 KiB", "4 KiB"),
    ("File system", "Packs pages into nodes with|checksums, and compresses.", "1 node", "2 nodes"),
    ("UBI", "Maps logical blocks to physical|ones, and spreads the wear.", "1 read", "4 writes"),
    ("Driver", "Works in whole pages, and|corrects bits with ECC.", "3 reads", "4 writes"),
    ("Flash chip", "Reads and programs pages of|2 KiB, erases 64 at once.", "4.25 KiB", "8 KiB"),
]  # fmt: skip
"""Name, what it does in two lines, what a read and a write of 4 KiB have become there."""


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """One line of text."""
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{named}>{escape(words)}</text>'


def rect(x: float, y: float, width: float, height: float, kind: str, round_by: int = 0) -> str:
    """A rectangle."""
    corners = f' rx="{round_by}"' if round_by else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        f'{corners} class="{kind}"/>'
    )


def page(height: int, title: str, parts: list[str]) -> str:
    """A whole picture on a page of its own colour, light or dark."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        f' height="{height}" role="img" aria-label="{escape(title, quote=True)}">'
    )
    all_parts = [f"<style>{STYLE}</style>", rect(0, 0, WIDTH, height, "page"), *parts]
    return "\n".join([head, f"<title>{escape(title)}</title>", *all_parts, "</svg>"]) + "\n"


def arrow(x: float, y: float, length: float, kind: str) -> str:
    """A call that goes down to the next layer."""
    return f'<path class="{kind}" d="M{x - 4} {y}h8v{length - 14}h10l-14 14l-14 -14h10z"/>'


def stack() -> str:
    """The layers from the program to the chip, and what each makes of 4 KiB."""
    top, high, gap, read_x, write_x = 96, 128, 34, 488, 636
    parts = [
        text(read_x, 40, "read()", "amount read"),
        text(write_x, 40, "write()", "amount write"),
        text(write_x, 72, "+ fsync()", "amount write"),
    ]
    for at, (name, words, read, write) in enumerate(LAYERS):
        does, more = words.split("|")
        y = top + at * (high + gap)
        parts += [
            rect(12, y, WIDTH - 24, high, "box", 12),
            text(32, y + 42, name, "name"),
            text(32, y + 78, does, "small"),
            text(32, y + 108, more, "small"),
            text(read_x, y + 72, read, "amount read"),
            text(write_x, y + 72, write, "amount write"),
        ]
        if at + 1 < len(LAYERS):
            parts += [arrow(x, y + high, gap, kind)
                      for x, kind in ((read_x, "read"), (write_x, "write"))]  # fmt: skip
    end = top + len(LAYERS) * (high + gap)
    parts += [
        text(12, end + 10, "One read and one synced write of 4 KiB in a file on", "small"),
        text(12, end + 42, "UBIFS, Linux 6.1, as flashbed traced them.", "small"),
    ]
    title = "A read and a write fall through page cache, file system, UBI and driver to the chip"
    return page(end + 64, title, parts)


@dataclass(frozen=True)
class Lane:
    """A layer of a traced call: its spans in ns from the call's begin, and its own time."""

    name: str
    spans: list[tuple[int, int]]
    own_ns: int


LANES = [
    ("Page cache", ["vfs_read", "vfs_write", "vfs_fsync_range"]),
    ("UBIFS", ["ubifs_read_folio", "ubifs_write_begin", "ubifs_write_end", "ubifs_fsync"]),
    ("UBI", ["ubi_eba_read_leb", "ubi_eba_write_leb"]),
    ("Driver", ["mtd_read", "mtd_write"]),
]
"""Layers by the kernel's functions that enter them, the upper one first."""


def lanes(trace: Path, ops: list[str]) -> tuple[list[Lane], int]:
    """The layers of the calls with these names, and how long the calls take together."""
    calls = pl.read_parquet(trace / "requests.parquet").filter(pl.col("op").is_in(ops))
    begin = calls["start_ns"].min()
    end = (calls["start_ns"] + calls["latency_ns"]).max()
    functions = pl.read_parquet(trace / "functions.parquet")
    flash = pl.read_parquet(trace / "flash.parquet")

    def spans(table: pl.DataFrame) -> list[tuple[int, int]]:
        inside = table.filter(pl.col("start_ns").is_between(begin, end))
        return [(start - begin, took) for start, took in
                inside.select("start_ns", "duration_ns").sort("start_ns").iter_rows()]  # fmt: skip

    found = [("System calls", [(start - begin, took) for start, took in
                               calls.select("start_ns", "latency_ns").iter_rows()])]  # fmt: skip
    found += [(name, spans(functions.filter(pl.col("function").is_in(of)))) for name, of in LANES]
    found.append(("Chip", spans(flash)))
    totals = [sum(took for _, took in of) for _, of in found] + [0]
    own = [total - below for total, below in pairwise(totals)]
    made = [Lane(name, of, ns) for (name, of), ns in zip(found, own, strict=True)]
    return made, end - begin


def panel(y: float, title: str, kind: str, trace: Path, ops: list[str], begin_s: int) -> list[str]:
    """The lanes of some calls over time, uncovered in slow motion."""
    left, wide, lane_high = 12, WIDTH - 24, 70
    of, took = lanes(trace, ops)
    parts = [text(left, y + 34, title, f"name {kind}")]
    top = y + 52
    for at, lane in enumerate(of):
        line = top + at * lane_high
        own = text(WIDTH - 12, line + 26, f"own {lane.own_ns / 1000:,.0f} µs", "own small")
        parts += [text(left, line + 26, lane.name), own]
        for start, long in lane.spans:
            x = left + wide * start / took
            parts.append(rect(x, line + 36, max(wide * long / took - 1, 1.5), 22, kind))
        parts.append(f'<path class="axis" d="M{left} {line + 61}h{wide}"/>')
    for at in range(len(of)):
        cover = rect(left, top + at * lane_high + 34, 0, 26, "cover")
        moving = "".join(
            f'<animate attributeName="{name}" values="{values}" keyTimes="0;{begin_s / 14:.3f};'
            f'{(begin_s + 6) / 14:.3f};1" dur="14s" repeatCount="indefinite"/>'
            for name, values in (("x", f"{left};{left};{left + wide};{left + wide}"),
                                 ("width", f"{wide};{wide};0;0"))
        )  # fmt: skip
        parts.append(cover.replace("/>", f">{moving}</rect>"))
    end = top + len(of) * lane_high
    parts += [text(left, end + 22, "0 ms", "small"),
              text(WIDTH - 12, end + 22, f"{took / 1e6:.2f} ms", "own small")]  # fmt: skip
    return parts


def traced(trace: Path) -> str:
    """A read and a synced write of a real run, layer by layer."""
    parts = ["<style>.own { text-anchor: end }</style>"]
    parts += panel(0, "read() of 4 KiB", "read", trace, ["read"], 0)
    parts += panel(520, "write() of 4 KiB and fsync()", "write", trace, ["write", "fsync"], 7)
    parts += [
        text(12, 1062, "UBIFS on the emulated board, Linux 6.1. Own: the time", "small"),
        text(12, 1092, "of a layer without the layers below it.", "small"),
    ]
    title = "The time of each layer in a read and in a synced write, from a trace"
    return page(1112, title, parts)


def power_cut() -> str:
    """Changes to the chip up to the cut, and what flashbed does after it."""
    wide, gap, top, cut_at = 66, 20, 70, 5
    parts = [text(12, 34, "Changes to the chip", "name")]
    for at in range(8):
        x = 12 + at * (wide + gap)
        kind = "write" if at < cut_at else "box"
        parts.append(rect(x, top, wide, 66, kind, 8))
        if at == cut_at:
            parts.append(rect(x, top, wide / 2, 66, "write", 8))
        label = "amount page-text" if at < cut_at else "amount"
        parts.append(text(x + wide / 2, top + 42, str(at + 1), label))
    x = 12 + cut_at * (wide + gap) + wide / 2
    parts += [
        f'<path class="cut" d="M{x:g} 48v118"/>',
        text(x, 40, "power fails", "amount"),
        text(12, 200, "Change 6 is torn: a part of its bits is on the chip.", "small"),
        text(12, 232, "Changes 7 and 8 never happened.", "small"),
    ]
    steps = ["1  Mount the file system", "2  Read every file", "3  Write a new file and sync it",
             "4  Compare with all that was acknowledged"]  # fmt: skip
    parts.append(text(12, 290, "Then, for each cut", "name"))
    for at, step in enumerate(steps):
        parts += [rect(12, 308 + at * 54, WIDTH - 24, 46, "box", 8),
                  text(28, 339 + at * 54, step)]  # fmt: skip
    style = "<style>.cut { stroke: var(--read); stroke-width: 4; stroke-dasharray: 10 6 }"
    parts.insert(0, style + " .page-text { fill: var(--page) }</style>")
    return page(534, "A power cut tears a change, and flashbed looks at what is left", parts)


if __name__ == "__main__":
    (HERE / "guide" / "power-cut.svg").write_text(power_cut(), encoding="utf-8")
    (HERE / "stack.svg").write_text(stack(), encoding="utf-8")
    if len(sys.argv) > 1:
        (HERE / "stack-trace.svg").write_text(traced(Path(sys.argv[1])), encoding="utf-8")
