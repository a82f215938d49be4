"""``gradlab check``: thresholds on a saved run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import gradlab as gl
from gradlab.requirements import Requirement, check_run


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Path]:
    """Writer of a run folder that holds a summary alone."""

    def written(*entries: dict[str, Any]) -> Path:
        base = {
            "name": "rnn", "saturated_share": 0.1, "sequences": {"length_max": 100},
            "regime": {"name": "vanishing", "rate": -0.119},
            "horizon": {"lag_1pct": 47, "lag_half": None}, "kreiss": None, "rate": "-inf",
        }  # fmt: skip
        document = {"schema": 1, "recurrences": [base | entry for entry in entries or ({},)]}
        (tmp_path / "summary.json").write_text(json.dumps(document))
        return tmp_path

    return written


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--min-horizon", "47"), 0),
        (("--min-horizon", "48"), 3),
        (("--max-rate", "-0.1"), 0),
        (("--max-rate", "-0.2"), 3),
        (("--min-rate", "-0.2", "--max-rate", "0"), 0),
        (("--min-rate", "0"), 3),
        (("--regime", "vanishing,near-critical"), 0),
        (("--regime", "exploding"), 3),
        (("--max-saturated", "0.05"), 3),
        (("--require", "horizon.lag_half >= 100"), 0),
        (("--require", "horizon.lag_half >= 101"), 3),
        (("--require", "regime.name != vanishing"), 3),
        (("--require", "rate <= 0", "--require", "regime.name == vanishing"), 0),
        (("--require", "kreiss <= 5"), 3),
        (("--min-horizon", "10", "--max-rate", "-0.2"), 3),
    ],
)
def test_exit_code_tells_whether_everything_is_met(
    options: tuple[str, ...], code: int, gradlab: Any, run: Any
) -> None:
    assert gradlab("check", run(), *options).code == code


def test_each_failure_is_one_line(gradlab: Any, run: Any) -> None:
    ended = gradlab(
        "check", run(), "--min-horizon", "50", "--max-rate", "-1", "--regime", "vanishing"
    )
    assert ended.err.splitlines() == [
        "rnn: horizon.lag_1pct >= 50 required, 47",
        "rnn: regime.rate <= -1 required, -0.119",
    ]


def test_every_recurrence_is_checked_unless_one_is_named(gradlab: Any, run: Any) -> None:
    folder = run({"name": "a"}, {"name": "b", "saturated_share": 0.9})
    assert gradlab("check", folder, "--max-saturated", "0.5").code == 3
    assert gradlab("check", folder, "--max-saturated", "0.5", "--recurrence", "a").code == 0
    unknown = gradlab("check", folder, "--max-saturated", "0.5", "--recurrence", "c")
    assert unknown.code == 1
    assert "unknown recurrence 'c'" in unknown.error


def test_thresholds_come_from_a_file_too(gradlab: Any, run: Any, tmp_path: Path) -> None:
    toml = tmp_path / "thresholds.toml"
    toml.write_text(
        '[[require]]\nkey = "regime.rate"\nmin = -0.2\nmax = 0\n'
        '[[require]]\nkey = "regime.name"\none_of = ["exploding"]\n'
    )
    ended = gradlab("check", run(), "--thresholds", toml, "--json")
    assert ended.code == 3
    first, second = json.loads(ended.out)
    assert (first["passed"], second["passed"]) == (True, False)


def test_junit_has_a_case_for_each_requirement(gradlab: Any, run: Any, tmp_path: Path) -> None:
    path = tmp_path / "check.xml"
    gradlab("check", run(), "--max-rate", "0", "--min-horizon", "99", "--junit", path)
    suite = ElementTree.parse(path).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failures = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failures == ["horizon.lag_1pct >= 99"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "nothing is required"),
        (("--require", "regime.rat >= 1"), "did you mean 'regime.rate'"),
        (("--require", "regime >= 1"), "unknown key of the summary 'regime'"),
        (("--require", "rate about 1"), "no condition"),
        (("--require", "rate >= much"), "expected a number"),
        (("--thresholds", "no.toml"), "no.toml cannot be read"),
    ],
)
def test_wrong_thresholds_are_one_clear_error(
    options: tuple[str, ...], message: str, gradlab: Any, run: Any
) -> None:
    ended = gradlab("check", run(), *options)
    assert ended.code == 1
    assert message in ended.error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("require = 3", "no list of tables"),
        ("[[require]]\nmin = 1", "has no key"),
        ('[[require]]\nkey = "rate"', "nothing is required of rate"),
        ('[[require]]\nkey = "rate"\nmim = 1', "did you mean 'min'"),
        ('[[require]]\nkey = "rate"\nmin = "1"', "expected numbers"),
        ("[[", "is not TOML"),
        ("[other]", "unknown key of"),
    ],
)
def test_wrong_files_of_thresholds_are_one_clear_error(
    text: str, message: str, gradlab: Any, run: Any, tmp_path: Path
) -> None:
    toml = tmp_path / "thresholds.toml"
    toml.write_text(text)
    ended = gradlab("check", run(), "--thresholds", toml)
    assert ended.code == 1
    assert message in ended.error


def test_folder_without_a_run_is_refused(gradlab: Any, tmp_path: Path) -> None:
    assert gradlab("check", tmp_path, "--max-rate", "0").code == 1


def test_real_run_is_checked(gradlab: Any, tmp_path: Path) -> None:
    gradlab("analyze", "vanishing", "-o", tmp_path / "run")
    assert gradlab("check", tmp_path / "run", "--regime", "vanishing").code == 0
    [outcome] = check_run(tmp_path / "run", [Requirement(key="regime.rate", min=0.0)])
    assert not outcome.passed
    assert isinstance(outcome, gl.Outcome)


ODD = {
    "saturation": {"gates": {"leaky_relu(0.2)": {"low_share": 0.25}}},
    "sequences": {"length_max": 100, "synthetic": True},
    "outlook": {"changes": [{"rate": -0.5}, {"rate": 0.25}]},
    "gradient": None,
    "state_size": 8,
}


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("saturation.gates.leaky_relu(0.2).low_share <= 0.25", 0),
        ("saturation.gates.leaky_relu(0.2).low_share<=0.2", 3),
        ("outlook.changes.1.rate >= 0.25", 0),
        ("outlook.changes.0.rate >= 0", 3),
        ("sequences.synthetic == true", 0),
        ("sequences.synthetic != true", 3),
        ("sequences.synthetic == True", 3),
        ("state_size == 8.0, 16", 0),
        ("state_size != 8.0", 3),
        ("kreiss == null", 0),
        ("kreiss != null", 3),
        ("kreiss != 3", 3),
        ("horizon.lag_half == null", 0),
        ("horizon.lag_half != null", 3),
        ("horizon.lag_1pct != null", 0),
        ("gradient.lag_90 <= 3", 3),
        ("gradient.lag_90 == null", 0),
        ("rate == -inf", 0),
    ],
)
def test_odd_keys_and_values_are_compared_as_they_are_spelled(
    condition: str, code: int, gradlab: Any, run: Any
) -> None:
    ended = gradlab("check", run(ODD), "--require", condition)
    assert ended.code == code, ended.err


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("regime.nam == x", "expected one of regime.name, regime.rate; did you mean 'regime.name'"),
        ("outlook.changes.2.rate >= 0", "expected one of outlook.changes.0, outlook.changes.1"),
        ("regime.name.length >= 1", "did you mean 'regime.name'"),
        ("state_size > 3", "expected KEY >= NUMBER, KEY <= NUMBER"),
    ],
)
def test_a_wrong_key_names_those_that_are_there(
    condition: str, message: str, gradlab: Any, run: Any
) -> None:
    ended = gradlab("check", run(ODD), "--require", condition)
    assert ended.code == 1
    assert message in ended.error
    assert len(ended.error) < 300


def test_a_file_may_hold_truth_values_and_numbers_too(
    gradlab: Any, run: Any, tmp_path: Path
) -> None:
    toml = tmp_path / "thresholds.toml"
    toml.write_text(
        '[[require]]\nkey = "sequences.synthetic"\none_of = true\n'
        '[[require]]\nkey = "state_size"\none_of = [8, 16]\n'
    )
    assert gradlab("check", run(ODD), "--thresholds", toml).code == 0
