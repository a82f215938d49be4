"""Compressed products: the norms of whole ones, and no trust in what was dropped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.analysis import jacobians
from gradlab.analysis.products import compressed as compressed_room
from gradlab.analysis.products.compressed import (
    PROBES,
    TOLERATED,
    CompressedProduct,
    DroppedRowsGrowError,
)
from gradlab.analysis.products.scaled import ScaledProducts
from gradlab.arrays import Array
from gradlab.cells.base import LinearStep

SIZE = 100


def orthogonal(rng: np.random.Generator) -> Array:
    return np.linalg.qr(rng.standard_normal((SIZE, SIZE)))[0]


def step_of(W: Array) -> LinearStep:
    cell = gl.VanillaCell(W_hh=W, W_xh=np.zeros((len(W), 1)), activation="identity")
    return cell.linearize(gl.rollout(cell, np.zeros((1, 1, 1))))[0]


def both(steps: list[LinearStep]) -> tuple[CompressedProduct, Array]:
    """A compressed product, and the same one whole at the same scale."""
    compressed, whole = CompressedProduct(SIZE), ScaledProducts(1, SIZE)
    whole.renew(np.zeros(0, dtype=bool), begin=True)
    for step in steps:
        if compressed.full:
            compressed.take()
        compressed.extend(step)
        whole.extend(step)
    matrix, log_scale = whole.assembled()
    return compressed, matrix[0, 0] * np.exp(log_scale[0, 0] - compressed.scale * np.log(2.0))


def kept(compressed: CompressedProduct) -> Array:
    return np.asarray(compressed.last[0, : compressed.rank])


def dropped(compressed: CompressedProduct) -> float:
    return float(np.sum(compressed.last[0, compressed.rank :] ** 2)) / PROBES


def cases() -> Iterator[tuple[str, Any]]:
    for kind, gain in (("gaussian", 1.2), ("gaussian", 0.3), ("orthogonal", 1.2)):
        for activation in ("tanh", "relu"):
            yield (
                f"{kind} {gain} {activation}",
                gl.VanillaCell.initialize(
                    input_size=2, hidden_size=SIZE, recurrent=kind, gain=gain,
                    activation=activation, rng=np.random.default_rng(0),
                ),
            )  # fmt: skip
    yield "lstm", gl.LSTMCell.initialize(input_size=2, hidden_size=50, rng=np.random.default_rng(0))
    yield "gru", gl.GRUCell.initialize(input_size=2, hidden_size=96, rng=np.random.default_rng(0))


@pytest.mark.parametrize(("name", "cell"), list(cases()))
def test_profiles_are_those_of_whole_products(
    name: str, cell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = gl.rollout(cell, np.random.default_rng(1).standard_normal((90, 2, 2)))
    profile = gl.jacobian_profile(cell, run, anchors="last")
    monkeypatch.setattr(jacobians, "COMPRESSED_SIZE", 10_000)
    whole = gl.jacobian_profile(cell, run, anchors="last")
    np.testing.assert_array_equal(profile.k, whole.k)
    for column in ("log_norm", "log_frobenius"):
        np.testing.assert_allclose(
            getattr(profile, column), getattr(whole, column), rtol=0.0, atol=1e-10
        )
    np.testing.assert_allclose(profile.log_sigma_min, whole.log_sigma_min, rtol=0.0, atol=1e-6)


def test_a_long_product_keeps_few_rows_and_knows_what_it_dropped() -> None:
    rng = np.random.default_rng(0)
    steps = [step_of(rng.standard_normal((SIZE, SIZE)) / 10.0) for _ in range(40)]
    compressed, whole = both(steps)
    Y = kept(compressed)
    assert len(Y) < 0.6 * SIZE
    values, exact = (np.linalg.svd(matrix, compute_uv=False) for matrix in (Y, whole))
    assert values[0] == pytest.approx(exact[0], rel=1e-11)
    missing = float(np.sum(exact[len(Y) :] ** 2))
    assert 0.01 * missing < dropped(compressed) < TOLERATED * exact[0] ** 2


def test_dropped_rows_that_grow_are_noticed_and_estimated() -> None:
    """The last factor cancels all that was kept but 1e-12, and leaves what was dropped."""
    rng = np.random.default_rng(2)
    U, V = orthogonal(rng), orthogonal(rng)
    sizes = np.r_[np.ones(20), np.full(SIZE - 20, 1e-9)]
    first = [step_of(U * sizes @ V)] + [step_of(orthogonal(rng)) for _ in range(7)]
    compressed, before = both(first)
    assert compressed.rank == 20
    directions = np.linalg.svd(before)[2]
    cancel = step_of(directions.T * np.r_[np.full(20, 1e-12), np.ones(SIZE - 20)] @ directions)
    compressed, whole = both([*first, cancel])
    left_out = float(np.vdot(whole, whole))
    assert left_out == pytest.approx(80 * 1e-18, rel=1e-2)
    assert 0.3 * left_out < dropped(compressed) < 3.0 * left_out
    assert dropped(compressed) > TOLERATED * np.linalg.norm(kept(compressed), ord=2) ** 2
    with pytest.raises(DroppedRowsGrowError):
        compressed.take()


def test_a_profile_whose_dropped_rows_grow_is_measured_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell = gl.VanillaCell.initialize(
        input_size=2, hidden_size=SIZE, gain=1.2, rng=np.random.default_rng(0)
    )
    run = gl.rollout(cell, np.random.default_rng(1).standard_normal((60, 1, 2)))
    originals = {name: getattr(jacobians, name) for name in ("followed", "_sweep")}
    sweeps = []
    for name in ("followed", "_sweep"):

        def counted(*arguments: Any, _name: str = name, **named: Any) -> Any:
            sweeps.append(_name)
            return originals[_name](*arguments, **named)

        monkeypatch.setattr(jacobians, name, counted)
    monkeypatch.setattr(compressed_room, "TOLERATED", 1e-60)
    anew = gl.jacobian_profile(cell, run, anchors="last", smallest=False)
    assert sweeps == ["followed", "followed", "_sweep"]
    monkeypatch.setattr(jacobians, "COMPRESSED_SIZE", 10_000)
    whole = gl.jacobian_profile(cell, run, anchors="last", smallest=False)
    np.testing.assert_array_equal(anew.log_norm, whole.log_norm)
    assert len(anew.lag) == 60


def test_a_product_that_vanishes_is_measured_as_a_whole() -> None:
    rng = np.random.default_rng(0)
    U, V = orthogonal(rng), orthogonal(rng)
    first = step_of(U * np.r_[np.ones(20), np.zeros(SIZE - 20)] @ V)
    products, _ = both([first, *(step_of(W) for W in rng.standard_normal((9, SIZE, SIZE)) / 10.0)])
    assert 0 < products.rank <= 20
    with pytest.raises(DroppedRowsGrowError):
        products.extend(step_of(np.zeros((SIZE, SIZE))))


@pytest.mark.parametrize("kind", ["blocks", "rows far apart"])
def test_units_that_may_overtake_unseen_are_never_dropped(kind: str) -> None:
    rng = np.random.default_rng(0)
    W = rng.standard_normal((SIZE, SIZE)) / 10.0
    if kind == "blocks":
        W[:50, 50:] = W[50:, :50] = 0.0
    last = (
        np.diag(np.r_[np.ones(50), np.full(50, 1e-9)]) if kind == "rows far apart" else np.eye(SIZE)
    )
    compressed, _ = both([step_of(last @ W), *[step_of(W)] * 30])
    assert compressed.rank == 0


def test_a_long_product_of_few_units_is_compressed_and_exact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=32, gain=1.2, rng=rng)
    run = gl.rollout(cell, rng.standard_normal((1000, 1, 2)))
    ranks: list[int] = []

    def noted(self: CompressedProduct, step: LinearStep) -> None:
        extend(self, step)
        ranks.append(self.rank)

    extend = CompressedProduct.extend
    monkeypatch.setattr(CompressedProduct, "extend", noted)
    long = gl.jacobian_profile(cell, run, anchors="last", smallest=False)
    assert 0 < ranks[-1] < 10
    monkeypatch.setattr(jacobians, "SMALLEST_COMPRESSED", 10_000)
    whole = gl.jacobian_profile(cell, run, anchors="last", smallest=False)
    assert len(ranks) == 1000
    np.testing.assert_allclose(long.log_norm, whole.log_norm, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(long.log_frobenius, whole.log_frobenius, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("size", [1e-310, 1e-300, 1e-150, 1e150, 1e300])
def test_steps_of_extreme_size_keep_the_norms_of_whole_products(size: float) -> None:
    rng = np.random.default_rng(1)
    W = size * (rng.standard_normal((SIZE, SIZE)) / np.sqrt(SIZE))
    cell = gl.VanillaCell(W_hh=W, W_xh=np.zeros((SIZE, 1)), activation="identity")
    run = gl.rollout(cell, np.zeros((30, 1, 1)))
    profile = gl.jacobian_profile(cell, run, anchors="last", smallest=False)
    # The same matrix at order one, exactly.
    shift = int(np.frexp(size)[1])
    cell = gl.VanillaCell(W_hh=np.ldexp(W, -shift), W_xh=np.zeros((SIZE, 1)), activation="identity")
    level = gl.jacobian_profile(cell, run, anchors="last", smallest=False)
    expected = level.log_norm + level.lag * shift * np.log(2.0)
    np.testing.assert_allclose(profile.log_norm, expected, rtol=1e-14, atol=1e-10)
