"""A boot in the simulator: the same parts as on a real kernel (sim/src/run/boot.rs).

The processor takes its time where the board has prices of squashfs and of the root's compressor.
Else it takes none, as on user-mode Linux. What the model leaves out is refused in a line.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from flashbed import _sim
from flashbed.base.errors import InputError
from flashbed.stack.layouts import Layout, in_layout, on_partition
from flashbed.stack.stack import Stack
from flashbed.targets.exec.outcome import ChipCounts, FileRead, MountStep, NotRunError
from flashbed.targets.exec.request import ExecRequest
from flashbed.targets.sim import begun_with, chip_of

__all__ = ["has_prices", "refused", "simulated_boot"]

_KERNEL = "6.1"
_REAL = "--on uml runs the kernel's"
_COMPRESSORS = {1: "gzip", 3: "lzo", 4: "xz", 5: "lz4", 6: "zstd"}
"""struct squashfs_super_block, `compression`."""
_COMPRESSOR = slice(20, 22)


def refused(stack: Stack, *, dumped: bool) -> str | None:
    """Why the simulator cannot boot this stack, or a dump on it; None if it can."""
    layout = stack.layout
    if layout is None and not dumped:
        return "boots a layout, or a dump; --set layout=squashfs-overlay-ubifs"
    if stack.not_simulated is not None:
        return stack.not_simulated
    if layout is None:
        return None
    if dumped:
        return f"the dump of layout={layout.name}; {_REAL}"
    if stack.kernel.name.partition("-")[0] != _KERNEL:
        return f"--set kernel={stack.kernel.name}: squashfs is that of Linux {_KERNEL}"
    for volume in layout.volume:
        if volume.name == layout.writes_to or volume.holds == "nothing":
            continue
        if volume.holds != "squashfs":
            what = f"{volume.holds} of volume {volume.name}"
            return f"{what}: the simulator reads squashfs alone; {_REAL}"
        if volume.fixed:
            return f"volume {volume.name}: the simulator has no static volumes; {_REAL}"
    return None


def has_prices(request: ExecRequest) -> bool:
    """Whether the board's profile prices all that the processor does in this boot."""
    layout, software = request.stack.layout, request.stack.board.software
    if layout is None:
        return software.syscall_ns > 0
    prices = software.squashfs
    if prices is None:
        return False
    squashfs = [
        image for name, image in request.images.content.items()
        if layout.of(name).holds == "squashfs"
    ]  # fmt: skip
    numbers = {int.from_bytes(image[_COMPRESSOR], "little") for image in squashfs}
    names = [_COMPRESSORS.get(number) for number in numbers]
    return all(name is not None and getattr(prices.unpack, name) is not None for name in names)


def simulated_boot(request: ExecRequest) -> tuple[list[MountStep], list[FileRead | str]]:
    """The parts of a boot up to the mounts, and each file that is read, or why it was not.

    Raises `NotRunError`.
    """
    stack = request.stack if has_prices(request) else request.stack.in_user_mode
    layout = stack.layout
    if layout is None:
        return _dump_booted(request, stack)
    images = request.images.content
    sizes = request.images.sizes
    names = [volume.name for volume in layout.volume]
    root = layout.layer.lower if layout.layer else layout.root or layout.writes_to
    try:
        steps = _sim.boot_layout(
            on_partition(stack.board.sim_json_with(stack.compressor), layout, sizes),
            in_layout(stack.kernel_alone, layout, sizes),
            chip=chip_of(stack),
            volumes=[_held(layout, name, images.get(name)) for name in names],
            partitions=_first_blocks(stack, sizes),
            root=names.index(root),
            files=request.reads,
            read_ahead_kib=stack.modelled_kib,
        )
    except ValueError as why:
        raise NotRunError(str(why)) from None
    return _parts(steps, names)


def _dump_booted(
    request: ExecRequest, stack: Stack
) -> tuple[list[MountStep], list[FileRead | str]]:
    """The same of a dump. Raises `NotRunError`."""
    dump = request.dump
    assert dump is not None
    try:
        steps = _sim.boot_layout(
            stack.simulated_board,
            stack.simulated_kernel,
            chip=chip_of(stack),
            volumes=[("program", None)],
            partitions=[] if stack.fs == "ubifs" else [stack.board.partition.first_block],
            root=0,
            files=request.reads,
            read_ahead_kib=stack.modelled_kib,
            dump=begun_with(dump.path, stack, volume=dump.volume, compressor=dump.compressor),
        )
    except (InputError, ValueError) as why:
        raise NotRunError(str(why)) from None
    return _parts(steps, [dump.volume or "mount"])


def _parts(
    steps: list[_sim.BootStep], names: list[str]
) -> tuple[list[MountStep], list[FileRead | str]]:
    mounts = [_mount(step, names) for step in steps if step.part != "file"]
    return mounts, [_read(step) for step in steps if step.part == "file"]


def _first_blocks(stack: Stack, sizes: Mapping[str, int]) -> list[int]:
    """The chip's first block of each partition of MTD; none on UBI."""
    layout, chip, partition = stack.layout, stack.board.chip, stack.board.partition
    if layout is None or layout.on == "ubi":
        return []
    blocks = layout.blocks(sizes, block_bytes=chip.block_bytes, there=partition.blocks)
    return [partition.first_block + each.start for each in blocks.values()]


def _held(layout: Layout, name: str, image: bytes | None) -> tuple[str, bytes | None]:
    if name == layout.writes_to:
        return "program", None
    return ("nothing", None) if image is None else (layout.of(name).holds, image)


def _mount(step: _sim.BootStep, names: list[str]) -> MountStep:
    name = step.part if step.volume is None else names[step.volume]
    return MountStep(name=name, ns=step.time_ns, chip=_chip(step))


def _read(step: _sim.BootStep) -> FileRead | str:
    if step.size_bytes is None:
        return os.strerror(step.errno or 0)
    return FileRead(ns=step.time_ns, bytes=step.size_bytes, chip=_chip(step))


def _chip(step: _sim.BootStep) -> ChipCounts:
    return ChipCounts(
        reads=step.reads, programs=step.programs, erases=step.erases, busy_ns=step.busy_ns
    )
