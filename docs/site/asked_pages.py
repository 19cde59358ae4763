"""Pages of the reference that the site asks the program for: its commands, and its Python names.

A page in the tree has a mark in their place: `flashbed COMMAND --help` and Python's `help()` print
the same, so a copy would only be another thing to keep equal. The site has its own venv; the
program is in .venv.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv" / "bin" / "python"
ASKED = {
    "docs/reference/command-line": ("<!-- commands -->", "docs.generate.command_pages"),
    "docs/reference/python": ("<!-- names -->", "docs.generate.python_pages"),
}
"""Page -> its mark, and the module that prints what stands there."""


def _put(_: Any, name: str, source: list[str]) -> None:
    """Puts what the program says in the place of the mark."""
    if name not in ASKED:
        return
    if not PYTHON.is_file():
        raise ExtensionError(f"{PYTHON} is missing: `make build` first, the page asks the program")
    mark, module = ASKED[name]
    command = [str(PYTHON), "-m", module]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    source[0] = source[0].replace(mark, said.stdout)


def _always(*_: Any) -> list[str]:
    """Names the pages as changed: their files do not tell that an option has come."""
    return list(ASKED)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls it."""
    app.connect("source-read", _put)
    app.connect("env-get-outdated", _always)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
