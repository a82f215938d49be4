"""The verdict: vanishing, near-critical, exploding or undecided, from the measured rate."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array
from gradlab.records.jacobians import COLUMNS, JacobianProfile
from gradlab.records.ladder import BoundLadder
from gradlab.records.lags import LagGroups
from gradlab.records.regime import Regime

LOG_FACTOR = math.log(10.0)  # a smaller change over all lags is near-critical
LOCAL_RATES = 5  # local slopes wanted for the interval
FITTED_LAGS = 400  # more lags are thinned out before the robust fit
CONFIDENCE = 0.95
COMMON = 0.9  # share of the sequences that must reach a lag for it to be fitted
FEWEST_LAGS = 4
CURVE_DIGITS = 9  # curves that agree to so many decimals are one
SURVIVING = 0.05  # share of the sequences that must keep a gradient for it not to be exactly 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Slope of the log norm against the lag, nats per step, with its interval."""

    value: float
    low: float
    high: float
    se: float
    intercept: float


def regime(
    profile: JacobianProfile, ladder: BoundLadder, *, spectral_radius: float | None = None
) -> Regime:
    """Verdict on a measured profile.

    Parameters
    ----------
    profile
        Measured norms, any number of sequences and end times.
    ladder
        Only asked for γ_w and γ_a, to name the rule of thumb that the measurement contradicts.
    spectral_radius
        For the same purpose.

    Returns
    -------
    regime
        The rate is the Theil-Sen slope of the median log norm over the lags beyond the transient.
        Its interval is a nominal 95 % t interval over local slopes: one a sequence, or, of fewer
        than five sequences, several disjoint stretches of lags each. With L the longest lag that
        nearly all sequences reach, the network is *vanishing* if the whole interval lies below
        -ln 10/L, *exploding* if above ln 10/L, *near-critical* if within (less than a factor 10
        over the lags measured), else *undecided*.

    Notes
    -----
    Source of the robust slope: Sen (1968), "Estimates of the regression coefficient based on
    Kendall's tau", JASA 63. See docs/theory.md, "The verdict".
    """
    lost = _lost_share(profile)
    if lost >= 1.0 - SURVIVING:
        return _exactly_zero(profile)
    alive = _alive(profile) if lost else profile
    lag, median = _common_lags(alive)
    start = _beyond_transient(lag, median)
    rate = _rate(alive, lag[start:], median[start:])
    tolerance = LOG_FACTOR / float(lag[-1])
    level = float(np.median(median[start:]))
    name, rule = _verdict(rate, tolerance, int(lag[-1]), level)
    if lost:
        name = "undecided"
        rule = f"{lost:.0%} of the sequences lose their gradient entirely; of the others, {rule}"
    height, at = _transient(name, lag, median)
    return Regime(
        name=name,
        rate=rate.value,
        rate_low=rate.low,
        rate_high=rate.high,
        rate_se=rate.se,
        tolerance=tolerance,
        rule=rule,
        transient_height=height,
        transient_lag=at,
        level=level,
        contradicts=_false_friend(name, rate.value, tolerance, ladder, spectral_radius),
        intercept=rate.intercept,
        first_lag=int(lag[start]),
        last_lag=int(lag[-1]),
    )


def _last_norms(profile: JacobianProfile) -> Float[Array, " sequences"]:
    """ln of the norm at the longest lag of each sequence."""
    last = np.append(profile.sequence[1:] != profile.sequence[:-1], True)
    return np.asarray(profile.log_norm[last])


def _lost_share(profile: JacobianProfile) -> float:
    """Share of the sequences whose product is exactly 0 at their longest lag."""
    return float(np.mean(np.isneginf(_last_norms(profile))))


def _alive(profile: JacobianProfile) -> JacobianProfile:
    """The sequences whose product is not 0 at their longest lag."""
    sequences = np.unique(profile.sequence)
    kept = np.isin(profile.sequence, sequences[~np.isneginf(_last_norms(profile))])
    return JacobianProfile(**{name: getattr(profile, name)[kept] for name in COLUMNS})


def _common_lags(
    profile: JacobianProfile,
) -> tuple[Int[Array, " lags"], Float[Array, " lags"]]:
    """Lags that nearly all sequences reach, where these are not too few, and the median norms."""
    groups = profile.groups
    median = groups.quantile(profile.log_norm, 0.5)
    first = np.append(True, profile.sequence[1:] != profile.sequence[:-1])
    longest = np.maximum.reduceat(profile.lag, np.flatnonzero(first))
    common = groups.lag <= np.quantile(longest, 1.0 - COMMON, method="lower")
    kept = (common if common.sum() >= FEWEST_LAGS else np.ones(len(median), bool)) & ~np.isneginf(
        median
    )
    return groups.lag[kept], median[kept]


def _exactly_zero(profile: JacobianProfile) -> Regime:
    """Verdict on a product that is 0 in nearly every sequence."""
    groups = profile.groups
    lag, median = groups.lag, groups.quantile(profile.log_norm, 0.5)
    nonzero = np.flatnonzero(~np.isneginf(median))
    first = int(lag[nonzero[-1] + 1 if len(nonzero) else 0])
    height, at = _transient("vanishing", lag, median)
    return Regime(
        name="vanishing",
        rate=-np.inf,
        rate_low=-np.inf,
        rate_high=-np.inf,
        rate_se=np.nan,
        tolerance=LOG_FACTOR / float(lag[-1]),
        rule=f"the median Jacobian product is exactly 0 from lag {first} on, in float64",
        transient_height=height,
        transient_lag=at,
        level=-np.inf,
        contradicts=None,
        intercept=np.nan,
        first_lag=first,
        last_lag=int(lag[-1]),
    )


