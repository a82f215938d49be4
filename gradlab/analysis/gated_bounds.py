r"""Growth rates of gated cells from their weights, for every input within a stated limit.

The counterparts of :math:`\gamma_a\gamma_w` for cells without a single recurrent matrix. Proofs:
docs/theory.md, "Bounds for gated cells".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from gradlab.analysis.majorants import growth
from gradlab.arrays import Array
from gradlab.cells.activations import activation
from gradlab.cells.elementwise import Activation
from gradlab.cells.gates import blocks, row_blocks
from gradlab.cells.gru import GRUCell
from gradlab.cells.lstm import LSTMCell
from gradlab.cells.lstm_majorants import LSTMNorms, LSTMRanges, range_majorant
from gradlab.cells.lstm_steps import LSTMWeights
from gradlab.cells.minimal_gated import MinimalGatedCell
from gradlab.cells.row_bounds import absent_rows
from gradlab.errors import SettingError
from gradlab.records.gated_rate import GatedRate

PROVEN = "proven"
# Rounds in which the limit of the cell state and the ranges of the gates settle on each other, and
# what is added to the limit in each, so that it ends above.
ROUNDS = 500
MARGIN = 1e-6


def gamma_lstm(cell: LSTMCell, *, input_bound: float | int) -> GatedRate:
    r"""Growth rate of an LSTM for all inputs with :math:`|x|_\infty \le X`.

    Parameters
    ----------
    cell
        With any variant; where none of the proofs covers it, ``status`` says so.
    input_bound
        X. Without a limit the forget gate comes arbitrarily near 1, and no rate below 1 is true.

    Returns
    -------
    rate
        :math:`\gamma = \rho(M)` of the 2×2 majorant of :math:`\partial(h', c')/\partial(h, c)`, for
        starts within ``limits``. Below 1 the gradient vanishes whatever the inputs: without
        peepholes and projection that is :math:`s a < (1 - p)(1 - f)`.

    Raises
    ------
    SettingError
        If the bound is negative or not finite.

    Notes
    -----
    The same 2×2 matrix serves as a condition for incremental input-to-state stability in the
    control literature on LSTMs. Derivation: docs/theory.md, "Bounds for gated cells".
    """
    X = _checked(input_bound)
    ranges, reach, reason = _lstm_ranges(cell, X)
    limits = {"x": X, "h": reach, "c": math.inf if ranges is None else float(ranges.cell)}
    if ranges is None:
        return GatedRate(rate=None, constant=None, limits=limits, status=reason)
    rate, constant = growth(lstm_majorant(cell, ranges))
    return GatedRate(rate=rate, constant=constant, limits=limits, status=PROVEN)


def lstm_majorant(cell: LSTMCell, ranges: LSTMRanges) -> Float[Array, "2 2"]:
    """Bounds on the norms of the blocks of every Jacobian within the ranges."""
    W_hr = None if cell.W_hr is None else cell.W_hr.astype(np.float64)
    weights = LSTMWeights(
        W_x=cell.W_x.astype(np.float64), W_h=cell.W_h.astype(np.float64), W_hr=W_hr
    )
    return range_majorant(ranges, cell.functions, LSTMNorms.of(weights))


def gamma_gru(
    cell: GRUCell | MinimalGatedCell, *, input_bound: float | int | None = None
) -> GatedRate:
    r"""Growth rate of a GRU, or of a minimal gated unit.

    Parameters
    ----------
    cell
        Either reset convention, either sense of z.
    input_bound
        Limit of :math:`|x|_\infty`; None for all inputs whatever.

    Returns
    -------
    rate
        Without a limit :math:`\max(1, \max_j \psi_j)`; with one the largest
        :math:`k_j + (1 - k_j)\psi_j` over the kept shares k that can occur. The constant is
        :math:`\sqrt N`, the price of the spectral norm: in the ∞-norm it is 1.

    Raises
    ------
    SettingError
        If the bound is negative or not finite.

    Notes
    -----
    Derivation: docs/theory.md, "Bounds for gated cells".
    """
    X = math.inf if input_bound is None else _checked(input_bound)
    reach = max(1.0, cell.phi.sup_value)
    limits = {"x": X, "h": reach}
    reason = absent_rows(cell.recurrent_activation, cell.phi)
    if reason is not None:
        return GatedRate(rate=None, constant=None, limits=limits, status=reason)
    psi = cell.row_bounds(reach)
    low, high = _kept_range(cell, X, reach)
    rate = float(np.maximum(low + (1.0 - low) * psi, high + (1.0 - high) * psi).max())
    return GatedRate(rate=rate, constant=math.sqrt(len(psi)), limits=limits, status=PROVEN)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Interval:
    """Pre-activations that can occur, over all units of a gate."""

    low: float
    high: float

    def largest(self, phi: Activation) -> float:
        """sup |φ|, for a φ that does not fall."""
        return float(np.abs(phi.function(np.array([self.low, self.high]))).max())

    def steepest(self, name: str, phi: Activation) -> float:
        """sup φ'; that of the logistic function falls to both sides of 0."""
        if name != "sigmoid":
            return phi.sup_derivative
        nearest = min(max(0.0, self.low), self.high)
        return float(activation(name).derivative(np.array([nearest]))[0])


