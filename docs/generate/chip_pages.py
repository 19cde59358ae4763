"""reference/chips.md: every key of the catalogue of chips, from its pydantic models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from docs.generate.markdown import NOTE, entry, prose
from docs.generate.profile_pages import about, described, key_of
from flashbed.stack.chips import CatalogueChip
from flashbed.stack.fitted_chip import Controller

__all__ = ["page"]

_HEAD = f"""# Chips

{NOTE}

A chip of the catalogue is a file `boards/chips/NAME.toml`: in your working folder, or flashbed's
own. `flashbed chip list` has their names, `flashbed chip show NAME` what is known of one.
This is the beginning of one:

```toml
[chip]
name = "W25N01GV"
title = "Winbond W25N01GV, SPI-NAND of 1 Gbit, 3.3 V"
maker = "Winbond"
bus = "spi"
id = [0xef, 0xaa, 0x21]
source = "Linux 6.12 drivers/mtd/nand/spi/winbond.c"
```

Every table has a text `source`. What no source says is absent, and a key has one meaning wherever
it stands. `flashbed chip new NAME` begins a file. `flashbed chip import FILE` writes one from a
kernel's tables, a parameter page (ONFI, JEDEC), a boot log or the output of `mtdinfo -a`.

## How a board gets a chip

| you write | you get |
|---|---|
| `--set chip=NAME` | this chip in the place of the board's, in any command with a board |
| `--set chip=NAME --set chip.read_array_ns=60000` | the same with a number of your own |
| `--set corner=maximum` | the largest times instead of the typical ones |
| `--set controller.clock_hz=20000000 --set controller.lines=1` | another controller |
| `part = "NAME"` in `[chip]` of a profile | a board with this chip; `[controller]` drives it |

Geometry, times, bus, ECC on the die and endurance are the chip's. Memory, processor and prices of
software stay the board's. Energies of another chip are unknown and therefore null.

- **Times.** Where no typical time of an operation is published, the largest stands in its place. A
  time that is published at no corner ends the run in one line.
- **ECC.** SPI-NAND corrects itself. On raw NAND the board's `[ecc]` stays, unless the chip's own
  cannot be switched off. ECC weaker than the chip asks for is a warning.
- **Controller.** A board keeps its controller if it drives that bus. Else flashbed assumes 52 MHz,
  four data lines and no further cost for SPI-NAND, and for raw NAND one as fast as the chip.
- **Commands.** Of `read` and `program` flashbed takes the fastest that the lines can do at the
  clock, the first of equal ones, as the kernel does. `controller.dtr=1` allows octal DTR.
- **Partition.** It keeps its bytes where they fit, in whole blocks. Otherwise it is the whole chip.

The answer says what was assumed.
"""
_CONTROLLER = """## `[controller]` of a board

Stands in a board's profile whose `[chip]` names a `part`, and is the axis `controller`."""


def page() -> str:
    """The page."""
    parts = [_HEAD.strip(), "## Tables of a chip"]
    for name, field in CatalogueChip.model_fields.items():
        below = _model_of(field.annotation)
        assert below is not None
        needed = "" if field.is_required() else " The table may be missing."
        parts += [f"### [{name}]", prose(f"{about(below)}{needed}"), *_rows(below)]
    parts += [_CONTROLLER, *_rows(Controller)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _rows(model: type[BaseModel]) -> Iterator[str]:
    plain = [
        key
        for key, field in model.model_fields.items()
        if _model_of(field.annotation) is None and key != "source"
    ]
    yield "\n".join(key_of(model, key) for key in plain)
    seen: list[Any] = []
    for key, field in model.model_fields.items():
        below = _model_of(field.annotation)
        if below is None:
            continue
        yield entry(f"`{key}`", described(model)[key])
        if below not in seen:
            seen.append(below)
            yield "\n".join(key_of(below, one) for one in below.model_fields)


def _model_of(kind: Any) -> type[BaseModel] | None:
    for one in (kind, *get_args(kind)):
        if isinstance(one, type) and issubclass(one, BaseModel):
            return one
        for inner in get_args(one):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                return inner
    return None
