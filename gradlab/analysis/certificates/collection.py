"""All certificates of one cell."""

from __future__ import annotations

import math

from gradlab.analysis.certificates.diagonal import diagonal, search_scaling
from gradlab.analysis.certificates.effort import Effort
from gradlab.analysis.certificates.family import JacobianFamily, jacobian_family
from gradlab.analysis.certificates.gated import gated_certificates
from gradlab.analysis.certificates.lmi import lmi
from gradlab.analysis.certificates.necessary import certificate_floor
from gradlab.analysis.certificates.norms import norm_1, norm_inf, sigma_max
from gradlab.analysis.certificates.ordering import groups
from gradlab.analysis.certificates.perron import perron
from gradlab.cells.base import Cell
from gradlab.errors import SettingError
from gradlab.linalg import single_threaded_blas
from gradlab.records.certificates import SKIPPED, Certificate, Certificates

# Part of the time for the scaling; the inequality starts from it and takes the rest.
SCALING_SHARE = 0.25
NOT_SEARCHED = Certificate(rate=None, constant=None, status=SKIPPED)


def certificates(
    cell: Cell,
    *,
    search: bool = True,
    budget: float | int | None = None,
    input_bound: float | int = 1.0,
) -> Certificates:
    r"""What is proven of :math:`\lVert \partial h_t/\partial h_k \rVert` for every input.

    Parameters
    ----------
    cell
        Any cell.
    search
        Whether to search for ``diagonal`` and ``lmi``; the others cost next to nothing.
    budget
        Seconds after which the search ends with the best it has proven. None limits the steps
        instead, by the size of the matrix, and gives the same certificates every time.
    input_bound
        Largest modulus of an input's entry, for gated cells: without a limit no LSTM vanishes.

    Returns
    -------
    certificates
        By name, loosest first: ``sigma_max``, ``norm_1``, ``norm_inf``, ``perron``, ``diagonal``
        and ``lmi`` for vanilla and leaky cells, ``gamma_lstm`` or ``gamma_gru`` for gated ones,
        whose ``holds_for`` states the limits. Each says that
        :math:`\lVert \partial h_t/\partial h_k \rVert \le K r^{t-k}`; one that was not found has
        rate None and a status. Empty for cells that none of them covers.

    Raises
    ------
    SettingError
        If the budget or the input's limit is negative or not a number.

    Notes
    -----
    A rate is rounded up by the margin, 1e-10, with which its certificate passed a check of its own
    in floating point; one that fails it is not reported as found. Proofs: docs/theory.md,
    "Certificates".
    """
    if budget is not None and not 0.0 <= budget < math.inf:
        raise SettingError(f"budget {budget}: expected seconds, 0 or more")
    family = jacobian_family(cell)
    if family is None:
        return Certificates(entries=gated_certificates(cell, float(input_bound)))
    with single_threaded_blas():
        plain = {
            "sigma_max": sigma_max(family),
            "norm_1": norm_1(family),
            "norm_inf": norm_inf(family),
            "perron": perron(family),
        }
        searched = _searched(family, _effort(budget) if search else None)
        return Certificates(entries=plain | searched, floor=certificate_floor(family))


def _effort(budget: float | int | None) -> Effort:
    """Effort whose clock does not run while libraries are loaded."""
    import scipy.optimize
    import scipy.sparse.csgraph  # noqa: F401

    return Effort.of_seconds(None if budget is None else float(budget))


def _searched(family: JacobianFamily, effort: Effort | None) -> dict[str, Certificate]:
    """The certificates that have to be searched for; skipped where no step would fit."""
    largest = max(len(units) for units in groups(family.majorant).members)
    if effort is None or effort.steps(largest) == 0:
        return {"diagonal": NOT_SEARCHED, "lmi": NOT_SEARCHED}
    scaling = search_scaling(family, effort.share(SCALING_SHARE))
    return {"diagonal": diagonal(family, scaling), "lmi": lmi(family, scaling, effort)}
