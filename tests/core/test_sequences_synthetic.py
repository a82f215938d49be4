"""Seeded inputs: the moments they promise, and that they say what they are."""

from __future__ import annotations

import numpy as np
import pytest

import gradlab as gl

KINDS = ("gaussian", "zeros", "sine", "white_noise")


def made(kind: str, *, seed: int = 0, std: float = 1.0, length: int = 1000) -> gl.Sequences:
    return gl.synthetic_sequences(
        kind, length=length, batch=20, input_size=5, rng=np.random.default_rng(seed), std=std
    )


@pytest.mark.parametrize("kind", KINDS)
def test_synthetic_inputs_say_what_they_are(kind: str) -> None:
    sequences = made(kind, length=30)
    assert sequences.synthetic
    assert sequences.inputs.shape == (30, 20, 5)
    assert sequences.lengths.tolist() == [30] * 20
    assert "synthetic" in sequences.description
    assert kind.replace("_", " ") in sequences.description


@pytest.mark.parametrize("kind", KINDS)
def test_equal_seeds_give_equal_bytes(kind: str) -> None:
    assert made(kind).inputs.tobytes() == made(kind).inputs.tobytes()
    differs = made(kind, seed=1).inputs.tobytes() != made(kind).inputs.tobytes()
    assert differs == (kind != "zeros")


@pytest.mark.parametrize("kind", ["gaussian", "white_noise", "sine"])
@pytest.mark.parametrize("std", [0.5, 3.0])
def test_standard_deviation_is_as_asked(kind: str, std: float) -> None:
    inputs = made(kind, std=std).inputs
    # 100 000 entries: the standard error of the deviation is below 0.3 %, five of them are allowed.
    assert inputs.std() == pytest.approx(std, rel=0.015)
    assert inputs.mean() == pytest.approx(0.0, abs=0.02 * std)


def test_white_noise_is_uniform_and_a_gaussian_is_not() -> None:
    """Fourth moment over squared variance: 9/5 for uniform entries, 3 for normal ones."""
    uniform, normal = made("white_noise").inputs, made("gaussian").inputs
    assert np.mean(uniform**4) / np.mean(uniform**2) ** 2 == pytest.approx(1.8, rel=0.02)
    assert np.mean(normal**4) / np.mean(normal**2) ** 2 == pytest.approx(3.0, rel=0.05)
    assert np.abs(uniform).max() <= np.sqrt(3.0)


@pytest.mark.parametrize("kind", ["white_noise", "gaussian"])
def test_noise_is_white(kind: str) -> None:
    inputs = made(kind).inputs
    for lag in (1, 2, 10):
        assert np.mean(inputs[lag:] * inputs[:-lag]) == pytest.approx(0.0, abs=0.02)


def test_sine_repeats_after_25_steps_with_a_phase_of_its_own_everywhere() -> None:
    inputs = made("sine").inputs
    np.testing.assert_allclose(inputs[25:], inputs[:-25], atol=1e-11)
    assert np.abs(inputs[12:] - inputs[:-12]).max() > 2.0
    assert len(np.unique(inputs[0])) == 100
    assert np.abs(inputs).max() <= np.sqrt(2.0)


def test_zeros_are_zeros() -> None:
    assert not made("zeros", std=5.0).inputs.any()


def test_unknown_kind_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(gl.UnknownNameError, match="did you mean 'gaussian'"):
        made("gausian")


@pytest.mark.parametrize("std", [-1.0, np.nan, np.inf])
def test_impossible_deviation_is_refused(std: float) -> None:
    with pytest.raises(gl.SettingError, match="std"):
        made("gaussian", std=std)


@pytest.mark.parametrize("size", ["length", "batch", "input_size"])
def test_sizes_below_one_are_refused(size: str) -> None:
    sizes = {"length": 3, "batch": 2, "input_size": 1, size: 0}
    with pytest.raises(gl.SettingError, match=f"{size} 0"):
        gl.synthetic_sequences("zeros", rng=np.random.default_rng(0), **sizes)
