"""`flashbed exec --record`: the program does what it does without a recorder."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from flashbed.base.paths import cache_folder
from flashbed.program.recording.file import open_recording
from flashbed.targets.uml.programs_kernel import SERIES, programs_kernel
from flashbed.targets.uml.uml_kernel import cached_kernel
from tests.agreement.test_exec import FLASHBED
from tests.support.exec_and_replay import KINDS, replayed
from tests.support.recorded import compiled

pytestmark = [pytest.mark.uml, pytest.mark.extension, pytest.mark.timeout(300)]

SCRIPT = (
    "cat there/a there/link >b; mv b c; mkdir d; ln c d/e; sleep 2; echo x >>c; sync;"
    " seq 1 999 | sort >f; rm there/a; ls -R . >g; (echo $$; exec sh -c 'echo $PPID') >h"
)
MAPPED = r"""
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
	const int fd = open("there", O_RDWR);
	char *at = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED || at[5 * 4096] != 'a')
		return 1;
	memset(at + 2 * 4096, 'b', 4096);
	if (msync(at, 65536, MS_SYNC))
		return 2;
	at[9 * 4096] = 'c';
	return munmap(at, 65536) || fsync(fd);
}
"""


@pytest.fixture(autouse=True)
def _kernel() -> None:
    if cached_kernel(cache_folder(), SERIES[0], programs_kernel()) is None:
        pytest.skip("the kernel for programs is not built: make uml")


def _ran(here: Path, fs: str, *words: str) -> tuple[dict[str, Any], str]:
    done = subprocess.run(
        [FLASHBED, "exec", "--fs", fs, "--format", "json", *words], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, cwd=here, check=False, timeout=250,
    )  # fmt: skip
    assert done.stdout, done.stderr
    printed = [line for line in done.stderr.splitlines() if not line.startswith("flashbed: ")]
    return json.loads(done.stdout)["exec"][0], "\n".join(printed)


@pytest.mark.parametrize("fs", ["ubifs", "jffs2"])
def test_the_recorder_changes_nothing_that_the_program_does(fs: str, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "a").write_text("a line\n" * 3000)
    (there / "link").symlink_to("a")
    words = ("--put", "there", "--", "sh", "-c", SCRIPT + "; cat h; date +%s%N; echo $$")
    bare, printed = _ran(tmp_path, fs, *words)
    recorded, printed_again = _ran(tmp_path, fs, "--record", "a.rec", *words)
    assert printed_again == printed
    for name in ("exit_status", "time_ns", "run", "flush", "erases_by_block"):
        assert recorded[name] == bare[name], name
    recording = open_recording(tmp_path / "a.rec")
    assert recording.about.complete
    existed = {call.path(): call.number("length") for call in recording.existed()}
    assert existed[b"there/a"] == 21_000
    assert existed[b"there/link"] == 1
    (held,) = (call.written for call in recording.existed() if call.path() == b"there/a")
    assert isinstance(held, tuple)
    assert len(held) == 6
    assert 20 < max(piece.lzo_alone for piece in held) < 200


def test_with_contents_the_bytes_are_recorded_too(tmp_path: Path) -> None:
    """Sizes are those of whole pieces: with the bytes, a replay on JFFS2 is the program."""
    there = "".join(f"line {number * 7919 % 1000}\n" for number in range(40_000))
    (tmp_path / "a").write_text(there)
    words = ("--put", "a", "--record", "a.rec", "--contents", "--", "sh", "-c", "tr x y <a >b")
    ran, _ = _ran(tmp_path, "jffs2", *words)
    recording = open_recording(tmp_path / "a.rec")
    (held,) = (call.written for call in recording.existed() if call.path() == b"a")
    assert held == there.encode()
    written = [call.written for call in recording.calls() if call.name == "write"]
    assert b"".join(each for each in written if isinstance(each, bytes)) == there.encode()
    counts = tuple(ran["run"][kind] + ran["flush"][kind] for kind in KINDS)
    assert replayed(tmp_path / "a.rec", "jffs2", "sim-chip").counts == counts


def test_contents_without_a_recording_are_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [FLASHBED, "exec", "--contents", "--", "true"], capture_output=True, text=True,
        cwd=tmp_path, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "flashbed: --contents: what --record FILE keeps; give it too\n"


def test_pages_of_a_mapped_file_are_read_when_the_program_reads_them(tmp_path: Path) -> None:
    compiled(MAPPED, tmp_path)
    (tmp_path / "there").write_bytes(b"a" * 65536)
    words = ("--put", "there", "--put", "program", "--", "./program")
    bare, _ = _ran(tmp_path, "ubifs", *words)
    recorded, _ = _ran(tmp_path, "ubifs", "--record", "a.rec", *words)
    assert bare["exit_status"] == 0
    assert (recorded["run"], recorded["flush"]) == (bare["run"], bare["flush"])
    calls = list(open_recording(tmp_path / "a.rec").calls())
    written = [call for call in calls if call.name == "mapped_write"]
    begins = next(call.result for call in calls if call.name == "mmap" and call.number("flags") & 1)
    assert [(call.number("address") - begins, call.number("length")) for call in written] == [
        (2 * 4096, 4096),
        (9 * 4096, 4096),
    ]


def test_with_until_all_of_a_daemon_is_recorded(tmp_path: Path) -> None:
    words = ("--until", "3", "--", "sh", "-c", "(while sleep 1; do echo x >>log; done) & wait")
    bare, _ = _ran(tmp_path, "ubifs", *words)
    recorded, _ = _ran(tmp_path, "ubifs", "--record", "a.rec", *words)
    assert recorded["until_signal"] == bare["until_signal"] == 15
    assert (recorded["run"], recorded["flush"]) == (bare["run"], bare["flush"])
    calls = list(open_recording(tmp_path / "a.rec").calls())
    assert sum(call.name == "write" for call in calls) == 2
    assert sum(call.name == "exit" for call in calls) == len({call.task for call in calls})
