"""The notebooks of docs/examples: their cells run, and the outputs that they are saved with.

A cell is executed here as Jupyter would: what it prints is a stream, its last expression is shown.
That takes no kernel and no sockets, so a test does it in a second or two, and neither Jupyter nor
its forty packages are needed. Left out: magics and shell commands: no notebook has any.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["NOTEBOOKS", "executed"]

NOTEBOOKS = Path(__file__).resolve().parents[1] / "examples"


def executed(path: Path) -> str:
    """A notebook's file with the outputs of today; run in a folder that is removed."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    number = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                number += 1
                cell["execution_count"] = number
                cell["outputs"] = _outputs("".join(cell["source"]), names, number)
        names.clear()  # results remove their own folders
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _outputs(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    shown = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)
        if isinstance(shown, ast.Expr):
            value = eval(compile(ast.Expression(shown.value), f"cell {number}", "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        found.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None and not source.rstrip().endswith(";"):
        data = {kind: text.splitlines(keepends=True) for kind, text in _shown(value).items()}
        found.append({"data": data, "execution_count": number, "metadata": {},
                      "output_type": "execute_result"})  # fmt: skip
    return found


def _shown(value: Any) -> dict[str, str]:
    """A value as text and, where it is a chart or a frame, as a picture or a table."""
    if hasattr(value, "to_dict") and hasattr(value, "mark_bar"):
        import vl_convert

        return {"image/svg+xml": vl_convert.vegalite_to_svg(value.to_dict()),
                "text/plain": "a chart of Altair"}  # fmt: skip
    if hasattr(value, "_repr_html_"):
        return {"text/html": value._repr_html_(), "text/plain": str(value)}
    return {"text/plain": repr(value)}
