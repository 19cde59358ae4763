"""Options of all commands: one name for one thing, and one grammar."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from flashbed.base.errors import InputError
from flashbed.cli import app
from flashbed.cli.options import chosen
from flashbed.cli.renamed import OLD_NAMES
from flashbed.plan.stacks import stacks
from tests.smoke.conftest import Run

SHORT = {"--fs": "fs", "--board": "board", "--kernel": "kernel"}
_LABELS = {("lifetime", "--board"), ("power fit", "--board"), ("power fit", "--fs")}
"""The board of erase counters, and rows of a profile's energies: no stack is run there."""


def _commands(command: Any, words: str = "") -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is not None:
        for name, one in below.items():
            yield from _commands(one, f"{words} {name}".strip())
    else:
        yield words, command


OPTIONS = [
    (words, option)
    for words, command in _commands(get_command(app))
    for option in command.params
    if option.param_type_name == "option"
]


def _named(name: str) -> list[tuple[str, Any]]:
    return [(words, option) for words, option in OPTIONS if name in option.opts]


def test_what_is_written_is_named_by_out_and_o_everywhere() -> None:
    """A recording was written by `-o --output`, a merged run by `-o --out`, a report by `--out`."""
    named = [*_named("--out"), *_named("-o"), *_named("--output")]
    assert len({words for words, _ in named}) > 15
    assert {tuple(sorted(option.opts)) for _, option in named} == {("--out", "-o")}
    assert {option.metavar for _, option in named} == {"DIR", "FILE"}


def test_every_format_prints_text_and_json() -> None:
    """`run --format text` was an error, and `trace --format` wrote files."""
    named = _named("--format")
    assert len(named) > 10
    for words, option in named:
        assert (option.metavar or "").startswith("text|json"), words
        assert option.default == "text" or "Default: text" in (option.help or ""), words


def test_no_option_says_its_default_twice_or_one_that_means_nothing() -> None:
    """`Default: 5. [default: 5]`; a count of 0 that means `none` is no default to show."""
    for words, option in OPTIONS:
        shown = option.show_default and option.default not in (None, False, (), [])
        assert not (shown and "Default:" in (option.help or "")), (words, option.opts)
        assert not (shown and option.default == 0), (words, option.opts)


def test_every_command_says_where_it_runs_by_default() -> None:
    for words, option in _named("--on"):
        assert option.default or "Default: " in (option.help or ""), words


def test_what_is_short_for_a_setting_says_so_in_the_help() -> None:
    for name, axis in SHORT.items():
        named = [option for words, option in _named(name) if (words, name) not in _LABELS]
        assert named
        for option in named:
            assert (option.help or "").startswith(f"Short for --set {axis}={option.metavar}")
            assert option.default is None


def test_what_is_short_for_a_setting_chooses_the_same_stacks() -> None:
    short = chosen(["compressor=zlib"], fs="ubifs,jffs2", kernel="6.12", board=None)
    assert short == ["fs=ubifs,jffs2", "kernel=6.12", "compressor=zlib"]
    assert stacks(short) == stacks(["fs=ubifs,jffs2", "kernel=6.12", "compressor=zlib"])
    with pytest.raises(InputError, match="fs is set twice"):
        stacks(chosen(["fs=jffs2"], fs="ubifs"))


def test_an_empty_option_that_is_short_for_one_set_is_no_default() -> None:
    """`validate ''` validated the usual board."""
    with pytest.raises(InputError, match="board=: not AXIS=VALUE"):
        stacks(chosen(None, board="", kernel=None))


@pytest.mark.parametrize(("old", "new"), OLD_NAMES.items())
def test_an_old_name_works_with_a_warning(old: str, new: str, run: Run) -> None:
    assert not _named(old)
    words = next(words for words, _ in _named(new))
    status, _, err = run(*words.split(), f"{old}=?", "--", "sh", old)
    warning, error = err.splitlines()
    assert warning == f"flashbed: {old} is called {new} now"
    assert (status, old in error) == (2, False)


def test_options_of_a_program_keep_their_names(run: Run) -> None:
    _, _, err = run("exec", "--on", "nowhere", "--until", "1", "sh", "--since")
    assert "is called" not in err


def test_a_profile_is_begun_under_the_old_name_too(run: Run) -> None:
    status, _, err = run("doctor", "--profile", "emulated")
    assert status == 2
    assert "is called board new NAME --blank now" in err
