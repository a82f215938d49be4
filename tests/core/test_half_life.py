"""The forget gate's promise, the gradient that breaks it, and the page that shows both."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import gradlab as gl

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "half_life" / "half_life.py"
PAGE = ROOT / "docs" / "gallery" / "lstm.md"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """The script of the gallery, as a module."""
    spec = importlib.util.spec_from_file_location("half_life", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("bias", "left", "half_life"),
    [
        (0.0, 7.8886090522e-31, 1.0),
        (1.0, 2.484378555724e-14, 2.2126777968),
        (2.0, 3.0731695436808e-6, 5.4609473107),
        (3.0, 0.0077602932358636, 14.2660004736),
        (5.0, 0.51092378485612, 103.2183484868),
        (10.0, 0.99547039980127, 15267.929234),
    ],
)
def test_without_weights_the_jacobian_decays_with_the_forget_gate(
    example: ModuleType, bias: float, left: float, half_life: float
) -> None:
    """∂c_T/∂c_{T-100} = σ(b)^100, and the norm of the whole Jacobian falls at the same rate."""
    cell = example.forget_path(bias)
    run = gl.rollout(cell, np.zeros((100, 1, 1)))
    product = np.eye(2)
    for step in cell.linearize(run):
        product = step.matrix()[0] @ product
    assert product[1, 1] == pytest.approx(left, rel=1e-11)
    profile = gl.jacobian_profile(cell, run, anchors="last")
    rate = gl.regime(profile, gl.bound_ladder(cell, run, profile=profile)).rate
    assert math.log(2.0) / -rate == pytest.approx(half_life, rel=1e-9)
    assert gl.half_life_of_forget_bias(bias) == pytest.approx(half_life, rel=1e-9)


def test_a_unit_that_forgets_at_once_explodes_through_its_own_output(example: ModuleType) -> None:
    """At rest J = (o, 1)ᵀ (3 i, f), so that ‖J^l‖ = (f + 3 i o)^(l-1) √(1 + o²) √(9 i² + f²)."""
    cell = example.self_exciting()
    dynamics = gl.analyze(cell, np.zeros((40, 1, 1))).only()
    i, f, o = (1.0 / (1.0 + math.exp(-bias)) for bias in (4.0, -2.0, 4.0))
    eigenvalue, first = f + 3.0 * i * o, math.hypot(1.0, o) * math.hypot(3.0 * i, f)
    lag = dynamics.jacobians.lag
    expected = (lag - 1) * math.log(eigenvalue) + math.log(first)
    np.testing.assert_allclose(dynamics.jacobians.log_norm, expected, rtol=1e-12)
    assert dynamics.regime.name == "exploding"
    assert dynamics.regime.rate == pytest.approx(math.log(3.0123), abs=1e-4)
    carry = gl.gate_dynamics(cell, gl.rollout(cell, np.zeros((40, 1, 1)))).carry["f"]
    assert carry.half_life.item() == pytest.approx(math.log(2.0) / math.log1p(math.exp(2.0)))
    assert carry.half_life.item() < 0.33


def test_a_driven_network_explodes_although_every_forget_path_dies(example: ModuleType) -> None:
    cell = example.random_lstm(gain=8.0, forget_bias=-1.0)
    dynamics, run = example.measured(cell, example.noise())
    carry = gl.gate_dynamics(cell, run).carry["f"]
    assert carry.half_life.max() < 1.0
    assert carry.log_norm[-1] < -60.0  # over 100 lags, of the unit that forgets least
    assert dynamics.only().regime.name == "exploding"
    table = dynamics.only().jacobians.by_lag()
    assert table["log_norm_median"].iloc[-1] > 10.0


def test_the_page_shows_what_the_script_prints(example: ModuleType) -> None:
    """Words exactly; numbers to 3 %, since trajectories that diverge depend on the machine."""
    page = PAGE.read_text(encoding="utf-8")
    shown = re.findall(r"<!-- table \d -->\n\n(.*?)\n\n<!-- end", page, flags=re.DOTALL)
    printed = example.tables()
    assert len(shown) == len(printed) == 4
    for on_page, now in zip(shown, printed, strict=True):
        number = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
        assert re.sub(number, "#", on_page) == re.sub(number, "#", now)
        values = [[float(x) for x in re.findall(number, text)] for text in (on_page, now)]
        np.testing.assert_allclose(values[0], values[1], rtol=0.03)


def test_the_script_replaces_the_tables_and_leaves_the_words(example: ModuleType) -> None:
    page = PAGE.read_text(encoding="utf-8")
    written = example.with_tables(page, ["one", "two", "three", "four"])
    assert "<!-- table 2 -->\n\ntwo\n\n<!-- end of table 2 -->" in written
    assert "forget bias |" not in written
    assert "What the forget gate" not in written
    assert written.startswith(page[:500])
    assert example.with_tables(written, ["one", "two", "three", "four"]) == written
