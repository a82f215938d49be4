r"""The gradient of a loss, term by term: which lags the learning signal comes from.

.. math:: \frac{dL}{dW_{hh}} = \sum_t \sum_{k \le t} \frac{\partial L_t}{\partial h_t}
    \frac{\partial h_t}{\partial h_k} \frac{\partial^+ h_k}{\partial W_{hh}}

Every term is an outer product, so that vectors are pulled back and no product of Jacobians is ever
formed. Vectors are kept of order one, with an integer power of two beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.arrays import Array
from gradlab.cells.base import Cell, Linearization
from gradlab.cells.stack import Network
from gradlab.engine.bptt import forward_runs, readout_terms, state_upstream, upstreams
from gradlab.engine.losses import Readout
from gradlab.engine.scaled_sums import LOG_2, ScaledSum, log_norms
from gradlab.linalg import over_power
from gradlab.records.gradients import COLUMNS, GradientProfile
from gradlab.records.trajectory import Trajectory

# Vectors carried at a time.
STACK_BYTES = 1 << 22


def gradient_profile(
    cell: Cell,
    readout: Readout,
    inputs: Float[Array, "time batch features"],
    targets: Array,
    *,
    initial_state: Array | None = None,
    lengths: Int[Array, " batch"] | None = None,
    mask: Bool[Array, "time batch"] | None = None,
    at: str | None = None,
) -> GradientProfile:
    r"""Norms of all terms of :math:`dL/dW_{hh}`, their bounds and their sum.

    Parameters
    ----------
    cell
        A single cell.
    readout, inputs, targets, initial_state, lengths, mask, at
        As for `bptt`.

    Returns
    -------
    profile
        For a vanilla cell the norm of the term (t, k) is exactly
        :math:`\lVert D_k P_{t,k}^T e_t\rVert \lVert h_{k-1}\rVert` with
        :math:`e_t = \partial L_t/\partial h_t` and :math:`D_k = \mathrm{diag}\,\varphi'(z_k)`, and
        its bound :math:`\lVert e_t\rVert \gamma_a (\gamma_a\gamma_w)^{t-k} \lVert h_{k-1}\rVert`
        (of a leaky cell with its own bound on a step in place of :math:`\gamma_a\gamma_w`). Gated
        cells have no such bound (nan); their weights are the stacked recurrent ones. The
        terms' sum agrees with `bptt` to rounding. An average over the batch or the steps divides
        every term.

    Raises
    ------
    GradlabError
        As `bptt` does, and if the cell does not tell its terms.

    Notes
    -----
    Source: Pascanu, Mikolov and Bengio (2013), "On the difficulty of training recurrent neural
    networks", ICML, equations 3 to 5. Cost: one product of a Jacobian and a vector a term,
    O(T² N²) in all, and 48 bytes a term.
    """
    network = Network.of(cell)
    runs = forward_runs(network, inputs, initial_state=initial_state, lengths=lengths)
    terms = readout_terms(network, readout, runs, targets, mask=mask, at=at)
    run = next(iter(runs.values()))
    return term_profile(cell, run, state_upstream(cell, terms.upstream), chosen=terms.chosen)


def gradient_profiles(
    network: Network,
    readout: Readout,
    inputs: Float[Array, "time batch features"],
    targets: Array,
    *,
    initial_state: Mapping[str, Array] | Array | None = None,
    lengths: Int[Array, " batch"] | None = None,
    mask: Bool[Array, "time batch"] | None = None,
    at: str | None = None,
) -> dict[str, GradientProfile]:
    """Terms of every recurrence of a network of one stack, by name.

    In a lower layer, t is the step at which the gradient enters the layer from above, which is as
    early as the loss or earlier; the sum over all terms is still dL/dW. Times of a backward
    recurrence count in its own processing order. Arguments as for `bptt`.
    """
    runs = forward_runs(network, inputs, initial_state=initial_state, lengths=lengths)
    terms = readout_terms(network, readout, runs, targets, mask=mask, at=at)
    return {
        name: term_profile(network[name], runs[name], upstream)
        for name, upstream in upstreams(network, runs, terms.upstream).items()
    }


def term_profile(
    cell: Cell,
    run: Trajectory,
    upstream: Float[Array, "time batch n"],
    *,
    chosen: Bool[Array, "time batch"] | None = None,
) -> GradientProfile:
    """Terms of the gradient of any loss along a run.

    Parameters
    ----------
    cell, run
        Any cell that tells its terms, and a run of it.
    upstream
        ``upstream[t - 1]`` is the explicit derivative of the loss by the state at time t.
    chosen
        The steps t to list; those with an upstream other than 0 if None.
    """
    if chosen is None:
        chosen = np.any(upstream != 0.0, axis=2)
    rows: list[Array] = []
    total = ScaledSum()
    size = max(1, STACK_BYTES // (8 * cell.state_size * max(1, int(chosen.any(axis=1).sum()))))
    for start in range(0, run.batch, size):
        sequences = np.arange(start, min(start + size, run.batch))
        linearization = cell.linearize(run.select(sequences))
        sweep = _Sweep(linearization, sequences, upstream[:, sequences], chosen[:, sequences])
        rows += sweep.rows()
        total.add(sweep.total.array, sweep.total.exponent)
    table = np.concatenate(rows, axis=1)
    table = table[:, np.lexsort((table[3], table[1], table[0]))]
    integers = {name: table[i].astype(np.int64) for i, name in enumerate(COLUMNS[:4])}
    return GradientProfile(
        **integers,
        log_term_norm=table[4],
        log_term_bound=_log_bounds(cell, run, upstream, integers),
        total=total.value,
        log_total_norm=total.log_norm,
    )


class _Sweep:
    """Pulls the loss's derivatives at all end times back through some sequences at once."""

    def __init__(
        self,
        linearization: Linearization,
        sequences: Int[Array, " batch"],
        upstream: Float[Array, "time batch n"],
        chosen: Bool[Array, "time batch"],
    ) -> None:
        self.linearization = linearization
        self.sequences = sequences
        self.upstream = upstream
        self.chosen = chosen
        batch, n = upstream.shape[1:]
        self.t = np.empty(0, dtype=np.int64)
        self.vectors = np.empty((batch, n, 0))
        self.exponent = np.empty((batch, 0), dtype=np.int64)
        self.total = ScaledSum()

    def rows(self) -> list[Float[Array, "columns terms"]]:
        """Columns sequence, t, k, lag and log norm of all terms; also fills `total`."""
        rows = []
        for k in range(len(self.linearization), 0, -1):
            if self.chosen[k - 1].any():
                self._begin(k)
            if len(self.t):
                rows.append(self._terms(k))
                self._pull(k)
        return rows

    def _begin(self, t: int) -> None:
        """Carry the derivative at time t too."""
        own = self.upstream[t - 1].astype(np.float64)[:, :, None]
        own, exponent = _scaled(np.where(self.chosen[t - 1][:, None, None], own, 0.0))
        self.t = np.append(self.t, t)
        self.vectors = np.concatenate([self.vectors, own], axis=2)
        self.exponent = np.concatenate([self.exponent, exponent], axis=1)

    def _terms(self, k: int) -> Float[Array, "columns terms"]:
        blocks = self.linearization.recurrent_terms(k - 1, self.vectors)
        squares = [
            2.0 * (log_norms(left, 1) + log_norms(right, 1)[:, None]) for left, right in blocks
        ]
        log_norm = 0.5 * np.logaddexp.reduce(squares, axis=0) + self.exponent * LOG_2
        self._add_up(blocks)
        listed = self.chosen[self.t - 1].T  # (batch, ends)
        sequence, end = np.nonzero(listed)
        t = self.t[end]
        return np.stack([self.sequences[sequence], t, np.full(len(t), k), t - k, log_norm[listed]])

    def _add_up(self, blocks: Sequence[tuple[Array, Array]]) -> None:
        """Add all terms of one step to the total."""
        alive = np.any(self.vectors != 0.0, axis=1)
        highest = int(np.max(self.exponent[alive])) if alive.any() else 0
        weights = np.ldexp(1.0, np.maximum(self.exponent - highest, -1074))
        parts = [
            np.matvec(left, weights).T @ right.reshape(len(right), -1) for left, right in blocks
        ]
        self.total.add(np.concatenate(parts), highest)

    def _pull(self, k: int) -> None:
        """Through the Jacobian of step k, to time k - 1."""
        pulled = self.linearization[k - 1].apply_transpose(self.vectors)
        self.vectors, exponent = _scaled(pulled)
        self.exponent = self.exponent + exponent


