"""Files made to run code or to exhaust memory: nothing runs, and one clear line says why."""

from __future__ import annotations

import io
import os
import pickle
import sys
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

# Every way of the pickle language to call something, on a module that writes a file when it is
# imported and another when it is called. {n} is the module's name.
CALLS = {
    "GLOBAL REDUCE": b"c{n}\nrun\n)R.",
    "STACK_GLOBAL REDUCE": b"\x80\x04\x8c\x06canary\x8c\x03run\x93)R.",
    "INST": b"(i{n}\nrun\n.",
    "OBJ": b"(c{n}\nrun\no.",
    "NEWOBJ": b"\x80\x02c{n}\nRunner\n)\x81.",
    "NEWOBJ_EX": b"\x80\x04c{n}\nRunner\n)}\x92.",
    "BUILD": b"\x80\x02c{n}\nRunner\n)\x81}b.",
    "INST BUILD": b"(i{n}\nRunner\n}b.",
}
CANARY = """
from pathlib import Path
FOLDER = Path(__file__).parent
(FOLDER / "imported").touch()
def run(*arguments):
    (FOLDER / "ran").touch()
class Runner:
    def __new__(cls, *arguments, **keywords):
        run()
        return object.__new__(cls)
    def __setstate__(self, state):
        run()
"""


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Importable module that leaves traces in its folder."""
    folder = tmp_path / "canary"
    folder.mkdir()
    (folder / "canary.py").write_text(CANARY, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "canary", raising=False)
    return folder


def traces(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} & {"imported", "ran"}


@pytest.mark.parametrize("call", CALLS)
def test_nothing_that_a_pickle_names_is_imported_or_called(
    write: ModelWriter, canary: Path, call: str
) -> None:
    payload = CALLS[call].replace(b"{n}", b"canary")
    bare = write.zip({"archive/data.pkl": payload})
    beside = write.torch({"model": write.layer(HALF), "best": payload[:-1]}, name="beside.pt")
    legacy = write.legacy({"model": write.layer(HALF), "best": payload[:-1]}, name="legacy.pt")
    with pytest.raises(gl.ModelFileError, match=r"canary\.(run|Runner)"):
        gl.load(bare)
    for path in (beside, legacy):
        network = gl.load(path)
        assert any("best skipped (canary." in said for said in network.assumptions)
        assert np.array_equal(network.only().parameters["W_hh"], HALF)
    assert traces(canary) == set()
    assert "canary" not in sys.modules
    pickle.loads(payload)  # the same bytes, read as pickles usually are
    assert traces(canary) == {"imported", "ran"}


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        (os.system.__module__, "system"),
        ("nt", "system"),
        ("subprocess", "Popen"),
        ("builtins", "eval"),
        ("__builtin__", "exec"),
        ("runpy", "run_path"),
    ],
)
def test_file_that_names_a_command_is_refused_whole_and_nothing_runs(
    write: ModelWriter, tmp_path: Path, module: str, name: str
) -> None:
    trace = tmp_path / "ran"
    payload = write.called(write.named(module, name), (f"touch {trace}",))
    for path in (
        write.torch({"model": write.layer(HALF), "best": payload}),
        write.torch(payload, name="bare.pt"),
        write.legacy({"model": write.layer(HALF), "best": payload}, name="legacy.pt"),
    ):
        with pytest.raises(gl.ModelFileError, match=rf"{module}\.{name}.*nothing was run"):
            gl.load(path)
    assert not trace.exists()


@pytest.mark.parametrize("opcode", [b"\x82\x01", b"\x83\x01\x00", b"\x84\x01\x00\x00\x00", b"\x97"])
def test_extension_registry_and_outside_buffers_are_refused(
    write: ModelWriter, opcode: bytes
) -> None:
    with pytest.raises(gl.ModelFileError, match="extension registry or outside buffers"):
        gl.load(write.torch({"model": write.layer(HALF), "best": opcode}))


def test_numpy_scalar_beside_the_weights_is_skipped_by_name(write: ModelWriter) -> None:
    """Case H37: with the pickle that NumPy itself writes for a scalar."""
    scalar = pickle.dumps(np.float64(0.1), protocol=2)[2:-1]
    network = gl.load(write.torch({"model": write.layer(HALF, "rnn."), "best": scalar}))
    assert float(np.linalg.norm(network["rnn.l0"].parameters["W_hh"], 2)) == 0.5
    module = "numpy._core" if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else "numpy.core"
    assert f"best skipped ({module}.multiarray.scalar)" in network.assumptions


def test_objects_of_a_training_script_are_skipped_by_name(write: ModelWriter) -> None:
    options = write.called(write.named("argparse", "Namespace"), (), {"lr": 0.1, "hidden": 2})
    checkpoint = {
        "args": options,
        "callbacks": [write.called(write.named("project.callbacks", "Stop"))],
        "state_dict": write.layer(HALF, "rnn."),
    }
    network = gl.load(write.torch(checkpoint))
    assert "args skipped (argparse.Namespace)" in network.assumptions
    assert "callbacks.0 skipped (project.callbacks.Stop)" in network.assumptions


def test_state_dict_of_a_class_of_its_own_is_read(write: ModelWriter) -> None:
    weights = write.filled(write.named("project.config", "Config"), write.layer(HALF, "rnn."))
    assert list(gl.load(write.torch({"model": weights}))) == ["rnn.l0"]


@pytest.mark.parametrize(
    ("offset", "shape", "strides", "numel"),
    [
        (-1, (2, 2), (2, 1), 4),
        (0, (2, 2), (-2, 1), 4),
        (0, (-2, 2), (2, 1), 4),
        (1, (2, 2), (2, 1), 4),
        (0, (2, 2), (2, 2), 4),
        (0, (2, 2), (10**15, 1), 4),
        (10**18, (2, 2), (2, 1), 10**19),
        (0, (10**9, 10**9), (0, 0), 4),
        (0, (2, 2), (2,), 4),
        (0, (1,) * 40, (1,) * 40, 4),
        (0, (2.0, 2), (2, 1), 4),
        (True, (2, 2), (2, 1), 4),
        ("0", (2, 2), (2, 1), 4),
        (0, None, (2, 1), 4),
    ],
)
def test_view_outside_its_storage_is_refused(
    write: ModelWriter, offset: Any, shape: Any, strides: Any, numel: int
) -> None:
    layer: dict[str, object] = dict(write.layer(HALF))
    layer["weight_hh_l0"] = write.view(HALF.ravel(), offset, shape, strides, numel)
    for path in (write.torch(layer), write.legacy(layer, name="old.pt")):
        with pytest.raises(gl.ModelFileError):
            gl.load(path)


def test_storage_that_claims_more_than_its_bytes_is_refused(write: ModelWriter) -> None:
    layer: dict[str, object] = dict(write.layer(HALF))
    layer["weight_hh_l0"] = write.view(HALF.ravel()[:3], 0, (2, 2), (2, 1), 4)
    with pytest.raises(gl.ModelFileError, match="needs element 3 of a storage that holds 3"):
        gl.load(write.torch(layer))


@pytest.mark.parametrize(
    "identifier",
    [
        b"X\x01\x00\x00\x00aQ",
        b"(X\x07\x00\x00\x00storagetQ",
        b"]Q",
        b"Pstorage\n",
    ],
)
def test_reference_to_something_that_is_no_storage_is_refused(
    write: ModelWriter, identifier: bytes
) -> None:
    with pytest.raises(gl.ModelFileError, match="refers to outside data"):
        gl.load(write.torch({"weight_hh_l0": identifier}))


def test_structures_that_explode_when_they_are_walked_stay_small(write: ModelWriter) -> None:
    """Sixty doublings of one list, as a value and as a dictionary's key; and ten thousand nests."""
    doubled = b"]q\x000" + b"".join(b"](h%ch%ceq%c0" % (i, i, i + 1) for i in range(60)) + b"h<"
    tuples = b")q\x000" + b"".join(b"(h%ch%ctq%c0" % (i, i, i + 1) for i in range(60)) + b"h<"
    nested = b"]" * 10_000 + b"a" * 9_999
    keyed = b"}" + tuples + b"Ns"
    for odd in (doubled, nested, keyed):
        path = write.torch({"model": write.layer(HALF), "odd": odd})
        assert list(gl.load(path)) == ["l0"]


