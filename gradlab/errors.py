"""Every exception of gradlab: one tree, messages that say found, expected and what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class GradlabError(ValueError):
    """Base of every error that gradlab raises on bad input."""


class ShapeError(GradlabError):
    """Arrays whose shapes do not fit each other."""


class NonFiniteError(GradlabError):
    """NaN or infinity in an array that must be finite."""


class UnknownNameError(GradlabError, KeyError):
    """A name (activation, scenario, recurrence, figure) that does not exist."""

    __str__ = Exception.__str__  # KeyError would quote the sentence


class SettingError(GradlabError):
    """A setting outside the values it may take."""


class UnreachableTargetError(GradlabError):
    """A matrix that no rescaling can bring to the wished norm or radius."""


class DivergenceError(GradlabError):
    """States that left the range of their floating-point type."""


class ModelFileError(GradlabError):
    """A file that holds no network gradlab can read."""


class AmbiguousModelError(ModelFileError):
    """A file that can be read in more than one way."""


class InputFileError(GradlabError):
    """A file of sequences that cannot be read as such."""


class OutputError(GradlabError):
    """A place that cannot be, or may not be, written to."""


class RunFolderError(GradlabError):
    """A folder that is not a complete run."""


class MissingExtraError(GradlabError):
    """An optional dependency that is not installed."""


class WorkerError(GradlabError):
    """A worker process that died before its work was done."""


def unknown_name(kind: str, got: str, known: Iterable[str]) -> UnknownNameError:
    """Error for a name that does not exist, with the nearest one that does.

    Parameters
    ----------
    kind
        What the name should have named, for example ``"activation"``.
    got
        The name as given.
    known
        The names that exist.

    Returns
    -------
    error
        To be raised by the caller.
    """
    names = list(known)
    nearest = difflib.get_close_matches(got, names, n=1, cutoff=0.5)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return UnknownNameError(f"unknown {kind} {got!r}: expected one of {', '.join(names)}{hint}")
