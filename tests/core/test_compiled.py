"""Norms by machine code: against the exact SVD of the rescaled product, and against NumPy's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.arrays import Array
from gradlab.linalg import PATHS
from gradlab.records.jacobians import COLUMNS

pytest.importorskip("numba")

from gradlab.analysis.products import small_chains
from gradlab.analysis.products.compiled import code
from gradlab.analysis.products.compiled.chains import follow

STEPS = 25


def gaussian(rng: np.random.Generator, n: int, gain: float = 1.0) -> Array:
    return np.asarray(rng.standard_normal((n, n)) * (gain / np.sqrt(n)))


def orthogonal(rng: np.random.Generator, n: int) -> Array:
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def blocks(rng: np.random.Generator, n: int) -> Array:
    W, half = np.zeros((n, n)), n // 2
    W[:half, :half] = gaussian(rng, max(half, 1), 1.3)[:half, :half]
    W[half:, half:] = gaussian(rng, n - half, 1.3)
    return W


def clustered(rng: np.random.Generator, n: int, width: float = 1e-9) -> Array:
    values = np.where(np.arange(n) < (n + 1) // 2, 1.0 - width * np.arange(n), 0.5)
    return orthogonal(rng, n) * values


KINDS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "gaussian": lambda rng, n: gaussian(rng, n, 1.2),
    "orthogonal": orthogonal,
    "blocks": blocks,
    "clustered": clustered,
    "rank three": lambda rng, n: np.asarray(
        rng.standard_normal((n, 3)) @ rng.standard_normal((3, n)) / n
    ),
    "nilpotent": lambda rng, n: np.triu(gaussian(rng, n), 1),
    "spread": lambda rng, n: np.diag(2.0 ** rng.integers(-30, 30, n)),
    "zero": lambda rng, n: np.zeros((n, n)),
}


def followed(matrices: Array, factors: Array) -> tuple[Array, Array, Array]:
    """Both logarithms and the path at every lag, of the product of all steps from the identity."""
    steps, n = factors.shape
    log_norms, log_frobenius = np.empty((2, steps))
    path = np.empty(steps, dtype=np.int64)
    state = np.eye(n), np.zeros(n, dtype=np.int64), np.full(n, n**-0.5)
    follow(*state, matrices, factors, log_norms, log_frobenius, path)
    return log_norms, log_frobenius, path


def exact_logs(matrices: Array, factors: Array) -> tuple[Array, Array]:
    """ln of both norms of the product at lags 1, 2, ..., rescaled by its norm at each."""
    product, log_scale, logs = np.eye(factors.shape[1]), 0.0, []
    for step, d in enumerate(factors):
        product = (product * d) @ matrices[min(step, len(matrices) - 1)]
        values = np.linalg.svd(product, compute_uv=False)
        if values[0] == 0.0:
            logs.append((-np.inf, -np.inf))
            continue
        whole = 0.5 * np.log(np.sum((values / values[0]) ** 2)) + np.log(values[0])
        logs.append((np.log(values[0]) + log_scale, whole + log_scale))
        product, log_scale = product / values[0], log_scale + np.log(values[0])
    return tuple(np.array(logs).T)


def assert_exact(matrices: Array, factors: Array, tolerance: float = 1e-12) -> Array:
    *logs, path = followed(matrices, factors)
    for found, exact in zip(logs, exact_logs(matrices, factors), strict=True):
        np.testing.assert_allclose(found, exact, rtol=0.0, atol=tolerance)
    return path


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=15)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.sampled_from([1, 2, 3, 5, 10, 24, 33, 64]),
    factors=st.sampled_from(["ones", "uniform", "near one", "dead units"]),
)
def test_norms_equal_the_exact_svd_of_the_rescaled_product(
    kind: str, seed: int, n: int, factors: str
) -> None:
    rng = np.random.default_rng(seed)
    W, u = KINDS[kind](rng, n), rng.random((STEPS, n))
    dead = np.repeat(u[:1] > 0.2, STEPS, axis=0).astype(np.float64)
    chosen = {"ones": u**0, "uniform": u, "near one": 1.0 - u**4, "dead units": dead}
    assert_exact(np.ascontiguousarray(W)[None], chosen[factors])


@pytest.mark.parametrize(("gain", "steps"), [(0.1, 1000), (4.0, 700)])
def test_norms_stay_exact_beyond_the_range_of_float64(gain: float, steps: int) -> None:
    W = gaussian(np.random.default_rng(3), 24, gain)
    assert_exact(W[None], np.ones((steps, 24)), tolerance=1e-10)
    assert np.abs(followed(W[None], np.ones((steps, 24)))[0]).max() > 800.0


def test_rows_far_apart_keep_their_own_digits() -> None:
    """A unit that hears only itself, and faintly, is alone in the end."""
    W = np.array([[0.5, 0.0, 0.0], [0.0, 1e-30, 1.0], [0.0, 0.0, 1e-250]])
    log_norms, _, _ = followed(W[None], np.ones((2000, 3)))
    np.testing.assert_allclose(log_norms[-1], 2000 * np.log(0.5), rtol=1e-14)


def test_steps_of_extreme_size_lose_no_digits() -> None:
    rng = np.random.default_rng(0)
    matrices = np.stack([gaussian(rng, 6), 1e-290 * gaussian(rng, 6), 1e290 * gaussian(rng, 6)])
    found = followed(matrices, np.ones((3, 6)))[0]
    plain = matrices * np.array([1.0, 1e290, 1e-290])[:, None, None]
    expected = exact_logs(plain, np.ones((3, 6)))[0] + np.log(10.0) * np.array([0.0, -290.0, 0.0])
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-11)


def test_steps_near_the_smallest_numbers_are_brought_near_one() -> None:
    """By a power of two that is no float itself; few digits are left of such steps."""
    W = np.ldexp(np.round(np.ldexp(gaussian(np.random.default_rng(0), 6), 20)), -1060)
    found = followed(W[None], np.ones((3, 6)))[0]
    expected = exact_logs(np.ldexp(W, 1040)[None], np.ones((3, 6)))[0]
    shift = 1040.0 * np.log(2.0) * np.arange(1.0, 4.0)
    np.testing.assert_allclose(found, expected - shift, rtol=0.0, atol=1e-8)


def test_every_path_of_proof_is_taken_where_it_is_meant_to_be() -> None:
    rng, n = np.random.default_rng(1), 48
    U, V = orthogonal(rng, n), orthogonal(rng, n)
    isolated = np.full((n, n), 1.0 / n) + 1e-9 * U
    heavy_tail = U * np.arange(1.0, n + 1.0) ** -0.7 @ V
    narrow = U * (1.0 - 1e-11 * np.linspace(0.0, 1.0, n)) @ V
    for expected, P in zip(PATHS, (isolated, heavy_tail, U, narrow), strict=True):
        path = assert_exact(np.ascontiguousarray(P)[None], np.ones((1, n)), tolerance=5e-13)
        assert PATHS[path[0]] == expected


def test_a_start_on_another_singular_vector_certifies_nothing_wrong() -> None:
    """Decoupled blocks: the second overtakes the first, in which the leading vector settled."""
    n, overtaking = 48, np.zeros((48, 48))
    overtaking[: n // 2, : n // 2] = np.diag(np.r_[1.0, np.linspace(0.9, 0.5, n // 2 - 1)])
    overtaking[n // 2 :, n // 2 :] = np.diag(np.r_[0.98, np.linspace(0.8, 0.4, n // 2 - 1)])
    factors = np.ones((60, n))
    factors[30:, : n // 2] = 0.9
    assert_exact(overtaking[None], factors)


CELLS: dict[str, Callable[[np.random.Generator], Any]] = {
    "rnn": lambda rng: gl.VanillaCell.initialize(input_size=2, hidden_size=13, rng=rng),
    "relu": lambda rng: gl.VanillaCell.initialize(
        input_size=2, hidden_size=9, activation="relu", rng=rng
    ),
    "singular": lambda rng: gl.VanillaCell(
        W_hh=np.triu(gaussian(rng, 6), 1), W_xh=rng.standard_normal((6, 2))
    ),
    "leaky": lambda rng: gl.LeakyCell.initialize(input_size=2, hidden_size=8, leak=0.3, rng=rng),
    "lstm": lambda rng: gl.LSTMCell.initialize(input_size=2, hidden_size=6, rng=rng),
    "gru": lambda rng: gl.GRUCell.initialize(input_size=2, hidden_size=7, rng=rng),
    "mgu": lambda rng: gl.MinimalGatedCell.initialize(input_size=2, hidden_size=5, rng=rng),
}
REACHES: list[dict[str, Any]] = [
    {"anchors": "all"},
    {"anchors": "last", "smallest": False},
    {"anchors": 3, "max_lag": 5},
    {"anchors": [2, 17], "max_lag": 2},
]


def padded_run(cell: Any) -> gl.Trajectory:
    inputs = 0.7 * np.random.default_rng(5).standard_normal((20, 3, 2))
    return gl.rollout(cell, inputs, lengths=np.array([20, 11, 20]))


def assert_same(found: gl.JacobianProfile, expected: gl.JacobianProfile) -> None:
    for name in COLUMNS:
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=0.0, atol=1e-10, err_msg=name
        )


@pytest.mark.parametrize("reach", REACHES, ids=str)
@pytest.mark.parametrize("kind", CELLS)
def test_both_kernels_measure_the_same(kind: str, reach: dict[str, Any]) -> None:
    cell = CELLS[kind](np.random.default_rng(0))
    run = padded_run(cell)
    found = gl.jacobian_profile(cell, run, **reach, kernel="numba")
    assert_same(found, gl.jacobian_profile(cell, run, **reach, kernel="numpy"))


@pytest.mark.parametrize(
    ("kind", "numbers"), [("rnn", 3 * 13), ("rnn", 2 * 13**2), ("gru", 3 * 7**2)]
)
def test_blocks_of_steps_and_of_end_times_change_nothing(
    kind: str, numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = CELLS[kind](np.random.default_rng(0))
    run = padded_run(cell)
    whole = gl.jacobian_profile(cell, run, kernel="numba")
    monkeypatch.setattr(small_chains, "BLOCK_BYTES", 8 * numbers)
    parts = gl.jacobian_profile(cell, run, kernel="numba")
    for name in COLUMNS:
        np.testing.assert_allclose(
            getattr(parts, name), getattr(whole, name), rtol=0.0, atol=1e-12, err_msg=name
        )


def test_equal_calls_give_equal_bits_and_float32_weights_are_read() -> None:
    wide = CELLS["rnn"](np.random.default_rng(0))
    weights = {name: W.astype(np.float32) for name, W in wide.parameters.items()}
    cell = gl.VanillaCell(**weights, dtype="float32")
    run = padded_run(cell)
    first, second = (gl.jacobian_profile(cell, run, kernel="numba") for _ in range(2))
    assert all(getattr(first, k).tobytes() == getattr(second, k).tobytes() for k in COLUMNS)
    assert_same(first, gl.jacobian_profile(cell, run, kernel="numpy"))


SEEN = """
import hashlib, numpy as np, gradlab as gl
digest = hashlib.sha256()
for seed in range(6):
    rng = np.random.default_rng(seed)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=33, gain=1.2, rng=rng)
    run = gl.rollout(cell, rng.standard_normal((60, 1, 2)))
    profile = gl.jacobian_profile(cell, run, anchors="last", kernel="numba")
    digest.update(profile.log_norm.tobytes() + profile.log_sigma_min.tobytes())
seen = digest.hexdigest()
"""


def test_code_just_made_and_code_that_was_kept_give_the_same_bits() -> None:
    """Where this process had to compile, the other one loads what it kept."""
    here: dict[str, Any] = {}
    exec(SEEN, here)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    there = subprocess.run(
        [sys.executable, "-P", "-c", f"{SEEN}\nprint(seen)"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == here["seen"]


def test_an_analysis_tells_the_version_of_its_compiler() -> None:
    cell = CELLS["rnn"](np.random.default_rng(0))
    result = gl.analyze(cell, np.zeros((6, 1, 2)), kernel="numba", exponents=0)
    kernel = result.provenance.settings["kernel"]
    assert kernel == f"numba {result.provenance.versions['numba']}"


def test_machine_code_is_kept_for_these_sources_in_a_folder_of_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = code.users_own()
    assert folder is not None
    assert folder.parent == tmp_path / "gradlab"
    assert folder.stat().st_mode & 0o077 == 0
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert code.users_own() is None
