"""Plain pickles of arrays: every protocol and time, and nothing that runs."""

from __future__ import annotations

import pickle
import sys
import types
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from gradlab.checkpoints.recognition import read_archive

if TYPE_CHECKING:
    from tests.checkpoints.conftest import ModelWriter

HALF = 0.5 * np.eye(2)
KINDS = ("float64", "float32", "float16", ">f4", "int64", "bool", "complex64")


def tensors_of(path: Path) -> dict[str, Array]:
    stored = read_archive(path).tensors
    return {name: stored[name] for name in stored}


@pytest.mark.parametrize("protocol", range(6))
def test_every_protocol_gives_the_arrays_to_the_last_bit(write: ModelWriter, protocol: int) -> None:
    rng = np.random.default_rng(protocol)
    arrays = {kind: (5 * rng.normal(size=(3, 4))).astype(kind) for kind in KINDS}
    arrays["columns"] = np.asfortranarray(rng.normal(size=(3, 2)))
    arrays["strided"] = rng.normal(size=(6, 4))[::2, 1:]
    arrays["single"] = np.array(2.5)
    arrays["empty"] = np.zeros((0, 3))
    found = tensors_of(write.bytes(pickle.dumps(arrays, protocol), "weights.pkl"))
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("name", ["rnn_tanh_1l", "lstm_1l", "gru_1l"])
def test_layer_from_a_pickle_is_that_of_the_archive(
    write: ModelWriter, models: Path, name: str
) -> None:
    with np.load(models / f"{name}.npz") as stored:
        path = write.bytes(pickle.dumps({"net": dict(stored)}), "weights.pkl")
    found, expected = gl.load(path), gl.load(models / f"{name}.npz")
    assert list(found) == list(expected)
    for key, array in expected.only().parameters.items():
        np.testing.assert_array_equal(found.only().parameters[key], array)


def test_nested_containers_and_objects_are_flattened_to_dotted_names(write: ModelWriter) -> None:
    tree: dict[Any, Any] = {
        "encoder": OrderedDict(rnn=write.layer(HALF)),
        "heads": [{"weight": np.ones((1, 2))}, (np.zeros(3),)],
        3: {"x": np.ones(1)},
        "lr": 0.1,
        "scores": np.float64(3.0),
    }
    path = write.bytes(pickle.dumps(tree))
    layer = [f"encoder.rnn.{key}" for key in write.layer(HALF)]
    assert list(tensors_of(path)) == [*layer, "heads.0.weight", "heads.1.0", "3.x"]
    assert list(gl.load(path)) == ["encoder.rnn.l0"]


def test_haiku_parameters_keep_their_slashes(write: ModelWriter, models: Path) -> None:
    with np.load(models / "haiku_lstm.npz") as stored:
        tree: dict[str, dict[str, Array]] = {}
        for key in stored:
            module, _, leaf = key.rpartition("/")
            tree.setdefault(module, {})[leaf] = stored[key]
    found = gl.load(write.bytes(pickle.dumps(tree)))
    expected = gl.load(models / "haiku_lstm.npz")
    assert list(found) == list(expected)
    for key, array in expected.only().parameters.items():
        np.testing.assert_array_equal(found.only().parameters[key], array)


def python2(array: Array, protocol: int) -> bytes:
    """Opcodes that Python 2 and its NumPy write for an array: its bytes are text."""
    raw = array.tobytes()
    if protocol == 0:
        kind = b"cnumpy\ndtype\n(S'f8'\nI0\nI1\ntR(I3\nS'<'\nNNNI-1\nI-1\nI0\ntb"
        shape = b"(I%d\nI%d\nt" % array.shape
        start = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR"
        return start + b"(I1\n" + shape + kind + b"I00\nS" + repr(raw)[1:].encode() + b"\ntb"
    kind = b"cnumpy\ndtype\nU\x02f8K\x00K\x01\x87R(K\x03U\x01<NNN" + b"J\xff\xff\xff\xff" * 2
    shape = b"K%cK%c\x86" % array.shape
    start = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    return start + b"(K\x01" + shape + kind + b"K\x00tb\x89U%c" % len(raw) + raw + b"tb"


@pytest.mark.parametrize("protocol", [0, 2])
def test_arrays_that_python_2_wrote_are_read(write: ModelWriter, protocol: int) -> None:
    """Bytes above 127, quotes and line ends among the numbers, as text of Latin-1."""
    array = np.frombuffer(bytes(range(32)) + b"'\"\\\n\x80\xff\xc3\xa9" * 4, np.float64)
    array = array.reshape(2, 4)
    quoted = b"S'W'\n" if protocol == 0 else b"U\x01W"
    head = b"(d" if protocol == 0 else b"\x80\x02}"
    path = write.bytes(head + quoted + python2(array, protocol) + b"s.")
    assert tensors_of(path)["W"].tobytes() == array.tobytes()
    assert pickle.loads(path.read_bytes(), encoding="latin1")["W"].tobytes() == array.tobytes()


@pytest.mark.parametrize("module", ["numpy.core", "numpy._core"])
def test_arrays_of_numpy_1_and_2_are_read(write: ModelWriter, module: str) -> None:
    pickled = pickle.dumps({"W": HALF}, protocol=2)
    for name in ("numpy.core", "numpy._core"):
        pickled = pickled.replace(f"c{name}.multiarray".encode(), f"c{module}.multiarray".encode())
    np.testing.assert_array_equal(tensors_of(write.bytes(pickled))["W"], HALF)


