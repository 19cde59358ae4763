"""A judged budget as JUnit XML, which build servers show."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from flashbed.answers.budgets.limits_held import JudgedLine
from flashbed.stack.names import escaped

__all__ = ["junit_of"]


def junit_of(title: str, lines: Sequence[JudgedLine]) -> str:
    """A suite for each stack, a test case for each line. It has no times: they would differ."""
    root = ET.Element("testsuites", _counts(title, lines))
    for stack in dict.fromkeys(line.row.stack for line in lines):
        of_stack = [line for line in lines if line.row.stack == stack]
        suite = ET.SubElement(root, "testsuite", _counts(stack, of_stack))
        for line in of_stack:
            _add_case(suite, title, line)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _add_case(suite: ET.Element, title: str, line: JudgedLine) -> None:
    row = line.row
    where = ".".join(escaped(word) for word in (title, *row.key) if word)
    case = ET.SubElement(suite, "testcase", {"classname": where, "name": line.measure})
    said = escaped(line.text)
    if line.breaks:
        failure = {"message": said, "type": line.verdict}
        ET.SubElement(case, "failure", failure).text = said
    else:
        ET.SubElement(case, "system-out").text = said


def _counts(name: str, lines: Sequence[JudgedLine]) -> dict[str, str]:
    broken = sum(line.breaks for line in lines)
    return {
        "name": escaped(name), "tests": str(len(lines)), "failures": str(broken), "errors": "0",
    }  # fmt: skip
