"""How `make docs` builds the site: Sphinx, MyST-Parser and furo, over the Markdown of the project.

Sphinx's source folder is the project's root, so that a link works the same on disk, in a Git
viewer and in the site. Pages are docs/**/*.md, docs/examples/*.ipynb, the lab book (evidence/), the
Markdown files of the root, and those beside what they describe. Nothing is loaded from a network:
fonts are the system's, search is Sphinx's index.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SITE = Path(__file__).resolve().parent
ROOT = SITE.parents[1]
sys.path.insert(0, str(SITE))

project = "flashbed"
author = "the flashbed authors"
version = release = re.findall(
    r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
)[0]

extensions = ["myst_parser", "notebook_pages", "live_figures", "asked_pages"]
root_doc = "docs/index"
BESIDE_CODE = (
    "agent/PROTOCOL.md",
    "agent/README.md",
    "agent/record/README.md",
    "agent/tracing/README.md",
    "experiments/FIGURES.md",
    "experiments/README.md",
    "experiments/SOURCES.md",
    "experiments/WORKLOADS.md",
    "experiments/engines/README.md",
    "kernel/flashbed_nand/README.md",
    "kernel/uml/README.md",
    "kernel/yaffs2/README.md",
    "policies/README.md",
    "python/flashbed/answers/costs/README.md",
    "python/flashbed/bench/fuzz/README.md",
    "sim/src/ops/README.md",
    "sim/src/sched/README.md",
    "sim/src/squashfs/README.md",
    "sim/src/ubi/README.md",
)
include_patterns = ["docs/**", "evidence/**", "*.md", *BESIDE_CODE]
_searched = {"docs", "evidence", *(page.split("/")[0] for page in BESIDE_CODE)}
# Folders that are left out here are not searched for pages at all.
exclude_patterns = [
    *(path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in _searched),
    "docs/site",
    "docs/generate",
]
# The lab book and the pages beside code are in no list of contents: other pages link to them.
suppress_warnings = ["toc.not_included"]
highlight_language = "text"
nitpicky = True

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"flashbed {release}"
html_static_path = ["static"]
html_extra_path = ["root"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
# A page that is opened from disk may not fetch another one to quote from it.
html_show_search_summary = False
html_search_scorer = str(SITE / "scorer.js")
