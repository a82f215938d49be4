"""What candidates for one piece of work cost, and what one may cost in units of another."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """What a candidate may cost against a reference; without a limit the ratio is told only."""

    candidate: str
    reference: str
    limit: float | None
    faster: bool  # whether the limit is how many times more the reference costs, at least

    def ratio(self, costs: Mapping[str, float]) -> float:
        """As the limit counts it; nan where one of the two is not installed."""
        ours, theirs = costs.get(self.candidate, math.nan), costs.get(self.reference, math.nan)
        return theirs / ours if self.faster else ours / theirs

    def met(self, costs: Mapping[str, float]) -> bool | None:
        """None without a limit, and where one of the two is not installed."""
        ratio = self.ratio(costs)
        if self.limit is None or math.isnan(ratio):
            return None
        return ratio >= self.limit if self.faster else ratio <= self.limit


def share(candidate: str, reference: str, most: float | None = None) -> Target:
    """The candidate may cost at most this share of the reference, mostly a floor."""
    return Target(candidate, reference, most, faster=False)


def faster(candidate: str, reference: str, times: float | None = None) -> Target:
    """The candidate is at least this many times as fast as the reference, a peer."""
    return Target(candidate, reference, times, faster=True)


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Smallest cost of each candidate over the rounds, and by how much their results differ."""

    values: Mapping[str, float]  # a candidate that is not installed is left out
    difference: float = math.nan
    unit: str = "s"  # or "bytes"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One row's work: nothing is made, run or timed before `measure`."""

    name: str
    targets: Sequence[Target]
    measure: Callable[[], Costs]
    tolerance: float = math.inf  # largest difference at which a target still counts as reached
    quick: bool = False  # part of a quick run too


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A problem with what its candidates cost."""

    problem: Problem
    costs: Costs

    @property
    def exact(self) -> bool:
        """Whether the results agree as well as they must; nan where there is nothing to compare."""
        return not self.costs.difference > self.problem.tolerance
