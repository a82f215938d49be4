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
from gradlab.analysis import products

# Sums may be taken in any order; infinities, and what is not a number, keep their meaning.
REORDERED = {"reassoc", "contract", "nsz"}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Function as machine code, made at its first call and kept for later processes.

    Kept in NUMBA_CACHE_DIR where that is set, else in a folder of the user's own, never beside the
    sources or in a folder that others may write: what is kept there will be run.
    """
    return _made(function, REORDERED)


def compiled_in_order(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same with operations in the order they are written in."""
    return _made(function, set())


def _made(function: Callable[..., Any], reordered: set[str]) -> Callable[..., Any]:
    plain = inspect.unwrap(function)  # not what a type checker made of it
    with _folder() as kept:
        code = numba.njit(cache=kept, error_model="numpy", fastmath=reordered)(plain)
    return cast(Callable[..., Any], code)


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
    constants = (module.__file__ or "" for module in (lanczos, linalg, products))
    for path in (*sorted(Path(__file__).parent.glob("*.py")), *map(Path, constants)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
