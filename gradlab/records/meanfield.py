r"""What the theory of infinitely wide random networks predicts.

The Lyapunov spectrum is that of a long product of factors D W, with the slopes D asymptotically
free of the rest: the exponents are logarithms of an S-transform. With the rank fraction p from the
top,

.. math::
   E\Big[\frac{u \varphi'^2}{1 + u \varphi'^2}\Big] = p, \qquad
   e^{2 \lambda(p)} = g^2 \frac{p}{u} \ \text{(Gaussian W)}, \qquad
   e^{2 \lambda(p)} = g^2 \frac{p}{u (1 - p)} \ \text{(orthogonal W)}.

Sums of exponents, and the norm of a product, have closed forms of the same kind. Derivation:
docs/theory.md, "Mean field".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array
from gradlab.errors import SettingError
from gradlab.records.frames import frame
from gradlab.records.notebook import summary_html
from gradlab.records.slopes import SlopeLaw

if TYPE_CHECKING:
    import pandas as pd

# Mean and variance of the Tracy-Widom law of real matrices (beta = 1).
TRACY_WIDOM_MEAN, TRACY_WIDOM_VARIANCE = -1.2065335745820, 1.607781034581
HALVINGS = 64  # of a range of about a hundred nats: to the last bit
LOGITS = (-45.0, 30.0)
POINTS, ZOOMS = 61, 6
FINE = 901
Curve = Callable[[Array], Array]
QUANTITIES = (
    "q",
    "chi",
    "lambda_1",
    "kappa",
    "bound_rate",
    "critical_gain",
    "mean_exponent",
    "fraction_positive",
    "entropy_rate",
    "kaplan_yorke",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeanField:
    """Limit N → ∞ of a random network; rates are natural logarithms per step.

    A prediction for a random network with these statistics, not a measurement of any network. What
    is said of the spectrum below ``lambda_1`` supposes slopes that are forgotten within a step: no
    bias, and fresh input or the chaos of an odd activation.
    """

    activation: str
    gain: float
    input_std: float
    bias_std: float
    ensemble: str
    q: float  # stationary variance of a pre-activation; inf: diverges; nan: keeps its first value
    chi: float  # factor per step of the mean squared Frobenius norm of the Jacobian
    lambda_1: float  # leading Lyapunov exponent, ln(chi) / 2
    kappa: float  # E phi'^4 / (E phi'^2)^2; nan: all slopes are 0
    bound_rate: float  # ln(gamma_a gamma_w), gamma_w being the ensemble's limit
    critical_gain: float  # where chi reaches 1, at these inputs and biases; nan: nowhere
    slopes: SlopeLaw

    def spectrum(self, p: Float[Array, "*points"] | float | int) -> Float[Array, "*points"]:
        """Lyapunov exponents by rank fraction.

        Parameters
        ----------
        p
            Shares in [0, 1] counted from the largest exponent: exponent i of N, counted from 1, is
            that of p = (i - 1/2)/N.

        Returns
        -------
        exponents
            Falling in p, from ``lambda_1`` at 0; -inf from the share on that has slopes of 0.

        Raises
        ------
        SettingError
            If a share is not in [0, 1].
        """
        share = np.asarray(p, dtype=np.float64)
        if not np.all((share >= 0.0) & (share <= 1.0)):
            raise SettingError(f"rank fraction {p}: expected shares in [0, 1]")
        exponents = np.full(share.shape, -np.inf)
        exponents[share == 0.0] = self.lambda_1
        if self.gain > 0.0 and self.slopes.rank > 0.0:
            inner = (share > 0.0) & (share < self.slopes.rank)
            exponents[inner] = self._exponents(self.slopes.solve(share[inner]))
            exponents[(share == 1.0) & (self.slopes.rank == 1.0)] = self._last_exponent
        return exponents

    @property
    def mean_exponent(self) -> float:
        """Mean over the whole spectrum; -inf where some slopes are 0."""
        return _ln(self.gain) + 0.5 * self.slopes.mean_log_square - (0.5 if self._gaussian else 0.0)

    @property
    def fraction_positive(self) -> float:
        """Share of the exponents above 0."""
        return self._share_at(self._last_positive(self._exponents))

    @property
    def entropy_rate(self) -> float:
        """Sum of the positive exponents over N; the entropy rate is at most that (Ruelle)."""
        last = self._last_positive(self._exponents)
        if last == math.inf:
            return self._whole_sum
        return 0.0 if last == -math.inf else float(self._sums(np.array([last]))[0])

    @property
    def kaplan_yorke(self) -> float:
        """Kaplan-Yorke dimension over N: the share of the exponents, from the top, that sum to 0.

        Source: Kaplan and Yorke (1979), "Chaotic behavior of multidimensional difference
        equations".
        """
        return self._share_at(self._last_positive(self._sums))

    def bias(self, hidden_size: int) -> float:
        """Expected lambda_1 of N units less that of the limit, to order 1/N."""
        return -self._variance / (4.0 * hidden_size)

    def deviation(self, hidden_size: int, steps: int) -> float:
        """Least standard deviation of lambda_1 estimated from that many steps."""
        return math.sqrt(self._variance / (4.0 * hidden_size * steps))

    def band(self, hidden_size: int, steps: int) -> tuple[float, float]:
        """Interval for lambda_1 of N units estimated from that many steps.

        lambda_1 and its bias, plus and minus 2/N and three standard deviations. Made for inputs of
        standard deviation 0.5 and more, or gains of 2 and more without: at the onset of chaos, and
        at fixed points, single networks lie further apart.
        """
        center = self.lambda_1 + self.bias(hidden_size)
        half = 2.0 / hidden_size + 3.0 * self.deviation(hidden_size, steps)
        return center - half, center + half

    def sigma_max(self, hidden_size: int) -> tuple[float, float]:
        """Expected σ_max of W of N units, and its standard deviation over draws."""
        if not self._gaussian:
            return self.gain, 0.0
        mean, spread = largest_singular_value(hidden_size)
        return self.gain * mean, self.gain * spread

    def log_power_norm(self, lag: int) -> float:
        r"""ln of the limit of ‖W^l‖: :math:`g^l \sqrt{(l+1)^{l+1}/l^l}` for Gaussian W.

        Source: Alexeev, Götze and Tikhomirov (2010), "Asymptotic distribution of singular values of
        powers of random matrices", Lithuanian Math. J. 50; the edge of the Fuss-Catalan law.
        """
        edge = (lag + 1.0) * math.log(lag + 1.0) - (lag * math.log(lag) if lag > 0 else 0.0)
        return (lag * _ln(self.gain) if lag > 0 else 0.0) + (0.5 * edge if self._gaussian else 0.0)

    def log_norm(self, lag: int, hidden_size: int | None = None) -> float:
        r"""Predicted ln ‖∂h_t/∂h_{t-l}‖, the largest singular value of l factors D W.

        Parameters
        ----------
        lag
            l.
        hidden_size
            N; the limit of infinitely many units if None.

        Returns
        -------
        log_norm
            With :math:`m = E[z s/(1 - z s)]` for z below the pole, s the squared slopes, in the
            limit :math:`\min_m \tfrac12 [\ln(1 + m) - \ln m + l \ln(g^2 m/z)]` for Gaussian W, with
            :math:`g^2 m/(z (1 + m))` for an orthogonal one: about
            :math:`l \lambda_1 + \tfrac12 \ln(e (1 + \kappa l))`. Of N units each step loses the
            bias of `lambda_1`, and what exceeds the exponential stops growing at
            :math:`\tfrac12 [\psi(N/2) - \psi(1/2)]`, where one direction is left.
        """
        if lag == 0 or self.lambda_1 == -math.inf:
            return lag * self.lambda_1 if lag else 0.0
        limit = self._largest_singular_value(lag)
        if hidden_size is None:
            return limit
        return float(self._of_units(np.array([lag]), np.array([limit]), hidden_size)[0])

    def log_norms(self, lag: Int[Array, " lags"], hidden_size: int) -> Float[Array, " lags"]:
        """Predicted ln ‖∂h_t/∂h_{t-l}‖ at many lags of 1 and more: `log_norm` to four digits."""
        if self.lambda_1 == -math.inf:
            return np.full(len(lag), -np.inf)
        x = np.linspace(*LOGITS, FINE)
        first, following = self._height(x, 0), self._height(x, 1)
        limit = np.empty(len(lag))
        for start in range(0, len(lag), FINE):  # a square at a time, whatever the longest lag
            some = slice(start, start + FINE)
            limit[some] = 0.5 * _vertices(first + lag[some, None] * (following - first))
        return self._of_units(lag, limit, hidden_size)

    def to_summary(self, hidden_size: int, steps: int) -> dict[str, Any]:
        """Keys of ``summary.json``, for a network of N units run for so many steps."""
        low, high = self.band(hidden_size, steps)
        mean, spread = self.sigma_max(hidden_size)
        settings = ("ensemble", "gain", "input_std", "bias_std")
        return {
            **{name: getattr(self, name) for name in (*settings, *QUANTITIES)},
            "lambda_1_low": low,
            "lambda_1_high": high,
            "sigma_max": mean,
            "sigma_max_spread": spread,
        }

    def spectrum_frame(self, hidden_size: int) -> pd.DataFrame:
        """Columns of ``mean_field.csv`` but the recurrence: one exponent a unit, at its share."""
        p = (np.arange(hidden_size) + 0.5) / hidden_size
        return frame(index=np.arange(hidden_size), p=p, exponent=self.spectrum(p))

    def profile_frame(self, lag: Int[Array, " lags"], hidden_size: int) -> pd.DataFrame:
        """Columns of ``mean_field_profile.csv`` but the recurrence."""
        return frame(lag=lag, log_norm=self.log_norms(lag, hidden_size))

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, {name: getattr(self, name) for name in QUANTITIES})

    def to_frame(self) -> pd.DataFrame:
        """Table: quantity, value."""
        return frame(quantity=list(QUANTITIES), value=[getattr(self, name) for name in QUANTITIES])

    @property
    def _gaussian(self) -> bool:
        return self.ensemble == "gaussian"

    @property
    def _variance(self) -> float:
        """N times the relative variance of ‖D W v‖²: an orthogonal W keeps the length of v."""
        gaussian = 3.0 * self.kappa - 1.0
        return gaussian if self._gaussian else gaussian - 2.0

    @property
    def _last_exponent(self) -> float:
        """Exponent at p = 1 where no slope is 0."""
        return -math.inf if self._gaussian else _ln(self.gain) - 0.5 * self.slopes.log_inverse

    @property
    def _whole_sum(self) -> float:
        """Sum over N of the exponents that are finite."""
        rank, rest = self.slopes.rank, 1.0 - self.slopes.rank
        logs = rank * (math.log(self.gain) + 0.5 * math.log(rank)) + 0.5 * self.slopes.steep_sum
        if self._gaussian:
            return logs - 0.5 * rank
        return logs + (0.5 * rest * math.log(rest) if rest > 0.0 else 0.0)

    def _of_units(
        self, lag: Int[Array, " lags"], limit: Float[Array, " lags"], hidden_size: int
    ) -> Float[Array, " lags"]:
        """What is left of the limit at N units."""
        from scipy.special import digamma

        single = 0.5 * float(digamma(0.5 * hidden_size) - digamma(0.5))
        excess = np.minimum(limit - lag * self.lambda_1, single)
        return np.asarray(lag * (self.lambda_1 + self.bias(hidden_size)) + excess)

    def _largest_singular_value(self, lag: int) -> float:
        """Limit of ln ‖P‖, by grids of m that close in on the minimum."""
        low, high = LOGITS
        for _ in range(ZOOMS):
            x = np.linspace(low, high, POINTS)
            height = self._height(x, lag)
            best = int(np.argmin(height))
            low, high = float(x[max(best - 1, 0)]), float(x[min(best + 1, POINTS - 1)])
        return 0.5 * float(height.min())

    def _height(self, x: Float[Array, " points"], lag: int) -> Float[Array, " points"]:
        """Twice what `log_norm` minimizes, at points of `SlopeLaw.log_moments`."""
        log_z, log_m = self.slopes.log_moments(x)
        log_rest = np.logaddexp(0.0, log_m)
        step = 2.0 * math.log(self.gain) + log_m - log_z - (0.0 if self._gaussian else log_rest)
        return np.asarray(log_rest - log_m + lag * step)

    def _exponents(self, t: Float[Array, " points"]) -> Float[Array, " points"]:
        """Exponents at u = exp(t)."""
        rest = 0.0 if self._gaussian else self.slopes.log_rest(t)
        return math.log(self.gain) + 0.5 * (np.log(self.slopes.share(t)) - t - rest)

    def _sums(self, t: Float[Array, " points"]) -> Float[Array, " points"]:
        """Sums over N of the exponents up to that at u = exp(t): the integral by parts."""
        share, growth = self.slopes.share(t), 0.5 * self.slopes.log_growth(t)
        ends = share * self._exponents(t) + growth
        return ends - 0.5 * share if self._gaussian else ends + 0.5 * self.slopes.log_rest(t)

    def _share_at(self, t: float) -> float:
        if not math.isfinite(t):
            return self.slopes.rank if t > 0.0 else 0.0
        return float(self.slopes.share(np.array([t]))[0])

    def _last_positive(self, curve: Curve) -> float:
        """The t at which a curve that starts above 0, where lambda_1 is, falls to 0 for good.

        -inf where lambda_1 is not above 0; inf where the curve stays above 0.
        """
        if self.lambda_1 <= 0.0:
            return -math.inf
        low, high = self.slopes.range()
        if curve(np.array([high]))[0] > 0.0:
            return math.inf
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            if curve(np.array([middle]))[0] > 0.0:
                low = middle
            else:
                high = middle
        return low


def _vertices(heights: Float[Array, "lags points"]) -> Float[Array, " lags"]:
    """Smallest value of each row, by the parabola through the lowest point and its neighbors."""
    last = heights.shape[1] - 2
    lowest = np.clip(np.argmin(heights, axis=1), 1, last)
    row = np.arange(len(heights))
    left, middle, right = (heights[row, lowest + i] for i in (-1, 0, 1))
    bend = left - 2.0 * middle + right
    drop = (left - right) ** 2 / (8.0 * np.where(bend > 0.0, bend, np.inf))
    inside = (middle <= left) & (middle <= right)
    return np.asarray(np.where(inside, middle - drop, heights.min(axis=1)))


def largest_singular_value(n: int) -> tuple[float, float]:
    r"""Mean and standard deviation of σ_max over Gaussian matrices of entries N(0, 1/N).

    With :math:`r = \sqrt{N - 1} + \sqrt N` and :math:`s = r (1/\sqrt{N - 1} + 1/\sqrt N)^{1/3}`,
    :math:`N \sigma_{\max}^2` is about r² + s times a Tracy-Widom variable. Source: Johnstone
    (2001), "On the distribution of the largest eigenvalue in principal components analysis", Ann.
    Statist. 29.
    """
    if n == 1:  # half-normal
        mean = math.sqrt(2.0 / math.pi)
        return mean, math.sqrt(1.0 - mean**2)
    below, above = math.sqrt(n - 1), math.sqrt(n)
    scale = (below + above) * (1.0 / below + 1.0 / above) ** (1.0 / 3.0)
    mean = math.sqrt(((below + above) ** 2 + TRACY_WIDOM_MEAN * scale) / n)
    return mean, scale * math.sqrt(TRACY_WIDOM_VARIANCE) / (2.0 * n * mean)


def _ln(x: float) -> float:
    return math.log(x) if x > 0.0 else -math.inf
