"""How many points a chunk has, by what was seen of the sweep so far."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from gradlab.sweeps.points import Measured

CHUNK_SECONDS = 0.25  # long beside the milliseconds that sending and saving a chunk take
MOST_SECONDS = 60.0  # beyond which more would be lost in a kill than is gained
LARGEST = 1000  # points of a chunk
TASK_SECONDS = 1e-3  # of the one scheduler of a cluster, which is not seen from here
BUSY_SHARE = 0.5  # of its time, that the one parent shall be busy at most
MEMORY = 0.9  # weight of what was seen before, against the last chunks


class Pacer:
    """Cuts what is left into chunks, as long as the measured times make them.

    A chunk lasts a quarter of a second, or longer, with many workers or a slow disk: so long that
    the one parent, which sends and saves all of them, is busy for half of its time.

    Parameters
    ----------
    places
        Places of the points that are to be measured, in order.
    count
        How many there are.
    workers
        Among how many the end of the sweep is to be shared.
    """

    def __init__(self, places: Iterable[int], count: int, workers: int) -> None:
        self._places = iter(places)
        self._left = count
        self._workers = workers
        self._seconds, self._points = 0.0, 0
        self._busy: float | None = None  # of the parent, seconds a chunk

    def learn(self, measured: Measured) -> None:
        """Take the time of finished points into account."""
        self._seconds += measured.seconds
        self._points += len(measured.outcomes)

    def learn_busy(self, seconds: float, chunks: int) -> None:
        """Take the time into account that the parent spent on some chunks."""
        each = seconds / chunks
        self._busy = each if self._busy is None else MEMORY * self._busy + (1 - MEMORY) * each

    def next_places(self) -> list[int]:
        """Places of the next chunk; empty at the end."""
        places = list(itertools.islice(self._places, self._size()))
        self._left -= len(places)
        return places

    def _size(self) -> int:
        if self._points == 0:
            return 1
        a_point = max(self._seconds / self._points, 1e-9)
        share = -(-self._left // (2 * self._workers))  # even at the end
        return max(1, min(int(self._chunk_seconds() / a_point), share, LARGEST))

    def _chunk_seconds(self) -> float:
        a_chunk = max(self._busy or 0.0, TASK_SECONDS)
        return max(CHUNK_SECONDS, min(self._workers * a_chunk / BUSY_SHARE, MOST_SECONDS))
