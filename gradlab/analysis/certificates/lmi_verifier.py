"""One eigenvalue solve that proves, or refutes, a solution of the linear matrix inequality."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from gradlab.analysis.certificates.family import JacobianFamily
from gradlab.analysis.certificates.margin import MARGIN
from gradlab.arrays import Array


def lmi_matrix(
    family: JacobianFamily, P: Float[Array, "n n"], T: Float[Array, " n"], rate: float
) -> Float[Array, "m m"]:
    r"""The matrix that is positive definite where (P, T) prove the rate.

    .. math:: \begin{pmatrix} r^2 P - A^T P A & -(A^T P + B^T T) \\
        -(P A + T B) & 2 T - P \end{pmatrix}

    with J = A + diag(d) B, d in [0, 1]: A = C - H and B = 2 H. Where the slopes of a vanilla cell
    begin at 0, A = 0 and B = γ_a W.
    """
    A, B = family.center - family.spread, 2.0 * family.spread
    TB = T[:, None] * B
    corner = -(P @ A + TB)
    return np.block([[rate**2 * P - A.T @ P @ A, corner.T], [corner, 2.0 * np.diag(T) - P]])


def verify_lmi(
    family: JacobianFamily, P: Float[Array, "n n"], T: Float[Array, " n"], rate: float
) -> bool:
    """Whether (P, T) prove ‖P_{t,k}‖ ≤ √cond(P) rate^l, in floating point with the margin."""
    if not np.all(T > 0.0):
        return False
    log_scale = 0.5 * np.log(2.0 * T)
    s = np.exp(-log_scale)
    return verify_metric(family, log_scale, s[:, None] * P * s, rate)


def verify_metric(
    family: JacobianFamily, log_scale: Float[Array, " n"], Y: Float[Array, "n n"], rate: float
) -> bool:
    """The same for P = S Y S and T = S²/2 with S = diag(exp log_scale), however far S spreads.

    The inequality is taken in coordinates in which T, rate² P and 2 T - P have the diagonal 1: a
    congruence, which changes no sign. Its smallest eigenvalue must exceed the margin times its
    largest, and so must that of P.
    """
    if not family.majorant.any():
        return rate >= 0.0
    diagonals = np.concatenate([rate**2 * np.diag(Y), 1.0 - np.diag(Y)])
    if not np.all(diagonals > 0.0):
        return False
    matrix = lmi_matrix(family.scaled(log_scale), Y, np.full(len(Y), 0.5), rate)
    return _positive(matrix, np.sqrt(diagonals)) and _positive(Y, np.sqrt(np.diag(Y)))


def _positive(matrix: Float[Array, "n n"], unit: Float[Array, " n"]) -> bool:
    """Whether a symmetric matrix, in such units of its coordinates, is definite with the margin."""
    scaled = matrix / (unit[:, None] * unit)
    if not np.all(np.isfinite(scaled)):
        return False
    eigenvalues = np.linalg.eigvalsh(0.5 * (scaled + scaled.T))
    return bool(eigenvalues[0] > MARGIN * eigenvalues[-1])
