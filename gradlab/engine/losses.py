"""Linear readout of the states, and the losses of its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.arrays import Array, close, read_only, require_finite
from gradlab.errors import SettingError, ShapeError, unknown_name

LOSSES = ("cross_entropy", "squared_error")
AVERAGES = ("none", "batch", "steps")


@dataclass(frozen=True, kw_only=True, eq=False)
class Readout:
    r"""Readout :math:`W_{hy} h_t + b_y` with its loss, :math:`L = \sum_t L_t` over chosen steps.

    Parameters
    ----------
    W_hy
        Weights; rows are outputs.
    b_y
        Bias; zeros if None.
    loss
        ``cross_entropy``: minus the logarithm of the softmax at the target's class, in nats.
        ``squared_error``: the plain sum of squared differences, without a factor 1/2.
    average
        What the sum over steps and sequences is divided by: ``none``, the number of sequences
        (``batch``) or the number of chosen steps in all sequences (``steps``).
    dtype
        Type of the weights, float64 or float32.
    source
        Where the weights came from, for people.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other.
    NonFiniteError
        If a weight is NaN or infinite.
    UnknownNameError
        If there is no such loss or average.
    """

    W_hy: Float[Array, "outputs hidden"]
    b_y: Float[Array, " outputs"] | None = None
    loss: str = "cross_entropy"
    average: str = "none"
    dtype: str = "float64"
    source: str = ""

    def __post_init__(self) -> None:
        """Check names, shapes and entries; make the arrays read-only."""
        if self.loss not in LOSSES:
            raise unknown_name("loss", self.loss, LOSSES)
        if self.average not in AVERAGES:
            raise unknown_name("average", self.average, AVERAGES)
        outputs = np.shape(self.W_hy)[0] if np.ndim(self.W_hy) else 0
        bias = np.zeros(outputs) if self.b_y is None else self.b_y
        for name, value in (("W_hy", self.W_hy), ("b_y", bias)):
            array = read_only(value, self.dtype)
            require_finite(name, array)
            object.__setattr__(self, name, array)
        shape, bias_shape = self.W_hy.shape, np.asarray(self.b_y).shape
        if len(shape) != 2 or 0 in shape or bias_shape != (outputs,):
            raise ShapeError(
                f"W_hy has shape {shape} and b_y {bias_shape}: expected (outputs, hidden) and "
                "(outputs,)"
            )

    @classmethod
    def initialize(
        cls,
        *,
        hidden_size: int,
        output_size: int,
        rng: np.random.Generator,
        loss: str = "cross_entropy",
        average: str = "none",
        dtype: str = "float64",
    ) -> Readout:
        """Random readout: entries of W_hy are N(0, 1/N), the bias is zero."""
        W_hy = rng.standard_normal((output_size, hidden_size)) / np.sqrt(hidden_size)
        return cls(W_hy=W_hy, loss=loss, average=average, dtype=dtype)

    @property
    def hidden_size(self) -> int:
        """N, the length of what is read."""
        return int(self.W_hy.shape[1])

    @property
    def output_size(self) -> int:
        """Number of outputs or classes."""
        return int(self.W_hy.shape[0])

    @property
    def parameters(self) -> Mapping[str, Array]:
        """Weights by attribute name."""
        return {"W_hy": self.W_hy, "b_y": np.asarray(self.b_y)}

    def outputs(self, hidden: Float[Array, "*steps hidden"]) -> Float[Array, "*steps outputs"]:
        """W_hy h + b_y: predictions, or the logits of a softmax."""
        return np.asarray(hidden @ self.W_hy.T + self.b_y)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossTerms:
    """Loss of the chosen steps, and its explicit derivatives."""

    value: float  # L
    values: Float[Array, "time batch"]  # L_t of every sequence; 0 at steps not chosen
    upstream: Float[Array, "time batch hidden"]  # ∂L_t/∂h_t; 0 at steps not chosen
    gradients: Mapping[str, Array]  # dL/dW_hy and dL/db_y
    chosen: Bool[Array, "time batch"]  # steps with a loss


def loss_terms(
    readout: Readout,
    hidden: Float[Array, "time batch hidden"],
    targets: Array,
    chosen: Bool[Array, "time batch"],
) -> LossTerms:
    """Loss of a readout at the chosen steps.

    Parameters
    ----------
    readout
        Weights and loss.
    hidden
        What the readout reads at every step.
    targets
        For cross entropy, classes (time, batch); for the squared error, reals
        (time, batch, outputs). Without the time axis where one step a sequence is chosen, and
        without the batch axis for a single sequence. Entries at steps that are not chosen are
        never read.
    chosen
        Steps with a loss, see `chosen_steps`.

    Returns
    -------
    terms
        Cross entropies are accurate to rounding for logits of any size, near 0 too.

    Raises
    ------
    ShapeError
        If the targets do not fit.
    SettingError
        If a class does not exist.
    NonFiniteError
        If a target is NaN or infinite.
    """
    _require_fit(readout, hidden)
    h = hidden[chosen]
    with np.errstate(over="ignore", invalid="ignore"):
        losses = _LOSSES[readout.loss]
        values, errors = losses(readout.outputs(h), _chosen_targets(readout, targets, chosen))
        weight = 1.0 / _divisor(readout.average, chosen)
        errors = errors * weight
        gradients = {"W_hy": errors.T @ h, "b_y": errors.sum(axis=0)}
        upstream = np.zeros(hidden.shape, hidden.dtype)
        upstream[chosen] = errors @ readout.W_hy
    table = np.zeros(chosen.shape)
    table[chosen] = values * weight
    return LossTerms(
        value=float(table.sum()),
        values=close(table),
        upstream=close(upstream),
        gradients=gradients,
        chosen=chosen,
    )


def chosen_steps(
    lengths: Int[Array, " batch"],
    steps: int,
    *,
    at: str | None = None,
    mask: Bool[Array, "time batch"] | None = None,
) -> Bool[Array, "time batch"]:
    """Steps with a loss: all valid ones, or those that ``at`` or ``mask`` names among them.

    Parameters
    ----------
    lengths
        Valid steps of each sequence.
    steps
        T.
    at
        ``"last"``: each sequence's own last step.
    mask
        True where there is a loss. Padded steps never have one.

    Raises
    ------
    SettingError
        If both are given, or no step is left.
    ShapeError
        If the mask does not fit.
    """
    time = np.arange(steps)[:, None]
    if at is not None and mask is not None:
        raise SettingError("at and mask both choose steps: expected one of them")
    if at is not None:
        if at != "last":
            raise unknown_name("choice of steps", at, ("last",))
        return np.asarray(time == lengths - 1)
    valid = np.asarray(time < lengths)
    if mask is None:
        return valid
    mask = np.asarray(mask, dtype=bool)
    if mask.shape != valid.shape:
        raise ShapeError(f"mask has shape {mask.shape}: expected (time, batch) = {valid.shape}")
    if not (mask & valid).any():
        raise SettingError("mask chooses no valid step: expected at least one")
    return np.asarray(mask & valid)


def _divisor(average: str, chosen: Bool[Array, "time batch"]) -> float:
    counts = {"none": 1, "batch": chosen.shape[1], "steps": np.count_nonzero(chosen)}
    return float(counts[average])


def _require_fit(readout: Readout, hidden: Array) -> None:
    if hidden.shape[2] != readout.hidden_size:
        raise ShapeError(
            f"W_hy has shape {readout.W_hy.shape} but reads {hidden.shape[2]} values a step: "
            f"expected ({readout.output_size}, {hidden.shape[2]})"
        )


def _chosen_targets(readout: Readout, targets: Array, chosen: Bool[Array, "time batch"]) -> Array:
    """Targets of the chosen steps, in their order: (chosen,) classes or (chosen, outputs) reals."""
    targets = np.asarray(targets)
    classes = readout.loss == "cross_entropy"
    wanted = chosen.shape if classes else (*chosen.shape, readout.output_size)
    if chosen.shape[1] == 1 and targets.shape == (wanted[0], *wanted[2:]):
        targets = targets[:, None]
    if targets.shape == wanted[1:] and (chosen.sum(axis=0) == 1).all():
        targets = np.broadcast_to(targets, wanted)
    kinds = "integers" if classes else "reals"
    if targets.shape != wanted or targets.dtype.kind not in ("iu" if classes else "biuf"):
        hint = "; one target a sequence goes with at = last" if targets.shape == wanted[1:] else ""
        raise ShapeError(
            f"targets have shape {targets.shape} of {targets.dtype}: expected {kinds} of shape "
            f"{wanted} for {readout.loss}{hint}"
        )
    picked = targets[chosen]
    if classes:
        _require_classes(picked, readout.output_size)
    else:
        require_finite("targets", picked)
    return picked


def _require_classes(classes: Int[Array, " chosen"], count: int) -> None:
    wrong = (classes < 0) | (classes >= count)
    if wrong.any():
        raise SettingError(
            f"targets hold class {classes[np.argmax(wrong)]}: expected 0 to {count - 1}, the rows "
            "of W_hy"
        )


def _cross_entropy(
    logits: Float[Array, "chosen outputs"], classes: Int[Array, " chosen"]
) -> tuple[Float[Array, " chosen"], Float[Array, "chosen outputs"]]:
    """Values and derivatives by the logits, from the sum over the other classes: no cancellation.

    1 - p(target) is that sum over all classes' sum, and -ln p(target) its log1p where the target
    has the largest logit.
    """
    rows = np.arange(len(classes))
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    weights = np.exp(shifted)
    own = weights[rows, classes]
    weights[rows, classes] = 0.0
    others = weights.sum(axis=1)
    total = own + others
    largest = shifted[rows, classes] == 0.0
    values = np.where(largest, np.log1p(others), np.log(total) - shifted[rows, classes])
    weights[rows, classes] = -others
    return values, (weights / total[:, None]).astype(logits.dtype)


def _squared_error(
    predictions: Float[Array, "chosen outputs"], targets: Array
) -> tuple[Float[Array, " chosen"], Float[Array, "chosen outputs"]]:
    """Values and derivatives by the predictions."""
    difference = predictions - targets.astype(predictions.dtype)
    return np.sum(difference.astype(np.float64) ** 2, axis=1), 2.0 * difference


_LOSSES = {"cross_entropy": _cross_entropy, "squared_error": _squared_error}
