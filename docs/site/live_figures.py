"""The playground as a part of the site, and its small figures in the guides' pages.

A page names a picture `live-NAME.svg` (docs/generate/live_pictures.py). Where the playground has
been made, the site has it once, as playground.html, and live.js puts the figure NAME of it in the
picture's place. Without JavaScript, without the playground and on GitHub the picture stays.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "playground" / "index.html"
PAGE = "playground.html"
LINKED_FROM = ("docs/index", "docs/guide/playground")
"""Pages that open with a link to it."""
_LIVE = re.compile(r"live-([a-z-]+)\.svg")


def _to_root(name: str) -> str:
    return "../" * name.count("/")


def _raw(html: str) -> nodes.raw:
    return nodes.raw("", html, format="html")


def _put_figures(app: Any, doctree: nodes.document, name: str) -> None:
    """Marks the pictures for live.js, and links to the playground."""
    if app.builder.format != "html" or not BUILT.is_file():
        return
    for image in list(doctree.findall(nodes.image)):
        found = _LIVE.fullmatch(PurePosixPath(image["uri"]).name)
        if found:
            to = f"{_to_root(name)}{PAGE}#embed={found[1]}"
            before = _raw(f'<span class="live-figure" data-live="{to}">')
            image.replace_self([before, image.deepcopy(), _raw("</span>")])
    if name in LINKED_FROM:
        link = f'<a href="{_to_root(name)}{PAGE}">Open the playground</a>'
        title = next(iter(doctree.findall(nodes.title)))
        at = title.parent.index(title) + 1
        title.parent.insert(at, _raw(f'<p class="open-playground">{link}: the whole stack here, '
                                     "in this browser.</p>"))  # fmt: skip


def _copy_page(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html" and BUILT.is_file():
        new = Path(app.outdir) / f".{PAGE}.new"
        shutil.copyfile(BUILT, new)
        os.replace(new, Path(app.outdir) / PAGE)  # noqa: PTH105


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls it."""
    app.connect("doctree-resolved", _put_figures)
    app.connect("build-finished", _copy_page)
    app.add_js_file("live.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
