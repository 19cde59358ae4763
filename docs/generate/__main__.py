"""Writes every generated page and picture, and the output of every notebook."""

from __future__ import annotations

from docs.generate.guidelines import page as guidelines
from docs.generate.live_pictures import GUIDE, PICTURES
from docs.generate.notebooks import NOTEBOOKS, executed
from docs.generate.pages import PAGES, REFERENCE


def main() -> None:
    """Writes them into docs/, and names each."""
    for name, make in PAGES.items():
        path = REFERENCE / name
        path.write_text(make(), encoding="utf-8")
        print(path)
    for name, make in PICTURES.items():
        path = GUIDE / name
        path.write_text(make(), encoding="utf-8")
        print(path)
    path = GUIDE / "guidelines.md"
    path.write_text(guidelines(), encoding="utf-8")
    print(path)
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        path.write_text(executed(path), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
