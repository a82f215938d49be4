"""Files that are not read: each is told by what it is, with the way to something that is."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.checkpoints.recognition import read_archive

if TYPE_CHECKING:
    from tests.checkpoints.conftest import ModelWriter

HALF = 0.5 * np.eye(2)


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("w.npy", npy(HALF), ("shape (2, 2)", "numpy.savez", "VanillaCell")),
        ("w.npy", npy(np.ones((8, 2))), ("shape (8, 2)", "numpy.savez")),
        ("w.npy", npy(np.array([{}], dtype=object)), ("Python objects", "never unpickled")),
        ("w.npy", npy(HALF) + npy(HALF), ("several NumPy arrays", "Equinox", "numpy.savez")),
        ("m.eqx", npy(HALF) + npy(HALF), ("Equinox", "numpy.savez")),
        ("m.eqx", b'{"width": 3}\n' + npy(HALF), ("Equinox", "numpy.savez")),
        ("m.mlmodel", b"\x08\x04\x12\x00", ("Core ML", "coremltools")),
        ("m.pb", b"\x0a\x05hello", ("TensorFlow graph", "tf2onnx")),
        ("m.tflite", b"\x1c\0\0\0TFL3", ("TensorFlow Lite", "convert")),
        ("m.ckpt.index", b"\0\0\x01", ("TensorFlow 1", "tf2onnx")),
        ("m.pt.gz", b"\x1f\x8b\x08\0", ("gzip", "unpack")),
        ("m.mat", b"MATLAB 5.0 MAT-file, Platform", ("MATLAB", "numpy.savez")),
        ("m.gguf", b"GGUF\x03\0\0\0", ("GGUF", "float weights", ".safetensors")),
        ("m.txt", b"#LookupParameter# /_0 {4,9} 36 ZERO_GRAD\n", ("DyNet", "numpy.savez")),
        ("m.bson", b"\x30\0\0\0\x03model\0", ("Julia BSON", "numpy.savez")),
        ("m.jld2", b"HDF5-based Julia Data Format", ("JLD2", "numpy.savez")),
        ("m.rds", b"\x1f\x8b\x08\0", ("R object", "R package safetensors")),
        ("eng.traineddata", bytes([24, 0, 0, 0]), ("Tesseract", "numpy.savez")),
        ("m.nemo", b"./model_config.yaml", ("tar archive", "unpack")),
        ("config.json", b'{"hidden_size": 3}', ("JSON", "file of the weights")),
    ],
)
def test_known_format_is_refused_with_the_reason_and_the_way(
    write: ModelWriter, name: str, content: bytes, parts: tuple[str, ...]
) -> None:
    path = write.bytes(content, name)
    with pytest.raises(gl.ModelFileError) as refusal:
        gl.load(path)
    for part in (str(path), *parts):
        assert part in str(refusal.value)
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize(
    ("inside", "parts"),
    [
        ("saved_model.pb", ("TensorFlow SavedModel", ".keras", "tf2onnx")),
        ("Manifest.json", ("Core ML package", "coremltools")),
        ("_METADATA", ("Orbax", "safetensors")),
        ("model.safetensors", ("is a folder", "such as model.safetensors")),
        ("pytorch_model.bin.index.json", ("is a folder", "pytorch_model.bin.index.json")),
        ("notes.txt", ("is a folder", "expected a file")),
    ],
)
def test_folder_is_told_by_what_lies_in_it(
    tmp_path: Path, inside: str, parts: tuple[str, ...]
) -> None:
    (tmp_path / inside).touch()
    with pytest.raises(gl.ModelFileError) as refusal:
        gl.load(tmp_path)
    for part in (str(tmp_path), *parts):
        assert part in str(refusal.value)


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        (("mlstm.0.wh", "mlstm.0.wx", "mlstm.0.wmh", "mlstm.0.wmx"), "mlstm.0"),
        (("rnn.wmx.weight", "rnn.wmh.weight", "rnn.wx.weight"), "rnn"),
        (("rnn.weight_mh_l0", "rnn.weight_mi_l0", "rnn.weight_hh_l0", "rnn.weight_ih_l0"), "rnn"),
        (("rnn.cells.0.w_mih", "rnn.cells.0.w_mhh", "rnn.cells.0.w_hh"), "rnn.cells.0"),
    ],
)
def test_multiplicative_lstm_is_refused_by_name(
    write: ModelWriter, keys: tuple[str, ...], name: str
) -> None:
    """Its weights have the shapes of an LSTM's, and read as one they would give wrong numbers."""
    tensors = dict.fromkeys(keys, np.ones((8, 2)))
    for path in (write.npz(tensors), write.torch(dict(tensors)), write.safetensors(tensors)):
        with pytest.raises(gl.ModelFileError, match=rf"{name} is a multiplicative LSTM"):
            gl.load(path)
    beside = gl.load(write.npz(tensors | write.layer(HALF, "dec.")))
    assert list(beside) == ["dec.l0"]
    assert any(f"{name} is a multiplicative LSTM" in said for said in beside.assumptions)


