"""`import flashbed as fb`: the names are documented, the examples run, importing it is quick."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import altair as alt
import polars as pl
import pytest

import flashbed as fb
from docs.generate import python_pages
from flashbed.base import errors
from tests.support import PROJECT

PAGE = (PROJECT / "docs" / "guide" / "python.md").read_text()
REFERENCE = python_pages.names()
"""What the site's page of the reference asks the program for."""
STUBS = (PROJECT / "python" / "flashbed" / "__init__.py").read_text()
CLASSES = ("Board", "Experiment", "File", "Plot", "Program", "Result")
EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_the_reference_and_the_types_have_every_name() -> None:
    typed = STUBS.split("if TYPE_CHECKING:")[1].split("__all__")[0]
    for name in fb.__all__:
        assert f"fb.{name}" in REFERENCE or name == "__version__", name
        assert name == "__version__" or re.search(rf"\b{name}\b", typed), name
    assert set(re.findall(r"`fb\.(\w+)", PAGE)) <= set(fb.__all__)


def test_every_name_is_there_and_says_what_it_is() -> None:
    for name in fb.__all__:
        found = getattr(fb, name)
        assert name == "__version__" or inspect.getdoc(found), name


@pytest.mark.parametrize("name", CLASSES)
def test_every_method_says_what_it_does(name: str) -> None:
    for attribute, value in vars(getattr(fb, name)).items():
        if not attribute.startswith("_"):
            assert inspect.getdoc(value), f"{name}.{attribute}"


@pytest.mark.parametrize("name", ["Program", "Result", "File"])
def test_the_reference_has_every_method(name: str) -> None:
    for attribute in vars(getattr(fb, name)):
        if not attribute.startswith("_"):
            assert re.search(rf"\b{attribute}\b", REFERENCE), f"{name}.{attribute}"


def test_the_page_has_every_exception() -> None:
    assert {f"`{name}`" for name in errors.__all__} <= set(re.findall(r"`\w+`", PAGE))


def test_importing_it_imports_nothing_else() -> None:
    code = "import flashbed, sys; print('polars' in sys.modules, 'typer' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.extension
def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = EXAMPLE.findall(PAGE)
    assert found
    names: dict[str, object] = {}
    for example in found:
        exec(compile(example, "example", "exec"), names)


@pytest.mark.extension
def test_a_program_does_to_the_flash_what_its_operations_do() -> None:
    program = fb.Program()
    program.mkdir("d")
    with program.open("d/a", "w") as file:
        file.write(4096).write(100).fsync()
    program.prepared()
    with program.open("d/a", "r+") as file:
        file.read(10).seek(4096).write(50, compressibility=50).fdatasync().truncate(10)
    program.rename("d/a", "d/b").unlink("d/b").sync()
    result = fb.run(program, set={"fs": "jffs2"})
    assert result.requests["op"].to_list() == [
        "open", "read", "write", "fdatasync", "truncate", "close", "rename", "unlink", "sync",
    ]  # fmt: skip
    assert result.requests["result"].min() == 0
    assert result.cases["bytes_written"].item() == 50


@pytest.mark.extension
def test_an_appending_file_goes_on_at_its_end() -> None:
    program = fb.Program()
    for _ in range(2):
        with program.open("log", "a") as log:
            log.write(80)
    offsets = [line.split()[2] for line in program.text.splitlines() if line.startswith("write")]
    assert offsets == ["0", "80"]


@pytest.mark.extension
def test_a_result_is_kept_where_it_is_asked_for_and_else_goes(tmp_path: Path) -> None:
    settings = {"fs": "jffs2", "kernel": "6.1", "requests": 8, "board": fb.Board("emulated")}
    kept = fb.run("figure3", set=settings, out=tmp_path / "kept")
    again = fb.Result(tmp_path / "kept")
    assert kept.cases.equals(again.cases)
    own = fb.run("figure3", set=settings)
    folder = own.directory
    assert own.cases.drop("case_id").equals(kept.cases.drop("case_id"))
    del own
    assert not folder.exists()


def test_what_is_wrong_is_an_exception_with_fields(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(errors.InputError, match="no experiment 'nothing'"):
        fb.run("nothing")
    with pytest.raises(errors.InputError, match="mode 'q'"):
        fb.Program().open("a", "q")
    with pytest.raises(errors.InputError, match="3: slot-closed"):
        _ = fb.Program().sync().add("fsync", 0).text
    monkeypatch.setenv("FLASHBED_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(errors.TargetUnavailable) as failed:
        fb.run(fb.Program().sync(), on="uml")
    assert list(failed.value.targets) == ["uml"]


@pytest.mark.extension
def test_figures_are_charts_of_altair() -> None:
    result = fb.run("figure3", set={"fs": "jffs2", "kernel": "6.1"})
    for name in result.plot.names:
        assert isinstance(result.plot.figure(name), alt.TopLevelMixin)
    assert isinstance(result.plot.answer(), alt.Chart)
    assert isinstance(result.answer, pl.DataFrame)
