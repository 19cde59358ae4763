"""Fits what file systems do to counts: how often each event occurs in a unit of each term.

An event is an operation of the chip, or work that `[software]` prices. Coefficients are never below
zero. Errors of the chip's events count relative to their value, those of prices to the chip's time.

The band comes from chips that were left out: for each chip of the fit a model of the others
predicts its cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from flashbed.answers.analysis.least_squares import non_negative
from flashbed.answers.costs.counting import TERMS, Counts
from flashbed.answers.costs.device_model import (
    CHIP_EVENTS,
    FEW,
    PREDICTED,
    READ_EVENTS,
    DeviceErrors,
    FsModel,
)
from flashbed.answers.costs.devices import (
    ECC_STEPS,
    Packing,
    Parts,
    chip_times,
    in_software,
    priced,
    reads_event,
)
from flashbed.answers.costs.logs import erased_blocks
from flashbed.base.errors import InputError
from flashbed.stack.profiles import Board

__all__ = ["Seen", "errors_of", "fit_system"]

_FEW_EVENTS = 5.0
"""A case with fewer events of a kind counts as one with so many."""
_NOTHING = 1e-9
_WRITTEN = (
    "one", "pages", "blocks", "header", "flush", "moved_pages", "commit", "create", "truncate",
)  # fmt: skip
_READ = (
    "one", "open", "create", "remove", "truncate", "sync", "page_in", "page_in_kib",
    "page_in_flash", "inode_in", "inode_page", "pages", "blocks", "header", "flush", "moved_node",
    "moved_kib", "moved_pages", "gone_node", "chunk_read", "commit",
)  # fmt: skip
_PACKED = (
    "data_node", "data_kib", "solid_node", "solid_kib", "moved_node", "moved_kib",
    "moved_solid_kib",
)  # fmt: skip
_UNPACKED = ("page_in", "page_in_kib", "moved_node", "moved_kib")
"""The terms that can make an event: what is written makes writes, data makes compressors work."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A case as the simulator ran it: `values` by the names of `PREDICTED`, None if unknown.

    `software` has how often each price occurs, where that was counted.
    """

    name: str
    device: str
    board: Board
    counted: Counts
    values: Mapping[str, int | None]
    call_writes: int
    call_erases: int
    flash_time_ns: int
    software: Mapping[str, float] | None = None


def fit_system(fs: str, packing: Packing, seen: Sequence[Seen]) -> FsModel:
    """The model of a file system. Raises `InputError` where too few cases say too little."""
    if len(seen) < len(TERMS) or not any(one.software for one in seen):
        raise InputError(f"{fs}: {len(seen)} cases are too few to fit {len(TERMS)} terms to")
    whole = _fitted(packing, seen)
    devices = list(dict.fromkeys(one.device for one in seen))
    parts: list[tuple[Seen, Parts]] = []
    for device in devices if len(devices) > 1 else ():
        others = [one for one in seen if one.device != device]
        if not any(one.software for one in others):
            continue
        rest = _fitted(packing, others)
        parts += [
            (one, priced(rest, one.board, one.counted))
            for one in seen
            if one.device == device and reads_event("call_reads", one.board) in rest.events
        ]
    parts = parts or [(one, priced(whole, one.board, one.counted)) for one in seen]
    return whole.model_copy(update={"errors": errors_of(parts)})


def errors_of(predicted: Sequence[tuple[Seen, Parts]]) -> dict[str, DeviceErrors]:
    """How far predictions are off."""
    found = {}
    for name in PREDICTED:
        off = []
        for one, parts in predicted:
            value, cost = one.values[name], parts.costs[name]
            if value is None or cost is None or value < (FEW if name == "erases" else 1):
                continue
            off.append((cost.value - value) / value)
        missed = np.abs(np.array(off))
        found[name] = DeviceErrors(
            cases=len(off),
            scatter=float(np.sqrt(np.mean(missed**2))) if off else 0.0,
            mean_pct=100 * float(missed.mean()) if off else 0.0,
            worst_pct=100 * float(missed.max()) if off else 0.0,
        )
    return found


def _fitted(packing: Packing, seen: Sequence[Seen]) -> FsModel:
    system = np.array([[one.counted.amounts[term] for term in TERMS] for one in seen])
    events: dict[str, dict[str, float]] = {}
    for event in CHIP_EVENTS:
        wanted = np.array([_chip_event(one, event) for one in seen])
        events[event] = _relative(system, wanted, _WRITTEN)
    for event in READ_EVENTS:
        for name in dict.fromkeys(reads_event(event, one.board) for one in seen):
            rows = [at for at, one in enumerate(seen) if reads_event(event, one.board) == name]
            wanted = np.array([_chip_event(seen[at], event) for at in rows])
            events[name] = _relative(system[rows], wanted, _READ)
    events |= _prices(system, seen)
    nothing = DeviceErrors(cases=0, scatter=0.0, mean_pct=0.0, worst_pct=0.0)
    whole = FsModel(
        stored=packing.stored, retried=packing.retried, events=events, erases_a_commit=0.0,
        errors=dict.fromkeys(PREDICTED, nothing),
    )  # fmt: skip
    return whole.model_copy(update={"erases_a_commit": _erases_a_commit(seen)})


def _chip_event(one: Seen, event: str) -> float:
    if event == "call_writes":
        return float(one.call_writes)
    if event != "call_reads":
        return float(one.values[event] or 0)
    # The chip's time within calls, beside page writes and erases.
    chip = chip_times(one.board)
    others = one.call_writes * chip.program_ns + one.call_erases * chip.erase_ns
    return max(0.0, (one.flash_time_ns - others) / chip.read_ns)


def _relative(system: np.ndarray, wanted: np.ndarray, terms: Sequence[str]) -> dict[str, float]:
    return _solved(system, wanted, 1 / np.maximum(wanted, _FEW_EVENTS), terms)


def _solved(
    system: np.ndarray, wanted: np.ndarray, weights: np.ndarray, terms: Sequence[str]
) -> dict[str, float]:
    columns = system[:, [TERMS.index(term) for term in terms]]
    found = non_negative(columns * weights[:, None], wanted * weights)
    pairs = zip(terms, found.values.tolist(), strict=True)
    return {term: value for term, value in pairs if value > _NOTHING}


def _prices(system: np.ndarray, seen: Sequence[Seen]) -> dict[str, dict[str, float]]:
    counted = [at for at, one in enumerate(seen) if one.software is not None]
    names = dict.fromkeys(name for at in counted for name in seen[at].software or {})
    found = {}
    for name in names:
        rows = [at for at in counted if name in (seen[at].software or {})]
        if name == ECC_STEPS:
            rows = [at for at in rows if in_software(seen[at].board)]
        wanted = np.array([(seen[at].software or {})[name] for at in rows])
        if not wanted.any():
            continue
        weights = np.array([1 / max(1, seen[at].flash_time_ns) for at in rows])
        found[name] = _solved(system[rows], wanted, weights, _terms_of(name))
    return found


def _terms_of(price: str) -> Sequence[str]:
    if not price.startswith("compressors."):
        return TERMS
    return _UNPACKED if ".unpack" in price else _PACKED


def _erases_a_commit(seen: Sequence[Seen]) -> float:
    """What commits erase besides the blocks that are dead: of log and index."""
    system, wanted = [], []
    for one in seen:
        erases, commits = one.values["erases"] or 0, one.counted.amounts["commit"]
        if erases < FEW or not commits:
            continue
        written = (one.values["page_writes"] or 0) / one.board.chip.pages_per_block
        dead = erased_blocks(one.counted.below.fs, one.counted.space, written, seconds=0.0)
        system.append([commits / erases])
        wanted.append((erases - dead) / erases)
    if not system:
        return 0.0
    return float(non_negative(np.array(system), np.array(wanted)).values[0])
