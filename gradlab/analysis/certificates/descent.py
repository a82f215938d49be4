r"""Search for a scaling: the largest singular value is minimized through Schatten norms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradlab.analysis.certificates.effort import Effort
from gradlab.arrays import Array
from gradlab.errors import NonFiniteError

# Orders p of the Schatten norms, each started from the last one's minimizer, and steps of each.
ORDERS = (4.0, 16.0, 64.0, 256.0)
STEPS = 80
MEMORY = 20
# Logarithm that stands for a point outside the range of floating point: never accepted.
FORBIDDEN = 1e6
# A last order that is ended by its limit while it gains more than this has not settled.
SETTLED = 4e-3

# Value and gradient at a point, for an order.
Smooth = Callable[[Array, float], tuple[float, Array]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """The best point of a search."""

    point: Float[Array, " m"]
    value: float  # of the function itself, not of its smoothing
    stopped: bool  # whether a longer search might find a better one


def descend(
    smooth: Smooth,
    exact: Callable[[Array], float],
    start: Float[Array, " m"],
    *,
    effort: Effort,
    n: int,
) -> Found:
    """Minimize a function that is the limit of smooth ones for growing orders.

    Parameters
    ----------
    smooth
        Logarithm of the smooth function of some order, with its gradient.
    exact
        The function itself.
    start
        First point, and the result if nothing better is found.
    effort, n
        Limit of the work, for matrices of order n.

    Returns
    -------
    found
        ``stopped`` where the steps or the time ran out before the last order, or during that one
        while it still gained.
    """
    best, value, going_on = start, exact(start), False
    left = effort.steps(n)
    for index, order in enumerate(ORDERS):
        if left <= 0 or effort.over:
            return Found(point=best, value=value, stopped=True)
        orders_left = len(ORDERS) - index
        allowed = min(STEPS, math.ceil(left / orders_left))
        part = effort.share(1.0 / orders_left)
        point, steps, limited = _minimize(smooth, order, best, allowed, part)
        left -= steps
        reached = _value(exact, point)
        going_on = limited and (allowed < STEPS or value - reached > SETTLED * value)
        if reached < value:
            best, value = point, reached
    return Found(point=best, value=value, stopped=going_on)


def _value(exact: Callable[[Array], float], point: Float[Array, " m"]) -> float:
    """Value at a point; inf where floating point does not hold it."""
    with np.errstate(all="ignore"):
        try:
            value = exact(point)
        except (np.linalg.LinAlgError, NonFiniteError):
            return np.inf
    return value if np.isfinite(value) else np.inf


def _minimize(
    smooth: Smooth, order: float, start: Float[Array, " m"], steps: int, effort: Effort
) -> tuple[Float[Array, " m"], int, bool]:
    """Minimizer of one order, the evaluations it took, and whether the limit ended them."""
    from scipy.optimize import minimize

    def stop(intermediate_result: object) -> None:
        if effort.over:
            raise StopIteration

    def guarded(point: Array, p: float) -> tuple[float, Array]:
        try:
            value, gradient = smooth(point, p)
        except np.linalg.LinAlgError:
            return FORBIDDEN, np.zeros_like(point)
        inside = np.isfinite(value) and np.all(np.isfinite(gradient))
        return (value, gradient) if inside else (FORBIDDEN, np.zeros_like(point))

    # A line search may look outside the range of floating point; nothing from there is taken.
    with np.errstate(all="ignore"):
        found = minimize(
            guarded,
            start,
            args=(order,),
            jac=True,
            method="L-BFGS-B",
            callback=stop,
            options={"maxiter": steps, "maxcor": MEMORY, "ftol": 1e-12, "gtol": 1e-9},
        )
    point = found.x if np.all(np.isfinite(found.x)) else start
    return np.asarray(point), int(found.nfev), not found.success