def test_exported_program_gives_its_weights(models: Path) -> None:
    """The framework's own outputs in float64, from the weights of a .pt2 archive."""
    network = gl.load(models / "lstm_export.pt2")
    with np.load(models / "lstm_export.oracle.npz") as oracle:
        run = gl.rollout(network["net.l0"], oracle["x"][:, None])
        output = network["net.l0"].output(run.states[1:, 0])
        np.testing.assert_allclose(output, oracle["y"], rtol=0, atol=1e-12)
    stored = read_archive(models / "lstm_export.pt2").tensors
    assert list(stored)[-2:] == ["out.weight", "out.bias"]
    assert stored["out.weight"].shape == (2, 4)


def exported(write: ModelWriter, **changed: Any) -> Path:
    """Archive of one exported weight of shape (2, 2)."""
    meta = {
        "dtype": 8,
        "sizes": [{"as_int": 2}, {"as_int": 2}],
        "strides": [{"as_int": 2}, {"as_int": 1}],
        "storage_offset": {"as_int": 0},
    }
    meta |= {key: value for key, value in changed.items() if key in meta}
    entry = {"path_name": "weight_0", "use_pickle": False, "tensor_meta": meta}
    entry |= {key: value for key, value in changed.items() if key not in meta}
    config = json.dumps({"config": {"w": entry}}).encode()
    folder = "m/data/weights/"
    members = {
        f"{folder}model_weights_config.json": config,
        f"{folder}weight_0": HALF.tobytes(),
    }
    return write.zip(members, "m.pt2")


@pytest.mark.parametrize(
    "changed",
    [
        {"sizes": [{"as_int": -2}, {"as_int": 2}]},
        {"sizes": [{"as_int": 2}]},
        {"sizes": [{"as_expr": "s0"}, {"as_int": 2}]},
        {"strides": [{"as_int": 2**60}, {"as_int": 1}]},
        {"storage_offset": {"as_int": True}},
        {"storage_offset": {"as_int": 3}},
        {"path_name": "../../secret"},
        {"path_name": 3},
        {"tensor_meta": None},
    ],
)
def test_exported_weight_that_is_described_wrongly_is_refused(
    write: ModelWriter, changed: dict[str, Any]
) -> None:
    stored = read_archive(exported(write)).tensors
    np.testing.assert_array_equal(stored["w"], HALF)
    with pytest.raises(gl.ModelFileError):
        dict(read_archive(exported(write, **changed)).tensors)


def test_exported_weight_in_a_pickle_or_an_unknown_type_is_skipped(write: ModelWriter) -> None:
    for changed in ({"use_pickle": True}, {"dtype": 29}):
        found = read_archive(exported(write, **changed))
        assert list(found.tensors) == []
        assert any(phrase.startswith("w skipped") for phrase in found.skipped)


def test_exported_program_of_old_is_refused_with_the_way(tmp_path: Path) -> None:
    path = tmp_path / "old.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("serialized_state_dict.pt", b"")
        archive.writestr("version", b"1")
    with pytest.raises(gl.ModelFileError, match=r"torch\.export archive .*torch\.save\(program"):
        gl.load(path)
