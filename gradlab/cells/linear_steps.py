"""Linearizations whose steps are made on demand from stored factors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, SupportsIndex, overload

from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells.base import Linearization, LinearStep

Term = tuple[Float[Array, "batch rows m"], Float[Array, "batch columns"]]


class TermStep(LinearStep, Protocol):
    """A linear step that also tells its terms of the recurrent weights' gradient."""

    def terms(self, U: Float[Array, "batch n m"]) -> Sequence[Term]:
        """Blocks as `Linearization.recurrent_terms` has them."""


class LinearSteps(Linearization):
    """T steps along a trajectory.

    Parameters
    ----------
    length
        T.
    at
        Makes the step of an index, leading to time index + 1.
    log_bound_factors
        Logarithms of proven one-step bounds by the rung's name, loosest first; none if None.
    """

    def __init__(
        self,
        length: int,
        at: Callable[[int], TermStep],
        log_bound_factors: Mapping[str, Float[Array, "time batch"]] | None = None,
    ) -> None:
        self.length = length
        self.at = at
        self._log_bound_factors = dict(log_bound_factors or {})

    def __len__(self) -> int:
        """T."""
        return self.length

    @overload
    def __getitem__(self, index: SupportsIndex) -> LinearStep: ...
    @overload
    def __getitem__(self, index: slice) -> list[LinearStep]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        """Step leading to time index + 1."""
        if isinstance(index, slice):
            return [self.at(i) for i in range(*index.indices(self.length))]
        return self.at(range(self.length)[index])

    @property
    def log_bound_factors(self) -> Mapping[str, Float[Array, "time batch"]]:
        """Logarithms of the one-step bounds; nats."""
        return self._log_bound_factors

    def recurrent_terms(self, step: int, U: Float[Array, "batch n m"]) -> Sequence[Term]:
        """Rank-one terms of the gradient of the recurrent weights that one step adds."""
        return self.at(step).terms(U)
