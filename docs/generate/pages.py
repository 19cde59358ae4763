"""The generated pages of docs/reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from docs.generate import chip_pages, column_pages, profile_pages

__all__ = ["PAGES", "REFERENCE"]

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
PAGES: Mapping[str, Callable[[], str]] = {
    "profiles.md": profile_pages.page,
    "chips.md": chip_pages.page,
    "tables.md": column_pages.page,
}
"""File name -> what makes its text."""
