"""How functions become machine code, and where that is kept."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, cast

import numba

from gradlab import lanczos, linalg
from gradlab.analysis.products import scaled

# Sums may be taken in any order; infinities, and what is not a number, keep their meaning.
REORDERED = {"reassoc", "contract", "nsz"}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Function as machine code, made at its first call and kept for later processes.

    Kept in NUMBA_CACHE_DIR where that is set, else in a folder of the user's own, never beside the
    sources or in a folder that others may write: what is kept there will be run.
    """
    with _folder() as kept:
        made = numba.njit(cache=kept, error_model="numpy", fastmath=REORDERED)(_plain(function))
    return cast(Callable[..., Any], made)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Part of whatever compiled function calls it.

    Sums that may be reordered come out differently in another surrounding. As parts of one function
    they have only one, whether that was compiled in this process or is loaded.
    """
    return cast(Callable[..., Any], numba.njit(inline="always")(_plain(function)))


def in_order(function: Callable[..., Any]) -> Callable[..., Any]:
    """Function of its own, with its operations as they are written; for what is exact or a verdict.

    Not for sums whose last bit is seen: multiplications and additions may be fused in one copy of
    it, and not in the other.
    """
    # Said outright, as it would be the caller's else.
    made = numba.njit(error_model="numpy", fastmath=False)(_plain(function))
    return cast(Callable[..., Any], made)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """What was written, not what a type checker made of it."""
    return cast(Callable[..., Any], inspect.unwrap(function))


@contextmanager
def _folder() -> Iterator[bool]:
    """Have Numba choose our folder while a function is declared; whether there is one."""
    config: Any = numba.config  # read by Numba whenever a function is declared
    chosen = config.CACHE_DIR
    if chosen:
        yield True
        return
    folder = users_own()
    if folder is None:
        yield False
        return
    config.CACHE_DIR = str(folder)
    try:
        yield True
    finally:
        config.CACHE_DIR = chosen


def users_own() -> Path | None:
    """Folder for exactly these sources, or None where it cannot be had."""
    try:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = root / "gradlab" / _fingerprint()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home
        return None
    return folder if os.access(folder, os.W_OK) else None


@cache
def _fingerprint() -> str:
    """Hash of everything that is compiled: Numba itself looks at one file a function only."""
    digest = hashlib.sha256()
    constants = (module.__file__ or "" for module in (lanczos, linalg, scaled))
    for path in (*sorted(Path(__file__).parent.glob("*.py")), *map(Path, constants)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
