"""Random weights, and the exact rescaling of a matrix to a norm or a spectral radius."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.errors import SettingError, UnreachableTargetError, unknown_name
from gradlab.linalg import sign_fixed_qr
from gradlab.norms import spectral_norm, spectral_radius

Square = Float[Array, "n n"]


def _gaussian(n: int, density: float, rng: np.random.Generator) -> Square:
    return np.asarray(rng.standard_normal((n, n)) / np.sqrt(n))


def _orthogonal(n: int, density: float, rng: np.random.Generator) -> Square:
    return sign_fixed_qr(rng.standard_normal((n, n)))[0]


def _identity(n: int, density: float, rng: np.random.Generator) -> Square:
    return np.eye(n)


def _uniform(n: int, density: float, rng: np.random.Generator) -> Square:
    return np.asarray(rng.uniform(-1.0, 1.0, (n, n)) / np.sqrt(n))


def _sparse(n: int, density: float, rng: np.random.Generator) -> Square:
    if not 0.0 < density <= 1.0:
        raise SettingError(f"density {density}: expected a share in (0, 1]")
    kept = rng.random((n, n)) < density
    return np.asarray(np.where(kept, rng.standard_normal((n, n)), 0.0) / np.sqrt(n * density))


RECURRENT: dict[str, Callable[[int, float, np.random.Generator], Square]] = {
    "gaussian": _gaussian,
    "orthogonal": _orthogonal,
    "identity": _identity,
    "uniform": _uniform,
    "sparse": _sparse,
}


def recurrent_weights(
    kind: str,
    n: int,
    *,
    rng: np.random.Generator,
    gain: float = 1.0,
    gamma: float | None = None,
    radius: float | None = None,
    density: float = 0.1,
) -> Float[Array, "n n"]:
    """Recurrent matrix of a kind, scaled by a gain or to an exact target.

    Parameters
    ----------
    kind
        ``gaussian`` has entries N(0, 1/N), ``uniform`` U(-1, 1)/√N as the large frameworks do,
        ``orthogonal`` is Haar-distributed, ``sparse`` Gaussian with a share ``density`` of
        non-zero entries and the same variance a row.
    n
        State size N.
    rng
        Source of randomness.
    gain
        Factor on the matrix; has no effect on the result when a target is given.
    gamma, radius
        Exact target for σ_max or for ρ; not both.
    density
        For ``sparse`` only.

    Returns
    -------
    W_hh
        Float64.

    Raises
    ------
    UnknownNameError, SettingError, UnreachableTargetError
        For an unknown kind, settings that contradict each other, a target that cannot be reached.
    """
    if kind not in RECURRENT:
        raise unknown_name("recurrent initializer", kind, RECURRENT)
    if not np.isfinite(gain):
        raise SettingError(f"gain {gain}: expected a finite number")
    if n < 1:
        raise SettingError(f"hidden_size {n}: expected at least 1")
    if gamma is not None and radius is not None:
        raise SettingError("gamma and radius are both given: expected one exact target")
    W = gain * RECURRENT[kind](n, density, rng)
    if gamma is not None:
        return scale_to_gamma(W, gamma)
    return W if radius is None else scale_to_radius(W, radius)


def input_weights(n: int, features: int, *, rng: np.random.Generator) -> Float[Array, "n features"]:
    """Input matrix, entries N(0, 1/D): inputs of variance 1 drive each unit with variance 1."""
    if features < 1:
        raise SettingError(f"input_size {features}: expected at least 1")
    return np.asarray(rng.standard_normal((n, features)) / np.sqrt(features))


def scale_to_gamma(W: Float[Array, "n n"], target: float) -> Float[Array, "n n"]:
    """Multiple of W whose largest singular value is the target.

    Raises
    ------
    SettingError
        If the target is negative or not finite.
    UnreachableTargetError
        If W is zero.
    """
    return _scaled(W, spectral_norm(W), target, "gamma", "largest singular value")


def scale_to_radius(W: Float[Array, "n n"], target: float) -> Float[Array, "n n"]:
    """Multiple of W whose spectral radius is the target.

    Raises
    ------
    SettingError
        If the target is negative or not finite.
    UnreachableTargetError
        If all eigenvalues of W are zero, as in a nilpotent matrix.
    """
    return _scaled(W, spectral_radius(W), target, "radius", "spectral radius")


def _scaled(W: Square, current: float, target: float, name: str, quantity: str) -> Square:
    if not (np.isfinite(target) and target >= 0.0):
        raise SettingError(f"{name} {target}: expected a finite number >= 0")
    if current <= len(W) * np.finfo(np.float64).eps * float(np.abs(W).max()):
        raise UnreachableTargetError(
            f"the {quantity} of W_hh is 0, so no rescaling brings it to {target}: "
            f"expected a matrix with a positive {quantity}; choose another initializer or seed"
        )
    return np.asarray(W * (target / current))
