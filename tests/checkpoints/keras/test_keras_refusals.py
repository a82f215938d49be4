"""Keras files that cannot be read, or must not be: one clear line, nothing outside is opened."""

from __future__ import annotations

import json
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.checkpoints.recognition import read_archive

if TYPE_CHECKING:
    from pathlib import Path

    from tests.checkpoints.keras.conftest import KerasWriter

h5py = pytest.importorskip("h5py")


def simple(keras: KerasWriter, **changed: Any) -> Path:
    """A file of Keras 2 with one vanilla layer, some arrays of which are changed."""
    weights = dict(zip(("kernel:0", "recurrent_kernel:0", "bias:0"),
                       keras.weights("SimpleRNN", 3, 2), strict=True))  # fmt: skip
    weights |= {f"{name}:0": array for name, array in changed.items()}
    return keras.listed({"rnn": {f"rnn/{name}": array for name, array in weights.items()}})


def refused(path: Path, kind: type[gl.GradlabError] = gl.ModelFileError, **options: Any) -> str:
    with pytest.raises(kind) as refusal:
        gl.load(path, **options)
    message = str(refusal.value)
    assert str(path) in message
    assert message.isprintable()
    return message


@pytest.mark.parametrize("name", ["keras_lstm.keras", "keras_lstm.h5"])
def test_missing_extra_is_one_line_with_the_command(
    models: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    message = refused(models / name, gl.MissingExtraError)
    assert "reading Keras files needs h5py: pip install 'gradlab-rnn[keras]'" in message


@pytest.mark.parametrize("by", ["version", "names"])
def test_keras_1_is_refused_with_what_to_do(keras: KerasWriter, by: str) -> None:
    gates = {f"lstm_1_{part}_{gate}": np.ones((2, 2)) for gate in "icfo" for part in "WUb"}
    path = keras.listed({"lstm_1": gates}, version="1.2.2" if by == "version" else None)
    assert "Keras 1, whose layers have an array for each gate" in refused(path)


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("ConvLSTM2D", "layer (ConvLSTM2D) cannot be read: its recurrent weights are convolutions"),
        ("CuDNNGRU", "layer (CuDNNGRU) cannot be read: its layout is not known well enough"),
        ("MultiplicativeLSTM", "(MultiplicativeLSTM) cannot be read: gradlab does not know"),
        ("Addons>LayerNormLSTMCell", "(Addons>LayerNormLSTMCell) cannot be read"),
        ("PeepholeLSTMCell", "(PeepholeLSTMCell) cannot be read: where its peephole weights lie"),
        ("MyCell", "layer (MyCell) cannot be read: gradlab does not know the class"),
    ],
)
def test_layer_of_another_class_is_refused_by_name(
    keras: KerasWriter, kind: str, shown: str
) -> None:
    cell = {"class_name": kind, "config": {"units": 2}}
    entry = (
        ("RNN", {"name": "layer", "cell": cell}) if "Cell" in kind else (kind, {"name": "layer"})
    )
    weights = dict(zip(("a/kernel:0", "a/recurrent_kernel:0"), keras.weights("LSTM", 2, 2),
                       strict=False))  # fmt: skip
    path = keras.listed({"layer": weights}, config=keras.sequential(entry), version="2.9.0")
    assert shown in refused(path)


def test_class_of_the_users_own_is_not_taken_for_keras_by_its_name(keras: KerasWriter) -> None:
    """Keras 3 stores no module for a class of the script, and registers it under its name."""
    config = keras.sequential(("LSTM", {"name": "layer"}))
    config["config"]["layers"][0] |= {"module": None, "registered_name": "LSTM"}
    path = keras.zipped(
        config, {"layers/lstm/cell": keras.weights("LSTM", 2, 2)}, {"layers/lstm": "layer"}
    )
    assert "layer (custom.LSTM) cannot be read" in refused(path)


def test_readable_layer_beside_a_refused_one_is_read_and_the_other_said(keras: KerasWriter) -> None:
    config = keras.sequential(("GRU", {"name": "a"}), ("MyGRU", {"name": "b"}))
    cells = {f"layers/{name}/cell": keras.weights("GRU", 2, 2) for name in ("gru", "my_gru")}
    network = gl.load(keras.zipped(config, cells, {"layers/gru": "a", "layers/my_gru": "b"}))
    assert list(network) == ["a"]
    assert any(said.startswith("b (MyGRU) cannot be read") for said in network.assumptions)


