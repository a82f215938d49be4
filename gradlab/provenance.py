"""Facts about the machine, the libraries and the data of a run."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from gradlab.arrays import Array
from gradlab.records.provenance import Provenance

LIBRARIES = {"gradlab": "gradlab-rnn", "numpy": "numpy", "scipy": "scipy"}
ABSENT = "not installed"
OPTIONAL = ("numba",)  # told where it is installed: it may compute the last digits


def provenance(
    *,
    weights: Mapping[str, Array],
    inputs: Mapping[str, Array],
    settings: Mapping[str, Any],
    seed: int | None,
    dtype: str,
    source: str | None,
    started: datetime,
) -> Provenance:
    """Provenance of a result whose work began at the given time and ends now.

    Returns
    -------
    provenance
        Hashes cover names, shapes, types and bytes of the arrays, so that the same weights in
        another container have the same hash.
    """
    finished = datetime.now(UTC)
    return Provenance(
        **machine_facts(),
        seed=seed,
        dtype=dtype,
        settings=settings,
        source=source,
        sha256_weights=sha256(weights),
        sha256_inputs=sha256(inputs),
        started_utc=started.isoformat(timespec="seconds"),
        wall_seconds=(finished - started).total_seconds(),
    )


def machine_facts() -> dict[str, Any]:
    """Versions, BLAS, number of processors and platform."""
    versions = {name: _version(package) for name, package in LIBRARIES.items()}
    versions |= {name: found for name in OPTIONAL if (found := _version(name)) != ABSENT}
    return {
        "versions": versions | {"python": platform.python_version()},
        "blas": _blas(),
        "cpu_count": os.cpu_count() or 1,
        "platform": platform.platform(),
    }


def sha256(arrays: Mapping[str, Array]) -> str:
    """SHA-256 over named arrays, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ABSENT


def _blas() -> str:
    from threadpoolctl import threadpool_info

    entries = [entry for entry in threadpool_info() if entry.get("user_api") == "blas"]
    names = {f"{entry['internal_api']} {entry['version']}" for entry in entries}
    return ", ".join(sorted(names)) or "unknown"
