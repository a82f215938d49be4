"""Why the bound and the measurement disagree, in a few sentences that need no figure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gradlab_reports.frames import column
from gradlab_reports.spelling import NO_BREAK, factor
from gradlab_reports.tables import number

if TYPE_CHECKING:
    import pandas as pd

AGREEING = math.log(2.0)  # nats: a gap that needs no explanation
CAUSES = {
    "alignment": "alignment: what one step stretches most, the next ones do not",
    "onestep": "one-step structure: most units have flatter slopes than the steepest one",
    "saturation": "saturation: even the steepest slope is below the activation's largest",
}


def bound_sentence(recurrence: Mapping[str, Any], profile: pd.DataFrame) -> str:
    """Say how far the bound lies above what was measured, and why.

    Parameters
    ----------
    recurrence
        An entry of ``summary.json``.
    profile
        Its rows of ``lag_profile.csv``.

    Returns
    -------
    sentences
        The bound and the measured norm at the longest lag, and the causes of the gap between them,
        largest first. Empty where the run has no bound there.
    """
    last = profile.sort_values("lag").tail(1)
    lag, measured = int(last["lag"].iloc[0]), float(column(last, "log_norm_median")[0])
    bound = float(column(last, "log_bound_gamma")[0])
    if math.isfinite(bound):
        opening = (
            f"The bound takes the largest stretch that the weights allow, {factor(bound / lag)}, "
            f"to the power of the lag: {factor(bound)} at lag {lag}"
        )
        return _compared(opening, bound, measured, recurrence.get("slack") or {})
    bound = float(column(last, "log_bound_onestep")[0])
    if not math.isfinite(bound):
        return ""
    opening = (
        f"No single norm bounds a step of this cell. The largest stretch of each step, multiplied, "
        f"is {factor(bound)} at lag {lag}"
    )
    return _compared(opening, bound, measured, {"alignment": bound - measured})


def _compared(opening: str, bound: float, measured: float, slack: Mapping[str, Any]) -> str:
    gap = bound - measured
    if math.isnan(gap):
        return ""
    if gap < AGREEING:
        return f"{opening}, and {factor(measured)} was measured: here the two agree."
    if math.isinf(gap):
        return f"{opening}, where the measured norm is exactly 0."
    return f"{opening}, where {factor(measured)} was measured. {_why(gap, slack)}"


def _why(gap: float, slack: Mapping[str, Any]) -> str:
    """Causes with their shares of the gap's logarithm, those below one per cent left out."""
    shares = {cause: number(slack.get(cause)) / gap for cause in CAUSES}
    told = sorted((c for c in CAUSES if shares[c] >= 0.01), key=lambda c: -shares[c])
    if not told:
        return ""
    if shares[told[0]] > 0.99:
        return f"The reason is {CAUSES[told[0]]}."
    parts = [f"{100.0 * shares[cause]:.0f}{NO_BREAK}% {CAUSES[cause]}" for cause in told]
    return f"In decades, this gap is {'; '.join(parts)}."
