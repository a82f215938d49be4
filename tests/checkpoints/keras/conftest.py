"""Keras files laid by hand: HDF5 in both layouts, and the zip around it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradlab.arrays import Array

GATES = {"SimpleRNN": 1, "GRU": 3, "LSTM": 4}


@dataclass(frozen=True)
class KerasWriter:
    """Writes Keras files into a folder, with weights that depend on nothing but their shapes."""

    folder: Path

    def weights(
        self, kind: str, D: int, N: int, *, bias: tuple[int, ...] | None = (), seed: int = 0
    ) -> list[Array]:
        """Kernel, recurrent kernel and bias of a layer; no bias if None, the usual one if ()."""
        rng, columns = np.random.default_rng(seed), GATES[kind] * N
        shapes: list[tuple[int, ...]] = [(D, columns), (N, columns)]
        shapes += [] if bias is None else [bias or (columns,)]
        return [rng.standard_normal(shape) for shape in shapes]

    def listed(
        self,
        layers: Mapping[str, Mapping[str, Array]],
        *,
        config: object = None,
        version: str | None = None,
        name: str = "model.h5",
        split: bool = False,
    ) -> Path:
        """The layout of Keras 2: by the layer's name, weights by their names in the file."""
        h5py = pytest.importorskip("h5py")
        path = self.folder / name
        with h5py.File(path, "w") as file:
            root = file if config is None else file.create_group("model_weights")
            if config is not None:
                file.attrs["model_config"] = json.dumps(config)
            if version is not None:
                file.attrs["keras_version"] = version
            self.names(root, "layer_names", list(layers), split)
            for layer, weights in layers.items():
                group = root.create_group(layer)
                self.names(group, "weight_names", list(weights), split)
                for key, array in weights.items():
                    group[key] = array
        return path

    def names(self, group: Any, attribute: str, names: Sequence[str], split: bool) -> None:
        """A list of names in one attribute, or in several, as Keras splits long ones."""
        encoded = [name.encode() for name in names]
        parts = {f"{attribute}{index}": [name] for index, name in enumerate(encoded)}
        for key, held in (parts if split and encoded else {attribute: encoded}).items():
            group.attrs[key] = np.array(held, dtype=bytes) if held else np.array([])

    def numbered(
        self,
        cells: Mapping[str, Sequence[Array]],
        names: Mapping[str, str] | None = None,
        *,
        file: Any = None,
        name: str = "model.weights.h5",
    ) -> Path:
        """The layout of Keras 3: variables by the path of their cell, names by path of group."""
        h5py = pytest.importorskip("h5py")
        path = self.folder / name
        with h5py.File(path if file is None else file, "w") as held:
            for cell, variables in cells.items():
                for index, variable in enumerate(variables):
                    held[f"{cell}/vars/{index}"] = variable
            for owner, spelled in (names or {}).items():
                held.require_group(f"{owner}/vars").attrs["name"] = spelled
        return path

    def zipped(
        self,
        config: object,
        cells: Mapping[str, Sequence[Array]],
        names: Mapping[str, str] | None = None,
        *,
        version: str = "3.15.1",
        name: str = "model.keras",
        weights: Path | None = None,
    ) -> Path:
        """A file of Keras 3."""
        path = self.folder / name
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("metadata.json", json.dumps({"keras_version": version}))
            archive.writestr("config.json", json.dumps(config))
            archive.write(
                weights or self.numbered(cells, names, name="inner.h5"), "model.weights.h5"
            )
        return path

    def sequential(self, *layers: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Configuration of a Sequential model; sequences are returned unless told otherwise."""
        entries = [
            {"class_name": kind, "config": {"return_sequences": True, **config}}
            for kind, config in layers
        ]
        return {"class_name": "Sequential", "config": {"name": "model", "layers": entries}}


@pytest.fixture
def keras(tmp_path: Path) -> KerasWriter:
    """Writer of Keras files into a temporary folder."""
    return KerasWriter(tmp_path)
