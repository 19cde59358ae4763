"""Checks the options of `flashbed exec` and turns them into requests.

Everything is checked before anything is built or booted. An option that the target does not
support is refused by its name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flashbed.base.errors import InputError
from flashbed.base.paths import cache_folder, shown
from flashbed.plan.stacks import ChosenStack
from flashbed.stack.changes import OF_BOARD
from flashbed.stack.file_systems import RAW
from flashbed.targets.exec.folders import USUAL_PATH
from flashbed.targets.exec.named_files import missing_files
from flashbed.targets.exec.request import ExecRequest, Put, environment, find, puts_of
from flashbed.targets.exec.software import costs_of
from flashbed.targets.exec.sysroot import Sysroot, packages_folder, read_sysroot
from flashbed.targets.exec.unpacking import kept_folder
from flashbed.targets.guest.image_tools import volume_tools
from flashbed.targets.guest.layout_images import given_images, images_of
from flashbed.targets.ssh.address import is_address
from flashbed.targets.uml.programs_kernel import program_kernels

__all__ = [
    "PATIENCE_S", "ExecOptions", "check_dump", "check_stack", "requests_of", "with_images",
]  # fmt: skip

SPIN_S = 60.0
"""Of one processor, without a system call, a page fault or a signal."""
PATIENCE_S = 600.0
MEMORY_MIB = (64, 16_384)
UNTIL_MAX_S = 1e8
"""The guest stores seconds in 31 bits."""
PORTS = (1, 65_535)
_BEGIN_WITH_DUMPS = ("sim", "sim-chip", "uml", "emulator")

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class ExecOptions:
    """The command's options, as the user gave them."""

    words: Sequence[str]
    on: str
    put: Sequence[Path]
    env: Sequence[str]
    memory: int | None
    patience: float | None
    keep: Path | None
    shell: bool = False
    until: float | None = None
    software: str | None = None
    package: Sequence[str] = ()
    sysroot: Path | None = None
    gdb: int | None = None
    record: Path | None = None
    contents: bool = False
    spin: float | None = None
    image: Sequence[str] = ()
    """PATH, or VOLUME=PATH of a layout's volumes."""
    dump: Path | None = None
    """What the flash holds at first, in place of a new file system."""
    volume: str | None = None
    """The program's volume of that dump."""


def requests_of(options: ExecOptions, stacks: Sequence[ChosenStack], say: Say) -> list[ExecRequest]:
    """A request for each stack. Raises `InputError` and `Unavailable`."""
    _check(options)
    for chosen in stacks:
        check_stack(options, chosen)
    sysroot = _sysroot(options, say) if options.on == "emulator" else None
    made = [with_images(options, _request(options, chosen, sysroot, say), say) for chosen in stacks]
    several = len(stacks) > 1
    if options.keep is not None:
        made = [
            replace(each, keep=options.keep / chosen.word if several else options.keep)
            for each, chosen in zip(made, stacks, strict=True)
        ]
        for each in made:
            assert each.keep is not None
            kept_folder(each.keep)
    missing = missing_files(options.words, made[0].puts) if made else None
    if missing is not None:
        say(missing)
    if options.record is not None:
        made = [
            replace(
                each,
                record=_record(options.record, chosen.word if several else None),
                contents=options.contents,
            )
            for each, chosen in zip(made, stacks, strict=True)
        ]
    return made


def with_images(options: ExecOptions, request: ExecRequest, say: Say) -> ExecRequest:
    """The request with its dump, or the images of its layout's volumes. Raises `InputError`."""
    if options.dump is not None:
        # Loads the reader of images, which other requests do not need.
        from flashbed.api.dumped_flash import dumped

        return replace(request, dump=dumped(options.dump, options.volume, request.stack))
    given = given_images(options.image, request.stack.layout)
    if request.stack.layout is None:
        return request
    images = images_of(request.stack, given, cache=cache_folder(), say=say)
    return replace(request, images=images)


def _record(path: Path, word: str | None) -> Path:
    """The file of a stack's recording. Raises `InputError` if it exists."""
    if word is not None:
        path = path.with_name(f"{path.stem}-{word}{path.suffix}")
    if path.exists():
        raise InputError(f"--record {shown(path)}: exists already")
    return path


