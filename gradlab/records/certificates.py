"""What is proven of the long-term Jacobian for every input, from the weights alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradlab.errors import unknown_name
from gradlab.records.frames import frame
from gradlab.records.notebook import summary_html

if TYPE_CHECKING:
    import pandas as pd

PROVEN = "proven"
STOPPED = "proven, search stopped"  # a longer search might lower the rate
UNVERIFIED = "failed its own check"
SKIPPED = "skipped"  # not searched for: too large, or not asked for
NOT_FOUND = "not found"
EVERY_INPUT = "every input"
EQUAL = 1e-4  # relative difference of rates that the constant outweighs


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A proof that ‖∂h_t/∂h_k‖ ≤ constant · rate^(t-k), or the reason why there is none.

    A bound, never a measurement. A rate of 1 or more still bounds the growth.
    """

    rate: float | None  # factor per step, rounded up by the margin of its check; None: not found
    constant: float | None
    status: str
    holds_for: str = EVERY_INPUT  # the inputs, states and biases it speaks of

    @property
    def found(self) -> bool:
        """Whether anything is proven."""
        return self.rate is not None

    @property
    def vanishing(self) -> bool:
        """Whether the gradient is proven to vanish."""
        return self.rate is not None and self.rate < 1.0

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, self.to_summary())

    def to_summary(self) -> dict[str, Any]:
        """Entry of ``certificates`` in ``summary.json``."""
        return {
            "rate": self.rate,
            "constant": self.constant,
            "status": self.status,
            "holds_for": self.holds_for if self.found else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFloor:
    """No certificate of slopes can prove a rate below this one.

    With the units held at one end of their slopes and all others at the other end, the products
    grow by ``rate`` a step.
    """

    rate: float  # spectral radius of that Jacobian, rounded down by its error
    units: tuple[int, ...]  # those at the upper end

    @property
    def refutes(self) -> bool:
        """Whether vanishing cannot be certified."""
        return self.rate >= 1.0

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, self.to_summary())

    def to_summary(self) -> dict[str, Any]:
        """The entry ``certificate_floor`` of ``summary.json``."""
        return {"rate": self.rate, "units": list(self.units)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Certificates(Mapping[str, Certificate]):
    """Certificates of one cell by name, loosest first; empty for cells without any."""

    entries: Mapping[str, Certificate]
    floor: CertificateFloor | None = None  # None where nothing is known

    def __post_init__(self) -> None:
        """Freeze the mapping."""
        object.__setattr__(self, "entries", dict(self.entries))

    def __getitem__(self, name: str) -> Certificate:
        """Certificate of that name."""
        if name not in self.entries:
            raise unknown_name("certificate", name, self.entries)
        return self.entries[name]

    def __iter__(self) -> Iterator[str]:
        """Names in order."""
        return iter(self.entries)

    def __len__(self) -> int:
        """How many were tried."""
        return len(self.entries)

    def __contains__(self, name: object) -> bool:
        """Whether there is a certificate of that name."""
        return name in self.entries

    @property
    def strongest(self) -> str | None:
        """Name of the lowest proven rate; of rates that hardly differ, the smallest constant."""
        rates = {name: entry.rate for name, entry in self.entries.items() if entry.rate is not None}
        lowest = min(rates.values(), default=0.0)
        close = [name for name, rate in rates.items() if rate <= lowest * (1.0 + EQUAL)]
        return min(close, key=lambda name: self.entries[name].constant or 1.0, default=None)

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, self.to_summary()["certificates"])

    def to_summary(self) -> dict[str, Any]:
        """The certificates' keys of ``summary.json``."""
        return {
            "certificates": {name: entry.to_summary() for name, entry in self.entries.items()},
            "strongest_certificate": self.strongest,
            "certificate_floor": None if self.floor is None else self.floor.to_summary(),
        }

    def to_frame(self) -> pd.DataFrame:
        """Table: certificate, rate, constant, status, holds_for."""
        entries = list(self.entries.values())
        return frame(
            certificate=list(self.entries),
            rate=[float("nan") if e.rate is None else e.rate for e in entries],
            constant=[float("nan") if e.constant is None else e.constant for e in entries],
            status=[entry.status for entry in entries],
            holds_for=[entry.holds_for for entry in entries],
        )
