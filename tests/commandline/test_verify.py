"""``gradlab verify`` on the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

import gradlab as gl


def check(passed: bool, computed: float = 1.0) -> gl.Check:
    return gl.Check(
        name="one", group="here", computed=computed, expected=1.0, tolerance=0.1, passed=passed,
        source="nowhere", message="" if passed else "broken on purpose",
    )  # fmt: skip


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replace the verification by one of these checks."""

    def replace(*checks: gl.Check) -> None:
        outcome = gl.Verification(checks=checks)
        monkeypatch.setattr(gl, "verify", lambda **_: outcome)

    return replace


def test_all_that_pass_is_exit_code_0(gradlab: Any) -> None:
    run = gradlab("verify")
    assert run.code == 0
    assert "computed" in run.out.splitlines()[0]
    assert run.err.strip().endswith("checks pass")


def test_one_that_fails_is_exit_code_3_and_says_why(gradlab: Any, verified: Any) -> None:
    verified(check(True), check(False, float("nan")))
    run = gradlab("verify")
    assert run.code == 3
    assert "NO" in run.out
    assert "one: broken on purpose" in run.err
    assert "1 of 2 checks pass" in run.err


def test_json_is_a_list_with_the_contracts_keys(gradlab: Any, verified: Any) -> None:
    verified(check(True), check(False, float("-inf")))
    run = gradlab("verify", "--json", "--quiet")
    assert run.code == 3
    first, second = json.loads(run.out)
    assert first.keys() >= {"name", "computed", "expected", "tolerance", "pass"}
    assert (first["pass"], second["pass"]) == (True, False)
    assert second["computed"] == "-inf"
    assert run.err == ""
