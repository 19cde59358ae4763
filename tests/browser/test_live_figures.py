"""The playground's small figures for pages of the documents, in headless browsers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from docs.generate.live_pictures import FIGURES, points
from flashbed.base import paths
from tests.browser.test_playground import settled
from tests.support.chromium import CHROMIUM, Browser
from tests.support.firefox import FIREFOX, Firefox

PAGE = paths.playground()
POINTS = """JSON.stringify(playground.state.points.map(
  row => row.map(point => [point.address, point.value])))"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not PAGE.is_file(), reason="make playground makes the page"),
]
in_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is missing: apt-get install chromium"
)


def measured(name: str) -> list[list[list[Any]]]:
    """Addresses and numbers of the native simulator, which the picture shows."""
    return [[[point.address, point.value] for point in row] for row in points(name)]


@in_chromium
def test_a_figure_shows_the_native_simulators_numbers_and_changes(tmp_path: Path) -> None:
    with Browser(tmp_path / "profile", 390, 700) as browser:
        for name, figure in FIGURES.items():
            browser.open(f"{PAGE.as_uri()}#embed={name}")
            settled(browser)
            assert json.loads(browser.run(POINTS)) == measured(name), name
            bars = len(figure["series"]) * len(figure["over"]["values"])
            assert browser.run("document.querySelectorAll('.figure-chart a').length") == bars
            assert browser.run("document.querySelectorAll('.unseen li').length") == bars
            assert browser.run("document.documentElement.scrollWidth") <= 390
        browser.run("document.querySelector('[data-value=flash_programs]').click()")
        settled(browser)
        first = json.loads(browser.run(POINTS))[0][0]
        assert first[0] == measured("journal-modes")[0][0][0]
        assert 0 < first[1] < 10_000
        assert browser.wrong == []


@in_chromium
def test_the_scrubber_moves_what_plays(tmp_path: Path) -> None:
    """It stayed where it was: pausing put the scrubber back before it was read."""
    with Browser(tmp_path / "profile") as browser:
        browser.open(f"{PAGE.as_uri()}#program=config&fs=jffs2")
        settled(browser)
        browser.run("play.click()")
        browser.until("playground.state.playing")
        browser.run("scrub.value = '7000'; scrub.dispatchEvent(new Event('input'))")
        assert browser.run("playground.state.place") == 0.7
        assert not browser.run("playground.state.playing")


@pytest.mark.skipif(FIREFOX is None, reason="firefox is missing: apt-get install firefox-esr")
def test_firefox_shows_the_same(tmp_path: Path) -> None:
    ready = "!!window.playground && playground.state.settled"
    with Firefox(tmp_path / "profile") as firefox:
        firefox.open(f"{PAGE.as_uri()}#embed=journal-modes")
        firefox.until(ready)
        assert json.loads(firefox.run(POINTS)) == measured("journal-modes")
        firefox.open(f"{PAGE.as_uri()}#program=git&fs=jffs2")
        firefox.until(ready)
        firefox.run("play.click()")
        firefox.until("playground.state.playing && playground.state.place > 0")
        assert firefox.run("notice.hidden")
