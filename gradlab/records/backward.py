"""Gradients that a backward pass leaves: of one cell, and of a loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, read_only
from gradlab.errors import SettingError, unknown_name
from gradlab.records.notebook import rows_html


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BackwardPass:
    """Gradient of a scalar L with respect to everything that one cell's run depends on.

    Arrays are read-only, in the cell's own floating-point type, and may hold infinities where the
    gradient left its range.
    """

    gradients: Mapping[str, Array]  # dL/dW by the cell's attribute name, summed over sequences
    inputs: Float[Array, "time batch features"]  # dL/dx_t; 0 behind a sequence's end
    initial_state: Float[Array, "batch n"]  # dL/ds_0
    adjoints: Float[Array, "times batch n"]  # total dL/ds_t for t = 0..T

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in ("inputs", "initial_state", "adjoints"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        frozen = {name: read_only(array) for name, array in self.gradients.items()}
        object.__setattr__(self, "gradients", frozen)


class Gradients(Mapping[str, Array]):
    """Gradient of a loss: a mapping from the name of a weight to dL/dW.

    Weights of a single cell are keyed by its attribute names (``W_hh``), those of a network by the
    recurrence's name and the attribute's (``rnn.l0.W_hh``); the readout's are ``W_hy`` and ``b_y``.
    Gradients with respect to the inputs and the initial states are attributes, not items: a norm
    over the items is the norm over the weights.

    Parameters
    ----------
    weights
        Arrays by name.
    inputs
        dL/dx, (time, batch, features); 0 behind a sequence's end.
    passes
        What the backward pass left at every recurrence, by name. Those of backward recurrences are
        in processing order.
    window
        Steps that the gradient was allowed to flow back from each loss step; None where it was
        the whole past.
    """

    def __init__(
        self,
        *,
        weights: Mapping[str, Array],
        inputs: Float[Array, "time batch features"],
        passes: Mapping[str, BackwardPass],
        window: int | None = None,
    ) -> None:
        self.weights = {name: read_only(array) for name, array in weights.items()}
        self.inputs = read_only(inputs)
        self.passes = dict(passes)
        self.window = window

    def __getitem__(self, name: str) -> Array:
        """Gradient with respect to the weight of that name."""
        if name not in self.weights:
            raise unknown_name("weight", name, self.weights)
        return self.weights[name]

    def __iter__(self) -> Iterator[str]:
        """Names of the weights."""
        return iter(self.weights)

    def __len__(self) -> int:
        """Number of weights."""
        return len(self.weights)

    def __contains__(self, name: object) -> bool:
        """Whether there is a weight of that name."""
        return name in self.weights

    def of(self, recurrence: str) -> Mapping[str, Array]:
        """Gradients of one recurrence, keyed by its cell's attribute names."""
        if recurrence not in self.passes:
            raise unknown_name("recurrence", recurrence, self.passes)
        return self.passes[recurrence].gradients

    def _repr_html_(self) -> str:
        """Table for notebooks, a row a weight."""
        rows = [
            (name, " × ".join(map(str, array.shape)), float(np.linalg.norm(array)))
            for name, array in self.weights.items()
        ]
        return rows_html(type(self).__name__, ("weight", "shape", "norm"), rows)

    @property
    def truncated(self) -> bool:
        """Whether terms beyond a window were left out, so that this is not the true gradient."""
        return self.window is not None

    @property
    def initial_state(self) -> Float[Array, "batch n"]:
        """dL/ds_0 of a single recurrence; those of several are in `passes`."""
        return self.only().initial_state

    @property
    def adjoints(self) -> Float[Array, "times batch n"]:
        """Total dL/ds_t of a single recurrence, t = 0..T; those of several are in `passes`."""
        return self.only().adjoints

    def only(self) -> BackwardPass:
        """The pass of the one recurrence of a network that has just one.

        Raises
        ------
        SettingError
            If there are several.
        """
        if len(self.passes) != 1:
            names = ", ".join(self.passes)
            raise SettingError(f"{len(self.passes)} recurrences ({names}): name one of the passes")
        return next(iter(self.passes.values()))
