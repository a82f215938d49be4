"""Linearizations whose steps are made on demand from stored factors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, SupportsIndex, overload

from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells.base import Linearization, LinearStep, Majorant

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
        Makes what `Linearization` has under this name, when it is first asked for; nothing if None.
    majorants, absent_bounds
        As in `Linearization`.
    """

    def __init__(
        self,
        length: int,
        at: Callable[[int], TermStep],
        *,
        log_bound_factors: Callable[[], Mapping[str, Array]] | None = None,
        majorants: Mapping[str, Callable[[], Majorant]] | None = None,
        absent_bounds: Mapping[str, str] | None = None,
    ) -> None:
        self.length = length
        self.at = at
        self._make_factors = log_bound_factors or dict
        self._majorants = dict(majorants or {})
        self._absent_bounds = dict(absent_bounds or {})

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

    @cached_property
    def log_bound_factors(self) -> Mapping[str, Float[Array, "time batch"]]:
        """Logarithms of the one-step bounds; nats."""
        return self._make_factors()

    @property
    def majorants(self) -> Mapping[str, Callable[[], Majorant]]:
        """Makers of proven bounds by blocks of the Jacobian."""
        return self._majorants

    @property
    def absent_bounds(self) -> Mapping[str, str]:
        """Reasons why rungs are missing."""
        return self._absent_bounds

    def recurrent_terms(self, step: int, U: Float[Array, "batch n m"]) -> Sequence[Term]:
        """Rank-one terms of the gradient of the recurrent weights that one step adds."""
        return self.at(step).terms(U)
