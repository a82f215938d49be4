"""Files that are known and not read: what each is, and the way to something that is read."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

from gradlab.checkpoints.archive import reading, spoken
from gradlab.checkpoints.npy import MAGIC, npy_layout

TENSORFLOW = "open it in TensorFlow and save the model as .keras, or convert it to ONNX (tf2onnx)"
COREML = "read its weights with coremltools and save them with numpy.savez"
ARRAYS = "save the arrays under their names with numpy.savez"

# By the first bytes, by a member of a zip, by the end of the name; the first that fits is told.
HEADS = {
    b"\x1f\x8b": ("a gzip file", "unpack it first"),
    b"BZh": ("a bzip2 file", "unpack it first"),
    b"\xfd7zXZ": ("an xz file", "unpack it first"),
    b"MATLAB": ("a MATLAB file", ARRAYS),
    b"GGUF": ("a GGUF file", "give the float weights that it was made from, as .safetensors"),
    b"#Parameter#": ("a DyNet text file", ARRAYS),
    b"#LookupParameter#": ("a DyNet text file", ARRAYS),
    b"{": ("a JSON file", "give the file of the weights"),
}
MEMBERS = {
    "serialized_state_dict.pt": (
        "a torch.export archive (.pt2) of PyTorch before 2.8",
        "save a state dict with torch.save(program.state_dict, path)",
    ),
}
SUFFIXES = {
    ".eqx": ("an Equinox file, arrays without names", ARRAYS),
    ".mlmodel": ("a Core ML model", COREML),
    ".tflite": ("a TensorFlow Lite model", "convert the model it was made from"),
    ".pb": ("a TensorFlow graph", TENSORFLOW),
    ".index": ("a part of a TensorFlow 1 checkpoint", TENSORFLOW),
    ".data-00000-of-00001": ("a part of a TensorFlow 1 checkpoint", TENSORFLOW),
    ".bson": ("a Julia BSON file", ARRAYS),
    ".jld2": ("a Julia JLD2 file", ARRAYS),
    ".traineddata": ("a Tesseract model, bytes in a format of its own", ARRAYS),
    ".nemo": ("a tar archive", "unpack it and give the weights in it"),
    ".tar": ("a tar archive", "unpack it and give the weights in it"),
    ".rds": ("an R object", "save the state dict with the R package safetensors"),
}

# By a file inside a folder.
FOLDERS = {
    "saved_model.pb": ("a TensorFlow SavedModel", TENSORFLOW),
    "Manifest.json": ("a Core ML package", COREML),
    "_METADATA": ("an Orbax checkpoint", "restore it in JAX and save a .safetensors file"),
    "_CHECKPOINT_METADATA": ("an Orbax checkpoint", "restore it and save a .safetensors file"),
}
WEIGHTS = re.compile(r".*\.(safetensors|bin|index\.json|pt|pth|ckpt|npz|keras|h5|onnx|msgpack)")


def refusal(path: Path, head: bytes, members: Sequence[str]) -> str:
    """What a file is that no format recognizes, and what to do with it; follows its name.

    Parameters
    ----------
    path
        The file.
    head
        Its first bytes.
    members
        Names of its members if it is a zip archive.
    """
    name = path.name.lower()
    known = (
        *(what for suffix, what in SUFFIXES.items() if name.endswith(suffix)),
        *(what for start, what in HEADS.items() if head.startswith(start)),
        *(what for member, what in MEMBERS.items() if _holds(members, member)),
    )
    if known:
        what, way = known[0]
        return f"is {what}, which this version does not read: {way}"
    if head.startswith(MAGIC):
        return _single_array(path)
    return "is a zip archive without a model" if members else "is not a model file"


def has_known_suffix(path: Path) -> bool:
    """Whether a file's name ends as that of a format which is known and not read."""
    return path.name.lower().endswith(tuple(SUFFIXES))


def folder_refusal(path: Path) -> str:
    """What a folder is, and which file in it to give instead; follows its name.

    Parameters
    ----------
    path
        The folder.
    """
    with reading(path, "a folder"):
        inside = {entry.name for entry in path.iterdir()}
    for name, (what, way) in FOLDERS.items():
        if name in inside:
            return f"is {what}, which this version does not read: {way}"
    candidates = sorted(name for name in inside if WEIGHTS.fullmatch(name))
    if candidates:
        return f"is a folder: expected one file, such as {spoken(candidates[0])} in it"
    return "is a folder: expected a file with content"


def _single_array(path: Path) -> str:
    """What to do with one matrix, which says neither its name nor its layer's other weights."""
    with reading(path, "a NumPy array"), path.open("rb") as stream:
        shape, kind = npy_layout(stream)
        more = stream.tell() + kind.itemsize * math.prod(shape) < path.stat().st_size
    if kind.hasobject:
        return f"is a single NumPy array of Python objects, which are never unpickled: {ARRAYS}"
    if more:
        return f"holds several NumPy arrays without names, as Equinox writes them: {ARRAYS}"
    way = "save W_hh, W_xh and b_h of the layer together with numpy.savez"
    if len(shape) == 2 and shape[0] == shape[1]:
        way = f"{way}, or give it to gradlab.VanillaCell as W_hh"
    return f"is a single NumPy array without a name, of shape {shape}: {way}"


def _holds(members: Sequence[str], name: str) -> bool:
    return any(member == name or member.endswith(f"/{name}") for member in members)
