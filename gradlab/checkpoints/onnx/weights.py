"""The weights of one recurrent node, folded to numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradlab.arrays import Array
from gradlab.checkpoints.onnx.folding import Folding, Unknown
from gradlab.checkpoints.onnx.operators import dequantized
from gradlab.checkpoints.onnx.scopes import Node
from gradlab.errors import ModelFileError

QUANTIZED = "DynamicQuantizeLSTM"
W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES = range(1, 8)
LETTERS = {W: "W", R: "R", B: "B", PEEPHOLES: "P"}
SCALES = {W: (8, 9), R: (10, 11)}  # inputs with scale and zero point of quantized weights


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weights:
    """Arrays of one node, a row a direction; ``names`` tells the stored tensors behind each."""

    W: Array
    R: Array
    B: Array | None
    P: Array | None
    names: dict[str, list[str]]
    stored_dtype: str


def read_weights(node: Node, folding: Folding) -> Weights:
    """Weights of a node.

    Parameters
    ----------
    node
        A recurrent node.
    folding
        Values of the model's names.

    Returns
    -------
    weights
        Those of a quantized node as numbers again, and in ONNX's own layout.

    Raises
    ------
    ModelFileError
        If one is only known when the model runs, or all nodes' together are above the limit.
    """
    arrays = {letter: _folded(node, index, folding) for index, letter in LETTERS.items()}
    inputs, recurrent = arrays["W"], arrays["R"]
    if inputs is None or recurrent is None:
        raise ModelFileError("it has no W or no R")
    behind = {
        letter: folding.behind(node.scope, node.operand(index)) for index, letter in LETTERS.items()
    }
    names = {
        letter: [step.name for step in behind[letter]] or [node.operand(index)]
        for index, letter in LETTERS.items()
    }
    kind = folding.store.kind(behind["R"][0].stored) if behind["R"] else str(recurrent.dtype)
    if node.op == QUANTIZED:
        inputs, recurrent = (_dequantized(node, index, folding) for index in (W, R))
    held = [array for array in (inputs, recurrent, arrays["B"]) if array is not None]
    folding.take(sum(array.nbytes for array in held))
    return Weights(
        W=inputs, R=recurrent, B=arrays["B"], P=arrays["P"], names=names, stored_dtype=kind
    )


def _folded(node: Node, index: int, folding: Folding) -> Array | None:
    if not node.operand(index):
        return None
    value = folding.value(node.scope, node.operand(index))
    if isinstance(value, Unknown):
        raise ModelFileError(
            f"its {LETTERS.get(index, 'scale')} is known only when the model runs: it depends on "
            f"{value.reason}"
        )
    return value


def _dequantized(node: Node, index: int, folding: Folding) -> Array:
    """Weights of a quantized node, which are stored transposed."""
    letter = LETTERS[index]
    quantized, scale, zero = (_folded(node, place, folding) for place in (index, *SCALES[index]))
    if quantized is None or scale is None or quantized.ndim != 3 or quantized.dtype.itemsize != 1:
        raise ModelFileError(f"its {letter} is not one of bytes with a scale")
    if scale.size not in (len(quantized), len(quantized) * quantized.shape[2]):
        raise ModelFileError(f"its {letter} has shape {quantized.shape} and scales {scale.shape}")
    shifts = np.zeros_like(scale) if zero is None else zero
    parts = [part.reshape(len(quantized), -1) for part in (scale, shifts)]
    rows = zip(quantized, *parts, strict=True)
    return np.stack([dequantized(*row).T for row in rows])
