r"""Mean-field theory of random vanilla networks, in the limit of many units.

:math:`h_t = \varphi(W h_{t-1} + b + u_t)` with :math:`W_{ij} \sim N(0, g^2/N)`,
:math:`b_i \sim N(0, \sigma_b^2)` fixed and :math:`u_i(t) \sim N(0, \sigma_x^2)` fresh at every
step has pre-activations of variance :math:`q` and a mean squared Jacobian
:math:`E\lVert P_{t,k}\rVert_F^2 / N = \chi^{t-k}`:

.. math::
   q = g^2 E[\varphi(\sqrt q z)^2] + \sigma_x^2 + \sigma_b^2, \qquad
   \chi = g^2 E[\varphi'(\sqrt q z)^2], \qquad \lambda_1 = \tfrac12 \ln \chi,

with z standard normal. The same holds for :math:`W = g Q`, Q Haar orthogonal, although its largest
singular value is g instead of 2g. Formula for :math:`\lambda_1`: Molgedey, Schuchhardt and
Schuster (1992), "Suppressing chaos in neural networks by noise", Phys. Rev. Lett. 69.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, close
from gradlab.cells.activations import activation as activation_named
from gradlab.cells.elementwise import Activation
from gradlab.errors import SettingError, unknown_name
from gradlab.linalg import log
from gradlab.records.meanfield import MeanField
from gradlab.records.slopes import SlopeLaw

# Largest singular value of W / g in the limit.
ENSEMBLES = {"gaussian": 2.0, "orthogonal": 1.0}
# phi(c z) = c phi(z) for c > 0: the variance has a closed form, and the slopes do not depend on it.
HOMOGENEOUS = ("identity", "relu", "leaky_relu")

REACH = 12.0  # standard deviations; the mass beyond is 4e-33
POINTS = 16  # Gauss-Legendre points a panel
INFINITESIMAL = 1e-12  # variance that stands for a state slightly off zero
LIMIT = 1e-60  # variance small enough for the slopes to be those on either side of zero
DIVERGED = 1e30  # variance from which the state counts as growing for ever
SMOOTH = 8.0  # nats that ln φ'² may change by over a panel,
RESOLUTION = 0.02  # or share of it, where it is large
SIGNS = np.array([-1e6, 1e6])  # stand for all pre-activations of one sign
ROUNDING = 1e-14  # of the growth per step, from the quadrature's sum
HIGHEST_GAIN = 1e6


def mean_field(
    activation: str,
    *,
    gain: float,
    input_std: float = 0.0,
    bias_std: float = 0.0,
    ensemble: str = "gaussian",
) -> MeanField:
    r"""Variance, Jacobian growth and leading exponent of an infinitely wide random network.

    Parameters
    ----------
    activation
        Name of the non-linearity, as in the cells: ``"erf"`` is erf(z). The theory's usual
        erf(√π z / 2), of slope 1 at 0, at (g, σ) is ``"erf"`` at (√π g / 2, √π σ / 2).
    gain
        g; entries of W have variance g²/N.
    input_std, bias_std
        Standard deviation of the input's and of the bias' share of a pre-activation.
    ensemble
        ``"gaussian"`` or ``"orthogonal"``; changes ``bound_rate`` alone.

    Returns
    -------
    prediction
        ``q`` is the variance that a state slightly off zero settles at; inf where it diverges (chi
        is then the limit for large states), nan where every variance stays as it is.

    Raises
    ------
    UnknownNameError
        If there is no such activation or ensemble.
    SettingError
        If a number is negative or not finite.

    Notes
    -----
    Relative error of q and chi below 1e-10. Finite networks deviate by order 1/N
    (`MeanField.bias`); at a fixed point compare with the spectral radius of the Jacobian instead.
    """
    phi = activation_named(activation)
    if ensemble not in ENSEMBLES:
        raise unknown_name("ensemble", ensemble, ENSEMBLES)
    _check_settings(gain=gain, input_std=input_std, bias_std=bias_std)
    q = _variance(phi, gain, input_std**2 + bias_std**2)
    slopes = slope_law(phi, q)
    chi = gain**2 * slopes.moment(1)
    return MeanField(
        activation=activation,
        gain=float(gain),
        input_std=float(input_std),
        bias_std=float(bias_std),
        ensemble=ensemble,
        q=q,
        chi=chi,
        lambda_1=0.5 * _ln(chi),
        kappa=slopes.moment(2) / slopes.moment(1) ** 2 if slopes.rank > 0.0 else math.nan,
        bound_rate=_ln(phi.sup_derivative * ENSEMBLES[ensemble] * gain),
        critical_gain=critical_gain(activation, input_std=input_std, bias_std=bias_std),
        slopes=slopes,
    )


def at_rest(theory: MeanField) -> MeanField:
    """The same networks while their state is 0, stable or not: every slope is φ'(0).

    Parameters
    ----------
    theory
        Without inputs and biases.
    """
    slopes = slope_law(activation_named(theory.activation), 0.0)
    chi = theory.gain**2 * slopes.moment(1)
    steep = slopes.rank > 0.0
    kappa = slopes.moment(2) / slopes.moment(1) ** 2 if steep else math.nan
    return replace(theory, q=0.0, chi=chi, lambda_1=0.5 * _ln(chi), kappa=kappa, slopes=slopes)


@lru_cache(maxsize=256)
def critical_gain(activation: str, *, input_std: float = 0.0, bias_std: float = 0.0) -> float:
    r"""Smallest gain at which chi reaches 1, or jumps past it: below it gradients vanish.

    Parameters
    ----------
    activation
        Name of the non-linearity.
    input_std, bias_std
        Standard deviation of the input's and of the bias' share of a pre-activation.

    Returns
    -------
    gain
        nan if there is none up to 1e6.

    Raises
    ------
    UnknownNameError
        If there is no such activation.
    SettingError
        If a number is negative or not finite.
    """
    from scipy.optimize import brentq

    _check_settings(input_std=input_std, bias_std=bias_std)
    phi, noise = activation_named(activation), input_std**2 + bias_std**2
    if phi.name in HOMOGENEOUS or (noise == 0.0 and _fixes_zero(phi)):
        steepness = _slope_moment(phi, 0.0, 2)
        return 1.0 / math.sqrt(steepness) if steepness > 0.0 else math.nan

    def excess(gain: float) -> float:
        return gain**2 * _slope_moment(phi, _variance(phi, gain, noise), 2) - 1.0

    if phi.sup_derivative == 0.0:
        return math.nan
    low = 0.5 / phi.sup_derivative  # chi is at most (gain sup|φ'|)²
    while excess(2.0 * low) < 0.0:
        low *= 2.0
        if low > HIGHEST_GAIN:
            return math.nan
    return float(brentq(excess, low, 2.0 * low, xtol=1e-14, rtol=1e-13))


def slope_law(phi: Activation, q: float) -> SlopeLaw:
    """Law of φ'(√q z)², by quadrature; at q = 0 and inf the limit, half on either side of zero.

    Parameters
    ----------
    phi
        Activation.
    q
        Variance of the pre-activations; any value for a homogeneous activation.
    """
    log_slope = phi.log_slope or (lambda z: log(np.abs(phi.derivative(z))))
    if _only_the_sign_matters(phi, q):
        return SlopeLaw.of(2.0 * log_slope(SIGNS), np.array([0.5, 0.5]))
    scale = math.sqrt(max(q, LIMIT))
    edges = _resolved(_edges(scale, phi.kinks), lambda z: 2.0 * log_slope(scale * z))
    z, weight = _nodes(edges)
    return SlopeLaw.of(2.0 * log_slope(scale * z), weight)


def gaussian_mean(
    function: Callable[[Array], Array], variance: float, kinks: tuple[float, ...] = ()
) -> float:
    """Mean of a function of a centered Gaussian variable.

    Parameters
    ----------
    function
        Elementwise; smooth but at 0, ±1 and the kinks, on the scale of 1 and larger scales.
    variance
        Finite and >= 0.
    kinks
        Further places where the function is not smooth.

    Returns
    -------
    mean
        Relative error about 1e-14 for the activations and their slopes.

    Notes
    -----
    Panels that double in width away from 0, none wider than one standard deviation.
    """
    scale = math.sqrt(variance)
    z, weights = _nodes(_edges(scale, kinks))
    return float(weights @ function(scale * z))


def _edges(scale: float, kinks: tuple[float, ...]) -> Float[Array, " edges"]:
    """Ends of the panels, in standard deviations, fitted to both scales."""
    doubling = 2.0 ** np.arange(-2.0, max(0.0, math.log2(REACH * max(scale, 1.0))) + 1.0)
    inner = np.concatenate([doubling, np.abs(kinks)]) / max(scale, 1e-300)
    positive = np.concatenate([inner[inner < REACH], np.arange(REACH + 1.0)])
    return np.unique(np.concatenate([-positive, positive]))


def _nodes(edges: Float[Array, " edges"]) -> tuple[Array, Array]:
    """Points and weights of the Gauss-Legendre rule on panels, for a standard normal variable."""
    points, weights = _rule()
    half = 0.5 * np.diff(edges)[:, None]
    z = (0.5 * (edges[1:] + edges[:-1])[:, None] + half * points).ravel()
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    return z, density * (half * weights).ravel()


@lru_cache(maxsize=1)
def _rule() -> tuple[Array, Array]:
    points, weights = np.polynomial.legendre.leggauss(POINTS)
    return close(points), close(weights)


def _resolved(
    edges: Float[Array, " edges"], log_square: Callable[[Array], Array]
) -> Float[Array, " finer"]:
    """Panels cut until the slope changes little over each: a logistic of it is to be smooth."""
    inside = edges[:-1] + np.diff(edges) * np.array([[1e-9], [1.0 - 1e-9]])
    ends = log_square(inside)
    ends[:, np.isneginf(ends).any(axis=0)] = 0.0
    wanted = np.maximum(SMOOTH, RESOLUTION * np.abs(ends).min(axis=0))
    pieces = np.ceil(np.abs(ends[1] - ends[0]) / wanted).astype(int).clip(1)
    first = np.repeat(np.cumsum(pieces) - pieces, pieces)
    part = (np.arange(pieces.sum()) - first) / np.repeat(pieces, pieces)
    finer = np.repeat(edges[:-1], pieces) + part * np.repeat(np.diff(edges), pieces)
    return np.append(finer, edges[-1])


def _only_the_sign_matters(phi: Activation, q: float) -> bool:
    return phi.name in HOMOGENEOUS or not math.isfinite(q)


def _slope_moment(phi: Activation, q: float, power: int) -> float:
    """E phi'(√q z)^power."""
    if _only_the_sign_matters(phi, q):
        return float(np.mean(phi.derivative(SIGNS) ** power))
    return gaussian_mean(lambda x: phi.derivative(x) ** power, max(q, LIMIT), phi.kinks)


