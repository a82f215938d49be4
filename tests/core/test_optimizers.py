"""Optimizers: first steps by hand, purity, states that survive a file, refusals."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from gradlab.arrays import Array
from gradlab.engine.optimizers import SGD, Adam, Optimizer, RMSProp, optimizer
from gradlab.errors import SettingError, ShapeError, UnknownNameError


def steps_of(rule: Optimizer, gradients: list[float], weight: float = 1.0) -> list[float]:
    """Values of a scalar weight under the given gradients."""
    weights = {"w": np.array([weight])}
    state = rule.start(weights)
    values = []
    for g in gradients:
        weights, state = rule.update(weights, {"w": np.array([g])}, state)
        values.append(float(weights["w"][0]))
    return values


def test_plain_descent_subtracts_the_scaled_gradient() -> None:
    np.testing.assert_allclose(steps_of(SGD(learning_rate=0.1), [2.0, -1.0]), [0.8, 0.9])


def test_momentum_adds_up_past_gradients() -> None:
    """v = 2, then 0.9 · 2 - 1 = 0.8, then 0.9 · 0.8 = 0.72."""
    values = steps_of(SGD(learning_rate=0.1, momentum=0.9), [2.0, -1.0, 0.0])
    np.testing.assert_allclose(values, [0.8, 0.72, 0.648], rtol=1e-15)


@pytest.mark.parametrize("g", [1e-4, 1.0, -1e6])
def test_first_step_of_adam_is_the_learning_rate_whatever_the_gradient(g: float) -> None:
    (value,) = steps_of(Adam(learning_rate=0.01), [g])
    assert value == pytest.approx(1.0 - 0.01 * g / (abs(g) + 1e-8), rel=1e-12)


def test_second_step_of_adam_by_hand() -> None:
    """m = 0.1·1·0.9 - 0.1·3 = -0.21 over 0.19; v = 0.001·0.999 + 0.001·9 over 0.001999."""
    first, second = steps_of(Adam(learning_rate=0.01), [1.0, -3.0])
    step = 0.01 * (-0.21 / 0.19) / (math.sqrt(0.009999 / 0.001999) + 1e-8)
    assert second - first == pytest.approx(-step, rel=1e-11)


def test_steps_of_rmsprop_by_hand() -> None:
    """s = 0.1·4 = 0.4, then 0.9·0.4 + 0.1·1 = 0.46."""
    values = steps_of(RMSProp(learning_rate=0.01, decay=0.9), [2.0, -1.0])
    first = 1.0 - 0.02 / (math.sqrt(0.4) + 1e-8)
    second = first + 0.01 / (math.sqrt(0.46) + 1e-8)
    np.testing.assert_allclose(values, [first, second], rtol=1e-14)


@pytest.mark.parametrize(
    "rule", [SGD(learning_rate=0.05, momentum=0.5), Adam(learning_rate=0.05), RMSProp()]
)
def test_a_quadratic_bowl_is_descended_to_its_bottom(rule: Optimizer) -> None:
    weights = {"a": np.array([[2.0, -1.0]]), "b": np.array([0.5])}
    state = rule.start(weights)
    for _ in range(4000):
        gradients = {"a": weights["a"] - 1.0, "b": 3.0 * (weights["b"] + 1.0)}
        weights, state = rule.update(weights, gradients, state)
    np.testing.assert_allclose(weights["a"], 1.0, atol=2e-3)
    np.testing.assert_allclose(weights["b"], -1.0, atol=2e-3)


@pytest.mark.parametrize("name", ["sgd", "adam", "rmsprop"])
def test_a_step_changes_neither_its_arguments_nor_the_types(name: str) -> None:
    rule = optimizer(name)
    weights = {"w": np.array([1.0, 2.0], dtype=np.float32)}
    gradients = {"w": np.array([0.5, -0.5], dtype=np.float32)}
    state = rule.start(weights)
    copies = [{k: v.copy() for k, v in each.items()} for each in (weights, gradients, state)]
    moved, after = rule.update(weights, gradients, state)
    for each, copy in zip((weights, gradients, state), copies, strict=True):
        assert all(np.array_equal(each[key], value) for key, value in copy.items())
    assert moved["w"].dtype == np.float32
    assert set(after) == set(state)


@pytest.mark.parametrize("name", ["sgd", "adam", "rmsprop"])
def test_a_state_that_went_through_a_file_gives_the_same_bits(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(0)
    rule = optimizer(name, **({"momentum": 0.9} if name == "sgd" else {}))
    weights: dict[str, Array] = {"w": rng.standard_normal(5)}
    state = rule.start(weights)
    for _ in range(3):
        weights, state = rule.update(weights, {"w": rng.standard_normal(5)}, state)
    np.savez(tmp_path / "state.npz", **state)  # type: ignore[arg-type]
    with np.load(tmp_path / "state.npz") as archive:
        loaded = {key: archive[key] for key in archive.files}
    gradient = {"w": rng.standard_normal(5)}
    straight, _ = rule.update(weights, gradient, state)
    resumed, _ = rule.update(weights, gradient, loaded)
    assert straight["w"].tobytes() == resumed["w"].tobytes()


def test_names_and_settings_that_do_not_exist_or_fit_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'adam'"):
        optimizer("adm")
    with pytest.raises(UnknownNameError, match="setting of sgd 'beta_1'"):
        optimizer("sgd", beta_1=0.9)
    for settings in ({"learning_rate": 0.0}, {"learning_rate": math.nan}, {"momentum": 1.0}):
        with pytest.raises(SettingError, match="expected a"):
            optimizer("sgd", **settings)
    rule = Adam()
    weights = {"w": np.zeros(2)}
    with pytest.raises(ShapeError, match="same names"):
        rule.update(weights, {"v": np.zeros(2)}, rule.start(weights))
