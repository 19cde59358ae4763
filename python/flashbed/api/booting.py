"""Boots a stack, and says what each part takes: attach, mounts, the files that are read first.

A device is prepared: the layout's volumes with their images, files that are copied onto it, a
program that it runs before. Then it is switched off, unmounted or in the middle of things, and
booted: what is measured begins where UBI is attached (agent/host/boot.c). What comes before, a boot
loader that loads a kernel, is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from flashbed.api.exec_options import (
    ExecOptions,
    check_dump,
    check_stack,
    requests_of,
    with_images,
)
from flashbed.base.errors import InputError
from flashbed.base.files import read_text
from flashbed.plan.stacks import ChosenStack
from flashbed.results.run_directory import CHIP_ALONE
from flashbed.stack.layouts import Layout
from flashbed.targets.exec.executors import load_executor
from flashbed.targets.exec.outcome import (
    ChipCounts,
    ExecOutcome,
    FileRead,
    MountStep,
    NotRunError,
)
from flashbed.targets.exec.request import PATH_BYTES_MAX, ExecRequest, puts_of
from flashbed.targets.exec.simulated_boot import has_prices, refused, simulated_boot
from flashbed.targets.exec.sysroot import Sysroot

__all__ = ["BootFile", "BootPart", "CutFile", "Cuts", "MeasuredBoot", "boots", "files_of"]

FILES_MAX = 10_000
_OPENED = re.compile(r'\bopen(?:at)?\([^"]*"([^"]+)", O_RDONLY(?![^)]*O_DIRECTORY)[^)]*\) = \d')
"""A file that strace saw opened."""
_PLACES: Mapping[str, Literal["sim", "uml", "emulator"]] = {
    "sim": "sim", CHIP_ALONE: "sim", "uml": "uml", "emulator": "emulator",
}  # fmt: skip
_NOT_ON_FLASH = ("/proc/", "/sys/", "/dev/")
_NOTHING = ChipCounts()
_TOLD = ("old", "new", "missing", "other")
_KINDS = {"attach": "attach UBI", "layer": "overlay"}

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class BootPart:
    """A part of a boot: its time, of it the chip's, and the chip's operations."""

    name: str
    """`attach UBI`, `mount squashfs (rootfs)`, `overlay`, `read 25 files`."""
    time_ns: int
    chip: ChipCounts


@dataclass(frozen=True, kw_only=True)
class BootFile:
    """A file of the list. `read` says why it was not read, or what reading it took."""

    path: str
    read: FileRead | str


@dataclass(frozen=True, kw_only=True)
class CutFile:
    """What boots after power cuts found of a file; a count of cuts each."""

    path: str
    old: int
    """As it was before the program ran."""
    new: int
    """As the program left it."""
    missing: int
    """Not there, or not readable."""
    other: int
    """There, with another content than before and after."""
    same: bool
    """Whether the program left it as it was; `old` counts it then."""


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """Boots after power cuts, evenly spread over the changes that a program makes."""

    changes: int
    """Page writes and erases of the program, and of the write-back after it."""
    times_ns: Sequence[int]
    """Attach and mounts of each device that booted."""
    failed: Mapping[str, int]
    """Why a device did not boot -> after how many cuts."""
    files: Sequence[CutFile]
    before_bytes: int
    """What df calls available before the program ran."""
    after_bytes: int
    """The same after it, once all is written back."""
    least_bytes: int | None
    """The least after a cut; None if nothing booted."""

    @property
    def count(self) -> int:
        """The cuts that were made."""
        return len(self.times_ns) + sum(self.failed.values())


@dataclass(frozen=True, kw_only=True)
class MeasuredBoot:
    """A boot of one stack, or why there was none."""

    request: ExecRequest
    parts: Sequence[BootPart] = ()
    files: Sequence[BootFile] = ()
    cuts: Cuts | None = None
    failed: str | None = None

    @property
    def time_ns(self) -> int:
        """From the attach to the last file."""
        return sum(part.time_ns for part in self.parts)

    @property
    def chip(self) -> ChipCounts:
        """The chip's operations in all parts."""
        return _sum([part.chip for part in self.parts])

    @property
    def has_software_time(self) -> bool:
        """Whether the processor's time is in its times, besides the flash's."""
        where = self.request.where
        return where == "emulator" or (where == "sim" and has_prices(self.request))

    @property
    def unread(self) -> list[BootFile]:
        """The files that could not be read."""
        return [each for each in self.files if isinstance(each.read, str)]


def files_of(list_: Path) -> list[str]:
    """The paths of a list, a line each, below the root that the device boots. Raises `InputError`.

    An empty line and one that begins with `#` is left out. A log of strace is a list too: of the
    files that were opened for reading, each once.
    """
    lines = [line.strip() for line in read_text(list_).splitlines()]
    if any(map(_OPENED.search, lines)):
        opened = [found[1] for found in map(_OPENED.search, lines) if found]
        lines = [path for path in dict.fromkeys(opened) if not path.startswith(_NOT_ON_FLASH)]
    paths = [line.lstrip("/") for line in lines if line and not line.startswith("#")]
    if len(paths) > FILES_MAX:
        raise InputError(f"{list_}: more than {FILES_MAX:,} files")
    for path in paths:
        if len(path.encode()) > PATH_BYTES_MAX or ".." in path.split("/"):
            raise InputError(f"{list_}: {path[:80]}: not a path below the root")
    return paths