def _request(
    options: ExecOptions, chosen: ChosenStack, sysroot: Sysroot | None, say: Say
) -> ExecRequest:
    puts = puts_of(options.put, chosen.stack.board)
    if options.on == "uml":
        made = _of_this_machine(options, chosen, puts, say)
    elif sysroot is not None:
        made = _of_a_tree(options, chosen, puts, sysroot)
    else:
        made = _of_a_board(options, chosen, puts)
    return replace(made, sysctls=chosen.sysctls, changes=chosen.changes, until_s=options.until)


def _of_this_machine(
    options: ExecOptions, chosen: ChosenStack, puts: Sequence[Put], say: Say
) -> ExecRequest:
    variables = environment(options.env)
    if chosen.stack.layout is not None:
        tools = volume_tools(cache_folder(), say)
        variables["PATH"] = f"{tools}{os.pathsep}{variables['PATH']}"
    own_shell = os.environ.get("SHELL") or "/bin/sh"
    shell = find(own_shell, variables["PATH"], ()) if options.shell else None
    words = options.words or [own_shell]
    return ExecRequest(
        stack=chosen.stack,
        words=words,
        program=find(words[0], variables["PATH"], puts),
        variables=variables,
        puts=puts,
        memory_mib=options.memory,
        patience_s=options.patience or (None if options.shell else PATIENCE_S),
        costs=costs_of(chosen.stack.board.software, options.software or "flat"),
        terminal=not options.words,
        shell=shell if options.words else None,
        spin_s=SPIN_S if options.spin is None else options.spin or None,
    )


def _sysroot(options: ExecOptions, say: Say) -> Sysroot:
    if (options.sysroot is None) == (not options.package):
        raise InputError("--on emulator: needs programs, from --package NAME or --sysroot FOLDER")
    if options.sysroot is not None:
        return read_sysroot(options.sysroot)
    return read_sysroot(packages_folder(cache_folder(), options.package, say))


def _of_a_tree(
    options: ExecOptions, chosen: ChosenStack, puts: Sequence[Put], sysroot: Sysroot
) -> ExecRequest:
    variables = environment(options.env, path=USUAL_PATH)
    program = options.words[0]
    # A person who debugs a kernel takes longer than any limit.
    patience = options.patience or (None if options.gdb else PATIENCE_S)
    if not any(put.path == os.path.normpath(program) for put in puts):
        program = sysroot.find(program, variables["PATH"])
    return ExecRequest(
        stack=chosen.stack,
        words=options.words,
        program=program,
        variables=variables,
        puts=puts,
        memory_mib=options.memory,
        patience_s=patience,
        sysroot=sysroot,
        gdb=options.gdb,
        where="emulator",
    )


def _of_a_board(options: ExecOptions, chosen: ChosenStack, puts: Sequence[Put]) -> ExecRequest:
    variables = environment(options.env, path=USUAL_PATH)
    return ExecRequest(
        stack=chosen.stack,
        words=options.words,
        program=options.words[0],
        variables=variables,
        puts=puts,
        patience_s=options.patience or PATIENCE_S,
        where="board",
        address=options.on,
    )


def _check(options: ExecOptions) -> None:
    """Checks that the options are possible and fit together. Raises `InputError`."""
    if not options.words and not options.shell:
        raise InputError("no command to run; example: flashbed exec -- ls")
    if any("\0" in word for word in [*options.words, *options.env]):
        raise InputError("the command holds a NUL byte")
    if options.memory is not None and not MEMORY_MIB[0] <= options.memory <= MEMORY_MIB[1]:
        raise InputError(f"--memory {options.memory}: {MEMORY_MIB[0]} to {MEMORY_MIB[1]} MiB")
    if options.patience is not None and not 0 < options.patience < 1e9:
        raise InputError(f"--host-timeout {options.patience:g}: must be above 0 seconds")
    if options.spin is not None and not 0 <= options.spin < 1e9:
        raise InputError(f"--spin {options.spin:g}: must be 0 seconds or more")
    if options.spin is not None and (options.on != "uml" or options.shell):
        raise InputError("--spin: for programs of this machine, and not with --shell")
    if options.until is not None and not 0 < options.until < UNTIL_MAX_S:
        raise InputError(f"--until {options.until:g}: seconds above 0, less than {UNTIL_MAX_S:g}")
    if options.record is not None and options.shell:
        raise InputError("--record: does not go with --shell")
    if options.contents and options.record is None:
        raise InputError("--contents: what --record FILE keeps; give it too")
    check_dump(options)
    if options.gdb is not None and not PORTS[0] <= options.gdb <= PORTS[1]:
        raise InputError(f"--gdb {options.gdb}: a port, {PORTS[0]} to {PORTS[1]}")
    _check_target(options)


