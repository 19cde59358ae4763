"""The targets by name: what can run a case. Only this folder knows what each of them is."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import import_module
from pathlib import Path

from flashbed.errors import InputError
from flashbed.places import root, sha256_of
from flashbed.targets.base import Target

__all__ = ["TARGETS", "code_sha256", "load_target"]

# Imported when asked for: a command that runs nothing should not pay for them.
TARGETS: dict[str, tuple[str, str]] = {
    "sim": ("flashbed.targets.sim", "SimTarget"),
    "uml": ("flashbed.targets.uml", "UmlTarget"),
    "emulator": ("flashbed.targets.emulator", "EmulatorTarget"),
}


def load_target(name: str) -> Target:
    """The target of this name. Raises `InputError`."""
    if name not in TARGETS:
        raise InputError(f"--on {name}: no such target; there are {', '.join(TARGETS)}")
    module, class_name = TARGETS[name]
    target: Target = getattr(import_module(module), class_name)()
    return target


@cache
def code_sha256(name: str) -> str:
    """SHA-256 over the code that makes a target's numbers; a case is run again when it changes."""
    here = Path(__file__).parent
    files = [*here.glob(f"{name}.py"), *(here / name).rglob("*.py")]
    if name == "sim":
        files += here.parent.glob("_sim.*")
    else:
        files += [file for file in (root() / "agent").glob("*") if file.suffix in (".c", ".h")]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.name} {sha256_of(file)}\n".encode())
    return digest.hexdigest()
