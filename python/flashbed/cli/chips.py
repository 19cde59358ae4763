"""The commands on the catalogue of chips: list, show, new, import."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from flashbed.base.errors import InputError
from flashbed.base.files import begin_file, read_text
from flashbed.base.human import aligned, bytes_text, time_text
from flashbed.base.paths import new_chip_file, shown
from flashbed.base.toml import loads, read_model
from flashbed.cli.command_group import add_group
from flashbed.cli.options import Format
from flashbed.cli.progress import say
from flashbed.plan.narrowing import parse_settings
from flashbed.stack.board_tables import Chip, Spi
from flashbed.stack.bus_arithmetic import (
    OPERATIONS,
    BusStep,
    WiredChip,
    attach_steps,
    block_read_steps,
    steps_of,
    total_ns,
)
from flashbed.stack.changes import ChipChange, ControllerChange
from flashbed.stack.chip_text import blank_chip_text, chip_text
from flashbed.stack.chips import CatalogueChip, ChipError, chip_names, load_chip
from flashbed.stack.fitted_chip import Controller, fitted
from flashbed.stack.imported import jedec, onfi
from flashbed.stack.imported.board_words import chip_of_words, fitting
from flashbed.stack.imported.kernel_source import chips_in_source, is_kernel_source
from flashbed.stack.imported.parameter_page import page_bytes_of
from flashbed.stack.names import escaped, is_name

__all__ = ["all_chips", "register"]

FILE_BYTES_MAX = 1 << 24
ChipName = Annotated[str, typer.Argument(metavar="NAME", help="A chip of boards/chips.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="AXIS=VALUE", help="Of chip.KEY, corner and controller.KEY."),
]


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    add_group(
        app,
        "chip",
        about="Lists, shows and begins chips of the catalogue.",
        commands={
            "list": (list_, ""),
            "show": (show, "W25N01GV --arithmetic --set controller.lines=1"),
            "new": (new, "MYCHIP --bus spi"),
            "import": (import_, "drivers/mtd/nand/spi/winbond.c --name W25N02KV"),
        },
    )


def list_(output: Format = "text") -> None:
    """Lists the chips: bus, size, pages, ECC, and times as they are published."""
    parts = all_chips()
    if output == "json":
        print(json.dumps([part.model_dump(mode="json") for part in parts], indent=1))
        return
    head = ("chip", "bus", "size", "page + OOB", "ECC", "read", "write", "erase")
    for line in aligned([head, *map(_row, parts)], left=2):
        print(escaped(line))
    print("times: typical, or <= the largest; - is not published")


def all_chips() -> list[CatalogueChip]:
    """The catalogue, without files that are not finished, which it names."""
    parts = []
    for name in chip_names():
        try:
            parts.append(load_chip(name))
        except InputError as wrong:
            say(f"flashbed: left out: {wrong}")
    return parts


def _row(part: CatalogueChip) -> tuple[str, ...]:
    geometry, ecc = part.geometry, part.ecc
    bits = "-"
    if ecc is not None and ecc.on_die_strength_bits is not None:
        bits = f"{ecc.on_die_strength_bits}/{ecc.on_die_step_bytes} on die"
    elif ecc is not None and ecc.strength_bits is not None:
        bits = f"{ecc.strength_bits}/{ecc.step_bytes}"
    return (
        part.name, part.chip.bus, bytes_text(part.size_bytes),
        f"{geometry.page_bytes} + {geometry.oob_bytes}", bits,
        *(_published(part, operation) for operation in OPERATIONS),
    )  # fmt: skip


def _published(part: CatalogueChip, operation: str) -> str:
    typical = part.array_ns(operation, "typical")
    if typical is not None:
        return time_text(typical)
    most = part.array_ns(operation, "maximum")
    return "-" if most is None else f"<= {time_text(most)}"


def show(
    name: ChipName,
    output: Format = "text",
    *,
    arithmetic: Annotated[
        bool, typer.Option("--arithmetic", help="Works out what its operations take.")
    ] = False,
    settings: Settings = None,
) -> None:
    """Shows what is known of a chip, with the sources; `--arithmetic` what it takes on a bus."""
    part = load_chip(name)
    if settings and not arithmetic:
        raise InputError("--set: belongs to --arithmetic")
    if arithmetic and part.nor is not None:
        raise InputError("--arithmetic: of NAND; docs/models/spi-nor.md has SPI-NOR's times")
    steps, notes = _arithmetic(part, settings or []) if arithmetic else ({}, ())
    if output == "json":
        known = part.model_dump(mode="json")
        worked = {what: [asdict(step) for step in found] for what, found in steps.items()}
        print(json.dumps({**known, **({"arithmetic": worked} if arithmetic else {})}, indent=1))
        return
    if not arithmetic:
        _show_known(part)
    for what, found in steps.items():
        print(f"{what}  {time_text(total_ns(found))}")
        rows = [(f"  {step.what}", time_text(step.ns), step.how) for step in found]
        print("\n".join(map(escaped, aligned(rows))))
    for note in notes:
        print(escaped(note))


def _show_known(part: CatalogueChip) -> None:
    print(escaped(f"{part.name}  {part.chip.title} ({shown(part.path)})"))
    for table, values in part.model_dump(exclude_none=True).items():
        print(escaped(f"[{table}]  {values.pop('source')}"))
        for key, value in _flat(values):
            print(escaped(f"  {key} = {value}"))


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        rows = value if isinstance(value, (list, tuple)) else ()
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        elif rows and isinstance(rows[0], dict):
            for row in rows:
                words = (f"{one} {_short(one, given)}" for one, given in row.items())
                yield f"{prefix}{key}", ", ".join(words)
        else:
            yield f"{prefix}{key}", _short(key, value)


def _short(key: str, value: Any) -> str:
    if key.endswith("_ns") and isinstance(value, int):
        return time_text(value)
    if key in ("opcode", "id"):
        numbers = value if isinstance(value, (list, tuple)) else [value]
        return " ".join(f"0x{one:02x}" for one in numbers)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _arithmetic(
    part: CatalogueChip, settings: Sequence[str]
) -> tuple[dict[str, list[BusStep]], tuple[str, ...]]:
    """The steps of each operation and of the attach of an eraseblock, and what was assumed."""
    chosen = parse_settings(settings)
    own: dict[str, dict[str, Any]] = {"chip": {}, "controller": {}}
    for setting, values in chosen.items():
        axis, dot, key = setting.partition(".")
        if (
            len(values) > 1
            or axis not in ("chip", "controller", "corner")
            or (dot == "") != (axis == "corner")
        ):
            raise InputError(
                f"--set {setting}: here chip.KEY, controller.KEY and corner have one value each"
            )
        if dot:
            own[axis][key] = values[0]
    corner = chosen.get("corner", ("typical",))[0]
    given = ChipChange.parse(
        "+".join(f"{key}={value}" for key, value in own["chip"].items()) or "default"
    )
    driver = "+".join(f"{key}={value}" for key, value in own["controller"].items()) or "default"
    controller = Controller(**ControllerChange.parse(driver).values)
    without = {"ecc": {"kind": "hardware-page"}} if part.chip.bus == "parallel" else {}
    tables, fit = fitted(
        without, part, corner=corner, controller=controller, given=given.values
    )  # fmt: skip
    spi = Spi.model_validate(tables["spi"]) if tables["spi"] else None
    wired = WiredChip(Chip.model_validate(tables["chip"]), spi)
    steps = {
        f"{what} of a {'block' if what == 'erase' else 'page'}": steps_of(wired, what)
        for what in OPERATIONS
    }
    steps["attach of an eraseblock"] = attach_steps(wired)
    ahead = block_read_steps(wired)
    if ahead:
        steps["read of an eraseblock, the array loading ahead"] = ahead
    return steps, fit.notes


def new(
    name: ChipName,
    bus: Annotated[str, typer.Option("--bus", metavar="spi|parallel")] = "spi",
) -> None:
    """Begins a chip's file, with where each number stands in a data sheet.

    A `?` has to be replaced. What you do not find stays out: a run that needs it says so.
    """
    if bus not in ("spi", "parallel"):
        raise InputError(f"--bus {bus}: spi or parallel")
    _write(name, blank_chip_text(name, bus))


def _write(name: str, text: str) -> None:
    """Writes boards/chips/NAME.toml, which must not exist yet."""
    if not is_name(name):
        raise ChipError(f"{name}: not a chip's name")
    path = new_chip_file(name)
    begin_file(path, text)
    print(escaped(shown(path)))


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to read.")],
    names: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="NAME", help="Only this chip, or the chip's name."),
    ] = None,
) -> None:
    """Writes boards/chips/NAME.toml from what is known of a chip elsewhere.

    FILE is a kernel source with `SPINAND_INFO` tables or nand_ids.c, a parameter page of ONFI or
    JEDEC (binary or a hex dump), a boot log, or the output of `mtdinfo -a` or `ubinfo -a`. Times of
    the array stand in a parameter page only.
    """
    try:
        data = file.read_bytes()[:FILE_BYTES_MAX]
    except OSError as why:
        raise InputError(f"{shown(file)}: {why.strerror}") from None
    for standard in (onfi, jedec):
        pages = page_bytes_of(data, standard.SIGNATURE)
        if pages is not None:
            _import_one(standard.chip_of_page(pages, shown(file)), names, file)
            return
    text = read_text(file, FILE_BYTES_MAX, InputError)
    if is_kernel_source(text):
        _import_source(text, file, names or [])
        return
    found = chip_of_words(text, shown(file))
    if found is None:
        raise InputError(
            f"{shown(file)}: no SPINAND_INFO table, row of nand_ids.c, parameter page of ONFI or"
            " JEDEC, or lines of a boot log, mtdinfo -a or ubinfo -a"
        )
    _import_words(found, names, file)


def _import_source(text: str, file: Path, names: Sequence[str]) -> None:
    chips: dict[str, Mapping[str, Mapping[str, Any]]] = {}
    for one in chips_in_source(text, file.name):
        chips.setdefault(one["chip"]["name"], one)  # another voltage may have the same name
    unknown = [name for name in names if name not in chips]
    if unknown:
        raise InputError(f"{shown(file)}: no {unknown[0]}; there are {', '.join(chips)}")
    for name in names or chips:
        if not names and new_chip_file(name).exists():
            say(f"flashbed: {shown(new_chip_file(name))}: exists, left as it is")
            continue
        _write(name, chip_text(chips[name]["chip"]["title"], chips[name]))


def _import_one(
    tables: Mapping[str, Mapping[str, Any]], names: Sequence[str] | None, file: Path
) -> None:
    """A file that describes one chip, which `--name` may name."""
    if names and len(names) > 1:
        raise InputError(f"--name {names[1]}: {shown(file)} describes one chip")
    chip = {**tables["chip"], **({"name": names[0]} if names else {})}
    text = chip_text(str(chip["title"]), {**tables, "chip": chip})
    read_model(CatalogueChip, loads(text), file, ChipError)
    _write(str(chip["name"]), text)


def _import_words(
    found: Mapping[str, Mapping[str, Any]], names: Sequence[str] | None, file: Path
) -> None:
    geometry = dict(found["geometry"])
    pages = f"pages of {geometry['page_bytes']} + {geometry.get('oob_bytes', '?')} bytes"
    said = f"{shown(file)}: {found['chip'].get('maker', 'a chip')}, {pages}"
    if not names:
        known = fitting(found, all_chips())
        if known:
            fit = ", ".join(part.name for part in known)
            print(escaped(f"{said}: of the catalogue {fit} fit{'s' if len(known) == 1 else ''}"))
            return
    name = names[0] if names else found["chip"].get("name")
    if name is None or found["chip"].get("bus") == "spi":
        raise InputError(
            f"{said}: no chip of the catalogue fits, and the file does not say which commands it"
            " has; `flashbed chip new NAME` begins one"
        )
    least = geometry.pop("least_blocks", None)
    note = {}
    if least is not None:
        geometry["blocks"] = least
        note = {"note": "blocks are those of the partition; the chip may have more"}
    if "oob_bytes" not in geometry:
        raise InputError(f"{said}: does not say the bytes of the OOB; mtdinfo -a does")
    chip = {
        "name": name, "title": f"{name}, as a board describes it", "maker": "unknown",
        "bus": "parallel", **found["chip"], **note,
    }  # fmt: skip
    tables = {"chip": {**chip, "name": name}, "geometry": geometry,
              "parallel": {"source": found["chip"]["source"]}}  # fmt: skip
    _write(str(name), chip_text(str(chip["title"]), tables))
