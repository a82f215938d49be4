"""What the weights prove of every input: table of rates, and one proof in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from gradlab.analysis.certificates.collection import certificates
from gradlab.analysis.certificates.family import JacobianFamily
from gradlab.analysis.certificates.lmi_verifier import lmi_matrix, verify_lmi
from gradlab.arrays import Array
from gradlab.cells.vanilla import VanillaCell
from gradlab.records.certificates import Certificates
from gradlab.verification.expectations import Expectation, Group, lcg

ROTATING = ((0.6, 0.9), (-0.9, -0.9))
WEIGHTS = {
    "[[.9, 1], [0, .9]]": np.array([[0.9, 1.0], [0.0, 0.9]]),
    "(1, 2, 2) (.3, .1, -.2)^T": np.outer([1.0, 2.0, 2.0], [0.3, 0.1, -0.2]),
    "ring (4, .1, .5)": np.array([[0.0, 4.0, 0.0], [0.0, 0.0, 0.1], [0.5, 0.0, 0.0]]),
    "[[.6, .9], [-.9, -.9]]": np.array(ROTATING),
    "W of 3 units": 0.9 * lcg(21, 3, 3),
    "W of 6 units": 0.7 * lcg(22, 6, 6),
    "W of 10 units": 0.5 * lcg(23, 10, 10),
}
# sigma_max, perron, diagonal, lmi and floor, and what the last digit printed is worth, relatively
RATES = {
    "[[.9, 1], [0, .9]]": (1.5295630140987, 0.9, 0.9, 0.9, 0.9),
    "(1, 2, 2) (.3, .1, -.2)^T": (1.1224972160322, 0.9, 0.9, 0.5, 0.5),
    "ring (4, .1, .5)": (4.0, *(4 * (0.58480354764257,))),
    "[[.6, .9], [-.9, -.9]]": (1.66241, 1.66241, 1.66241, 0.940, 0.9),
    "W of 3 units": (1.30563, 1.38925, 1.05850, 1.0032, 0.99555),
    "W of 6 units": (1.60083, 2.45566, 1.55229, 1.180, 1.12124),
    "W of 10 units": (1.48544, 2.49701, 1.37650, 1.112, 1.08346),
}
CLOSED = ("[[.9, 1], [0, .9]]", "(1, 2, 2) (.3, .1, -.2)^T", "ring (4, .1, .5)")
NAMES = ("sigma_max", "perron", "diagonal", "lmi", "floor")
CLOSED_FORM, PRINTED, SEARCHED = 1e-6, 1e-5, 0.01

RATE = 0.95
P, T = np.array([[1.0, 0.83], [0.83, 1.0]]), np.ones(2)
MINORS = (0.9025, 0.253392894375, 0.006468894375, 8.34544400625e-5)
CONSTANT = 3.2809611217375


def expectations() -> Sequence[Expectation]:
    """Rates of the table, then the proof for [[.6, .9], [-.9, -.9]]."""
    return (*_rates(), *_proof())


def _rates() -> list[Expectation]:
    return [
        Expectation(
            name=f"certificate {name}, {weights}: rate",
            compute=partial(_rate, weights, name),
            expected=value,
            relative=_tolerance(weights, name),
        )
        for weights, values in RATES.items()
        for name, value in zip(NAMES, values, strict=True)
    ]


def _tolerance(weights: str, name: str) -> float:
    """A search may end above what was found elsewhere, and below it too: it is a proof as well."""
    if weights in CLOSED:
        return CLOSED_FORM
    return {"lmi": SEARCHED, "diagonal": 1e-4}.get(name, PRINTED)


def _proof() -> list[Expectation]:
    where = "[[.6, .9], [-.9, -.9]], r = .95"
    minors = [
        Expectation(
            name=f"inequality of {where}: leading minor {order}",
            compute=partial(_minor, order),
            expected=value,
            relative=1e-10,
        )
        for order, value in enumerate(MINORS, start=1)
    ]
    return [
        *minors,
        Expectation(
            name=f"inequality of {where}: constant, root of the condition of P",
            compute=lambda: math.sqrt(float(np.linalg.cond(P))),
            expected=CONSTANT,
            relative=1e-12,
        ),
        Expectation(
            name=f"inequality of {where}: 1 if the check accepts it",
            compute=partial(_accepted, RATE),
            expected=1.0,
        ),
        Expectation(
            name=f"inequality of {where.replace('.95', '.93')}: 0 if the check refuses it",
            compute=partial(_accepted, 0.93),
            expected=0.0,
        ),
    ]


@lru_cache(maxsize=len(WEIGHTS))
def _found(weights: str) -> Certificates:
    W = WEIGHTS[weights]
    return certificates(VanillaCell(W_hh=W, W_xh=np.zeros((len(W), 1))))


def _rate(weights: str, name: str) -> float:
    found = _found(weights)
    entry = found.floor if name == "floor" else found[name]
    return math.nan if entry is None or entry.rate is None else entry.rate


def _family() -> JacobianFamily:
    W: Array = np.array(ROTATING)
    return JacobianFamily(center=0.5 * W, spread=0.5 * W)


def _minor(order: int) -> float:
    matrix = lmi_matrix(_family(), P, T, RATE)
    return float(np.linalg.det(matrix[:order, :order]))


def _accepted(rate: float) -> float:
    return float(verify_lmi(_family(), P, T, rate))


CERTIFICATES = Group(title="certificates for every input", expectations=expectations)