def test_dictionary_that_holds_itself_is_walked_once(write: ModelWriter) -> None:
    endless = b"}q\x00X\x04\x00\x00\x00selfh\x00s"
    path = write.torch({"model": write.layer(HALF), "endless": endless})
    assert list(gl.load(path)) == ["l0"]


def test_memo_index_of_four_billion_takes_no_memory(write: ModelWriter) -> None:
    path = write.torch({"model": write.layer(HALF), "odd": b"Nr\xff\xff\xff\xff"})
    assert list(gl.load(path)) == ["l0"]


def test_expanded_view_beyond_the_limit_is_refused_before_memory_is_taken(
    write: ModelWriter,
) -> None:
    """Strides of 0 make a tensor of any size out of one number."""
    layer: dict[str, object] = dict(write.layer(HALF))
    layer["weight_hh_l0"] = write.view(HALF.ravel(), 0, (2**20, 2**20), (0, 0))
    with pytest.raises(gl.ModelFileError, match=f"declares {2**43} bytes"):
        gl.load(write.torch(layer))


def test_limit_holds_for_every_format(write: ModelWriter) -> None:
    layer = write.layer(np.eye(20))
    paths = (
        write.torch(layer),
        write.npz(layer),
        write.safetensors(layer),
        write.legacy(layer, name="old.pt"),
    )
    for path in paths:
        assert read_archive(path, 5000).tensors["weight_hh_l0"].shape == (20, 20)
        with pytest.raises(gl.ModelFileError, match=r"declares .* bytes: expected at most"):
            read_archive(path, 3000).tensors["weight_hh_l0"]


