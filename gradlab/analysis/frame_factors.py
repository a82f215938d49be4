r"""Triangular factors of the columns that a product of Jacobians has carried along.

Both forms take the columns as they are and leave the logarithms of the diagonal of R. Cholesky
factors the Gram matrix: cheap, right while the columns are well conditioned, and refused where they
are not. Householder reflections, with the rows sorted and the columns scaled, are right for
everything else: saturated units, ranks that are lost, entries of 1e200.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, Int

from gradlab.analysis.products.scaled import EPSILON, LOG_2
from gradlab.arrays import Array
from gradlab.linalg import rescale

# Least square of a pivot in units of the Gram matrix's rounding, which is about sqrt(n) eps.
SIGNAL = 100.0
# Pivots up to this, and down to its inverse, have squares far inside the range of float64.
RANGE = 1e100


def largest_spread(n: int) -> float:
    """Ratio of column lengths to pivots, of columns of n entries, that a Gram matrix resolves."""
    return float((SIGNAL * n**0.5 * EPSILON) ** -0.5)


class CholeskyFactor:
    r"""X = Q R by the Gram matrix, in place; Q is well conditioned, but not quite orthonormal.

    That suffices inside a long product: :math:`J \cdots J Q_0 = Q R_m \cdots R_1` holds for any
    triangular factors, and what Q lacks shows in the next of them.
    """

    def __init__(self) -> None:
        from scipy.linalg import blas, lapack

        self.syrk, self.trsm, self.potrf = blas.dsyrk, blas.dtrsm, lapack.dpotrf

    def __call__(
        self, X: Float[Array, "n k"], spread: float
    ) -> tuple[Float[Array, " k"], float, float] | None:
        """Q in the place of X; None, and X as it was, if the columns are not fit for this.

        Parameters
        ----------
        X
            Columns; row by row in memory.
        spread
            Largest ratio of a column's length to a pivot that is admitted.

        Returns
        -------
        log_pivots, log_low, log_high
            ln of the diagonal of R, nats; of its smallest entry, and of the longest column.
        """
        rows = X.T  # the layout of Fortran, without a copy
        gram = self.syrk(1.0, rows, lower=1)
        high = gram.diagonal().max() ** 0.5
        L, failed = self.potrf(gram, lower=1, overwrite_a=1, clean=0)
        if failed:
            return None
        pivots = L.diagonal()
        low = pivots.min()
        # Comparisons with nan are false.
        if not (high <= spread * low and high < RANGE and low * RANGE > 1.0):
            return None
        self.trsm(1.0, L, rows, lower=1, overwrite_b=1)
        return np.log(pivots), math.log(low), math.log(high)


class HouseholderFactor:
    """X = Q R by reflections, for columns and rows of any size and for any rank.

    Columns are brought to order one, and rows sorted by size, the largest first: each row then
    keeps its own digits, however small it is (Cox and Higham 1998, "Stability of Householder QR
    factorization for weighted least squares problems", as Powell and Reid proposed in 1969).
    """

    def __init__(self) -> None:
        from scipy.linalg import lapack

        self.geqrf, self.orgqr = lapack.dgeqrf, lapack.dorgqr

    def __call__(
        self, X: Float[Array, "n k"]
    ) -> tuple[Float[Array, " k"], Float[Array, "n rank"], Int[Array, " rank"]]:
        """Factor the columns that are independent of the others.

        Returns
        -------
        log_pivots
            ln of the diagonal of R, nats; -inf for a column that depends on the others to within
            rounding: n · eps of the size of the rows that are left to it.
        Q, kept
            Orthonormal columns, and which columns of X they belong to.
        """
        scaled, exponent = rescale(X.T[:, :, None])
        size = np.abs(scaled[:, :, 0]).max(axis=0, initial=0.0)
        order = np.argsort(-size, kind="stable")
        rounding = len(X) * EPSILON * size[order]
        kept, factors, tau = self._independent(scaled[:, order, 0].T, rounding)
        log_pivots = np.full(X.shape[1], -np.inf)
        log_pivots[kept] = np.log(np.abs(factors.diagonal())) + LOG_2 * exponent[kept]
        Q = np.empty(factors.shape)
        Q[order] = self.orgqr(factors, tau)[0] if len(kept) else factors
        return log_pivots, Q, kept

    def _independent(
        self, rows: Float[Array, "n k"], rounding: Float[Array, " n"]
    ) -> tuple[Int[Array, " rank"], Float[Array, "n rank"], Float[Array, " rank"]]:
        """Columns that are independent of the ones before them, and their factors.

        The reflection of a dependent column is arbitrary, and so are the pivots behind it. All that
        seem dependent are therefore moved behind the others, and looked at once more.
        """
        kept = np.arange(rows.shape[1])
        dropped = kept[:0]
        while True:
            factors, tau, _, _ = self.geqrf(rows[:, np.concatenate([kept, dropped])])
            rank = len(kept)
            lost = np.abs(factors.diagonal()[:rank]) <= rounding[:rank]
            rest = np.abs(np.triu(factors)[rank : rows.shape[1], rank:])
            regained = dropped[(rest > rounding[rank : rank + 1]).any(axis=0)]
            if lost.any():
                dropped = np.concatenate([kept[lost], dropped])
                kept = kept[~lost]
            elif len(regained):
                kept = np.append(kept, regained[0])
                dropped = dropped[dropped != regained[0]]
            else:
                return kept, factors[:, :rank], tau[:rank]