def _beyond_transient(lag: Int[Array, " lags"], median: Float[Array, " lags"]) -> int:
    """Index of the first lag of the fit: past a quarter of the lags, and past an early peak."""
    quarter = len(lag) // 4
    peak = int(np.argmax(median))
    early = median[peak] > 0.0 and peak <= 0.75 * len(lag)
    start = max(quarter, peak) if early else quarter
    return int(min(start, max(len(lag) - 3, 0)))


def _rate(
    profile: JacobianProfile, lag: Int[Array, " lags"], median: Float[Array, " lags"]
) -> Rate:
    if len(lag) < 2:
        only = float(median[0] / lag[0])
        return Rate(value=only, low=-np.inf, high=np.inf, se=np.nan, intercept=0.0)
    value, intercept = _robust_line(lag, median)
    low, high, se = _interval(value, _local_rates(profile, int(lag[0]), int(lag[-1])))
    return Rate(value=value, low=low, high=high, se=se, intercept=intercept)


def _robust_line(lag: Int[Array, " lags"], median: Float[Array, " lags"]) -> tuple[float, float]:
    """Theil-Sen slope, and the intercept through the medians."""
    thinned = np.unique(np.linspace(0, len(lag) - 1, min(len(lag), FITTED_LAGS)).astype(int))
    x, y = lag[thinned].astype(np.float64), median[thinned]
    i, j = np.triu_indices(len(x), k=1)
    slope = float(np.median((y[j] - y[i]) / (x[j] - x[i])))
    return slope, float(np.median(y) - slope * np.median(x))


def _local_rates(profile: JacobianProfile, first: int, last: int) -> Float[Array, " rates"]:
    """Slopes of each sequence's own median curve, over one or several stretches of lags.

    Sequences with one and the same curve are one observation.
    """
    curves = {}
    for sequence in np.unique(profile.sequence):
        own = (profile.sequence == sequence) & (profile.lag >= first) & (profile.lag <= last)
        groups = LagGroups.of(profile.lag[own])
        curve = groups.quantile(profile.log_norm[own], 0.5)
        curves[np.round(curve, CURVE_DIGITS).tobytes()] = (groups.lag, curve)
    stretches = max(1, math.ceil(LOCAL_RATES / len(curves)))
    return np.array(
        [
            _slope(lag[part], curve[part])
            for lag, curve in curves.values()
            for part in _stretches(len(curve), stretches)
        ]
    )


def _stretches(length: int, wanted: int) -> list[slice]:
    """Slices that share their end points, of at least two lags each."""
    count = max(0, min(wanted, length - 1))
    edges = np.linspace(0, length - 1, count + 1).astype(int)
    return [slice(a, b + 1) for a, b in itertools.pairwise(edges)]


def _slope(x: Int[Array, " n"], y: Float[Array, " n"]) -> float:
    if np.isneginf(y).any():
        return -np.inf
    centered = x - x.mean()
    return float(centered @ y / (centered @ centered))


def _interval(value: float, rates: Float[Array, " rates"]) -> tuple[float, float, float]:
    """Lower and upper end of the t interval around a value, and its standard error."""
    from scipy.special import stdtrit

    finite = rates[np.isfinite(rates)]
    if len(finite) < 2:
        return -np.inf, np.inf, np.nan
    se = float(np.std(finite, ddof=1)) / math.sqrt(len(finite))
    half = float(stdtrit(len(finite) - 1, 0.5 + CONFIDENCE / 2.0)) * se
    return (-np.inf if len(finite) < len(rates) else value - half), value + half, se


def _verdict(rate: Rate, tolerance: float, last: int, level: float) -> tuple[str, str]:
    interval = f"rate in [{rate.low:+.4g}, {rate.high:+.4g}]"
    if rate.high < -tolerance:
        return "vanishing", f"{interval}, below -ln 10/{last} = {-tolerance:.4g} per step"
    if rate.low > tolerance:
        return "exploding", f"{interval}, above ln 10/{last} = {tolerance:.4g} per step"
    if rate.low >= -tolerance and rate.high <= tolerance:
        within = f"{interval}, within ± ln 10/{last} = {tolerance:.4g} per step"
        return "near-critical", f"{within}; the norm stays near 10^{level / LOG_FACTOR:.2g}"
    return "undecided", f"{interval} covers more than one regime (± {tolerance:.4g} per step)"


def _transient(
    name: str, lag: Int[Array, " lags"], median: Float[Array, " lags"]
) -> tuple[float, int]:
    peak = int(np.argmax(median))
    if name != "vanishing" or median[peak] <= 0.0:
        return 0.0, 0
    return float(median[peak]), int(lag[peak])


def _false_friend(
    name: str, rate: float, tolerance: float, ladder: BoundLadder, radius: float | None
) -> str | None:
    """The rule of thumb whose prediction the measurement contradicts, if any."""
    measured = f"measured {rate:+.3g} per step".replace("-", "\N{MINUS SIGN}")
    if ladder.gamma_w is not None and name in ("vanishing", "near-critical"):
        bound = ladder.gamma_w * (ladder.gamma_a or 1.0)
        if bound > math.exp(tolerance):
            factor = "" if ladder.gamma_a == 1.0 else "γ_a "
            return f"{factor}σ_max = {bound:.3g} would suggest explosion; {measured}"
    if radius is not None and name == "exploding" and radius < 1.0:
        return f"spectral radius {radius:.3g} would suggest vanishing; {measured}"
    return None