UNPACKED, PACKED = 24, 20  # places of the sizes in an entry of a zip archive's directory


def patched_size(path: Path, member: str, size: int, place: int) -> Path:
    """Archive whose directory declares another size for a member."""
    data = path.read_bytes()
    entry = place + data.rindex(b"PK\x01\x02", 0, data.rindex(member.encode()))
    path.write_bytes(data[:entry] + size.to_bytes(4, "little") + data[entry + 4 :])
    return path


@pytest.mark.parametrize("place", [UNPACKED, PACKED])
@pytest.mark.parametrize("size", [10**6, 2**31 + 1, 2**32 - 2])
def test_member_that_declares_an_impossible_size_is_refused_before_it_is_unpacked(
    write: ModelWriter, size: int, place: int
) -> None:
    path = patched_size(write.npz(write.layer(HALF)), "weight_hh_l0.npy", size, place)
    with pytest.raises(gl.ModelFileError, match=rf"weight_hh_l0\.npy declares {size} bytes"):
        gl.load(path)


def test_array_that_declares_more_than_its_member_holds_is_refused(write: ModelWriter) -> None:
    """A header of 100 bytes could ask for any amount of memory."""
    header = io.BytesIO()
    described = {"descr": "<f8", "fortran_order": False, "shape": (10**7, 10**7)}
    np.lib.format.write_array_header_1_0(header, described)
    layer = write.layer(HALF)
    del layer["weight_hh_l0"]
    path = write.npz(layer)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("weight_hh_l0.npy", header.getvalue() + bytes(1000))
    with pytest.raises(
        gl.ModelFileError, match=r"weight_hh_l0 declares shape \(10000000, 10000000\)"
    ):
        gl.load(path)


def test_array_of_python_objects_is_never_unpickled(write: ModelWriter) -> None:
    """An object array is a pickle inside the .npy member."""
    layer = write.layer(HALF)
    layer["weight_hh_l0"] = np.array([[None, "x"], [3, []]], dtype=object)
    with pytest.raises(gl.ModelFileError, match="weight_hh_l0 holds Python objects"):
        gl.load(write.npz(layer))


@pytest.mark.parametrize(
    ("header", "values", "part"),
    [
        ('{"a":{"dtype":"F64","shape":[2],"data_offsets":[0,8]}}', 8, "16 bytes"),
        ('{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}', 9, "9 are there"),
        ('{"a":{"dtype":"F64","shape":[1],"data_offsets":[8,16]}}', 16, "begin at 0"),
        ('{"a":{"dtype":"F64","shape":[1],"data_offsets":[8,0]}}', 8, "damaged"),
        ('{"a":{"dtype":"F64","shape":[-1],"data_offsets":[0,8]}}', 8, "wrongly"),
        ('{"a":{"dtype":"F64","shape":[true],"data_offsets":[0,8]}}', 8, "wrongly"),
        ('{"a":{"dtype":"F64","shape":[1.0],"data_offsets":[0,8]}}', 8, "wrongly"),
        ('{"a":{"dtype":"F64","shape":[1]}}', 8, "wrongly"),
        ('{"a":{"dtype":"F64","shape":1,"data_offsets":[0,8]}}', 8, "wrongly"),
        ('{"a":[]}', 0, "wrongly"),
        (
            '{"a":{"dtype":"F64","shape":[99999999999,99999999999],"data_offsets":[0,8]}}',
            8,
            "shape",
        ),
        ('{"a":{"dtype":"F64","shape":[],"data_offsets":[0,99999999999999]}}', 8, "8 are"),
        ('{"__metadata__":{},"__metadata__":{}}', 0, "twice"),
        ("{" * 5000, 0, "damaged"),
        ("{]", 0, "damaged"),
        ("[" * 50000, 0, "is not a model"),
    ],
)
def test_safetensors_header_that_does_not_fit_its_buffer_is_refused(
    write: ModelWriter, header: str, values: int, part: str
) -> None:
    path = write.header_and_values(header, bytes(values))
    with pytest.raises(gl.ModelFileError) as refusal:
        gl.load(path)
    assert part in str(refusal.value)
    assert str(path) in str(refusal.value)


