"""A model file to a network, with every assumption said."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gradlab.cells.activations import ACTIVATIONS, activation
from gradlab.cells.stack import Network
from gradlab.cells.vanilla import DTYPES
from gradlab.checkpoints.archive import MAX_BYTES, Archive, naming, require_limit, spoken
from gradlab.checkpoints.conventions import find_by_names
from gradlab.checkpoints.findings import Findings, Unsaid
from gradlab.checkpoints.mapping import find_mapped, read_mapping
from gradlab.checkpoints.proposals import proposals, stored_shapes
from gradlab.checkpoints.recognition import read_archive
from gradlab.errors import AmbiguousModelError, ModelFileError, UnknownNameError, unknown_name

READ = "RNN, LSTM and GRU layers"
IDLE = {
    "nonlinearity": "no vanilla layer of an unknown one",
    "recurrent_activation": "no gate of an unknown activation",
    "keras_version": "no Keras file of an unknown version",
}
SHOWN = 8  # names in a message, entries in a list of what was skipped


def load(
    path: str | os.PathLike[str],
    *,
    nonlinearity: str | None = None,
    recurrent_activation: str | None = None,
    keras_version: int | None = None,
    batch_first: bool = False,
    dtype: str = "float64",
    map: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    max_bytes: int = MAX_BYTES,
) -> Network:
    """Network of a model file of any format that gradlab reads.

    Nothing from the file is ever executed, and no framework is imported. Recurrent layers are found
    by the end of their keys, ``weight_hh_l0`` and the like under any prefix, or gradlab's own
    ``W_hh``, ``W_xh``, ``b_h`` and ``W_h``, ``W_x``, ``b_x``, ``b_h``; Keras, ONNX and Flax files
    say themselves what their layers are.

    Parameters
    ----------
    path
        The file; its content decides on the format, not its suffix.
    nonlinearity
        Activation of the vanilla layers of a file that does not store it, as no state dict does;
        tanh, and an entry in ``assumptions``, if None. Gated layers have PyTorch's, which is said
        there too.
    recurrent_activation
        Activation of the gates, where a file of Keras weights does not say it; by the version, and
        an entry in ``assumptions``, if None. ``hard_sigmoid`` has the slope of that version.
    keras_version
        Major version of the Keras that wrote a file of weights, where the file does not say it.
    batch_first
        Whether the network was trained on (batch, time, features). Seldom stored either; it
        changes how sequences are read, not the weights.
    dtype
        Type the states are computed in, float64 or float32.
    map
        What the arrays of a file with names of its own are: a TOML file, or such a document, with
        a table ``[[recurrence]]`` for each layer (see docs/formats.md); `propose_mapping` writes
        one to edit. With it, nothing else of the file is read.
    max_bytes
        Largest size that one tensor, or one member of an archive, may declare; what declares more
        is refused before memory is taken for it.

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
    AmbiguousModelError
        If no name tells a recurrent layer, and shapes could: the way to say which is named.
    UnknownNameError
        If there is no such activation or type, or the mapping names what is not there.
    SettingError
        If the limit is not a positive number of bytes, or the mapping is not what it should be.
    """
    unsaid = Unsaid(
        nonlinearity=nonlinearity,
        recurrent_activation=recurrent_activation,
        keras_version=keras_version,
        batch_first=batch_first,
        dtype=dtype,
    )
    _require_known(unsaid)
    require_limit(max_bytes)
    file = Path(path)
    mapping = None if map is None else read_mapping(map)
    archive = read_archive(file, max_bytes)
    if mapping is not None:
        archive = replace(archive, find=partial(find_mapped, mapping, archive.tensors))
    return network_of(archive, str(file), unsaid)


def network_of(archive: Archive, source: str, unsaid: Unsaid) -> Network:
    """Network of what a file, or a live object, holds.

    Parameters
    ----------
    archive
        Tensors by name, and how to find layers among them where names do not tell.
    source
        What they came from, for people.
    unsaid
        What the caller says beyond it.

    Raises
    ------
    ModelFileError
        If there is no recurrent layer; other errors as `load` has them.
    """
    with naming(Path(source)):
        findings = (archive.find or partial(find_by_names, archive.tensors))(unsaid)
    if not findings.recurrences:
        raise _absence(archive, findings, source)
    said = (*findings.assumptions, *_idle(findings, unsaid), *_left_out(archive, findings))
    return Network(findings.recurrences, said, source=source)


def _require_known(unsaid: Unsaid) -> None:
    """Refuse names that no activation and no type has, before the file is opened."""
    for option in ("nonlinearity", "recurrent_activation"):
        name = getattr(unsaid, option)
        if name is not None:
            _require_activation(option, name)
    if unsaid.dtype not in DTYPES:
        raise unknown_name("dtype", unsaid.dtype, DTYPES)


def _require_activation(option: str, name: str) -> None:
    try:
        activation(name)
    except UnknownNameError as error:
        raise unknown_name(option, name, ACTIVATIONS) from error


def _idle(findings: Findings, unsaid: Unsaid) -> list[str]:
    """A sentence for each option that had nothing to act on."""
    return [
        f"the option {name} = {getattr(unsaid, name)} has {IDLE[name]} to act on"
        for name in unsaid.given()
        if name not in findings.heeded
    ]


def _left_out(archive: Archive, findings: Findings) -> list[str]:
    layers = [f"{reason}: skipped, this version reads {READ}" for reason in findings.skipped]
    entries = list(archive.skipped[:SHOWN])
    if len(archive.skipped) > SHOWN:
        entries.append(f"{len(archive.skipped) - SHOWN} more entries skipped that are not tensors")
    return [*layers, *entries]


def _absence(archive: Archive, findings: Findings, source: str) -> ModelFileError:
    if findings.skipped:
        return ModelFileError(
            f"{source} holds no recurrent layer that this version reads ({READ}): "
            f"{'; '.join(findings.skipped[:SHOWN])}{_more(findings.skipped, '; ')}"
        )
    tensors = list(archive.tensors)
    found = f"tensors {_listed(tensors)}" if tensors else "no tensors"
    refused = f" ({_listed(archive.skipped)})" if archive.skipped else ""
    told = (
        f"{source} is a {archive.container} with {found}{refused}: expected keys that end in "
        "weight_hh_l0, weight_hh, W_hh or W_h, with their input weights"
    )
    candidates = proposals(stored_shapes(archive.tensors))
    if not candidates:
        return ModelFileError(told)
    shaped = _listed([f"{entry.recurrent} beside {entry.inputs}" for entry in candidates])
    return AmbiguousModelError(
        f"{told}; by their shapes {shaped} could be layers: say what they are with a mapping "
        "(option map; `gradlab inspect FILE --propose-map` prints one to edit)"
    )


def _listed(names: Sequence[str], joint: str = ", ") -> str:
    return joint.join(spoken(name) for name in names[:SHOWN]) + _more(names, joint)


def _more(names: Sequence[str], joint: str) -> str:
    return f"{joint}and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
