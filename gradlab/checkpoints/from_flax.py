"""Live parameters of Flax or Haiku to a network; the framework is the caller's own import."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gradlab.arrays import Array
from gradlab.cells.stack import Network
from gradlab.checkpoints.archive import archive
from gradlab.checkpoints.findings import Unsaid
from gradlab.checkpoints.loading import network_of
from gradlab.errors import ModelFileError

CONTAINER = "tree of parameters"
SOURCE = "params"


def from_flax(
    params: Any,
    *,
    nonlinearity: str | None = None,
    batch_first: bool = False,
    dtype: str = "float64",
) -> Network:
    """Network of the parameters of a Flax module (linen or nnx), or of a Haiku function.

    Parameters
    ----------
    params
        What ``module.init`` returns, with or without its ``params`` level; an ``nnx.State``; or
        Haiku's mapping of modules to parameters.
    nonlinearity
        Activation of a SimpleCell, which its parameters do not tell; tanh if None, and said so.
    batch_first
        As in `load`.
    dtype
        Type the states are computed in, float64 or float32.

    Returns
    -------
    network
        The same cells as `load` gives for a file of these parameters.

    Raises
    ------
    ModelFileError
        If they are no mapping, or hold no recurrent cell.
    ShapeError
        If the weights of a cell do not fit each other.
    NonFiniteError
        If a weight is NaN or infinite.
    """
    tree = params.to_pure_dict() if hasattr(params, "to_pure_dict") else params
    if not isinstance(tree, Mapping):
        raise ModelFileError(
            f"{type(params).__name__} given: expected a mapping of parameters, as module.init gives"
        )
    readers = dict(_leaves(tree))
    stored = archive(Path(SOURCE), CONTAINER, readers)
    unsaid = Unsaid(nonlinearity=nonlinearity, batch_first=batch_first, dtype=dtype)
    return network_of(stored, SOURCE, unsaid)


def _leaves(
    tree: Mapping[Any, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[str, Callable[[], Array]]]:
    for key, branch in tree.items():
        here = (*path, str(key))
        if isinstance(branch, Mapping):
            yield from _leaves(branch, here)
        else:
            yield "/".join(here), partial(_array, branch)


def _array(leaf: Any) -> Array:
    """Array of a leaf; bfloat16, which NumPy does not know, as float32."""
    array = np.asarray(leaf)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array
