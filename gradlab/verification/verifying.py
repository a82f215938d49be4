"""All groups of checks, in order."""

from __future__ import annotations

from collections.abc import Callable

from gradlab.records.verification import Check, Verification
from gradlab.verification.bounds import BOUNDS
from gradlab.verification.certificates import CERTIFICATES
from gradlab.verification.finite_size import FINITE_SIZE
from gradlab.verification.gated import GATED
from gradlab.verification.gradients import GRADIENTS
from gradlab.verification.linear import LINEAR
from gradlab.verification.lyapunov import LYAPUNOV
from gradlab.verification.mean_field import MEAN_FIELD
from gradlab.verification.precision import PRECISION
from gradlab.verification.published import PUBLISHED

GROUPS = (LINEAR, BOUNDS, CERTIFICATES, GATED, GRADIENTS, MEAN_FIELD, LYAPUNOV, PRECISION)
SIMULATIONS = (FINITE_SIZE, PUBLISHED)


def verify(
    *, full: bool = False, on_done: Callable[[str, int], None] | None = None
) -> Verification:
    """Compute the closed forms and published values on this machine.

    Parameters
    ----------
    full
        Simulate finite networks too, and a published spectrum; minutes in place of seconds.
    on_done
        Called after each group with its title and the number of its checks.

    Returns
    -------
    verification
        Every check with what was computed and what was expected. A computation that fails, for
        whatever reason, is a check that did not pass.
    """
    checks: list[Check] = []
    for group in (*GROUPS, *(SIMULATIONS if full else ())):
        done = group.checks()
        checks.extend(done)
        if on_done is not None:
            on_done(group.title, len(done))
    return Verification(checks=tuple(checks))
