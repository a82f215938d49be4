"""Values as strict JSON: no NaN or Infinity tokens, nothing lost in silence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def strict_json(value: Any) -> Any:
    """JSON-ready copy of a value.

    Parameters
    ----------
    value
        Mappings, sequences, NumPy arrays and scalars, strings, None.

    Returns
    -------
    document
        NaN (undefined) becomes None, infinities the strings ``"inf"`` and ``"-inf"``; numbers are
        kept to the last bit.
    """
    if isinstance(value, Mapping):
        return {str(key): strict_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | np.ndarray):
        return [strict_json(entry) for entry in value]
    if isinstance(value, np.generic):
        return strict_json(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
