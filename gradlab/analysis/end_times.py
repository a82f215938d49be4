"""End times of products: those asked for, or as many as a limit of pairs allows.

Pairs are counted, not timed, so that every machine chooses alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from gradlab.arrays import Array
from gradlab.errors import SettingError
from gradlab.records.trajectory import Trajectory

# Pairs (t, k) that an automatic choice of end times may measure: seconds at N = 64.
AUTOMATIC_PAIRS = 20_000
# State size from which on a pair counts for more than one, as the cost of a product grows.
UNIT_SIZE = 64

Anchors = str | int | Sequence[int]


def automatic_anchors(
    lengths: Int[Array, " batch"], n: int, max_lag: int | None, max_pairs: int | None = None
) -> Anchors:
    """As many evenly spaced end times as keep the number of pairs near a limit.

    Parameters
    ----------
    lengths
        Valid steps of each sequence.
    n
        State size; the limit falls with its cube beyond 64.
    max_lag
        Longest lag.
    max_pairs
        The limit; `AUTOMATIC_PAIRS` if None.

    Returns
    -------
    anchors
        ``"all"`` where the limit allows it, else their number, at least 1.

    Raises
    ------
    SettingError
        If the limit is below 1.
    """
    limit = AUTOMATIC_PAIRS if max_pairs is None else max_pairs
    if limit < 1:
        raise SettingError(f"max_pairs {max_pairs}: expected at least 1")
    longest = int(lengths.max())
    allowed = limit * min(1.0, (UNIT_SIZE / n) ** 3)
    reach = min(longest, max_lag or longest)
    pairs_an_anchor = len(lengths) * reach * (1.0 - 0.5 * reach / longest)
    count = max(1, math.floor(allowed / pairs_an_anchor))
    return "all" if count >= longest else count


def chosen_anchors(
    run: Trajectory, n: int, anchors: Anchors, max_lag: int | None, max_pairs: int | None
) -> Anchors:
    """End times of a run: those asked for, or as many as the limit allows.

    Raises
    ------
    SettingError
        If there are none within the run, or they are not of the forms that `jacobian_profile`
        takes.
    """
    if anchors == "auto":
        return automatic_anchors(run.lengths, n, max_lag, max_pairs)
    if len(end_times(run.steps, anchors)) == 0:
        raise SettingError(
            f"anchors {anchors!r}: expected end times in 1..{run.steps}, the steps of the longest "
            "sequence"
        )
    return anchors


def pair_count(lengths: Int[Array, " batch"], anchors: Anchors, max_lag: int | None) -> int:
    """Pairs (t, k) that `jacobian_profile` measures."""
    counts = 0
    for length, sequences in zip(*np.unique(lengths, return_counts=True), strict=True):
        ends = end_times(int(length), anchors)
        counts += int(sequences) * int(np.minimum(ends, max_lag or int(length)).sum())
    return counts


def left_out(name: str, lengths: Int[Array, " batch"], chosen: Anchors) -> list[str]:
    """Sentence on an automatic choice that leaves end times out."""
    if not isinstance(chosen, int):
        return []
    longest = int(lengths.max())
    where = "the last step alone" if chosen == 1 else f"{chosen} evenly spaced end times"
    return [
        f"{name} is measured at {where} of {longest}: anchors all would measure every one, and a "
        "larger max_pairs more of them"
    ]


def end_times(length: int, anchors: Anchors) -> Int[Array, " ends"]:
    """End times of a sequence of the given length, ascending.

    Raises
    ------
    SettingError
        If they are not of the forms that `jacobian_profile` takes, or out of 1..length.
    """
    if anchors == "all":
        return np.arange(1, length + 1)
    if anchors == "last":
        return np.array([length])
    if isinstance(anchors, int) and anchors >= 1:
        count = min(anchors, length)
        return -(-np.arange(1, count + 1) * length // count)
    if isinstance(anchors, str | int) or len(anchors) == 0 or min(anchors) < 1:
        raise SettingError(
            f"anchors {anchors!r}: expected 'all', 'last', a number >= 1 or end times >= 1"
        )
    times = np.unique(np.asarray(anchors, dtype=np.int64))
    return times[times <= length]
