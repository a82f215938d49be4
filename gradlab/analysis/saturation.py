"""Saturation of the non-linearities: the distribution of φ' over units and steps."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from gradlab.analysis.slope_map import slope_map
from gradlab.arrays import Array
from gradlab.cells.base import Cell, Nonlinearity
from gradlab.cells.elementwise import Activation
from gradlab.errors import SettingError
from gradlab.records.saturation import GateSaturation, SaturationProfile
from gradlab.records.trajectory import Trajectory


def saturation(
    cell: Cell, trajectory: Trajectory, *, threshold: float = 0.97, strict: bool = True
) -> SaturationProfile:
    r"""Derivatives of the non-linearities, and the share of saturated units.

    Parameters
    ----------
    cell
        Any cell.
    trajectory
        Padded steps enter no number.
    threshold
        A bounded activation counts as saturated where its output, mapped to (-1, 1), is beyond
        ± threshold; an unbounded one where :math:`\varphi'` is below
        (1 - threshold²) γ_a, the same place for tanh.
    strict
        Whether an output exactly at the threshold does not count.

    Returns
    -------
    profile
        With the rule that was used; derivatives come from z and do not cancel.

    Raises
    ------
    SettingError
        If the threshold is not in (0, 1).
    """
    if not 0.0 < threshold < 1.0:
        raise SettingError(f"threshold {threshold}: expected a number between 0 and 1")
    parts = cell.nonlinearities(trajectory)
    valid = trajectory.valid
    return SaturationProfile(
        gates={name: _gate(part, valid, threshold, strict) for name, part in parts.items()}
    )


def saturated_ends(
    activation: Activation,
    value: Float[Array, "*shape"],
    slope: Float[Array, "*shape"],
    threshold: float,
    strict: bool,
) -> tuple[Bool[Array, "*shape"], Bool[Array, "*shape"]]:
    """Where a non-linearity is saturated at its lower and at its upper end."""
    if activation.bounded:
        span = activation.high - activation.low
        centered = (2.0 * value - (activation.high + activation.low)) / span
        if strict:
            return centered < -threshold, centered > threshold
        return centered <= -threshold, centered >= threshold
    limit = (1.0 - threshold**2) * activation.sup_derivative
    flat = np.abs(slope) < limit if strict else np.abs(slope) <= limit
    return flat & (value <= 0.0), flat & (value > 0.0)


def _rule(activation: Activation, threshold: float, strict: bool) -> str:
    if not activation.bounded:
        limit = (1.0 - threshold**2) * activation.sup_derivative
        return f"|phi'(z)| {'<' if strict else '<='} {limit:.6g}"
    sign = ">" if strict else ">="
    if (activation.low, activation.high) == (-1.0, 1.0):
        return f"|h| {sign} {threshold:g}"
    center, half = (activation.high + activation.low) / 2, (activation.high - activation.low) / 2
    return f"|h - {center:g}| {sign} {half * threshold:g}"


def _gate(
    part: Nonlinearity, valid: Bool[Array, "time batch"], threshold: float, strict: bool
) -> GateSaturation:
    sequence, t = np.nonzero(valid.T)
    z = part.z[t, sequence].astype(np.float64)
    value = part.value[t, sequence]
    slope = part.activation.derivative(z)
    low, high = saturated_ends(part.activation, value, slope, threshold, strict)
    from_output = part.activation.slope_from_output
    seen = slope if from_output is None else from_output(value)
    return GateSaturation(
        rule=_rule(part.activation, threshold, strict),
        threshold=threshold,
        strict=strict,
        low_share=float(low.mean()),
        high_share=float(high.mean()),
        mean_derivative=float(slope.mean()),
        observed_gamma_a=float(np.abs(slope).max()),
        zero_share=float((slope == 0.0).mean()),
        autodiff_zero_share=float((seen == 0.0).mean()),
        kink_count=int(sum(np.count_nonzero(z == kink) for kink in part.activation.kinks)),
        sequence=sequence,
        t=t + 1,
        steps=_over_units(slope, low | high),
        unit_mean_derivative=slope.mean(axis=0),
        unit_saturated_share=(low | high).mean(axis=0),
        dead_units=np.flatnonzero((slope == 0.0).all(axis=0)),
        over_time=slope_map(t + 1, slope, low | high, part.activation.sup_derivative),
    )


def _over_units(
    slope: Float[Array, "steps n"], saturated: Bool[Array, "steps n"]
) -> dict[str, Float[Array, " steps"]]:
    q05, q50, q95 = np.quantile(slope, (0.05, 0.5, 0.95), axis=1)
    return {
        "derivative_mean": slope.mean(axis=1),
        "derivative_q05": q05,
        "derivative_q50": q50,
        "derivative_q95": q95,
        "derivative_max": slope.max(axis=1),
        "saturated_share": saturated.mean(axis=1),
    }
