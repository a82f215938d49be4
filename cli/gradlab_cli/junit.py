"""Outcomes of a check as JUnit XML, which continuous-integration servers show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gradlab as gl


def write_junit(run: Path, outcomes: Sequence[gl.Outcome], path: Path) -> None:
    """Write one test case for each requirement of each recurrence.

    Parameters
    ----------
    run
        The folder that was checked.
    outcomes
        What came of it.
    path
        File to write; one that exists is replaced.

    Raises
    ------
    OutputError
        If the disk refuses.
    """
    from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

    failed = sum(not outcome.passed for outcome in outcomes)
    counts = {"tests": str(len(outcomes)), "failures": str(failed), "errors": "0"}
    suite = Element("testsuite", {"name": f"gradlab check {run}", **counts})
    for outcome in outcomes:
        case = SubElement(suite, "testcase", classname=outcome.recurrence, name=outcome.requirement)
        if not outcome.passed:
            SubElement(case, "failure", message=f"found: {outcome.found}")
    indent(suite)
    try:
        with path.open("wb") as stream:
            ElementTree(suite).write(stream, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise gl.OutputError(
            f"{path} cannot be written ({error.strerror or error}): expected a writable place"
        ) from error
