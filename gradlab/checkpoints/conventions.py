"""Recurrent layers by the names of their tensors, whichever framework's names those are."""

from __future__ import annotations

from gradlab.checkpoints.archive import Tensors
from gradlab.checkpoints.findings import Findings, Unsaid
from gradlab.checkpoints.flax_layers import find_flax
from gradlab.checkpoints.haiku_layers import find_haiku
from gradlab.checkpoints.recurrences import batch_axis, find_recurrences

CONVENTIONS = (find_recurrences, find_flax, find_haiku)


def find_by_names(tensors: Tensors, unsaid: Unsaid) -> Findings:
    """Every recurrence whose tensors are named as PyTorch, gradlab, Flax or Haiku name them.

    Parameters
    ----------
    tensors
        Tensors by name; only those of recurrent layers are read.
    unsaid
        What the file leaves out.

    Returns
    -------
    findings
        Of all conventions together; most files follow one.

    Raises
    ------
    GradlabError
        If the tensors of a layer do not fit each other or are not finite.
    """
    found = [find(tensors, unsaid) for find in CONVENTIONS]
    recurrences = [entry for findings in found for entry in findings.recurrences]
    assumed = [sentence for findings in found for sentence in findings.assumptions]
    return Findings(
        recurrences=recurrences,
        assumptions=(*assumed, *(batch_axis(unsaid) if recurrences else ())),
        skipped=[reason for findings in found for reason in findings.skipped],
        heeded=frozenset[str]().union(*(findings.heeded for findings in found)),
    )
