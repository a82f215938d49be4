"""A growth rate of a gated cell that holds for every input within stated limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from gradlab.records.notebook import summary_html


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GatedRate:
    r"""Proven :math:`\lVert\partial s_t/\partial s_k\rVert_2 \le K r^{t-k}` for a gated cell.

    Holds for every input sequence and start within the limits, in absolute values entry by entry;
    the states stay within them for ever. ``rate`` and ``constant`` are None where nothing was
    found, and ``status`` says why; else it is ``proven``.
    """

    rate: float | None
    constant: float | None
    limits: Mapping[str, float]  # x, h, c: largest absolute entry of input and state; inf if any
    status: str

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, asdict(self))
