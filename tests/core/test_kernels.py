"""Which kernel measures long products: by size, work and what is installed, and by nothing else."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import gradlab as gl
from gradlab.analysis.jacobians import kernel_for
from gradlab.analysis.products import kernels
from gradlab.analysis.products.kernels import chosen_kernel, importable

MANY = 10**7


@pytest.fixture(params=[True, False], ids=["with numba", "without"])
def installed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    there = bool(request.param)
    monkeypatch.setattr(kernels, "importable", lambda: there)
    return there


def run_of(cell: gl.VanillaCell, steps: int) -> gl.Trajectory:
    return gl.rollout(cell, np.zeros((steps, 2, cell.input_size)))


def vanilla(n: int) -> gl.VanillaCell:
    return gl.VanillaCell.initialize(input_size=1, hidden_size=n, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("size", "reach", "worth"),
    [
        (1, 10**6, True),
        (31, 10**6, True),
        (95, 999, True),
        (32, 1000, False),
        (96, 128, True),
        (96, 129, False),
        (128, 1, False),
    ],
)
def test_much_work_on_small_states_is_for_machine_code(
    size: int, reach: int, worth: bool, installed: bool
) -> None:
    found = chosen_kernel("auto", size=size, reach=reach, products=10**10)
    assert found == ("numba" if worth and installed else "numpy")
    assert chosen_kernel("numpy", size=size, reach=reach, products=10**10) == "numpy"


def test_little_work_is_for_numpy_unless_asked(installed: bool) -> None:
    assert chosen_kernel("auto", size=64, reach=100, products=1000) == "numpy"
    if installed:
        assert chosen_kernel("numba", size=64, reach=100, products=1) == "numba"


def test_a_kernel_that_cannot_be_had_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "importable", lambda: False)
    with pytest.raises(gl.MissingExtraError, match=r"pip install 'gradlab-rnn\[fast\]'"):
        chosen_kernel("numba", size=8, reach=1, products=1)
    with pytest.raises(gl.UnknownNameError, match="kernel"):
        chosen_kernel("fortran", size=8, reach=1, products=1)
    cell = vanilla(3)
    with pytest.raises(gl.UnknownNameError, match="kernel"):
        gl.analyze(cell, np.zeros((4, 1, 1)), kernel="fortran")


def test_numba_that_does_not_import_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    importable.cache_clear()
    try:
        assert not importable()
        assert chosen_kernel("auto", size=8, reach=1, products=10**10) == "numpy"
    finally:
        importable.cache_clear()


def test_all_pairs_count_and_all_points_of_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sequences of 10 steps: 110 pairs, as many inverses, 20 pairs from the last steps."""
    asked: list[int] = []

    def counted(kernel: str, *, size: int, reach: int, products: int) -> str:
        assert (kernel, size) == ("auto", 5)
        asked.append(products)
        return "numpy"

    monkeypatch.setattr("gradlab.analysis.jacobians.chosen_kernel", counted)
    cell = vanilla(5)
    run = run_of(cell, 10)
    kernel_for(cell, run)
    kernel_for(cell, run, anchors="last", smallest=False, times=1000)
    kernel_for(cell, run, 3, "all", smallest=False)
    assert asked == [220, 20_000, 2 * (1 + 2 + 8 * 3)]


def test_all_pairs_at_once_are_for_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "importable", lambda: True)
    for n, all_pairs in ((31, "numba"), (32, "numpy")):
        cell = vanilla(n)
        run = run_of(cell, 200)
        assert kernel_for(cell, run, times=10_000) == all_pairs
        assert kernel_for(cell, run, anchors=3, times=10_000) == "numba"
        assert kernel_for(cell, run, kernel="numba") == "numba"


def test_a_sweep_chooses_by_all_its_points(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(kernel: str, *, size: int, reach: int, products: int) -> str:
        asked.append(products)
        return "numpy"

    monkeypatch.setattr("gradlab.analysis.jacobians.chosen_kernel", counted)
    gl.sweep(gl.grid(gain=[0.5, 1.0, 2.0]), hidden_size=4, length=6, batch=1)
    assert asked.count(3 * 6) == 3


def test_an_analysis_tells_its_kernel() -> None:
    result = gl.analyze(vanilla(3), np.zeros((4, 1, 1)), kernel="numpy")
    assert result.provenance.settings["kernel"] == "numpy"
