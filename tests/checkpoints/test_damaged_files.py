"""Files that are missing, cut short or changed on the way: one clear error and never another."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.checkpoints.recognition import read_archive

if TYPE_CHECKING:
    from tests.checkpoints.conftest import ModelWriter

WHOLE = (
    "rnn_tanh_1l.pt",
    "rnn_tanh_1l.npz",
    "rnn_tanh_1l.safetensors",
    "rnn_tanh_bi_2l.pt",
    "rnn_spectralnorm.pt",
    "lstm_1l_legacy.pt",
    "gru_1l.bf16.pt",
    "lstm_2l_lightning.pt",
    "gru_1l_wholemodule.pt",
    "lstm_1l.ts.pt",
    "lstm_export.pt2",
    "lstm_statedict.pkl",
)
MODELS = Path(__file__).parents[1] / "fixtures" / "models"
NO_MODELS = {".txt", ".md"}
EVERY = sorted(
    path.relative_to(MODELS).as_posix()
    for path in MODELS.rglob("*")
    if path.is_file() and ".oracle." not in path.name and path.suffix not in NO_MODELS
)
Edits = list[tuple[int, int]]
EDITS = st.lists(st.tuples(st.integers(0, 2**16), st.integers(1, 255)), min_size=1, max_size=4)


def is_zip(name: str) -> bool:
    return name.endswith((".pt", ".pt2", ".npz")) and "legacy" not in name


def read_everything(path: Path) -> None:
    """Every tensor of a file, recurrent or not."""
    dict(read_archive(path).tensors)


def edited(data: bytes, edits: Edits) -> bytes:
    """Copy with some bytes changed; places wrap around."""
    changed = bytearray(data)
    for place, bits in edits:
        changed[place % len(changed)] ^= bits
    return bytes(changed)


def complaint(path: Path) -> str | None:
    """Message of gradlab's refusal; any other exception passes through."""
    try:
        gl.load(path)
        read_everything(path)
    except gl.GradlabError as error:
        return str(error)
    return None


def is_clear(message: str | None, path: Path) -> bool:
    """Whether a refusal, if there is one, is one line that names the file."""
    return message is None or (str(path) in message and message.isprintable())


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file that the examples of a property overwrite."""
    return tmp_path_factory.mktemp("damaged") / "model.bin"


@pytest.mark.parametrize("name", WHOLE)
def test_file_cut_short_anywhere_is_refused(models: Path, scratch: Path, name: str) -> None:
    data = (models / name).read_bytes()
    scratch.write_bytes(data)
    read_everything(scratch)
    for length in range(0, len(data), max(1, len(data) // 100)):
        scratch.write_bytes(data[:length])
        for read in (read_everything, gl.load):
            with pytest.raises(gl.ModelFileError) as refusal:
                read(scratch)
            assert str(scratch) in str(refusal.value)


@settings(max_examples=2000, deadline=None)
@given(name=st.sampled_from(EVERY), edits=EDITS)
def test_changed_bytes_of_any_file_of_any_format_give_clear_errors_only(
    models: Path, scratch: Path, name: str, edits: Edits
) -> None:
    scratch.write_bytes(edited((models / name).read_bytes(), edits))
    assert is_clear(complaint(scratch), scratch)


@pytest.mark.parametrize("name", [name for name in WHOLE if is_zip(name)])
@settings(max_examples=80, deadline=None)
@given(edits=EDITS, which=st.integers(0, 3))
def test_changed_bytes_behind_right_checksums_give_clear_errors_only(
    models: Path, scratch: Path, name: str, edits: Edits, which: int
) -> None:
    """The parsers inside the archive see the damage, not the archive's own checksum."""
    with zipfile.ZipFile(models / name) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    parsed = [member for member in members if member.endswith((".pkl", ".npy", "config.json"))]
    target = parsed[which % len(parsed)]
    members[target] = edited(members[target], edits)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    scratch.write_bytes(packed.getvalue())
    assert is_clear(complaint(scratch), scratch)


@settings(max_examples=80, deadline=None)
@given(opcodes=st.binary(max_size=200))
def test_any_bytes_as_a_pickle_give_clear_errors_only(scratch: Path, opcodes: bytes) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("archive/data.pkl", opcodes)
    scratch.write_bytes(packed.getvalue())
    assert is_clear(complaint(scratch), scratch)


@settings(max_examples=80, deadline=None)
@given(content=st.binary(max_size=300))
def test_any_bytes_as_a_file_give_clear_errors_only(scratch: Path, content: bytes) -> None:
    scratch.write_bytes(content)
    with pytest.raises(gl.ModelFileError):
        gl.load(scratch)


def test_checksum_that_does_not_fit_is_noticed(write: ModelWriter) -> None:
    """A changed weight would otherwise be another network, in silence."""
    layer = write.layer(0.5 * np.eye(2))
    for path in (write.torch(layer), write.npz(layer)):
        data = path.read_bytes()
        path.write_bytes(data.replace(np.float64(0.5).tobytes(), np.float64(0.25).tobytes(), 1))
        with pytest.raises(gl.ModelFileError, match="CRC"):
            gl.load(path)


def test_checksum_of_a_packed_member_is_noticed(tmp_path: Path, write: ModelWriter) -> None:
    path = tmp_path / "packed.npz"
    np.savez_compressed(path, allow_pickle=True, **write.layer(0.5 * np.eye(2)))
    assert list(gl.load(path)) == ["l0"]
    data = path.read_bytes()
    entry = 16 + data.rindex(b"PK\x01\x02", 0, data.rindex(b"weight_hh_l0.npy"))
    path.write_bytes(data[:entry] + bytes(4) + data[entry + 4 :])
    with pytest.raises(gl.ModelFileError, match="CRC"):
        gl.load(path)


def test_storage_that_ends_too_early_is_noticed_although_no_layer_needs_it(
    write: ModelWriter,
) -> None:
    path = write.legacy(write.layer(0.5 * np.eye(2)) | {"head.weight": np.ones(100)})
    assert list(gl.load(path)) == ["l0"]
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(gl.ModelFileError, match=r"should have 800 bytes and 792 are left"):
        gl.load(path)


def test_missing_file_folder_and_empty_file_are_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "empty.pt").touch()
    for name, part in (
        ("missing.pt", "does not exist"),
        ("", "is a folder"),
        ("empty.pt", "empty"),
    ):
        with pytest.raises(gl.ModelFileError, match=part):
            gl.load(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pt")
    with pytest.raises(gl.ModelFileError, match="no regular file"):
        gl.load(tmp_path / "pipe.pt")


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"hello, world, this is text\n", "is not a model file"),
        (b'{"weights": {}}', "a JSON file"),
        (b"PK\x05\x06" + bytes(18), "is not a model"),
    ],
)
def test_file_that_is_no_model_is_said_to_be_so(
    write: ModelWriter, content: bytes, part: str
) -> None:
    with pytest.raises(gl.ModelFileError, match=part) as refusal:
        gl.load(write.bytes(content))
    assert "expected a PyTorch file (.pt, .pt2), .safetensors" in str(refusal.value)


def test_suffix_does_not_decide_how_a_file_is_read(models: Path, write: ModelWriter) -> None:
    for name in ("rnn_tanh_1l.pt", "rnn_tanh_1l.npz", "rnn_tanh_1l.safetensors"):
        path = write.bytes((models / name).read_bytes(), "weights.onnx")
        assert list(gl.load(str(path))) == ["l0"]
