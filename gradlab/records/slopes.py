"""How steep the units of a wide random network are: the law of the squared slope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, read_only
from gradlab.records.frames import frame

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 37.0  # nats: exp(-37) is lost beside 1
FLAT = 1e-30
STEPS = 100  # Newton steps, of which some are halvings: far more than any solution takes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SlopeLaw:
    """Distribution over units of s = φ'(z)², as atoms on the logarithmic scale."""

    log_square: Float[Array, " atoms"]  # ln s, rising; -inf for the units whose slope is 0
    weight: Float[Array, " atoms"]  # share of the units; all together 1

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in ("log_square", "weight"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @classmethod
    def of(cls, log_square: Float[Array, " points"], weight: Float[Array, " points"]) -> SlopeLaw:
        """Law of some points, equal ones merged, and the weights scaled to a sum of 1."""
        atoms, index = np.unique(log_square, return_inverse=True)
        merged = np.bincount(index, weights=weight, minlength=len(atoms))
        return cls(log_square=atoms, weight=merged / merged.sum())

    @property
    def rank(self) -> float:
        """Share of the units whose slope is not 0; exactly 1 where that is all."""
        flat = np.isneginf(self.log_square)
        return float(1.0 - self.weight[flat].sum())

    @property
    def mean_log_square(self) -> float:
        """E ln s; -inf where some slopes are 0."""
        return float(self.weight @ self.log_square)

    @property
    def steep_sum(self) -> float:
        """E [ln s; s > 0]: the mean of ln s where it is finite, times the share of these units."""
        steep = ~np.isneginf(self.log_square)
        return float(self.weight[steep] @ self.log_square[steep])

    @property
    def log_inverse(self) -> float:
        """ln E [1/s]; inf where some slopes are 0."""
        return _log_mean_exp(-self.log_square, self.weight)

    def moment(self, power: float | int) -> float:
        """E s^power."""
        return float(self.weight @ np.exp(power * self.log_square))

    def share(self, t: Float[Array, " points"]) -> Float[Array, " points"]:
        """E [u s/(1 + u s)] at u = exp(t), of full relative accuracy however small."""
        return np.asarray(np.exp(-np.logaddexp(0.0, -self._shifted(t))) @ self.weight)

    def log_rest(self, t: Float[Array, " points"]) -> Float[Array, " points"]:
        """ln E [1/(1 + u s)] at u = exp(t)."""
        rest = -np.logaddexp(0.0, self._shifted(t))
        return np.array([_log_mean_exp(row, self.weight) for row in rest])

    def log_growth(self, t: Float[Array, " points"]) -> Float[Array, " points"]:
        """E ln(1 + u s) at u = exp(t): the integral of the share over t."""
        return np.asarray(np.logaddexp(0.0, self._shifted(t)) @ self.weight)

    def log_moments(self, x: Float[Array, " points"]) -> tuple[Array, Array]:
        """ln z and ln E [z s/(1 - z s)], for z s between 0 and 1, where x is logit of its largest.

        Beyond the shares, which belong to negative z: as far as the law's moments have a meaning.
        """
        log_z = -np.logaddexp(0.0, -x) - self.log_square[-1]
        log_zs = log_z[:, None] + self.log_square
        ratio = np.exp(log_zs) / -np.expm1(log_zs)
        return log_z, np.asarray(np.log(ratio @ self.weight))

    def range(self) -> tuple[float, float]:
        """Values of t beyond which the share is below 1e-16, and within 1e-16 of the rank."""
        steep = self.log_square[~np.isneginf(self.log_square)]
        if len(steep) == 0:
            return -ROUNDING, ROUNDING
        return -ROUNDING - float(steep[-1]), ROUNDING - float(steep[0])

    def solve(self, share: Float[Array, " points"]) -> Float[Array, " points"]:
        """The t with that share, which is to lie strictly between 0 and the rank.

        By Newton's method on the logarithm of the share, with halvings of a proven interval where a
        step leaves it.
        """
        steepest = float(self.log_square[-1])
        flattest = float(self.log_square[~np.isneginf(self.log_square)][0])
        low = np.log(share / self.rank) - steepest  # E [u s/(1 + u s)] <= rank u max s
        high = np.log(self.rank / (self.rank - share)) - flattest
        t = low.copy()
        for _ in range(STEPS):
            got, slope = self._share_and_slope(t)
            low, high = np.where(got <= share, t, low), np.where(got >= share, t, high)
            # Between slopes that lie far apart the share is flat: nan, and halve.
            step = np.log(share / got) * got / np.where(slope > FLAT, slope, np.nan)
            following = np.where((t + step >= low) & (t + step <= high), t + step, (low + high) / 2)
            settled = np.abs(following - t) <= 4e-15 * np.maximum(np.abs(t), 1.0)
            t = following
            if settled.all():
                break
        return t

    def to_frame(self) -> pd.DataFrame:
        """Table: log_square, weight."""
        return frame(log_square=self.log_square, weight=self.weight)

    def _shifted(self, t: Float[Array, " points"]) -> Float[Array, "points atoms"]:
        return np.asarray(t[:, None] + self.log_square)

    def _share_and_slope(
        self, t: Float[Array, " points"]
    ) -> tuple[Float[Array, " points"], Float[Array, " points"]]:
        """The share and its derivative by t."""
        part = np.exp(-np.logaddexp(0.0, -self._shifted(t)))
        return part @ self.weight, (part * (1.0 - part)) @ self.weight


def _log_mean_exp(logs: Float[Array, " atoms"], weight: Float[Array, " atoms"]) -> float:
    """ln Σ weight exp(logs), without overflow; terms may be infinite."""
    largest = float(np.max(logs))
    if not np.isfinite(largest):
        return largest
    return largest + float(np.log(weight @ np.exp(logs - largest)))