@pytest.mark.parametrize(
    ("cell", "count", "shown"),
    [
        ("conv_lstm_cell", 3, "its recurrent weights are convolutions"),
        ("peephole_lstm_cell", 6, "a cell named peephole_lstm_cell"),
        ("my_lstm_cell", 3, "a cell named my_lstm_cell"),
        ("lstm_cell", 6, "x (LSTM) has weights beyond its class (layers/x/cell/vars/3"),
    ],
)
def test_cell_of_a_file_of_weights_is_refused_by_its_name(
    keras: KerasWriter, cell: str, count: int, shown: str
) -> None:
    weights = [*keras.weights("LSTM", 3, 2), *[np.ones(2)] * 3][:count]
    path = keras.numbered({"layers/x/cell": weights}, {"layers/x": "x", "layers/x/cell": cell})
    assert shown in refused(path)


def test_weights_of_cudnns_gru_are_refused_by_their_bias(keras: KerasWriter) -> None:
    weights = keras.weights("GRU", 3, 2, bias=(12,))
    names = ("kernel:0", "recurrent_kernel:0", "bias:0")
    path = keras.listed({"gru": {f"gru/{n}": w for n, w in zip(names, weights, strict=True)}})
    assert "gru (CuDNNGRU) cannot be read" in refused(path)


def test_model_without_recurrent_layers_is_refused_by_those_it_has(keras: KerasWriter) -> None:
    config = keras.sequential(("Dense", {"name": "d"}), ("Conv1D", {"name": "c"}))
    weights = {"d/kernel:0": np.ones((2, 2)), "d/bias:0": np.ones(2)}
    path = keras.listed({"d": weights}, config=config)
    assert "has the layers Dense, Conv1D: expected SimpleRNN, LSTM or GRU" in refused(path)
    bare = keras.listed({"d": weights}, name="bare.h5")
    assert "has weights of no recurrent layer" in refused(bare)


def test_layer_whose_weights_are_missing_is_named(keras: KerasWriter) -> None:
    path = keras.listed({"lstm": {}}, config=keras.sequential(("LSTM", {"name": "lstm"})))
    assert "lstm (LSTM) has no weights: expected kernel and recurrent_kernel" in refused(path)


def test_hdf5_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.h5"
    with h5py.File(path, "w") as file:
        file["measurements/first"] = np.ones(3)
    assert "is HDF5 but holds no Keras model" in refused(path)


@pytest.mark.parametrize(
    "changed",
    [
        {"kernel": np.ones((3, 3))},
        {"kernel": np.ones(2)},
        {"recurrent_kernel": np.ones((2, 5))},
        {"recurrent_kernel": np.ones((0, 0))},
        {"bias": np.ones((2, 2))},
        {"bias": np.ones(4)},
    ],
)
def test_weights_that_do_not_fit_are_refused_by_name(
    keras: KerasWriter, changed: dict[str, Any]
) -> None:
    config = keras.sequential(("SimpleRNN", {"name": "rnn"}))
    weights = dict(zip(("kernel", "recurrent_kernel", "bias"), keras.weights("SimpleRNN", 3, 2),
                       strict=True))  # fmt: skip
    named = {f"rnn/{name}": array for name, array in (weights | changed).items()}
    message = refused(keras.listed({"rnn": named}, config=config), gl.ShapeError)
    assert "model_weights/rnn/rnn/recurrent_kernel has shape" in message


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weight_that_is_not_finite_is_named(keras: KerasWriter, value: float) -> None:
    message = refused(simple(keras, recurrent_kernel=np.array([[1.0, 2], [3, value]])),
                      gl.NonFiniteError)  # fmt: skip
    assert "rnn/rnn/recurrent_kernel:0 (W_hh)" in message


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (np.int8, "rnn/rnn/recurrent_kernel:0 (W_hh) is int8: expected real"),
        (np.complex128, "rnn/rnn/recurrent_kernel:0 skipped (type complex128)"),
    ],
)
def test_quantized_or_complex_weights_are_refused(
    keras: KerasWriter, kind: type[Any], shown: str
) -> None:
    path = simple(keras, recurrent_kernel=np.ones((2, 2), kind))
    assert shown in f"{refused(path)} {read_archive(path).skipped}"


