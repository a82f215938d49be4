"""Which code measures the norms of long products: NumPy calls, or machine code for small states."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

from gradlab.errors import MissingExtraError, unknown_name

KERNELS = ("auto", "numpy", "numba")
# States that machine code is for, of any lag, and of up to some: beyond, products are compressed,
# and NumPy's calls cost little beside the arithmetic.
SMALL, MEDIUM, SHORT = 96, 128, 128
# States and lags from which on NumPy compresses small products too, and is the faster.
SMALLEST_COMPRESSED, LONG = 32, 1000
# Size from which all pairs at once, by halves of the sequence, are as fast by NumPy.
HALVED = 32
# What NumPy takes for the norms of a product, in seconds over n², and from what time on Numba's
# import and, once on a machine, fifteen seconds of compilation are worth it.
SECONDS_A_PRODUCT, WORTH_SECONDS = 2e-8, 10.0


def chosen_kernel(kernel: str, *, size: int, reach: int, products: int) -> str:
    """``"numpy"`` or ``"numba"`` for so many products of a size, of lags up to a reach.

    Parameters
    ----------
    kernel
        ``"numpy"``; ``"numba"``, wherever it has code for the size; or ``"auto"``: Numba where it
        is installed and NumPy would take more than about ten seconds, unless the products are so
        long that it compresses them. Nothing else matters, so that equal calls give equal bits.
    size, reach, products
        Numbers of a state, the longest lag, and how many norms are to be taken.

    Raises
    ------
    UnknownNameError
        If there is no such kernel.
    MissingExtraError
        If Numba is asked for and cannot be imported.
    """
    if kernel not in KERNELS:
        raise unknown_name("kernel", kernel, KERNELS)
    if kernel == "numba" and not importable():
        raise MissingExtraError(
            "the kernel numba needs the package numba: pip install 'gradlab-rnn[fast]'; the kernel "
            "numpy measures the same"
        )
    if kernel == "numpy" or not (size < SMALL or (size < MEDIUM and reach <= SHORT)):
        return "numpy"
    compressed = size >= SMALLEST_COMPRESSED and reach >= LONG
    if kernel == "auto" and (compressed or products * size**2 * SECONDS_A_PRODUCT < WORTH_SECONDS):
        return "numpy"
    return "numba" if importable() else "numpy"


def described_kernel(name: str) -> str:
    """A kernel with the version that its last digits may depend on."""
    return f"numba {version('numba')}" if name == "numba" else name


@cache
def importable() -> bool:
    """Whether Numba is there and fits the NumPy that is."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True
