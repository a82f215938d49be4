"""Clipping of gradients by their norm, and an audit of what it did."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, require_finite
from gradlab.engine.scaled_sums import ScaledSum
from gradlab.errors import SettingError, ShapeError, unknown_name
from gradlab.records.clipping import ClipAudit

POLICIES = ("raise", "skip", "zero")
EPSILON = 1e-6  # of the frameworks' variant
SUMS = ("unclipped", "clipped")
CANDIDATES = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0)

logger = logging.getLogger("gradlab")

Gradient = Mapping[str, Array]


def clip_by_norm(
    gradients: Gradient, threshold: float = 1.0, nonfinite: str = "raise"
) -> tuple[dict[str, Array], float]:
    r"""Gradient scaled down to a norm of at most the threshold, direction kept.

    :math:`g \leftarrow \eta\, g/\lVert g\rVert` if :math:`\lVert g\rVert > \eta`, with one norm
    over all tensors and no epsilon.

    Parameters
    ----------
    gradients
        Tensors by name.
    threshold
        η.
    nonfinite
        What to do about NaN or infinite entries. ``raise``: refuse. ``skip``: every tensor becomes
        zero, so that a step changes nothing, and the norm is nan. ``zero``: those entries become
        zero, and the rest is clipped. The last two are logged.

    Returns
    -------
    clipped, norm
        The same arrays if the norm is not above η; else new ones of the same types. The norm is
        that before clipping, inf where it exceeds float64; the clipped gradient is right even then.

    Raises
    ------
    NonFiniteError
        If an entry is NaN or infinite and ``nonfinite`` is ``raise``; tensor and index are named.
    SettingError
        If η is not above 0.
    UnknownNameError
        If there is no such policy.

    Notes
    -----
    Source: Pascanu, Mikolov and Bengio (2013), "On the difficulty of training recurrent neural
    networks", ICML, algorithm 1. Entries are scaled by a power of two before they are squared; the
    norm of the result exceeds η by rounding at most.
    """
    _require_threshold(threshold)
    finite = _finite(gradients, nonfinite)
    if finite is None:
        return {name: np.zeros_like(array) for name, array in gradients.items()}, math.nan
    scaled, exponent = _scaled_norm(finite.values())
    norm = _unscaled(scaled, exponent)
    if not norm > threshold:
        return finite, norm
    return {
        name: _rescaled(array, exponent, threshold, scaled) for name, array in finite.items()
    }, norm


def clip_each_tensor(
    gradients: Gradient, threshold: float = 1.0, nonfinite: str = "raise"
) -> tuple[dict[str, Array], dict[str, float]]:
    """Every tensor clipped by its own norm: not the same direction as the whole gradient's.

    Parameters and errors as of `clip_by_norm`; the norms are by tensor.
    """
    _require_threshold(threshold)
    finite = _finite(gradients, nonfinite)
    if finite is None:
        zeros = {name: np.zeros_like(array) for name, array in gradients.items()}
        return zeros, dict.fromkeys(zeros, math.nan)
    each = {name: clip_by_norm({name: array}, threshold) for name, array in finite.items()}
    clipped = {name: tensors[name] for name, (tensors, _) in each.items()}
    return clipped, {name: norm for name, (_, norm) in each.items()}


def clip_by_norm_with_epsilon(
    gradients: Gradient,
    threshold: float = 1.0,
    nonfinite: str = "raise",
    *,
    epsilon: float = EPSILON,
) -> tuple[dict[str, Array], float]:
    r"""The rule of deep-learning frameworks, for comparison with their numbers.

    :math:`g \leftarrow g \min(1, \eta/(\lVert g\rVert + \epsilon))`. Lengths differ from
    `clip_by_norm` by a relative :math:`\epsilon/\lVert g\rVert`, and clipping twice is not clipping
    once. Parameters and errors as of `clip_by_norm`.
    """
    _require_threshold(threshold)
    finite = _finite(gradients, nonfinite)
    if finite is None:
        return {name: np.zeros_like(array) for name, array in gradients.items()}, math.nan
    scaled, exponent = _scaled_norm(finite.values())
    norm = _unscaled(scaled, exponent)
    if threshold >= norm + epsilon:
        return finite, norm
    if math.isinf(norm):  # epsilon is nothing beside it
        return {
            name: _rescaled(array, exponent, threshold, scaled) for name, array in finite.items()
        }, norm
    factor = threshold / (norm + epsilon)
    return {name: array * factor for name, array in finite.items()}, norm


def global_norm(gradients: Gradient) -> float:
    """Root of the sum of squares over all tensors; inf where it exceeds float64.

    Raises
    ------
    NonFiniteError
        If an entry is NaN or infinite.
    """
    _finite(gradients, "raise")
    return _unscaled(*_scaled_norm(gradients.values()))


def cosine(first: Gradient, second: Gradient) -> float:
    """Cosine of the angle between two gradients; nan if one is zero.

    Raises
    ------
    ShapeError
        If they do not have the same tensors.
    """
    if set(first) != set(second):
        raise ShapeError(
            f"gradients of {', '.join(first)} and of {', '.join(second)}: expected the same tensors"
        )
    (norm_1, exponent_1), (norm_2, exponent_2) = (
        _scaled_norm(each.values()) for each in (first, second)
    )
    if norm_1 == 0.0 or norm_2 == 0.0:
        return math.nan
    product = sum(
        float(np.vdot(_ldexp(first[name], -exponent_1), _ldexp(second[name], -exponent_2)))
        for name in first
    )
    return product / (norm_1 * norm_2)


class ClipLog:
    """Norms and sums over the steps of a training, for its audit."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self.before: list[float] = []
        self.after: list[float] = []
        self.sums: tuple[dict[str, ScaledSum], dict[str, ScaledSum]] = ({}, {})

    def add(self, gradients: Gradient, clipped: Gradient, norm: float) -> None:
        """One step: its gradient before and after clipping, and the norm before.

        A step whose norm is nan enters no sum.
        """
        self.before.append(norm)
        self.after.append(global_norm(clipped))
        if math.isnan(norm):
            return
        for sums, tensors in zip(self.sums, (gradients, clipped), strict=True):
            for name, array in tensors.items():
                sums.setdefault(name, ScaledSum()).add(array.astype(np.float64))

    def state(self) -> dict[str, Array]:
        """Everything logged so far, as arrays that a file can hold."""
        arrays = {"before": np.array(self.before), "after": np.array(self.after)}
        for kind, sums in zip(SUMS, self.sums, strict=True):
            for name, each in sums.items():
                arrays[f"{kind}.{name}"] = each.array
                arrays[f"{kind}_exponent.{name}"] = np.array(each.exponent)
        return arrays

    @classmethod
    def restored(cls, threshold: float, arrays: Mapping[str, Array]) -> ClipLog:
        """Log that goes on from what `state` gave."""
        log = cls(threshold)
        log.before, log.after = arrays["before"].tolist(), arrays["after"].tolist()
        for kind, sums in zip(SUMS, log.sums, strict=True):
            for key in arrays:
                if key.startswith(f"{kind}."):
                    name = key.removeprefix(f"{kind}.")
                    sums[name] = ScaledSum(arrays[key], int(arrays[f"{kind}_exponent.{name}"]))
        return log

    def audit(self, candidates: Sequence[float] = CANDIDATES) -> ClipAudit:
        """What clipping did so far."""
        return ClipAudit(
            before=np.array(self.before),
            after=np.array(self.after),
            threshold=self.threshold,
            candidates=tuple(candidates),
            cosine_with_unclipped_sum=self._cosine(),
        )

    def _cosine(self) -> float:
        """Cosine between the sums of all steps, without and with clipping."""
        if not self.sums[0]:
            return math.nan
        common = [max(each.exponent for each in sums.values()) for sums in self.sums]
        unclipped, clipped = (
            {name: _ldexp(each.array, each.exponent - top) for name, each in sums.items()}
            for sums, top in zip(self.sums, common, strict=True)
        )
        return cosine(unclipped, clipped)


