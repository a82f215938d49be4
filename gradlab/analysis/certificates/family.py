"""All one-step Jacobians that inputs can make of a cell without gates, as one family."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.cells.leaky import LeakyCell
from gradlab.cells.vanilla import VanillaCell
from gradlab.linalg import rescale


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JacobianFamily:
    r"""All matrices :math:`2^x (C + \mathrm{diag}(e) H)` with :math:`|e_i| \le 1`.

    Slopes in [low, high] make :math:`(1 - a) I + a\,\mathrm{diag}(\varphi') W` such a family: e = 1
    is the slope ``high`` and e = -1 the slope ``low``, which is below 0 where φ falls somewhere.
    """

    center: Float[Array, "n n"]  # C
    spread: Float[Array, "n n"]  # H
    exponent: int = 0  # x: entries of C and H are of order one at most

    def __len__(self) -> int:
        """N."""
        return len(self.center)

    @property
    def majorant(self) -> Float[Array, "n n"]:
        """Largest modulus of every entry, |C| + |H|, less the factor 2^x."""
        return np.asarray(np.abs(self.center) + np.abs(self.spread))

    @property
    def ends(self) -> tuple[Float[Array, "n n"], Float[Array, "n n"]]:
        """The matrices of the slopes ``low`` and ``high`` throughout, less the factor 2^x."""
        return self.center - self.spread, self.center + self.spread

    def vertex(self, high: Bool[Array, " n"]) -> Float[Array, "n n"]:
        """The matrix with the slope ``high`` at some units and ``low`` at the others."""
        low_end, high_end = self.ends
        return np.where(high[:, None], high_end, low_end)

    def block(self, units: Int[Array, " m"]) -> JacobianFamily:
        """The family of a subset of the units among themselves."""
        rows, columns = np.ix_(units, units)
        return JacobianFamily(
            center=self.center[rows, columns],
            spread=self.spread[rows, columns],
            exponent=self.exponent,
        )

    def scaled(self, log_scale: Float[Array, " n"]) -> JacobianFamily:
        """The family S (...) S⁻¹ with S = diag(exp log_scale); S commutes with diag(e)."""
        ratio = np.exp(np.minimum(log_scale[:, None] - log_scale[None, :], 700.0))
        return JacobianFamily(
            center=self.center * ratio, spread=self.spread * ratio, exponent=self.exponent
        )

    def rate(self, value: float) -> float:
        """A bound of the scaled family as one of the cell's own; still one where it underflows."""
        with np.errstate(over="ignore", under="ignore"):
            own = float(np.ldexp(value, self.exponent))
        tiny = 0.0 < value and own < np.finfo(np.float64).tiny
        return float(np.nextafter(own, np.inf)) if tiny else own


def jacobian_family(cell: Cell) -> JacobianFamily | None:
    """Family of a vanilla or leaky cell; None for cells whose Jacobian has another form.

    The slopes of every unit are taken to reach any value between the infimum and the supremum of
    φ', independently of each other: what real inputs reach is less.
    """
    if not isinstance(cell, VanillaCell | LeakyCell):
        return None
    leak = float(cell.leak) if isinstance(cell, LeakyCell) else 1.0
    phi = cell.phi
    unit, exponent = rescale(np.asarray(cell.W_hh, dtype=np.float64))
    x = max(int(exponent), int(np.frexp(1.0 - leak)[1])) if leak < 1.0 else int(exponent)
    weights = np.ldexp(leak * unit, int(exponent) - x)
    kept = np.ldexp(1.0 - leak, -x) * np.eye(len(unit))
    middle = 0.5 * (phi.inf_derivative + phi.sup_derivative)
    half = 0.5 * (phi.sup_derivative - phi.inf_derivative)
    return JacobianFamily(center=kept + middle * weights, spread=half * weights, exponent=x)
