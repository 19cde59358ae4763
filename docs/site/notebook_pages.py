"""Notebooks as pages of the site, with the output that they were saved with.

A notebook is turned into Markdown, which MyST reads: Markdown cells as they are, code cells as
code, the outputs below. Nothing is executed here: docs/generate/notebooks.py does that, and a test
holds what is saved against what the cells print today.
"""

from __future__ import annotations

import json
from typing import Any

from docutils.nodes import document
from myst_parser.parsers.sphinx_ import MystParser

SHOWN = ("image/svg+xml", "text/html", "text/plain")
"""Kinds of output, the one that is shown first."""


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return f"::::{{container}} output\n{_fenced(_joined(output['text']), 'text')}::::\n"
    kind = next(kind for kind in SHOWN if kind in output["data"])
    body = _joined(output["data"][kind])
    if kind == "text/plain":
        return f"::::{{container}} output\n{_fenced(body, 'text')}::::\n"
    return f'```{{raw}} html\n<div class="output">\n{body}\n</div>\n```\n'


def markdown(notebook: dict[str, Any]) -> str:
    """A notebook's cells and outputs as one page."""
    parts = []
    for cell in notebook["cells"]:
        source = _joined(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(_fenced(source, "python"))
        parts += [_output(output) for output in cell["outputs"]]
    return "\n\n".join(parts)


class NotebookParser(MystParser):
    """Reads a notebook as the Markdown that it amounts to."""

    supported = ("ipynb",)

    def parse(self, inputstring: str, document: document) -> None:
        """Parses the page that a notebook amounts to."""
        super().parse(markdown(json.loads(inputstring)), document)


def setup(app: Any) -> dict[str, bool]:
    """Registers the parser for .ipynb."""
    app.add_source_suffix(".ipynb", "ipynb")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
