"""Records as one .npz archive: arrays as members, the rest as a JSON tree. Never pickle."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gradlab.arrays import Array, close
from gradlab.errors import RunFolderError
from gradlab.records.certificates import Certificate, CertificateFloor, Certificates
from gradlab.records.directions import DirectionProfile
from gradlab.records.dynamics import GradientDynamics, RecurrenceDescription, RecurrenceDynamics
from gradlab.records.gates import CarryGate, GateDynamics, GateValues
from gradlab.records.gradients import GradientProfile
from gradlab.records.horizon import PrecisionHorizon
from gradlab.records.jacobians import JacobianProfile
from gradlab.records.ladder import BoundLadder
from gradlab.records.lyapunov import LyapunovSpectrum
from gradlab.records.meanfield import MeanField
from gradlab.records.outlook import Change, Outlook
from gradlab.records.provenance import Provenance
from gradlab.records.regime import Regime
from gradlab.records.saturation import GateSaturation, SaturationProfile
from gradlab.records.slope_map import SlopeMap
from gradlab.records.slopes import SlopeLaw
from gradlab.records.spectrum import MatrixSpectrum, SpectralSummary

RECORDS: dict[str, type] = {
    record.__name__: record
    for record in (
        BoundLadder,
        CarryGate,
        Change,
        DirectionProfile,
        Certificate,
        CertificateFloor,
        Certificates,
        GateDynamics,
        GateSaturation,
        GateValues,
        GradientDynamics,
        GradientProfile,
        JacobianProfile,
        LyapunovSpectrum,
        MatrixSpectrum,
        MeanField,
        Outlook,
        PrecisionHorizon,
        Provenance,
        RecurrenceDescription,
        RecurrenceDynamics,
        Regime,
        SaturationProfile,
        SlopeLaw,
        SlopeMap,
        SpectralSummary,
    )
}
TREE = "tree"


def write_archive(record: GradientDynamics, path: Path) -> None:
    """Write a record with all it holds; equal records give equal bytes."""
    arrays: dict[str, Array] = {}
    tree = json.dumps(_encode(record, "", arrays), allow_nan=False)
    with path.open("wb") as stream:
        members: dict[str, Any] = {TREE: np.array(tree), **arrays}
        np.savez_compressed(stream, **members)


def read_archive(path: Path) -> GradientDynamics:
    """Read what `write_archive` wrote.

    Raises
    ------
    RunFolderError
        If the file is missing, damaged, or of another kind.
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        record = _decode(json.loads(str(arrays[TREE])), arrays)
    except Exception as error:  # whatever a damaged zip, array or tree raises
        raise RunFolderError(
            f"{path} cannot be read as saved records ({type(error).__name__}: {error}): expected "
            "the file that gradlab wrote; analyze again"
        ) from error
    if not isinstance(record, GradientDynamics):
        raise RunFolderError(f"{path} holds a {type(record).__name__}: expected a GradientDynamics")
    return record


def _encode(value: Any, path: str, arrays: dict[str, Array]) -> Any:
    """JSON tree of a value; its arrays go into `arrays` under their path."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"record": type(value).__name__, "fields": _entries(fields, path, arrays)}
    if isinstance(value, np.ndarray):
        arrays[path] = value
        return {"array": path}
    if isinstance(value, Mapping):
        return {"mapping": _entries(value, path, arrays)}
    if isinstance(value, tuple | list):
        return {"tuple": [_encode(v, f"{path}/{i}", arrays) for i, v in enumerate(value)]}
    if isinstance(value, np.generic):
        value = value.item()
    return {"float": repr(value)} if isinstance(value, float) else value


def _entries(mapping: Mapping[str, Any], path: str, arrays: dict[str, Array]) -> dict[str, Any]:
    return {
        key: _encode(value, f"{path}/{key}" if path else key, arrays)
        for key, value in mapping.items()
    }


def _decode(tree: Any, arrays: Mapping[str, Array]) -> Any:
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return close(arrays[tree["array"]])
    if "float" in tree:
        return float(tree["float"])
    if "tuple" in tree:
        return tuple(_decode(entry, arrays) for entry in tree["tuple"])
    if "mapping" in tree:
        return {key: _decode(entry, arrays) for key, entry in tree["mapping"].items()}
    fields = {key: _decode(entry, arrays) for key, entry in tree["fields"].items()}
    return RECORDS[tree["record"]](**fields)
