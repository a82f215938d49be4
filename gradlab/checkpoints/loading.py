"""A model file to a network, with every assumption said."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from gradlab.cells.activations import ACTIVATIONS
from gradlab.cells.stack import Network
from gradlab.cells.vanilla import DTYPES
from gradlab.checkpoints.archive import Archive, naming, spoken
from gradlab.checkpoints.gated import ASSUMED
from gradlab.checkpoints.recognition import read_archive
from gradlab.checkpoints.recurrences import Findings, find_recurrences
from gradlab.errors import ModelFileError, unknown_name

DEFAULT_NONLINEARITY = "tanh"
READ = "RNN, LSTM and GRU layers"
SHOWN = 8  # names in a message, entries in a list of what was skipped


def load(
    path: str | os.PathLike[str],
    *,
    nonlinearity: str | None = None,
    batch_first: bool = False,
    dtype: str = "float64",
) -> Network:
    """Network of a PyTorch state dict, a safetensors file or a NumPy archive.

    Nothing from the file is ever executed, and no framework is imported. Recurrent layers are found
    by the end of their keys, ``weight_hh_l0`` and the like under any prefix, or gradlab's own
    ``W_hh``, ``W_xh``, ``b_h`` and ``W_h``, ``W_x``, ``b_x``, ``b_h``.

    Parameters
    ----------
    path
        The file; its content decides on the format, not its suffix.
    nonlinearity
        Activation of the vanilla layers, which no such file stores; tanh, and an entry in
        ``assumptions``, if None. Gated layers have PyTorch's, which is said there too.
    batch_first
        Whether the network was trained on (batch, time, features). Not stored either; it changes
        how sequences are read, not the weights.
    dtype
        Type the states are computed in, float64 or float32.

    Returns
    -------
    network
        Every recurrence by its prefix and layer, such as ``rnn.l0.reverse``, and what had to be
        assumed or left out, a sentence each.

    Raises
    ------
    ModelFileError
        If there is no such file, it is damaged, of another format, or without a recurrent layer.
    ShapeError
        If tensors do not fit each other.
    NonFiniteError
        If a weight is NaN or infinite.
    UnknownNameError
        If there is no such activation or type.
    """
    if nonlinearity is not None and nonlinearity not in ACTIVATIONS:
        raise unknown_name("nonlinearity", nonlinearity, ACTIVATIONS)
    if dtype not in DTYPES:
        raise unknown_name("dtype", dtype, DTYPES)
    file = Path(path)
    archive = read_archive(file)
    with naming(file):
        findings = find_recurrences(
            archive.tensors, activation=nonlinearity or DEFAULT_NONLINEARITY, dtype=dtype
        )
    if not findings.recurrences:
        raise ModelFileError(f"{file} {_absence(archive, findings)}")
    stated = _unsaid(findings, nonlinearity, batch_first)
    left_out = _left_out(archive, findings)
    return Network(
        findings.recurrences, (*stated, *findings.assumptions, *left_out), source=str(file)
    )


def _unsaid(findings: Findings, nonlinearity: str | None, batch_first: bool) -> list[str]:
    names: dict[str, list[str]] = {}
    for entry in findings.recurrences:
        names.setdefault(entry.cell.kind, []).append(entry.name)
    sentences = [
        f"{', '.join(names[kind])}: {assumed}" for kind, assumed in ASSUMED.items() if kind in names
    ]
    if "rnn" in names and nonlinearity is None:
        sentences.append(
            f"the file does not store the non-linearity of {', '.join(names['rnn'])}: "
            f"{DEFAULT_NONLINEARITY} assumed (option nonlinearity)"
        )
    if "rnn" not in names and nonlinearity is not None:
        sentences.append(f"the option nonlinearity = {nonlinearity} has no vanilla layer to act on")
    if not batch_first:
        sentences.append(
            "the file does not store the batch axis: inputs (time, batch, features) assumed "
            "(option batch_first)"
        )
    return sentences


def _left_out(archive: Archive, findings: Findings) -> list[str]:
    layers = [f"{reason}: skipped, this version reads {READ}" for reason in findings.skipped]
    entries = list(archive.skipped[:SHOWN])
    if len(archive.skipped) > SHOWN:
        entries.append(f"{len(archive.skipped) - SHOWN} more entries skipped that are not tensors")
    return [*layers, *entries]


def _absence(archive: Archive, findings: Findings) -> str:
    if findings.skipped:
        return (
            f"holds no recurrent layer that this version reads ({READ}): "
            f"{_listed(findings.skipped, '; ')}"
        )
    tensors = list(archive.tensors)
    found = f"tensors {_listed(tensors)}" if tensors else "no tensors"
    refused = f" ({_listed(archive.skipped)})" if archive.skipped else ""
    return (
        f"is a {archive.container} with {found}{refused}: expected keys that end in weight_hh_l0, "
        "weight_hh, W_hh or W_h, with their input weights"
    )


def _listed(names: Sequence[str], joint: str = ", ") -> str:
    more = f"{joint}and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return joint.join(spoken(name) for name in names[:SHOWN]) + more
