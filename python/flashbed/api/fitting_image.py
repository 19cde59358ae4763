"""Whether a folder fits as an image: the real mkfs makes it with the geometry of a stack."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from flashbed.answers.space.image_needs import ImageNeeds, max_leb_cnt_needed, needs_of, refusals
from flashbed.answers.space.ledger import Ledger
from flashbed.api.fitting import block_bytes_of
from flashbed.base.errors import InputError, RunError
from flashbed.base.paths import cache_folder, shown
from flashbed.stack.profiles import USUAL_COMPRESSOR
from flashbed.stack.stack import Stack
from flashbed.targets.guest.image_tools import image_tool

__all__ = ["MadeImage", "make_image"]


@dataclass(frozen=True, kw_only=True)
class MadeImage:
    """An image of a folder: the command that makes it, its size, and why it does not fit.

    `needs` and `ubinize` are of UBIFS. `files_bytes` is the size of the folder's files.
    """

    command: str
    files_bytes: int
    image_bytes: int
    room_bytes: int
    refused: Sequence[str]
    needs: ImageNeeds | None = None
    ubinize: Sequence[str] = ()

    @property
    def fits(self) -> bool:
        """Whether the kernel would mount it there."""
        return not self.refused


def make_image(
    stack: Stack, space: Ledger, folder: Path, *, volume_lebs: int | None = None,
    max_lebs: int | None = None, journal_bytes: int | None = None, say: Callable[[str], None],
) -> MadeImage:  # fmt: skip
    """Makes the image of a folder for the stack's partition, or for a volume of so many LEBs.

    `max_lebs` and `journal_bytes` are mkfs.ubifs' `-c` and `-j`. Raises `InputError`, `RunError`,
    or `Unavailable` without the tools.
    """
    if not folder.is_dir():
        raise InputError(f"--image {shown(folder)}: not a folder")
    if stack.fs == "ubifs":
        return _ubifs(
            stack, space, folder, volume_lebs=volume_lebs or space.facts["lebs"],
            max_lebs=max_lebs, journal_bytes=journal_bytes, say=say,
        )  # fmt: skip
    if stack.fs == "jffs2":
        return _jffs2(stack, space, folder, say)
    raise InputError(f"--image: there is no mkfs of {stack.fs}; copy the files onto it")


def _ubifs(
    stack: Stack, space: Ledger, folder: Path, *, volume_lebs: int, max_lebs: int | None,
    journal_bytes: int | None, say: Callable[[str], None],
) -> MadeImage:  # fmt: skip
    tool = image_tool("mkfs.ubifs", cache_folder(), say)
    facts = space.facts
    given = [f"-c {max_lebs or volume_lebs}"]
    if journal_bytes is not None:
        given.append(f"-j {journal_bytes}")
    if stack.compressor != USUAL_COMPRESSOR:
        given.append(f"-x {stack.compressor}")
    geometry = f"-m {facts['page_bytes']} -e {facts['leb_bytes']}"
    command = f"mkfs.ubifs {geometry} {' '.join(given)} -r {folder} -o image.ubifs"
    files_bytes = _files_bytes(folder)

    def made(options: str) -> tuple[str, int]:
        with TemporaryDirectory(prefix="flashbed-space.") as there:
            out = Path(there) / "image.ubifs"
            words = [*tool, "-v", *f"{geometry} {options}".split(), "-r", str(folder)]
            status, said = _ran([*words, "-o", str(out)])
            return said, 0 if status else out.stat().st_size

    said, image_bytes = made(" ".join(given))
    refused: list[str] = []
    while not image_bytes:
        asked = max_leb_cnt_needed(said)
        if asked is None:
            raise RunError(f"mkfs.ubifs: {_last_line(said)}")
        if not refused:
            refused.append(
                f"mkfs.ubifs: max_leb_cnt too low ({asked:,} needed): "
                + (
                    f"{asked - volume_lebs:,} LEBs more than the volume's {volume_lebs:,}"
                    if asked > volume_lebs
                    else f"give it -c {volume_lebs}"
                )
            )
        # With more LEBs it needs a larger LPT, and may ask for more again.
        said, image_bytes = made(" ".join([f"-c {asked}", *given[1:]]))
    needs = needs_of(said)
    refused += refusals(needs, volume_lebs) if not refused else []
    size = volume_lebs * facts["leb_bytes"]
    return MadeImage(
        command=command, files_bytes=files_bytes, image_bytes=image_bytes, room_bytes=size,
        refused=refused, needs=needs,
        ubinize=(
            "[rootfs]", "mode=ubi", "image=image.ubifs", "vol_id=0", "vol_type=dynamic",
            "vol_name=rootfs", f"vol_size={size}",
            f"# ubinize -m {facts['page_bytes']} -s {facts['subpage_bytes']}"
            f" -p {block_bytes_of(stack)} -o image.ubi ubinize.cfg",
        ),
    )  # fmt: skip


def _jffs2(stack: Stack, space: Ledger, folder: Path, say: Callable[[str], None]) -> MadeImage:
    tool = image_tool("mkfs.jffs2", cache_folder(), say)
    options = f"-n -e {block_bytes_of(stack)}"
    if stack.compressor == "none":
        options += " -m none"
    with TemporaryDirectory(prefix="flashbed-space.") as there:
        out = Path(there) / "image.jffs2"
        status, said = _ran([*tool, *options.split(), "-r", str(folder), "-o", str(out)])
        if status:
            raise RunError(f"mkfs.jffs2: {_last_line(said)}")
        image_bytes = out.stat().st_size
    reserve = sum(part.bytes for part in space.parts if part.name != "files")
    room = space.partition_bytes - reserve
    more = image_bytes - room
    return MadeImage(
        command=f"mkfs.jffs2 {options} -r {folder} -o image.jffs2",
        files_bytes=_files_bytes(folder), image_bytes=image_bytes, room_bytes=room,
        refused=[f"the image has {image_bytes:,} bytes, {more:,} more than JFFS2 has for nodes"]
        if more > 0 else [],
    )  # fmt: skip


def _ran(words: Sequence[str]) -> tuple[int, str]:
    """A program's exit status and what it said."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def _last_line(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "said nothing"


def _files_bytes(folder: Path) -> int:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files)