def clip_audit(
    norms: Float[Array, " steps"] | Sequence[float],
    *,
    threshold: float = math.inf,
    candidates: Sequence[float] = CANDIDATES,
) -> ClipAudit:
    """Audit of a log of gradient norms, as any training may have kept it.

    Parameters
    ----------
    norms
        Norm of every step before clipping; nan for steps without one.
    threshold
        η in use; inf if there was no clipping.
    candidates
        Thresholds whose clipped share is asked for.

    Returns
    -------
    audit
        Quantiles interpolate linearly between order statistics. The norms are the user's own; no
        threshold is recommended.
    """
    _require_threshold(threshold)
    before = np.asarray(norms, dtype=np.float64)
    return ClipAudit(
        before=before,
        after=np.minimum(before, threshold),
        threshold=threshold,
        candidates=tuple(candidates),
        cosine_with_unclipped_sum=math.nan,
    )


def _require_threshold(threshold: float) -> None:
    if not threshold > 0.0:
        raise SettingError(f"threshold {threshold}: expected a number above 0")


def _finite(gradients: Gradient, nonfinite: str) -> dict[str, Array] | None:
    """Tensors without NaN or infinity, by the policy; None if the step is to be skipped."""
    if nonfinite not in POLICIES:
        raise unknown_name("policy for non-finite entries", nonfinite, POLICIES)
    wrong = {name: ~np.isfinite(array) for name, array in gradients.items()}
    bad = [name for name, entries in wrong.items() if entries.any()]
    if not bad:
        return dict(gradients)
    if nonfinite == "raise":
        require_finite(f"gradient of {bad[0]}", gradients[bad[0]])
    logger.warning("non-finite entries in the gradient of %s: %s", ", ".join(bad), nonfinite)
    if nonfinite == "skip":
        return None
    return {name: np.where(wrong[name], 0, array) for name, array in gradients.items()}


def _scaled_norm(arrays: Iterable[Array]) -> tuple[float, int]:
    """Norm over all arrays as a number of order one and a power of two; zeros are (0, 0)."""
    present = [np.asarray(array) for array in arrays if array.size]
    largest = max((float(np.max(np.abs(array))) for array in present), default=0.0)
    if largest == 0.0:
        return 0.0, 0
    exponent = math.frexp(largest)[1]
    squares = sum(float(np.sum(_ldexp(array, -exponent) ** 2)) for array in present)
    return math.sqrt(squares), exponent


def _ldexp(array: Array, exponent: int) -> Float[Array, "..."]:
    return np.asarray(np.ldexp(array.astype(np.float64), exponent))


def _unscaled(scaled: float, exponent: int) -> float:
    try:
        return math.ldexp(scaled, exponent)
    except OverflowError:
        return math.inf


def _rescaled(array: Array, exponent: int, threshold: float, scaled: float) -> Array:
    """η g / ‖g‖, by quantities of order one; in the array's own type."""
    return (_ldexp(array, -exponent) * threshold / scaled).astype(array.dtype)