def _lstm_ranges(cell: LSTMCell, X: float) -> tuple[LSTMRanges | None, float, str]:
    """Ranges for ever, the limit of the output, and why there are none."""
    own = cell.functions
    for part, phi in {"gates": own.gate, "candidate": own.candidate}.items():
        if not phi.rises:
            return None, math.inf, f"the {part} ({phi.name}) rise and fall: no range is derived"
    if not (own.squash.bounded and own.gate.bounded):
        return None, math.inf, "gates or output can grow without limit: no range is derived"
    reach = own.gate.sup_value * own.squash.sup_value
    if cell.W_hr is not None:
        reach *= float(np.abs(cell.W_hr).sum(axis=1).max())
    c = 0.0
    for _ in range(ROUNDS):
        ranges = _ranges_within(cell, X, reach, c)
        if not math.isfinite(ranges.cell):
            return None, reach, "the forget gate may come to 1: the cell state has no limit"
        if ranges.cell <= c:
            return replace(ranges, cell=c), reach, PROVEN
        c = float(ranges.cell) * (1.0 if cell.peepholes is None else 1.0 + MARGIN)
    return None, reach, "no limit of the cell state was found: the peepholes feed it back"


def _ranges_within(cell: LSTMCell, X: float, reach: float, c: float) -> LSTMRanges:
    """Ranges of a step while |h| ≤ reach and |c| ≤ c; ``cell`` bounds the cell state they keep."""
    own, name = cell.functions, cell.recurrent_activation
    i, f, g, o = _pre_activations(cell, X, reach, c)
    written, forgotten = i.largest(own.gate), f.largest(own.gate)
    if own.coupled == "forget":
        forgotten = _complement(i, own.gate)
    elif own.coupled == "input":
        written = _complement(f, own.gate)
    candidate = g.largest(own.candidate)
    convex = own.coupled is not None and own.gate.low >= 0.0 and own.gate.high <= 1.0
    kept = _kept_cell(written, forgotten, candidate, convex)
    return LSTMRanges(
        i=written,
        f=forgotten,
        o=o.largest(own.gate),
        slope_i=i.steepest(name, own.gate),
        slope_f=f.steepest(name, own.gate),
        slope_o=o.steepest(name, own.gate),
        candidate=candidate,
        squash=_largest_within(own.squash, max(kept, c)),
        cell=kept,
    )


def _kept_cell(written: float, forgotten: float, candidate: float, convex: bool) -> float:
    """C with f C + i g ≤ C for all gates within their ranges."""
    if convex:  # f + i = 1: c' lies between c and g
        return candidate
    return written * candidate / (1.0 - forgotten) if forgotten < 1.0 else math.inf


def _largest_within(phi: Activation, limit: float) -> float:
    """sup |φ| over arguments within the limit; over all where φ rises and falls."""
    if not phi.rises:
        return phi.sup_value
    return _Interval(low=-limit, high=limit).largest(phi)


def _complement(gate: _Interval, phi: Activation) -> float:
    """Largest |1 - φ| over an interval."""
    return float(np.abs(1.0 - phi.function(np.array([gate.low, gate.high]))).max())


def _pre_activations(cell: LSTMCell, X: float, reach: float, c: float) -> list[_Interval]:
    """Of i, f, g and o while |x| ≤ X, |h| ≤ reach and |c|, |c'| ≤ c."""
    spread = _spread(cell.W_x, cell.W_h, X, reach)
    center = np.asarray(cell.b_x, dtype=np.float64) + np.asarray(cell.b_h)
    spreads, centers = spread.reshape(4, -1).copy(), center.reshape(4, -1).copy()
    centers[1] += cell.forget_bias
    if cell.peepholes is not None:
        spreads[[0, 1, 3]] += np.abs(cell.peepholes) * c
    low, high = (centers - spreads).min(axis=1), (centers + spreads).max(axis=1)
    return [_Interval(low=float(a), high=float(b)) for a, b in zip(low, high, strict=True)]


def _spread(
    W_x: Float[Array, "rows features"], W_h: Float[Array, "rows hidden"], X: float, reach: float
) -> Float[Array, " rows"]:
    """Largest |W_x x + W_h h| within the limits."""
    sums = [np.abs(W.astype(np.float64)).sum(axis=1) for W in (W_x, W_h)]
    return np.asarray(sums[0] * X + sums[1] * reach)


def _kept_range(
    cell: GRUCell | MinimalGatedCell, X: float, reach: float
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Smallest and largest kept share of every unit."""
    names = ("r", "z", "n") if isinstance(cell, GRUCell) else ("z", "n")
    W_x, W_h = row_blocks(cell.W_x, names)["z"], row_blocks(cell.W_h, names)["z"]
    bias = np.asarray(cell.b_x, dtype=np.float64) + np.asarray(cell.b_h)
    center = blocks(bias, len(names))[names.index("z")]
    if math.isinf(X):
        return np.zeros(len(center)), np.ones(len(center))
    spread = _spread(W_x, W_h, X, reach)
    gate = activation("sigmoid").function
    low, high = gate(center - spread), gate(center + spread)
    keeps = isinstance(cell, GRUCell) and cell.update == "keep"
    return (low, high) if keeps else (1.0 - high, 1.0 - low)


def _checked(input_bound: float | int) -> float:
    if not 0.0 <= input_bound < math.inf:
        raise SettingError(f"input_bound {input_bound}: expected a finite number >= 0")
    return float(input_bound)
