"""Slopes over time: what the map and the histogram of units hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.analysis.slope_map import BINS, GROUPS, SLICES, TIMES, slope_map
from gradlab.records.slope_map import SlopeMap


def arranged(steps: int, units: int, batch: int, seed: int = 0) -> tuple[SlopeMap, np.ndarray]:
    """Map of random slopes in (0, 1), and the slopes by time, sequence and unit."""
    slope = np.random.default_rng(seed).uniform(size=(steps, batch, units))
    t = np.repeat(np.arange(1, steps + 1), batch)
    flat = slope.reshape(steps * batch, units)
    return slope_map(t, flat, flat < 0.25, 1.0), slope


def test_few_units_and_steps_keep_every_one() -> None:
    found, slope = arranged(7, 5, 3)
    np.testing.assert_allclose(found.unit_slope, slope.mean(axis=1), rtol=1e-14)
    np.testing.assert_allclose(found.unit_saturated, (slope < 0.25).mean(axis=1), rtol=1e-14)
    assert found.first.tolist() == found.last.tolist() == list(range(1, 8))
    assert found.first_unit.tolist() == found.last_unit.tolist() == list(range(5))


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 3))
def test_slices_and_groups_cover_everything_once(steps: int, units: int, batch: int) -> None:
    found, slope = arranged(steps, units, batch)
    assert found.unit_slope.shape == (min(steps, TIMES), min(units, GROUPS))
    assert found.share.shape == (min(steps, SLICES), BINS)
    for first, last, end, start in (
        (found.first, found.last, steps, 1),
        (found.spread_first, found.spread_last, steps, 1),
        (found.first_unit, found.last_unit, units - 1, 0),
    ):
        assert first[0] == start
        assert last[-1] == end
        np.testing.assert_array_equal(first[1:], last[:-1] + 1)
    # Weighted by the steps and units in each cell, the means are the mean of all.
    weight = np.outer(found.last - found.first + 1, found.last_unit - found.first_unit + 1)
    np.testing.assert_allclose(np.average(found.unit_slope, weights=weight), slope.mean())
    np.testing.assert_allclose(found.share.sum(axis=1), 1.0)


def test_the_histogram_is_that_of_numpy() -> None:
    found, slope = arranged(40, 50, 2)
    for index, (first, last) in enumerate(zip(found.spread_first, found.spread_last, strict=True)):
        counts, _ = np.histogram(slope[first - 1 : last], bins=found.edge)
        np.testing.assert_allclose(found.share[index], counts / counts.sum(), rtol=1e-12)


def test_a_slope_at_the_ceiling_is_in_the_last_bin() -> None:
    slope = np.ones((4, 3))
    found = slope_map(np.arange(1, 5), slope, slope < 0.0, 1.0)
    assert (found.share[:, -1] == 1.0).all()
    assert found.edge[0] == 0.0
    assert found.edge[-1] == 1.0


def test_padding_enters_no_slice() -> None:
    """A short sequence counts where it is valid only, and times nobody reaches have no slice."""
    cell = gl.VanillaCell(W_hh=np.zeros((2, 2)), W_xh=np.eye(2), b_h=np.zeros(2))
    inputs = np.zeros((6, 2, 2))
    inputs[:, 1] = 3.0
    trajectory = gl.rollout(cell, inputs, lengths=np.array([4, 2]))
    found = gl.saturation(cell, trajectory).gates["tanh"].over_time
    assert found is not None
    low = 1.0 / np.cosh(3.0) ** 2
    expected = [[(1.0 + low) / 2.0] * 2] * 2 + [[1.0, 1.0]] * 2
    assert found.last.tolist() == [1, 2, 3, 4]
    np.testing.assert_allclose(found.unit_slope, expected, rtol=1e-12)


def test_a_run_saves_both_tables_and_reads_them_back(tmp_path: Path) -> None:
    network = gl.load(Path(__file__).parents[1] / "fixtures" / "models" / "lstm_1l.pt")
    cell = network.only()
    inputs = np.random.default_rng(0).standard_normal((6, 2, cell.input_size))
    folder = gl.save(gl.analyze(network, inputs), tmp_path / "run")
    (entry,) = gl.load_run(folder).recurrences.values()
    for name, table in (
        ("slopes", entry.saturation.spread_frame()),
        ("units", entry.saturation.units_frame()),
    ):
        saved = pd.read_csv(folder / f"{name}.csv").drop(columns="recurrence")
        assert table is not None
        pd.testing.assert_frame_equal(saved, table, check_dtype=False)
        assert set(saved["activation"]) == set(entry.saturation.gates)


@pytest.mark.parametrize("table", ["spread_frame", "units_frame"])
def test_a_run_of_an_older_version_has_no_map(table: str) -> None:
    import dataclasses

    cell = gl.VanillaCell(W_hh=np.eye(2), W_xh=np.eye(2), b_h=np.zeros(2))
    profile = gl.saturation(cell, gl.rollout(cell, np.ones((3, 1, 2))))
    old = {name: dataclasses.replace(gate, over_time=None) for name, gate in profile.gates.items()}
    assert getattr(dataclasses.replace(profile, gates=old), table)() is None