def _variance(phi: Activation, gain: float, noise: float) -> float:
    """Fixed point of the variance that a state slightly off zero is led to."""
    from scipy.optimize import brentq

    if phi.name in HOMOGENEOUS:
        return _homogeneous_variance(gain**2 * _slope_moment(phi, 0.0, 2), noise)

    def growth(q: float) -> float:
        mean_square = gaussian_mean(lambda x: phi.function(x) ** 2, q, phi.kinks)
        return (gain**2 * mean_square + noise) / q - 1.0

    # The first variance from zero noise and a state off zero: the map is increasing from there.
    at_zero = gain**2 * float(phi.function(np.zeros(1))[0]) ** 2 + noise
    low = at_zero if at_zero > 0.0 else INFINITESIMAL
    if growth(low) <= ROUNDING:
        return at_zero
    while growth(4.0 * low) > 0.0:
        low *= 4.0
        if low > DIVERGED:
            return math.inf
    return float(brentq(growth, low, 4.0 * low, xtol=1e-15 * low, rtol=1e-14))


def _homogeneous_variance(growth: float, noise: float) -> float:
    """Fixed point of q = growth * q + noise that iteration leads to."""
    if growth < 1.0:
        return noise / (1.0 - growth)
    return math.nan if growth == 1.0 and noise == 0.0 else math.inf


def _fixes_zero(phi: Activation) -> bool:
    """Whether h = 0 is a state that lasts without input and bias."""
    return float(phi.function(np.zeros(1))[0]) == 0.0


def _ln(x: float) -> float:
    return math.log(x) if x > 0.0 else -math.inf


def _check_settings(**settings: float) -> None:
    for name, value in settings.items():
        if not (math.isfinite(value) and value >= 0.0):
            raise SettingError(f"{name} is {value}: expected a finite number >= 0")