def test_link_to_another_file_is_refused_and_not_followed(
    keras: KerasWriter, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["weights"] = np.ones((2, 2))
    path = simple(keras)
    with h5py.File(path, "a") as file:
        file["rnn/rnn/extra"] = h5py.ExternalLink(str(secret), "weights")
    assert "rnn/rnn/extra is a link to another file" in refused(path)


def test_values_in_another_file_are_refused_and_not_read(
    keras: KerasWriter, tmp_path: Path
) -> None:
    """A virtual dataset, and one with external storage, read as if they were in the file."""
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(32))
    source = tmp_path / "source.h5"
    with h5py.File(source, "w") as file:
        file["weights"] = np.ones((2, 2))
    virtual, external = simple(keras), keras.folder / "external.h5"
    external.write_bytes(virtual.read_bytes())
    with h5py.File(virtual, "a") as file:
        del file["rnn/rnn/recurrent_kernel:0"]
        layout = h5py.VirtualLayout(shape=(2, 2), dtype="f8")
        layout[:] = h5py.VirtualSource(str(source), "weights", shape=(2, 2))
        file.create_virtual_dataset("rnn/rnn/recurrent_kernel:0", layout)
    with h5py.File(external, "a") as file:
        del file["rnn/rnn/recurrent_kernel:0"]
        file["rnn/rnn"].create_dataset(
            "recurrent_kernel:0", (2, 2), "f8", external=[(str(secret), 0, 32)]
        )
    for path in (virtual, external):
        assert "the values of rnn/rnn/recurrent_kernel:0 lie in other files" in refused(path)


def test_link_inside_the_file_is_skipped_and_a_circle_is_walked_once(keras: KerasWriter) -> None:
    path = simple(keras)
    with h5py.File(path, "a") as file:
        file["alias"] = h5py.SoftLink("/rnn")
        file["rnn/circle"] = file["rnn"]
        file["rnn/rnn/root"] = file["/"]
        file["rnn/dangling"] = h5py.SoftLink("/nowhere")
    network = gl.load(path)
    assert list(network) == ["rnn"]
    assert "alias skipped (a link)" in network.assumptions


def test_limit_holds_for_arrays_and_members(keras: KerasWriter) -> None:
    weights = keras.weights("LSTM", 20, 20)
    config = keras.sequential(("LSTM", {"name": "lstm"}))
    cells, names = {"layers/lstm/cell": weights}, {"layers/lstm": "lstm"}
    path = keras.numbered(cells, names)
    assert list(gl.load(path, max_bytes=20 * 80 * 8)) == ["lstm"]
    assert "declares 12800 bytes: expected at most 12799" in refused(path, max_bytes=12799)
    zipped = keras.zipped(config, cells, names)
    assert "member model.weights.h5 declares" in refused(zipped, max_bytes=12800)


@pytest.mark.parametrize("chunks", [(1024, 1024), None])
def test_array_that_declares_far_more_than_the_file_holds_is_refused(
    keras: KerasWriter, chunks: tuple[int, int] | None
) -> None:
    """Nothing was ever written to it: its fill value would take 2 GB of memory."""
    path = simple(keras)
    with h5py.File(path, "a") as file:
        del file["rnn/rnn/recurrent_kernel:0"]
        file["rnn/rnn"].create_dataset("recurrent_kernel:0", (16000, 16000), "f8", chunks=chunks)
    assert "rnn/rnn/recurrent_kernel:0 declares 2048000000 bytes: expected at most 0" in refused(
        path
    )


def test_packed_array_is_read(keras: KerasWriter) -> None:
    path = simple(keras)
    with h5py.File(path, "a") as file:
        del file["rnn/rnn/recurrent_kernel:0"]
        file["rnn/rnn"].create_dataset(
            "recurrent_kernel:0", data=2 * np.eye(2), compression="gzip", shuffle=True
        )
    assert gl.spectral_norm(gl.load(path)["rnn"].parameters["W_hh"]) == pytest.approx(2.0)


