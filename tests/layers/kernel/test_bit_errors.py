"""The module's arithmetic of bit errors, compiled for the host, against the simulator's numbers.

sim/tests/stack/errors.rs holds the simulator to the same files in tests/corpus/errors.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import PROJECT

CORPUS = PROJECT / "tests/corpus/errors"
MODULE = PROJECT / "kernel/flashbed_nand"
_LINUX = {
    "linux/types.h": "",
    "linux/kernel.h": "",
    "linux/bitops.h": "",
}
"""What draws.c and errors.c include of the kernel; prelude.h has the little that they use."""
_PRELUDE = """
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
typedef uint8_t u8;
typedef uint32_t u32;
typedef int32_t s32;
typedef unsigned long long u64;
typedef long long s64;
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
static inline int fls64(u64 x) { return x ? 64 - __builtin_clzll(x) : 0; }
"""
_MAIN = """
#include "draws.c"
#include "errors.c"
#include <string.h>

static void expected(void)
{
    struct fbn_curve curve = {.on = true};
    u32 erases, hours, reads;
    int i;

    for (i = 0; i < FBN_TERMS; i++)
        if (scanf("%d %u %u", &curve.terms[i].log2, &curve.terms[i].erases_power,
                  &curve.terms[i].power) != 3)
            return;
    if (scanf("%u %u %u", &erases, &hours, &reads) == 3)
        printf("%llu\\n", fbn_expected(&curve, erases, hours, reads));
}

static void bits(void)
{
    u32 found[FBN_STEP_ERRORS_MAX];
    struct fbn_step step;
    u64 seed;
    u32 erases, count, i;

    if (scanf("%llu %u %u %u %llu", &seed, &erases, &step.number, &step.bits,
          &step.expected) != 5)
        return;
    count = fbn_draw_errors(seed, erases, &step, found);
    for (i = 0; i < count; i++)
        printf("%s%u", i ? " " : "", found[i]);
    printf("\\n");
}

int main(void)
{
    char word[16];

    while (scanf("%15s", word) == 1)
        if (strcmp(word, "bits"))
            expected();
        else
            bits();
    return 0;
}
"""


def _declared() -> str:
    """The part of flashbed_nand.h that declares both files."""
    header = (MODULE / "flashbed_nand.h").read_text()
    return "/* draws.c */" + header.split("/* draws.c */")[1].split("/* faults.c */")[0]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("cc is not installed")
    folder = tmp_path_factory.mktemp("errors")
    for name, content in _LINUX.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    (folder / "flashbed_nand.h").write_text(f"#pragma once\n{_PRELUDE}{_declared()}")
    for name in ("draws.c", "errors.c"):
        shutil.copy(MODULE / name, folder)
    (folder / "main.c").write_text(_MAIN)
    command = [compiler, "-Wall", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover"]
    subprocess.run([*command, "-I", folder, folder / "main.c", "-o", folder / "main"], check=True)
    return folder / "main"


@pytest.mark.parametrize("kind", ["expected", "bits"])
def test_the_module_draws_what_the_simulator_draws(compiled: Path, kind: str) -> None:
    with (CORPUS / f"{kind}.csv").open() as file:
        rows = list(csv.DictReader(file))
    asked = [" ".join(value for key, value in row.items() if key != "found") for row in rows]
    given = "".join(f"{kind} {line}\n" for line in asked)
    done = subprocess.run([compiled], input=given, text=True, capture_output=True, check=True)
    assert done.stdout.splitlines() == [row["found"] for row in rows]
