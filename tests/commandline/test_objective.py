"""``--targets`` and the options of its loss, for ``gradlab analyze`` and ``gradlab report``."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradlab as gl

Run = Callable[..., Any]
Model = Callable[[str], Path]

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
DIGITS_COMMAND = (
    DIGITS / "digits_rnn.safetensors", "--inputs", DIGITS / "digits_test_inputs.npy",
    "--targets", DIGITS / "digits_test_targets.npy", "--at", "last", "--anchors", "last",
    "--max-lag", 2,
)  # fmt: skip


@pytest.fixture
def echo(model: Model, tmp_path: Path) -> tuple[object, ...]:
    """Command for a trained network on inputs and real targets, batch-first files."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.standard_normal((3, 9, 1)))
    np.save(tmp_path / "y.npy", rng.standard_normal((3, 9, 1)))
    files = ("--inputs", tmp_path / "x.npy", "--targets", tmp_path / "y.npy")
    return (model("trained_rnn_echo3.pt"), *files, "--batch-first", "--loss", "squared_error")


def test_the_digits_example_tells_where_its_gradient_comes_from(gradlab: Run) -> None:
    """Oracle: PyTorch's autograd in float64, with a copy of W_hh for every step."""
    outcome = gradlab("analyze", *DIGITS_COMMAND, "--json")
    [entry] = json.loads(outcome.out)["recurrences"]
    gradient = entry["gradient"]
    assert [gradient[f"lag_{share}"] for share in (50, 90, 99)] == [34, 54, 61]
    assert gradient["total_norm"] == pytest.approx(136.02501196685972, rel=1e-12)
    assert gradient["cancellation_ratio"] == pytest.approx(0.07989722558721302, rel=1e-12)
    assert "the loss reads rnn.l0 through readout.weight (10, 64) with readout.bias" in outcome.err


def test_text_says_by_which_lag_the_gradient_is_held(gradlab: Run) -> None:
    lines = gradlab("analyze", *DIGITS_COMMAND).out.splitlines()
    [line] = [line for line in lines if line.startswith("  gradient")]
    assert "50 % within lag" in line
    assert "cancellation ratio" in line


def test_batch_first_turns_inputs_and_targets_alike(
    gradlab: Run, echo: tuple[object, ...], tmp_path: Path
) -> None:
    outcome = gradlab("analyze", *echo, "--json", "-o", tmp_path / "run", "--pairs")
    [entry] = json.loads(outcome.out)["recurrences"]
    readout = gl.load_readout(str(echo[0]), loss="squared_error")
    x, y = (np.load(tmp_path / f"{name}.npy").swapaxes(0, 1) for name in "xy")
    _, gradients = gl.bptt(gl.load(str(echo[0])), readout, x, y)
    total = np.linalg.norm(gradients["rnn.l0.W_hh"])
    assert entry["gradient"]["total_norm"] == pytest.approx(total, rel=1e-10)
    with (tmp_path / "run" / "gradient_pairs.csv").open(encoding="utf-8", newline="") as table:
        assert len(list(csv.DictReader(table))) == 3 * 45
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["settings"]["objective"] == {
        "readout": "out.weight (1, 16) with out.bias",
        "loss": "squared_error",
        "average": "none",
        "at": "all",
    }


def test_a_readout_is_chosen_by_name_and_an_unknown_one_is_told(
    gradlab: Run, echo: tuple[object, ...]
) -> None:
    assert gradlab("analyze", *echo, "--readout", "out").code == 0
    outcome = gradlab("analyze", *echo, "--readout", "outer")
    assert outcome.code == 1
    assert "unknown readout 'outer'" in outcome.error
    assert "out.weight" in outcome.error


@pytest.mark.parametrize(
    "options", [("--at", "last"), ("--loss", "squared_error"), ("--readout", "out")]
)
def test_an_option_of_the_loss_without_targets_is_wrong_usage(
    gradlab: Run, model: Model, options: tuple[str, str]
) -> None:
    outcome = gradlab("analyze", model("trained_rnn_echo3.pt"), *options)
    assert outcome.code == 2
    assert options[0] in outcome.error
    assert "--targets" in outcome.error


@pytest.mark.parametrize("source", ["random", "vanishing"])
def test_a_network_without_a_file_has_no_readout(gradlab: Run, source: str) -> None:
    outcome = gradlab("analyze", source, "--targets", "y.npy")
    assert outcome.code == 2
    assert "needs a model file" in outcome.error


def test_targets_are_refused_where_a_saved_run_is_only_rendered(
    gradlab: Run, tmp_path: Path
) -> None:
    shape = ("--hidden-size", 3, "--input-size", 1, "--length", 4, "--batch", 1)
    assert gradlab("analyze", "random", *shape, "-o", tmp_path / "run", "-q").code == 0
    outcome = gradlab("report", tmp_path / "run", "--targets", "y.npy")
    assert outcome.code == 2
    assert "--targets" in outcome.error
    assert "only rendered" in outcome.error


def test_targets_that_do_not_fit_are_one_line(gradlab: Run, echo: tuple[object, ...]) -> None:
    wrong = [word for word in echo if word not in ("--loss", "squared_error")]
    outcome = gradlab("analyze", *wrong)
    assert outcome.code == 1
    assert "expected integers of shape (9, 3) for cross_entropy" in outcome.error


def test_a_gated_network_tells_the_half_lives_of_its_gates(gradlab: Run, model: Model) -> None:
    short = ("--length", 12, "--batch", 2)
    lines = gradlab("analyze", model("trained_lstm_echo8.pt"), *short).out.splitlines()
    assert any(line.startswith("  half-life    f ") for line in lines)
    assert any("sigma_max by gate: i " in line and "(no bound)" in line for line in lines)


def test_a_report_with_targets_draws_the_gradient_and_plot_draws_it_again(
    gradlab: Run, echo: tuple[object, ...], tmp_path: Path
) -> None:
    assert gradlab("report", *echo, "-o", tmp_path / "run", "-q").code == 0
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Gradient of the loss" in page
    for kind in ("gradient", "gradient-pairs"):
        assert (tmp_path / "run" / "figures" / f"{kind}.png").is_file()
        output = tmp_path / f"{kind}.svg"
        assert gradlab("plot", tmp_path / "run", "--kind", kind, "-o", output).code == 0
        assert output.read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize("kind", ["gates", "paths"])
def test_gates_are_drawn_from_the_run_of_a_gated_network_only(
    gradlab: Run, model: Model, tmp_path: Path, kind: str
) -> None:
    short = ("--length", 6, "--batch", 2, "-q")
    for name in ("trained_gru_echo8", "trained_rnn_echo3"):
        assert gradlab("analyze", model(f"{name}.pt"), *short, "-o", tmp_path / name).code == 0
    output = tmp_path / f"{kind}.svg"
    assert gradlab("plot", tmp_path / "trained_gru_echo8", "--kind", kind, "-o", output).code == 0
    refused = gradlab(
        "plot", tmp_path / "trained_rnn_echo3", "--kind", kind, "-o", tmp_path / "x.svg"
    )
    assert refused.code == 1
    assert f"holds no {kind}.csv" in refused.error