def test_tensor_of_an_unknown_type_is_skipped_by_name(write: ModelWriter) -> None:
    plain = write.safetensors(write.layer(HALF)).read_bytes()
    length = int.from_bytes(plain[:8], "little")
    header, values = plain[8 : 8 + length].decode(), plain[8 + length :]
    end = len(values)
    odd = f',"x":{{"dtype":"F8_E4M3","shape":[2],"data_offsets":[{end},{end + 2}]}}}}'
    network = gl.load(write.header_and_values(header[:-1] + odd, values + b"\0\0"))
    assert "x skipped (type F8_E4M3)" in network.assumptions


def test_names_that_would_break_a_line_are_left_out(write: ModelWriter) -> None:
    layer = write.layer(HALF, "rnn.") | write.layer(HALF, "two\nlines.")
    network = gl.load(write.torch(layer))
    assert list(network) == ["rnn.l0"]
    assert all(said.isprintable() for said in network.assumptions)
    assert any(r"two\nlines.weight_hh_l0' skipped" in said for said in network.assumptions)


@pytest.mark.parametrize("limit", [0, -1])
def test_limit_that_nothing_could_keep_is_refused(models: Path, limit: int) -> None:
    with pytest.raises(gl.SettingError, match=f"max_bytes is {limit}"):
        gl.load(models / "lstm_1l.pt", max_bytes=limit)


def test_limit_reaches_the_readout(models: Path) -> None:
    path = models / "trained_lstm_echo8.pt"
    assert gl.load_readout(path, max_bytes=10_000).W_hy.shape[1] == 12
    with pytest.raises(gl.ModelFileError, match=r"expected at most 100; .*option max_bytes"):
        gl.load_readout(path, max_bytes=100)


@pytest.mark.parametrize("length", [0x0280, 0x0480, 0x0580, 0x6428, 0x715D])
def test_length_of_a_header_that_looks_like_a_pickle_is_none(
    write: ModelWriter, length: int
) -> None:
    """The first bytes of a safetensors file are a number: here those of pickle protocols."""
    plain = write.safetensors(write.layer(HALF)).read_bytes()
    held = int.from_bytes(plain[:8], "little")
    header, values = plain[8 : 8 + held].decode(), plain[8 + held :]
    path = write.header_and_values(header.ljust(length), values)
    assert path.read_bytes()[:2] == length.to_bytes(8, "little")[:2]
    assert list(gl.load(path)) == ["l0"]


@pytest.mark.parametrize("name", ["LSTM\n", "LSTM\x1b[31m"])
def test_class_of_an_unprintable_name_breaks_no_line(write: ModelWriter, name: str) -> None:
    state = {"_parameters": write.layer(np.ones((8, 2))), "_buffers": {}, "_modules": {}}
    text = [f"X{chr(len(part))}\0\0\0{part}" for part in ("torch.nn.modules.rnn", name)]
    kind = b"".join(part.encode() for part in text) + b"\x93"
    module = write.torch({"net": write.called(kind, (), state)})
    assert all(said.isprintable() for said in gl.load(module).assumptions)
    evil = b"".join(f"X{chr(len(part))}\0\0\0{part}".encode() for part in ("os", name)) + b"\x93"
    with pytest.raises(gl.ModelFileError, match="nothing was run") as refusal:
        gl.load(write.torch({"net": evil}))
    assert str(refusal.value).isprintable()