class Device:
    """Array of JAX, as far as pickle sees it."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __reduce__(self) -> tuple[Any, ...]:
        rebuild = sys.modules["jax._src.array"].__dict__["_reconstruct_array"]
        return rebuild, (*self.array.__reduce__(), {"weak_type": False})


def test_arrays_of_jax_are_read_without_it(
    write: ModelWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def _reconstruct_array(*_: Any) -> None:
        raise AssertionError

    _reconstruct_array.__module__ = "jax._src.array"
    _reconstruct_array.__qualname__ = "_reconstruct_array"
    fake = types.ModuleType("jax._src.array")
    fake.__dict__["_reconstruct_array"] = _reconstruct_array
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "jax", types.ModuleType("jax"))
        patch.setitem(sys.modules, "jax._src", types.ModuleType("jax._src"))
        patch.setitem(sys.modules, "jax._src.array", fake)
        path = write.bytes(pickle.dumps({"lstm": {"W": Device(HALF)}}))
    np.testing.assert_array_equal(tensors_of(path)["lstm.W"], HALF)


def test_objects_give_their_attributes_and_nothing_of_them_runs(write: ModelWriter) -> None:
    """As madmom keeps its networks: objects of its own classes in lists."""
    layer = types.SimpleNamespace(recurrent_weights=HALF, activation_fn=np.tanh)
    network = types.SimpleNamespace(layers=[layer])
    for protocol in range(6):
        path = write.bytes(pickle.dumps(network, protocol))
        np.testing.assert_array_equal(tensors_of(path)["layers.0.recurrent_weights"], HALF)


@pytest.mark.parametrize("protocol", range(6))
def test_pickle_that_calls_a_command_is_refused_and_nothing_runs(
    write: ModelWriter, tmp_path: Path, protocol: int
) -> None:
    trace = tmp_path / "ran"

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return sys.modules["os"].system, (f"touch {trace}",)

    path = write.bytes(pickle.dumps({**write.layer(HALF), "x": Evil()}, protocol))
    with pytest.raises(gl.ModelFileError, match=r"names (posix|nt)\.system.*nothing was run"):
        gl.load(path)
    assert not trace.exists()
    pickle.loads(path.read_bytes())  # the same bytes, read as pickles usually are
    assert trace.exists()


def test_arrays_of_anything_but_numbers_are_skipped_or_entered(write: ModelWriter) -> None:
    ragged = np.empty(2, dtype=object)
    ragged[:] = [np.ones(2), np.ones(3)]
    tree = {**write.layer(HALF), "names": np.array(["a", "b"]), "ragged": ragged}
    path = write.bytes(pickle.dumps(tree))
    assert list(tensors_of(path))[-2:] == ["ragged.0", "ragged.1"]
    assert any("names skipped (numpy." in said for said in gl.load(path).assumptions)


def test_pickle_without_arrays_is_said_to_be_so(write: ModelWriter) -> None:
    with pytest.raises(gl.ModelFileError, match="is a plain pickle with no tensors"):
        gl.load(write.bytes(pickle.dumps({"lr": 0.1})))


def test_array_that_declares_more_than_it_holds_is_refused(write: ModelWriter) -> None:
    pickled = pickle.dumps({"weight_hh_l0": np.ones((2, 2))}, protocol=2)
    changed = pickled.replace(b"K\x02K\x02\x86", b"K\x02K\xff\x86")
    assert changed != pickled
    with pytest.raises(gl.ModelFileError, match=r"shape \(2, 255\) of float64 needs 4080 bytes"):
        tensors_of(write.bytes(changed))


def test_pickle_beyond_the_limit_is_refused_before_it_is_read(write: ModelWriter) -> None:
    path = write.bytes(pickle.dumps(write.layer(HALF)))
    with pytest.raises(gl.ModelFileError, match=r"the pickle declares .* at most 100"):
        gl.load(path, max_bytes=100)


@pytest.mark.parametrize("protocol", range(6))
def test_pickle_cut_short_is_refused(write: ModelWriter, protocol: int) -> None:
    pickled = pickle.dumps(write.layer(HALF), protocol)
    assert list(gl.load(write.bytes(pickled))) == ["l0"]
    for length in range(0, len(pickled), 7):
        with pytest.raises(gl.ModelFileError):
            gl.load(write.bytes(pickled[:length]))


def test_state_dict_pickled_without_torch_save_is_read(models: Path) -> None:
    """Each storage is then a whole file of its own inside the pickle."""
    network = gl.load(models / "lstm_statedict.pkl")
    with np.load(models / "lstm_export.oracle.npz") as oracle:
        for key, name in (("weight_hh_l0", "W_h"), ("bias_ih_l0", "b_x")):
            stored = oracle[f"torch/net.{key}"].astype(np.float32)
            np.testing.assert_array_equal(network["net.l0"].parameters[name], stored)


def test_parameters_that_jax_pickled_are_read(models: Path) -> None:
    """A Haiku LSTM of JAX's own arrays, one of them of bfloat16."""
    [entry] = gl.load(models / "jax_haiku_lstm.pkl").recurrences
    assert entry.stored_dtype == "float32, bfloat16"
    with np.load(models / "jax_haiku_lstm.oracle.npz") as oracle:
        stored = tensors_of(models / "jax_haiku_lstm.pkl")
        for leaf in ("w", "b"):
            np.testing.assert_array_equal(stored[f"lstm/linear/{leaf}"], oracle[leaf])


def test_pickle_of_joblib_is_refused_with_the_way(write: ModelWriter) -> None:
    """Its arrays lie between the opcodes, where nothing of the pickle language is."""
    start = b"\x80\x04}\x8c\x01W\x8c\x13joblib.numpy_pickle\x8c\x11NumpyArrayWrapper\x93)\x81"
    with pytest.raises(gl.ModelFileError, match=r"is joblib's.*numpy\.savez"):
        gl.load(write.bytes(start + b"}b" + HALF.tobytes() + b"s."))
