"""Points of a sweep: grids that are never made as a whole, and random numbers of their own."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradlab as gl
from gradlab.sweeps.networks import run_of
from gradlab.sweeps.settings import PointSettings, cell_settings
from gradlab.sweeps.streams import random_parameters, random_streams

TINY: dict[str, Any] = {"hidden_size": 4, "length": 8, "batch": 2, "input_size": 2}


@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_grid_is_the_product_of_its_axes_at_every_place(sizes: list[int]) -> None:
    names = ["gamma", "bias", "gain", "leak"][: len(sizes)]
    values = [[0.5 * k for k in range(size)] for size in sizes]
    points = gl.grid(**dict(zip(names, values, strict=True)))
    expected = [dict(zip(names, row, strict=True)) for row in itertools.product(*values)]
    assert list(points) == expected == points[:] == [points[k] for k in range(len(points))]
    assert points[-1] == expected[-1]
    with pytest.raises(IndexError):
        points[len(points)]


def test_grid_of_a_trillion_points_is_made_at_once() -> None:
    points = gl.grid(gamma=np.linspace(0.5, 1.5, 1000), seed=range(10**9))
    assert len(points) == 10**12
    assert points[10**9 * 999 + 7] == {"gamma": 1.5, "seed": 7}


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"gama": [1.0]}, "did you mean 'gamma'"),
        ({"gamma": ["much"]}, "gamma 'much': expected a finite number"),
        ({"gamma": [math.nan]}, "expected a finite number"),
        ({"hidden_size": [4.5]}, "expected a whole number from 1"),
        ({"hidden_size": [True]}, "expected a whole number from 1"),
        ({"seed": range(-1, 3)}, "expected a whole number from 0"),
        ({"activation": [1]}, "expected a word"),
        ({"anchors": ["auto"]}, "anchors 'auto': expected all, last or a number"),
        ({"inclusive": [1]}, "expected True or False"),
        ({"transient": [-1]}, "expected a whole number from 0"),
    ],
)
def test_values_of_the_wrong_type_are_refused(axes: dict[str, Any], message: str) -> None:
    with pytest.raises(gl.GradlabError, match=message):
        gl.grid(**axes)


def test_stream_is_the_one_that_the_design_describes() -> None:
    settings = PointSettings(gamma=1.5, hidden_size=32, length=7, threshold=0.5, seed=11)
    text = '{"gamma":1.5,"hidden_size":32,"length":7}'
    digest = hashlib.sha256(text.encode()).digest()
    words = [int.from_bytes(digest[k : k + 4], "little") for k in range(0, 32, 4)]
    expected = np.random.SeedSequence(11, spawn_key=tuple(words)).spawn(2)
    for stream, sequence in zip(random_streams(settings), expected, strict=True):
        assert stream.random() == np.random.default_rng(sequence).random()


def drawn(**settings: Any) -> tuple[float, float]:
    weights, inputs = random_streams(PointSettings(**{"seed": 3, **settings}))
    return weights.random(), inputs.random()


@pytest.mark.parametrize(
    "analysis",
    [
        *({"anchors": "all"}, {"max_lag": 3}, {"threshold": 0.5}, {"dtype": "float32"}),
        *({"transient": 0}, {"inclusive": True}),
    ],
)
def test_analysis_moves_no_draw(analysis: dict[str, Any]) -> None:
    assert drawn(**analysis) == drawn()


@pytest.mark.parametrize(
    "parameter", [{"gamma": 1.0}, {"length": 9}, {"seed": 4}, {"cell": "lstm"}, {"gain": 1.5}]
)
def test_every_other_parameter_gives_a_stream_of_its_own(parameter: dict[str, Any]) -> None:
    assert not set(drawn(**parameter)) & set(drawn())
    assert len(set(drawn())) == 2


def test_settings_that_a_cell_does_not_have_move_no_draw() -> None:
    assert drawn(cell="lstm", leak=0.5) == drawn(cell="lstm")
    assert random_parameters(PointSettings(leak=0.5, forget_bias=3.0)) == {}
    assert {"forget_bias", "chrono"} <= cell_settings("lstm")


def test_whole_and_real_numbers_of_one_value_are_one_point() -> None:
    whole, real = (
        gl.sweep(gl.grid(gamma=[value], seed=[0]), **TINY).to_frame()
        for value in (1, np.float64(1.0))
    )
    assert whole.equals(real)


def test_networks_of_files_run_over_the_same_inputs(tmp_path: Path) -> None:
    runs = []
    for name, scale in (("a", 0.5), ("b", 2.0)):
        arrays: dict[str, Any] = {
            "W_hh": scale * np.eye(3),
            "W_xh": np.ones((3, 2)),
            "b_h": np.zeros(3),
        }
        np.savez(tmp_path / f"{name}.npz", **arrays)
        runs.append(run_of(PointSettings(model=str(tmp_path / f"{name}.npz"), length=5))[1])
    np.testing.assert_array_equal(runs[0].inputs, runs[1].inputs)
    assert not np.array_equal(runs[0].states, runs[1].states)


def test_points_may_run_over_sequences_of_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((6, 2, 2)))
    points = gl.grid(gamma=[0.5, 1.25])
    settings: dict[str, Any] = {"recurrent": "orthogonal", "hidden_size": 3, "input_size": 2}
    result = gl.sweep(points, inputs=str(tmp_path / "x.npy"), **settings)
    np.testing.assert_allclose(result.to_frame()["rate"], np.log([0.5, 1.25]), atol=1e-12)
    assert result.profiles_frame()["lag"].max() == 6
    with pytest.raises(gl.SettingError, match="length shapes made-up inputs"):
        gl.sweep(points, inputs=str(tmp_path / "x.npy"), length=9)


def test_a_transient_is_left_out_of_the_exponent_and_a_threshold_may_count_itself() -> None:
    """Without inputs and recurrence a hard tanh stays at its bias exactly."""
    still: dict[str, Any] = {"synthetic": "zeros", "activation": "hard_tanh", "gamma": 1e-300}
    points = gl.grid(bias=[0.75], threshold=[0.75], inclusive=[False, True])
    table = gl.sweep(points, **still, **TINY).to_frame()
    assert table["saturated_share"].tolist() == [0.0, 1.0]
    points = gl.grid(transient=[0, 4, 7])
    runs = gl.sweep(points, hidden_size=6, gain=3.0, length=9, batch=1).to_frame()
    assert runs["lyapunov_leading"].nunique() == 3
    assert runs["rate"].nunique() == 1


def test_inputs_of_a_file_may_have_their_sequences_first(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(6, 3, 2))
    np.save(tmp_path / "time.npy", x)
    np.save(tmp_path / "batch.npy", x.swapaxes(0, 1))
    points = gl.grid(gamma=[0.5, 1.5])
    shape: dict[str, Any] = {"hidden_size": 3, "input_size": 2}
    time = gl.sweep(points, inputs=str(tmp_path / "time.npy"), **shape)
    batch = gl.sweep(points, inputs=str(tmp_path / "batch.npy"), batch_first=True, **shape)
    assert time.to_frame().equals(batch.to_frame())
    with pytest.raises(gl.SettingError, match="batch_first belongs to inputs of a file"):
        gl.sweep(points, batch_first=True, **shape)


def test_estimate_counts_sizes_and_scales_with_points_and_jobs() -> None:
    points = gl.grid(hidden_size=[2, 4], length=[4, 6], seed=range(50))
    estimate = gl.estimate_sweep(points, jobs=4, batch=1)
    assert (estimate.points, estimate.shapes, estimate.jobs) == (200, 4, 4)
    assert 1 <= estimate.probed <= 4
    assert estimate.seconds == pytest.approx(50 * estimate.seconds_a_point)
    more = gl.estimate_sweep(gl.grid(hidden_size=[2], length=[4], seed=range(2000)), batch=1)
    rows = gl.sweep(gl.grid(hidden_size=[2], length=[4], seed=[0]), batch=1)
    size = len(rows.to_frame().to_csv(index=False).splitlines()[1])
    size += len(rows.profiles_frame().to_csv(index=False, header=False))
    assert more.disk_bytes == pytest.approx(2000 * size, rel=0.1)
    assert json.dumps(more.to_summary())


def test_memory_of_an_estimate_covers_the_largest_size() -> None:
    small, large = (
        gl.estimate_sweep(gl.grid(hidden_size=sizes, length=[3]), batch=1)
        for sizes in ([4], [4, 2048])
    )
    assert large.probed == 1
    assert large.bytes_a_process > small.bytes_a_process + 8 * 2048**2
    assert large.seconds_a_point > 1000 * small.seconds_a_point
