"""The build of docs/guide/flash-budget.md: its `run:` lines, with a good and a bad change."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.smoke.examples import File, parts
from tests.smoke.following import Place
from tests.support import PROJECT

PAGE = PROJECT / "docs" / "guide" / "flash-budget.md"
STEP = re.compile(r"^ +- run: (.+)$", re.MULTILINE)


def test_the_build_of_the_guide_passes_and_fails(tmp_path: Path) -> None:
    files = [part for part in parts(PAGE.read_text()) if isinstance(part, File)]
    (build,) = [file for file in files if file.name.endswith(".yml")]
    install, check = STEP.findall(build.text)
    assert install.startswith("pip install ")
    assert check.startswith("flashbed check ")
    loggers = [file for file in files if file.name == "logger.py"]
    summary = tmp_path / "summary.md"
    place = Place.made(tmp_path, {"GITHUB_STEP_SUMMARY": str(summary)})
    for file in files:
        place.write(file)
    for logger, status in ((loggers[0], 0), (loggers[1], 1)):
        place.write(logger)
        for name in ("logger", "settings"):
            _run(f"python {name}.py > {name}.ops", place)
        assert _run(check, place) == status
        root = ET.parse(place.here / "flash.xml").getroot()
        assert (root.get("failures") != "0") == bool(status)
    text = summary.read_text()
    assert text.count("### thermostat: ") == 2
    assert "- rev-a, logger: page writes " in text


def _run(command: str, place: Place) -> int:
    return subprocess.run(["bash", "-c", command], cwd=place.here, env=place.env).returncode
