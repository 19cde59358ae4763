"""A kernel's sources are changed for its build, and are as they were after it."""

from __future__ import annotations

from pathlib import Path

from flashbed.targets.uml.kernel_headers import prepared_for_headers, steps_with_headers

FLAGS = """\
basename_flags = -DKBUILD_BASENAME=$(call name-fix,$(basetarget))
modname_flags  = -DKBUILD_MODNAME=$(call name-fix,$(modname)) \\
\t\t -D__KBUILD_MODNAME=kmod_$(call name-fix-token,$(modname))
modfile_flags  = -DKBUILD_MODFILE=$(call stringify,$(modfile))
"""


def files(tree: Path) -> dict[str, str]:
    return {
        str(path.relative_to(tree)): path.read_text() for path in tree.rglob("*") if path.is_file()
    }


def test_sources_are_as_they_were(tmp_path: Path) -> None:
    for folder in ("scripts", "include", "init"):
        (tmp_path / folder).mkdir()
    (tmp_path / "scripts" / "Makefile.lib").write_text(FLAGS)
    before = files(tmp_path)
    with prepared_for_headers(tmp_path):
        changed = files(tmp_path)
        # No macro with a file's name is defined before the compiled header is taken.
        assert "-DKBUILD" not in changed["scripts/Makefile.lib"]
        assert "-D__KBUILD" not in changed["scripts/Makefile.lib"]
        for line in changed["include/flashbed_names.h"].splitlines():
            _, name, renamed = line.split()
            assert f"-D{renamed}=" in changed["scripts/Makefile.lib"], name
        (tmp_path / "include" / "flashbed_headers.h.gch").write_text("compiled")
    assert files(tmp_path) == before


def test_headers_are_compiled_before_the_kernel() -> None:
    steps = steps_with_headers(["make"], ["linux"])
    assert [step[-1] for step in steps] == [
        "prepare", "init/flashbed_headers.o", "include/flashbed_headers.h.gch", "linux",
    ]  # fmt: skip
    named = [" -include flashbed_headers.h" in " ".join(step) for step in steps]
    assert named == [False, False, False, True]
