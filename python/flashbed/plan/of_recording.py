"""Makes an experiment of a recording, of operations, or of a script of SQL.

It stands for them in commands that take experiments, and has one case: the program as recorded or
written, on UBIFS of the emulated board. `--set` selects other file systems, boards and kernels.
"""

from __future__ import annotations

import atexit
import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from flashbed.base.errors import InputError
from flashbed.base.files import read_text, utf8_path
from flashbed.base.forks import remover
from flashbed.base.paths import shown
from flashbed.program.operations import OperationError, each
from flashbed.stack.file_systems import USUAL_FIRST
from flashbed.stack.names import USUAL_BOARD, USUAL_FS, USUAL_KERNEL

__all__ = [
    "SQL_SUFFIX",
    "experiment_of_operations",
    "experiment_of_script",
    "is_operations",
    "own_file",
    "written_experiment",
]

_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_CHARACTERS = 48
_TEXT = """\
# {what} in the place of an experiment ({page}).

[experiment]
id = {id}
title = {title}
question = "{question}"
source = "{source}"

[workload]
{workload}

[[grid]]
targets = ["sim", "uml", "emulator"]
board = ["{board}"]
kernel = ["{kernel}"]
fs = [{file_systems}]
read_ahead_kib = ["default"]
pattern = [{patterns}]
requests = [1]
seed = [1]
{database}
[usual]
fs = "{fs}"
"""
_RECORDING = {
    "what": "A recording", "page": "docs/guide/my-program.md",
    "question": "What does a flash file system do to this program?",
    "source": "a recording: flashbed record, or flashbed import",
    "workload": 'kind = "program"\nrecording = {value}',
    "patterns": '"recorded", "flat-out"', "database": "",
}  # fmt: skip
_USUAL_PATTERN = 'pattern = "recorded"\n'
"""The end of the text of a recording, which may run without its pauses too."""
_OPERATIONS = {
    "what": "A file of operations", "page": "docs/reference/operations.md",
    "question": "What does a flash file system do to these operations?",
    "source": "a file of operations",
    "workload": 'kind = "operations"\noperations = {value}',
    "patterns": '"as-written"', "database": "",
}  # fmt: skip
_SCRIPT = {
    "what": "A script of SQL", "page": "docs/guide/my-database.md",
    "question": "What do these statements cost on a flash file system?",
    "source": "a script of SQL",
    "workload": 'kind = "sqlite"\nrequest_bytes = 1\nsettle_ns = 10_000_000_000',
    "patterns": '"script"', "database": "database = {{ name = {name}, script = {value} }}\n",
}  # fmt: skip
SQL_SUFFIX = ".sql"
_STACK = {
    "board": USUAL_BOARD, "kernel": USUAL_KERNEL, "fs": USUAL_FS,
    "file_systems": ", ".join(f'"{name}"' for name in USUAL_FIRST),
}  # fmt: skip
_HEAD = b"flashbed-ops "
_OPERATIONS_BYTES_MAX = 1 << 19
"""As a line of TOML they take up to twice as much."""


def is_operations(path: Path) -> bool:
    """Whether a file begins as a file of operations does."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_HEAD)) == _HEAD
    except (OSError, ValueError):
        return False


def experiment_of_operations(file: Path) -> Path:
    """Writes the experiment of a file of operations to a file that exists until the program ends.

    Raises `InputError` if it is too long, or its name is not UTF-8, and for a wrong line.
    """
    name = _name_of(utf8_path(file), "operations")
    text = read_text(file, _OPERATIONS_BYTES_MAX)
    try:
        for _ in each(text):
            pass
    except OperationError as why:
        raise InputError(f"{shown(file)}:{why}") from None
    values = {
        "id": f"operations/{name}",
        "title": f"The operations of {file.name}"[:200],
        "value": text,
    }
    quoted = {key: _quoted(value) for key, value in values.items()}
    return own_file(name, _text(_OPERATIONS, quoted))


def experiment_of_script(file: Path) -> Path:
    """Writes the experiment of a script of SQL to a file that exists until the program ends.

    Raises `InputError` if there is no such file, or its name is not UTF-8.
    """
    name = _name_of(utf8_path(file), "script")
    if not file.is_file():
        raise InputError(f"{shown(file)}: no such file")
    values = {
        "id": f"script/{name}",
        "title": f"The statements of {file.name}"[:200],
        "name": name,
        "value": str(file.resolve()),
    }
    quoted = {key: _quoted(value) for key, value in values.items()}
    return own_file(name, _text(_SCRIPT, quoted))


def written_experiment(recording: Path) -> Path:
    """Writes the experiment of a recording to a file that exists until the program ends.

    Raises `InputError` if its name is not UTF-8.
    """
    name = _name_of(utf8_path(recording), "recording")
    values = {
        "id": f"program/{name}",
        "title": f"The program of {recording.name}"[:200],
        "value": str(recording.resolve()),
    }
    quoted = {key: _quoted(value) for key, value in values.items()}
    return own_file(name, _text(_RECORDING, quoted) + _USUAL_PATTERN)


def _text(kind: Mapping[str, str], quoted: Mapping[str, str]) -> str:
    """The experiment of a kind of program, with its own values as TOML has them."""
    parts = {name: part.format(**quoted) for name, part in kind.items()}
    return _TEXT.format(**parts, **_STACK, id=quoted["id"], title=quoted["title"])


def _name_of(file: Path, otherwise: str) -> str:
    return _ODD.sub("-", file.stem).strip("-._")[:_NAME_CHARACTERS] or otherwise


def _quoted(value: str) -> str:
    """A text as TOML has it; JSON's escapes of characters beyond 16 bits are none of TOML's."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def own_file(name: str, text: str) -> Path:
    """Writes an experiment's text to a file that exists until the program ends.

    It is in a folder of its own: another thread may have an experiment of the same name.
    """
    made = tempfile.mkdtemp(prefix="flashbed-program.")
    atexit.register(remover(made))
    file = Path(made) / f"{name}.toml"
    file.write_text(text, encoding="utf-8")
    return file
