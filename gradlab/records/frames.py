"""The one place where records become tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def frame(**columns: Any) -> pd.DataFrame:
    """Table with the given columns, in the given order; scalars are repeated.

    Returns
    -------
    table
        A pandas DataFrame with a plain integer index.
    """
    import pandas as pd

    return pd.DataFrame(columns)


def stack_frames(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Tables with equal columns below each other, in the given order."""
    import pandas as pd

    return pd.concat(frames, ignore_index=True)
