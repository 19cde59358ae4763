"""A recording is translated once: a run that measured nothing new took 7.8 s for its operations."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.plan.workloads import kept_translation
from flashbed.plan.workloads.kept_translation import KEPT_CHARACTERS_MIN, translated_once

LONG = ("flashbed-ops 2\nprepared\n", "flashbed-ops 2\n" + "#" * KEPT_CHARACTERS_MIN + "\n")


class Translates:
    """Counts how often it is asked."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.times = 0

    def __call__(self) -> tuple[str, str]:
        self.times += 1
        prepare, body = self.texts
        return prepare, body


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kept_translation, "cache_folder", lambda: tmp_path / "cache")
    file = tmp_path / "day.rec"
    file.write_text("one")
    return file


def test_the_same_recording_is_translated_once(recording: Path) -> None:
    translate = Translates(*LONG)
    for _ in range(3):
        assert translated_once(recording, ("zstd", 10), translate) == LONG
    assert translate.times == 1
    translated_once(recording, ("lzo", 10), translate)
    recording.write_text("another one")
    translated_once(recording, ("zstd", 10), translate)
    assert translate.times == 3


def test_short_ones_and_parts_of_a_killed_recorder_are_not_kept(recording: Path) -> None:
    short, long = Translates("a", "b"), Translates(*LONG)
    for _ in range(2):
        assert translated_once(recording, (), short) == ("a", "b")
        assert translated_once(recording.parent, (), long) == LONG
    assert (short.times, long.times) == (2, 2)


@pytest.mark.parametrize("damage", [b"", b"x" * 40, None])
def test_a_damaged_one_is_made_again(recording: Path, damage: bytes | None) -> None:
    translate = Translates(*LONG)
    translated_once(recording, (), translate)
    (kept,) = (recording.parent / "cache" / "translations").iterdir()
    kept.write_bytes(kept.read_bytes()[:-9] if damage is None else damage)
    assert translated_once(recording, (), translate) == LONG
    assert translate.times == 2
    assert translated_once(recording, (), translate) == LONG
    assert translate.times == 2


def test_the_oldest_go_when_all_take_too_much(
    recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_translation, "KEPT_BYTES_MAX", 3000)
    for number in range(8):
        translated_once(recording, number, Translates(*LONG))
    kept = list((recording.parent / "cache" / "translations").iterdir())
    assert 0 < sum(file.stat().st_size for file in kept) <= 3000