def _scaled(
    vectors: Float[Array, "batch n ends"],
) -> tuple[Float[Array, "batch n ends"], Int[Array, "batch ends"]]:
    """Vectors with entries of at most order one, and the powers of two they were divided by."""
    exponent = np.frexp(np.abs(vectors).max(axis=1))[1].astype(np.int64)
    return over_power(vectors, exponent[:, None, :]), exponent


def _log_bounds(
    cell: Cell, run: Trajectory, upstream: Array, terms: Mapping[str, Array]
) -> Float[Array, " terms"]:
    """ln of ‖e_t‖ γ_a γ^lag ‖h_{k-1}‖, with γ the cell's bound on any one step."""
    _, gamma_a = cell.gamma_factors()
    factors = cell.linearize(run.select(np.array([0]))).log_bound_factors
    if gamma_a is None or "gamma" not in factors:
        return np.full(len(terms["lag"]), np.nan)
    log_gamma = float(factors["gamma"][0, 0])  # the same at every step
    sequence, t, k, lag = (terms[name] for name in COLUMNS[:4])
    log_e = log_norms(upstream.astype(np.float64), 2)[t - 1, sequence]
    log_h = log_norms(run.states.astype(np.float64), 2)[k - 1, sequence]
    powers = np.multiply(lag, log_gamma, where=lag > 0, out=np.zeros(len(lag)))
    return np.asarray(log_e + np.log(gamma_a) + powers + log_h)
