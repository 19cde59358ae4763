"""Kernels that the user added: where they are kept, and what is known of them.

`flashbed kernel add` (kernel_added.py) writes `kernels/NAME` of the cache: `kernel.json`, the
profile `NAME.toml`, `differences.txt`, and a folder for each kernel that was built, `uml-NAME-…`
for experiments and `uml-programs-NAME-…` for `flashbed exec`.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from flashbed.base.paths import own_kernels_folder
from flashbed.stack.names import is_name

__all__ = ["OwnKernel", "own_build", "own_kernel", "own_kernel_names", "remove_kernel"]

MANIFEST = "kernel.json"


@dataclass(frozen=True, kw_only=True)
class OwnKernel:
    """A kernel that the user added."""

    name: str
    release: str
    """VERSION.PATCHLEVEL.SUBLEVEL of its Makefile."""
    source: str
    """The folder or archive that it was built from."""
    sources_sha256: str
    """Hash over its storage stack and user-mode Linux."""
    like: str
    """The profile that its own was begun from."""
    builds: dict[str, str] = field(default_factory=dict)
    """Recipe -> the folder of what was built."""
    not_applied: dict[str, list[str]] = field(default_factory=dict)
    """Recipe -> changes that the tree has no place for, by file."""
    lost_options: list[str] = field(default_factory=list)
    """Options that the tree does not have."""
    differing: dict[str, list[str]] = field(default_factory=dict)
    """File of what flashbed models -> functions that are not those of `like`'s sources."""

    def save(self, folder: Path) -> None:
        """Writes the manifest."""
        text = json.dumps(asdict(self), indent=1)
        (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def own_kernel_names(cache: Path) -> list[str]:
    """The names of the kernels that were added."""
    return sorted(file.parent.name for file in own_kernels_folder(cache).glob(f"*/{MANIFEST}"))


def own_kernel(cache: Path, name: str) -> OwnKernel | None:
    """A kernel that was added; None if there is none, or its manifest is not ours."""
    if not is_name(name):
        return None
    try:
        path = own_kernels_folder(cache) / name / MANIFEST
        values = json.loads(path.read_text(encoding="utf-8"))
        return OwnKernel(**{key.name: values[key.name] for key in fields(OwnKernel)})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def own_build(cache: Path, name: str, recipe: str) -> Path | None:
    """The folder that a recipe's kernel was built into."""
    known = own_kernel(cache, name)
    built = known.builds.get(recipe) if known else None
    return own_kernels_folder(cache) / name / built if built else None


def remove_kernel(cache: Path, name: str) -> None:
    """Removes all of a kernel."""
    shutil.rmtree(own_kernels_folder(cache) / name)