def test_filter_that_is_not_installed_is_named(keras: KerasWriter) -> None:
    path = simple(keras)
    with h5py.File(path, "a") as file:
        del file["rnn/rnn/recurrent_kernel:0"]
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((2, 2))
        properties.set_filter(32999, h5py.h5z.FLAG_OPTIONAL)
        space = h5py.h5s.create_simple((2, 2))
        data = h5py.h5d.create(
            file["rnn/rnn"].id, b"recurrent_kernel:0", h5py.h5t.IEEE_F64LE, space, properties
        )
        data.write(h5py.h5s.ALL, h5py.h5s.ALL, np.eye(2))
    assert "HDF5 filter 32999, which is not installed" in refused(path)


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ("[" * 100_000, "maximum recursion depth"),
        ("{", "Expecting property name"),
        ('{"class_name": "Model", "config": {"layers": [{"class_name": "Bidirectional", "config":'
         ' {"layer": {"class_name": "GRU", "config": {"cell": []}}}}], "input_layers": 3,'
         ' "output_layers": {"config": {}}}}', "bidirectional.forward (GRU) has no weights"),
        ('{"class_name": "RNN", "config": {"name": "r", "cell": {"class_name": "StackedRNNCells",'
         ' "config": {"cells": [{"class_name": "LSTMCell"}, 3]}}}}', "lstm_cell (LSTMCell) has no"),
    ],
)  # fmt: skip
def test_broken_configuration_is_one_clear_line(keras: KerasWriter, config: str, part: str) -> None:
    path = keras.folder / "model.keras"
    inner = keras.numbered({"layers/gru/cell": keras.weights("GRU", 2, 2)}, {"layers/gru": "gru"})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", config)
        archive.writestr("metadata.json", '{"keras_version": 3}')
        archive.write(inner, "model.weights.h5")
    assert part in refused(path)


@pytest.mark.parametrize(
    "config",
    ["[]", "3", "null", "{}", '{"config": {"layers": {}}}',
     '{"class_name": "Sequential", "config": {"layers": [{"class_name": "LSTM"}]}}',
     '{"class_name": 3, "config": {"layers": [3, {"class_name": "Dense", "config": [3]}]}}'],
)  # fmt: skip
def test_configuration_that_says_nothing_leaves_a_file_of_weights(
    keras: KerasWriter, config: str
) -> None:
    path = keras.zipped(
        json.loads(config), {"layers/gru/cell": keras.weights("GRU", 2, 2)}, {"layers/gru": "gru"}
    )
    network = gl.load(path)
    assert list(network) == ["gru"]
    assert "does not store the activations of gru" in network.assumptions[0]


@pytest.mark.parametrize("name", ["keras_lstm.keras", "keras_lstm.h5", "tfkeras2_lstm.h5"])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.95])
def test_truncated_file_is_one_clear_line(
    models: Path, tmp_path: Path, name: str, share: float
) -> None:
    data = (models / name).read_bytes()
    path = tmp_path / name
    path.write_bytes(data[: int(share * len(data))])
    refused(path)


@pytest.mark.parametrize("place", ["object", "text", "kind", "count"])
def test_damaged_text_is_refused_before_the_library_reads_it(
    models: Path, tmp_path: Path, place: str
) -> None:
    """One byte lets HDF5 run in a circle, take gigabytes, or crash the process."""
    data = bytearray((models / "keras_bilstm.h5").read_bytes())
    heap, name = data.index(b"GCOL"), data.index(b"keras_version\0")
    kind = name + 16
    if place == "object":  # the free space behind the last text claims to be of size 0
        free = heap + 16
        while data[free]:
            free += 16 + -(-int.from_bytes(data[free + 8 : free + 16], "little") // 8) * 8
        data[free + 8 : free + 16] = bytes(8)
    elif place == "text":  # a length of four bytes, behind the kind and the number of texts
        data[data.index(heap.to_bytes(8, "little"), kind) - 1] = 0xFF
    elif place == "kind":  # neither a sequence nor a text
        data[kind + 1] = 9
    else:  # a list of half a million texts
        names = data.index(b"layer_names\0")
        dimension = data.index((2).to_bytes(8, "little"), names)
        data[dimension + 2] = 8
    path = tmp_path / "damaged.h5"
    path.write_bytes(data)
    if place == "kind":
        assert list(gl.load(path)) == ["bidirectional.forward", "bidirectional.backward"]
    else:
        assert "damaged" in refused(path)


def test_names_that_would_break_a_line_are_left_out(keras: KerasWriter) -> None:
    path = simple(keras)
    with h5py.File(path, "a") as file:
        file["two\nlines"] = np.ones(3)
    archive = read_archive(path)
    assert "rnn/rnn/kernel:0" in archive.tensors
    assert archive.skipped == (r"'two\nlines' skipped (unprintable name)",)
    bad = keras.numbered({"layers/a/cell": keras.weights("GRU", 2, 2)}, {"layers/a": "two\nlines"})
    odd = keras.numbered(
        {
            "layers/a/cell": keras.weights("GRU", 2, 2),
            "layers/b\b/cell": keras.weights("GRU", 2, 2),
        },
        name="odd.h5",
    )
    for path, name in ((bad, r"'two\nlines'"), (odd, "a")):
        network = gl.load(path)
        assert list(network) == [name]
        assert all(text.isprintable() for text in network.assumptions)
