"""The site of `make docs`: no broken link, nothing from a network, a search that finds pages.

The pages are opened from disk, as a reader without a network does. Where Sphinx or Chromium are
missing, the tests that need them are skipped.
"""

from __future__ import annotations

import html
import re
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.smoke.test_questions import WORDS
from tests.support import PROJECT
from tests.support.chromium import CHROMIUM, Browser, dumped

SPHINX = PROJECT / "build" / "docs" / "venv" / "bin" / "sphinx-build"
PLAYGROUND = PROJECT / "build" / "playground" / "index.html"
SEARCHES = {
    **{word: {page} for word, page in WORDS.items()},
    "W25N01GV": {"guide/my-chip", "guide/which-chip", "guide/is-my-bus-quad"},
}
"""Words -> pages that a reader may mean; one of them is among the first five results."""
WIDE = """<script>addEventListener("load", () => {
  document.title = "wide " + Math.max(0, document.documentElement.scrollWidth - innerWidth);
});</script></body>"""

pytestmark = [
    pytest.mark.skipif(not SPHINX.is_file(), reason="Sphinx is missing: make docs-packages"),
    pytest.mark.xdist_group("site"),
]
in_a_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is missing: apt-get install chromium"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The site, and the warnings there were."""
    folder = tmp_path_factory.mktemp("site")
    said = folder / "warnings"
    command = [str(SPHINX), "-q", "-c", "docs/site", "-d", str(folder / "doctrees"), "-w"]
    subprocess.run(
        [*command, str(said), ".", str(folder / "html")],
        cwd=PROJECT,
        check=True,
        capture_output=True,
        timeout=250,
    )
    return folder / "html", said.read_text().replace(f"{PROJECT}/", "").splitlines()


def test_nothing_is_warned_of(built: tuple[Path, list[str]]) -> None:
    assert [line for line in built[1] if line] == []


def test_nothing_is_loaded_from_a_network(built: tuple[Path, list[str]]) -> None:
    pages = list(built[0].rglob("*.html"))
    assert len(pages) > 10
    loaded = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=\"(?:https?:)?//[^>]*>")
    assert {found for page in pages for found in loaded.findall(page.read_text())} == set()
    styles = "".join(path.read_text() for path in built[0].rglob("*.css"))
    assert re.findall(r"url\([\"']?(?:https?:)?//", styles) == []


def test_the_first_page_leads_to_the_site(built: tuple[Path, list[str]]) -> None:
    (to,) = re.findall(r'href="([^"]+)"', (built[0] / "index.html").read_text())
    assert "flashbed" in (built[0] / to).read_text()


ASKED = {
    "command-line": ('id="flashbed-exec"', "--host-timeout", 'id="flashbed-cost-fit"', "--spin"),
    "python": ('id="fb-execute"', "host_timeout_s", 'id="fb-program"', "fb.errors.InputError"),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_page_of_the_reference_asks_the_program(name: str, built: tuple[Path, list[str]]) -> None:
    """The page in the tree has a mark, the site every command and every Python name."""
    page = html.unescape((built[0] / f"docs/reference/{name}.html").read_text())
    assert re.search(r"<!-- \w+ -->", page) is None
    for words in ASKED[name]:
        assert words in page, words


LIVE = ("docs/guide/energy.html", "docs/guide/my-database.html")


def test_a_live_figure_is_a_picture_first(built: tuple[Path, list[str]]) -> None:
    """What a reader without JavaScript sees; no page carries the simulator itself."""
    for name in LIVE:
        page = built[0] / name
        (picture,) = re.findall(
            r'<img alt="[^"]+" src="([^"]+/live-[a-z-]+\.svg)"', page.read_text()
        )
        assert (page.parent / picture).is_file()
        assert page.stat().st_size < 200_000


@pytest.mark.browser
@in_a_browser
@pytest.mark.skipif(not PLAYGROUND.is_file(), reason="make playground makes the page")
def test_the_playground_is_in_the_site_and_draws_the_live_figures(
    built: tuple[Path, list[str]], tmp_path: Path
) -> None:
    """From disk, where frames may not look into each other."""
    assert [path.name for path in built[0].rglob("playground*.html")].count("playground.html") == 2
    assert 'href="../playground.html"' in (built[0] / "docs/index.html").read_text()
    with Browser(tmp_path / "profile") as browser:
        for name in LIVE:
            browser.open((built[0] / name).as_uri())
            browser.until("document.querySelector('.live-figure') !== null")
            browser.run("document.querySelector('.live-figure').scrollIntoView()")
            browser.until("document.querySelector('.live-figure.drawn') !== null")
            assert browser.run("document.querySelector('.live-figure img').offsetParent") is None
            assert browser.run("document.querySelector('.live-figure iframe').clientHeight") > 300
        assert browser.wrong == []


@pytest.mark.browser
@in_a_browser
@pytest.mark.parametrize("words", SEARCHES)
def test_a_search_from_disk_finds_the_page(
    built: tuple[Path, list[str]], tmp_path: Path, words: str
) -> None:
    shown = dumped(f"file://{built[0]}/search.html?q={quote(words)}", tmp_path / "profile")
    results = shown.split('id="search-results"')[1]
    found = re.findall(r'<a href="docs/([\w/.-]+)\.html[^"]*"', html.unescape(results))
    assert found, words
    first = list(dict.fromkeys(found))[:5]
    assert SEARCHES[words] & set(first), (words, first)


@pytest.mark.browser
@in_a_browser
@pytest.mark.parametrize("width", [1400, 500])
def test_a_page_fits_its_window(built: tuple[Path, list[str]], tmp_path: Path, width: int) -> None:
    """Headless windows are 500 wide at least."""
    for name in ("docs/index", "docs/reference/tables", "docs/reference/command-line"):
        page = built[0] / f"{name}.html"
        copy = page.with_name(f"wide-{width}.html")
        copy.write_text(page.read_text().replace("</body>", WIDE))
        shown = dumped(f"file://{copy}", tmp_path / "profile", width)
        copy.unlink()
        assert "<title>wide 0</title>" in shown, (name, re.findall("<title>.*?</title>", shown))
