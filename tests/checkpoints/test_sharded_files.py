"""Weights in several files beside their index."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from gradlab.checkpoints.recognition import read_archive

if TYPE_CHECKING:
    from tests.checkpoints.conftest import ModelWriter

HALF = 0.5 * np.eye(2)
SHARDS: Mapping[str, Callable[[ModelWriter, Mapping[str, Array], str], Path]] = {
    "safetensors": lambda write, tensors, name: write.safetensors(tensors, name),
    "torch": lambda write, tensors, name: write.torch(dict(tensors), name=name),
    "legacy": lambda write, tensors, name: write.legacy(dict(tensors), name=name),
}


def index(write: ModelWriter, places: Mapping[str, object]) -> Path:
    text = json.dumps({"metadata": {"total_size": 1}, "weight_map": places}, indent=2)
    return write.bytes(text.encode(), "model.safetensors.index.json")


@pytest.mark.parametrize("form", SHARDS)
def test_layer_over_several_shards_is_read_whole(write: ModelWriter, form: str) -> None:
    layer = write.layer(HALF, "rnn.")
    places: dict[str, object] = {}
    for number, (name, array) in enumerate(layer.items()):
        shard = f"model-{number}.{form}"
        SHARDS[form](write, {name: array, f"other{number}": np.ones(1)}, shard)
        places[name] = shard
    path = index(write, places)
    network = gl.load(path)
    assert list(network) == ["rnn.l0"]
    assert list(read_archive(path).tensors) == list(places)
    np.testing.assert_array_equal(network["rnn.l0"].parameters["W_hh"], HALF)
    assert network.source == str(path)


def test_real_layer_in_shards_is_that_of_the_single_file(write: ModelWriter, models: Path) -> None:
    whole = gl.load(models / "lstm_1l.npz")
    with np.load(models / "lstm_1l.npz") as stored:
        tensors = {name: stored[name].astype(np.float64) for name in stored}
    names = list(tensors)
    for number, part in enumerate((names[:1], names[1:])):
        write.safetensors({name: tensors[name] for name in part}, f"{number}.safetensors")
    places = {name: f"{int(name != names[0])}.safetensors" for name in names}
    network = gl.load(index(write, places))
    for key, array in whole.only().parameters.items():
        np.testing.assert_array_equal(network.only().parameters[key], array)


def test_missing_shard_is_named(write: ModelWriter) -> None:
    path = index(write, {"weight_hh_l0": "model-00002-of-00002.safetensors"})
    with pytest.raises(gl.ModelFileError, match=r"model-00002-of-00002\.safetensors is missing"):
        gl.load(path)


@pytest.mark.parametrize(
    "place",
    [
        "../secret.safetensors",
        "/etc/passwd",
        "sub/model.safetensors",
        "..\\secret.safetensors",
        "C:\\secret.safetensors",
        "..",
        "",
        "a\nb",
        7,
    ],
)
def test_shard_outside_the_folder_is_refused_without_being_opened(
    write: ModelWriter, place: object
) -> None:
    write.safetensors(write.layer(HALF), "secret.safetensors")
    with pytest.raises(gl.ModelFileError, match="expected a file in its own folder") as refusal:
        gl.load(index(write, {"weight_hh_l0": place}))
    assert str(refusal.value).isprintable()


def test_tensor_that_its_shard_does_not_hold_is_named(write: ModelWriter) -> None:
    write.safetensors(write.layer(HALF), "a.safetensors")
    with pytest.raises(gl.ModelFileError, match=r"places rnn\.x in a\.safetensors"):
        gl.load(index(write, {"rnn.x": "a.safetensors"}))


def test_shard_that_is_damaged_or_another_index_is_named(write: ModelWriter) -> None:
    index(write, {})
    for content in (b"hello, world", b"", b'{"weight_map": {}}', b"PK\x03\x04 nothing"):
        write.bytes(content, "a.safetensors")
        with pytest.raises(gl.ModelFileError, match=r"a\.safetensors"):
            gl.load(index(write, {"weight_hh_l0": "a.safetensors"}))


@pytest.mark.parametrize("text", ['{"weight_map": []}', '{"weight_map": {"a"', '{"metadata": 3}'])
def test_index_that_is_damaged_is_refused(write: ModelWriter, text: str) -> None:
    path = write.bytes(text.encode(), "model.safetensors.index.json")
    with pytest.raises(gl.ModelFileError, match="index"):
        gl.load(path)


def test_limit_holds_for_tensors_of_shards(write: ModelWriter) -> None:
    write.safetensors(write.layer(np.eye(20)), "a.safetensors")
    path = index(write, dict.fromkeys(write.layer(np.eye(20)), "a.safetensors"))
    with pytest.raises(gl.ModelFileError, match=r"declares 3200 bytes: expected at most 3000"):
        gl.load(path, max_bytes=3000)