def check_dump(options: ExecOptions) -> None:
    """Checks what goes with a dump. Raises `InputError`."""
    if options.volume is not None and options.dump is None:
        raise InputError("--volume: of --dump FILE; give it too")
    if options.dump is None:
        return
    if options.on not in _BEGIN_WITH_DUMPS:
        raise InputError(f"--dump: works with --on sim, uml and emulator, not {options.on}")
    if options.image:
        raise InputError("--image: not with --dump, which has files already")


def check_stack(options: ExecOptions, chosen: ChosenStack) -> None:
    """Checks that the target can be such a stack. Raises `InputError`."""
    if chosen.stack.only_simulated is not None:
        raise InputError(f"--set {chosen.stack.only_simulated}")
    if chosen.stack.refused_on_nor is not None:
        raise InputError(f"--set {chosen.stack.refused_on_nor}")
    kernel = chosen.stack.kernel.name
    able = program_kernels(cache_folder())
    if kernel not in able:
        raise InputError(f"--kernel {kernel}: programs run on Linux {' or '.join(able)}")
    layout = chosen.stack.layout
    if layout is not None and layout.root_volume is not None:
        volume = layout.root_volume.name
        raise InputError(f"--set layout.files=root: of cases; here --image {volume}=DIR fills it")
    if layout is not None and layout.fastmap and options.on == "emulator":
        raise InputError("--set layout.fastmap=1: Debian's kernel has no fastmap; --on uml has it")
    if chosen.stack.fs in RAW:
        _check_partition(options, chosen.stack.fs)
    if not is_address(options.on):
        return
    if chosen.stack.board.nor is not None:
        raise InputError(f"--on {options.on}: SPI-NOR is on sim, uml and emulator")
    if chosen.stack.layout is not None:
        raise InputError("--set layout: a real board's flash is laid out as it is")
    for name, _ in chosen.changes:
        axis = name.partition(".")[0]
        if axis in (*OF_BOARD, "kernel"):
            raise InputError(f"--set {name}: a real board's {axis} cannot be changed")
    if chosen.sysctls or chosen.stack.vm.sysctls:
        raise InputError("--sysctl: works with --on uml and --on emulator only")


def _check_partition(options: ExecOptions, fs: str) -> None:
    """Checks what goes without a file system: a device that has a name. Raises `InputError`."""
    if fs == "mtd-driver":
        raise InputError(f"--fs {fs}: no program reaches it; mtd is the partition's device")
    files = {"--put": bool(options.put), "--keep": options.keep is not None}
    for option, given in files.items():
        if given:
            raise InputError(f"{option}: there is no file system with --fs {fs}")


def _check_target(options: ExecOptions) -> None:
    """Checks that the target supports the options. Raises `InputError`."""
    if options.on not in ("uml", "emulator") and not is_address(options.on):
        raise InputError(f"--on {options.on}: uml, emulator or ssh://USER@HOST")
    only = {
        "uml": {
            "--shell": options.shell,
            "--software": options.software is not None,
            "--record": options.record is not None,
        },
        "emulator": {
            "--package": bool(options.package),
            "--sysroot": options.sysroot is not None,
            "--gdb": options.gdb is not None,
        },
    }
    for target, its_own in only.items():
        for name, given in its_own.items():
            if given and options.on != target:
                raise InputError(f"{name}: works with --on {target} only")
    if is_address(options.on) and options.memory is not None:
        raise InputError("--memory: a real board's memory cannot be changed")