def boots(
    options: ExecOptions,
    stacks: Sequence[ChosenStack],
    *,
    off: str,
    files: Sequence[str],
    cuts: int = 0,
    say: Say,
) -> list[MeasuredBoot]:
    """A boot of each stack, or boots after `cuts` power cuts while its program runs.

    Raises `InputError` and `Unavailable`.
    """
    if _PLACES.get(options.on) == "sim":
        _check_simulated(options, stacks, off=off, cuts=cuts)
    if options.on == CHIP_ALONE:
        stacks = [replace(each, stack=each.stack.in_user_mode) for each in stacks]
    if cuts and not options.words:
        raise InputError("--cuts: needs a program to cut; -- COMMAND")
    if options.words:
        made = requests_of(options, stacks, say)
    else:
        made = [_without_program(options, each, say) for each in stacks]
    found = []
    for request in made:
        unclean = off == "unclean" or cuts
        asked = replace(request, boot="unclean" if unclean else "clean", reads=files, cuts=cuts)
        try:
            found.append(_booted(asked, say))
        except NotRunError as why:
            found.append(MeasuredBoot(request=asked, failed=str(why)))
    return found


def _check_simulated(
    options: ExecOptions, stacks: Sequence[ChosenStack], *, off: str, cuts: int
) -> None:
    """Checks that the simulator can boot this. Raises `InputError`."""
    given = {
        "COMMAND": bool(options.words), "--put": bool(options.put),
        "--off unclean": off == "unclean", "--cuts": bool(cuts),
    }  # fmt: skip
    for option, is_given in given.items():
        if is_given:
            raise InputError(f"{option}: the simulator boots an unchanged layout; --on uml has it")
    for chosen in stacks:
        why = refused(chosen.stack, dumped=options.dump is not None)
        if why is not None:
            raise InputError(f"--on sim: {why}")


def _booted(request: ExecRequest, say: Say) -> MeasuredBoot:
    """The boot of a request. Raises `NotRunError`."""
    if request.where == "sim":
        steps, reads = simulated_boot(request)
    else:
        request, outcome = load_executor(request.where)(request, say, aside=True)
        if request.cuts:
            return MeasuredBoot(request=request, cuts=_cuts(outcome, request.reads))
        steps, reads = outcome.boot, outcome.reads
    read = [BootFile(path=path, read=each) for path, each in zip(request.reads, reads, strict=True)]
    parts = [*(_mounted(step, request) for step in steps), *_reading(read)]
    return MeasuredBoot(request=request, parts=parts, files=read)


def _cuts(outcome: ExecOutcome, paths: Sequence[str]) -> Cuts:
    booted = [cut for cut in outcome.cuts if cut.failed is None]
    files = []
    for number, path in enumerate(paths):
        before, after = outcome.before.files[number], outcome.after.files[number]
        seen = Counter(_told(cut.found.files[number], before, after) for cut in booted)
        files.append(CutFile(path=path, same=before == after, **{k: seen[k] for k in _TOLD}))
    return Cuts(
        changes=outcome.changes,
        times_ns=[cut.ns for cut in booted],
        failed=Counter(cut.failed for cut in outcome.cuts if cut.failed is not None),
        files=files,
        before_bytes=outcome.before.space_bytes,
        after_bytes=outcome.after.space_bytes,
        least_bytes=min((cut.found.space_bytes for cut in booted), default=None),
    )


def _told(found: object, before: object, after: object) -> str:
    if found == before:
        return "old"
    if found == after:
        return "new"
    return "missing" if isinstance(found, str) else "other"


def _without_program(options: ExecOptions, chosen: ChosenStack, say: Say) -> ExecRequest:
    """The request for a device that runs nothing before."""
    where = _PLACES.get(options.on)
    if where is None:
        raise InputError(f"--on {options.on}: sim, uml or emulator")
    check_dump(options)
    check_stack(options, chosen)
    made = ExecRequest(
        stack=chosen.stack,
        words=(),
        program="",
        variables={},
        puts=puts_of(options.put, chosen.stack.board),
        memory_mib=options.memory,
        sysroot=Sysroot(["view"]) if options.on == "emulator" else None,
        where=where,
        sysctls=chosen.sysctls,
        changes=chosen.changes,
    )
    return with_images(options, made, say)


def _mounted(step: MountStep, request: ExecRequest) -> BootPart:
    layout = request.stack.layout
    return BootPart(
        name=_name(step.name, layout) or f"mount {request.fs}",
        time_ns=step.ns,
        chip=step.chip or _NOTHING,
    )


def _name(step: str, layout: Layout | None) -> str | None:
    """What a step is called for a person; None for the mount of a stack's only file system."""
    if step in _KINDS or layout is None:
        return _KINDS.get(step)
    return f"mount {layout.of(step).holds} ({step})"


def _reading(files: Sequence[BootFile]) -> list[BootPart]:
    """The files that were read, as one part."""
    read = [each.read for each in files if isinstance(each.read, FileRead)]
    if not read:
        return []
    name = f"read {len(read):,} file{'' if len(read) == 1 else 's'}"
    chips = [each.chip or _NOTHING for each in read]
    return [BootPart(name=name, time_ns=sum(each.ns for each in read), chip=_sum(chips))]


def _sum(chips: Sequence[ChipCounts]) -> ChipCounts:
    return ChipCounts(
        reads=sum(each.reads for each in chips),
        programs=sum(each.programs for each in chips),
        erases=sum(each.erases for each in chips),
        busy_ns=sum(each.busy_ns for each in chips),
    )
