"""The parts of a partition as rows that add up to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from flashbed._sim import SpaceTable
from flashbed.answers.space.parts import MEANINGS, NOT_IN_VOLUME, OTHER_PARTITIONS

__all__ = ["Ledger", "SpacePart", "beside", "ledger_of"]


@dataclass(frozen=True)
class SpacePart:
    """Bytes that are kept for something: `units` erase blocks or LEBs, or bytes within them."""

    layer: str
    name: str
    units: int | None
    bytes: int

    @property
    def meaning(self) -> str:
        """What it is for."""
        return MEANINGS[self.layer, self.name]


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """A partition: `parts` and `available_bytes` add up to `partition_bytes`.

    df calls `available_bytes` available and `size_bytes` the size.
    """

    partition_bytes: int
    parts: tuple[SpacePart, ...]
    available_bytes: int
    size_bytes: int
    facts: Mapping[str, int]


def ledger_of(device: SpaceTable, volume: SpaceTable | None = None) -> Ledger:
    """The rows of a partition; those of UBI's `device`, and above them those of a `volume`.

    The simulator has one volume over all of its partition, so a smaller volume is that of a
    smaller partition.
    """
    if volume is None:
        return _ledger(device, device, tuple(_parts(device)))
    lebs, own = (dict(table.facts)["lebs"] for table in (device, volume))
    left = lebs - own
    below = [part for part in _parts(device) if part.layer == "ubi"]
    if left:
        below.append(SpacePart("ubi", NOT_IN_VOLUME, left, left * dict(device.facts)["leb_bytes"]))
    above = [part for part in _parts(volume) if part.layer != "ubi"]
    return _ledger(device, volume, (*below, *above))


def beside(ledger: Ledger, blocks: int, block_bytes: int) -> Ledger:
    """The ledger with so many blocks of a layout's other partitions."""
    if not blocks:
        return ledger
    part = SpacePart("mtd", OTHER_PARTITIONS, blocks, blocks * block_bytes)
    whole = ledger.partition_bytes + part.bytes
    return replace(ledger, parts=(part, *ledger.parts), partition_bytes=whole)


def _ledger(device: SpaceTable, volume: SpaceTable, parts: tuple[SpacePart, ...]) -> Ledger:
    return Ledger(
        partition_bytes=device.partition_bytes,
        parts=parts,
        available_bytes=max(0, volume.left_bytes),
        size_bytes=volume.size_bytes,
        facts=dict(volume.facts),
    )


def _parts(table: SpaceTable) -> Iterator[SpacePart]:
    return (SpacePart(row.layer, row.name, row.units, row.bytes) for row in table.rows)
