"""Weights of one Keras layer in canonical form: transposed, and the gates in gradlab's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gradlab.arrays import Array
from gradlab.checkpoints.archive import spoken
from gradlab.checkpoints.keras.places import CellTensors
from gradlab.errors import ShapeError

KINDS = {
    "SimpleRNN": "rnn", "SimpleRNNCell": "rnn",
    "LSTM": "lstm", "LSTMCell": "lstm", "CuDNNLSTM": "lstm",
    "GRU": "gru", "GRUCell": "gru",
}  # fmt: skip
GATES = {"rnn": 1, "lstm": 4, "gru": 3}
GRU_ORDER = (1, 0, 2)  # Keras's z, r, h as r, z, n


@dataclass(frozen=True, slots=True, kw_only=True)
class KerasWeights:
    """Arrays of one cell as stored, with the names they have in the file."""

    kind: str
    kernel: Array
    recurrent: Array
    bias: Array | None
    tensors: CellTensors

    @property
    def flat_pair(self) -> bool:
        """Whether the bias is both sides' in one row, as only cuDNN's layers have it."""
        return self.bias is not None and self.bias.shape == (2 * self.recurrent.shape[-1],)

    @property
    def is_cudnn_lstm(self) -> bool:
        """Whether the gates' blocks are laid out as cuDNN does."""
        return self.kind == "lstm" and self.flat_pair

    @property
    def is_cudnn_gru(self) -> bool:
        """The same of a GRU, whose layout is not known well enough to read it."""
        return self.kind == "gru" and self.flat_pair


def require_shapes(weights: KerasWeights) -> None:
    """Refuse weights that do not fit each other.

    Raises
    ------
    ShapeError
        Naming all of them.
    """
    kernel, recurrent = weights.kernel, weights.recurrent
    bias = None if weights.bias is None else weights.bias.shape
    rows = recurrent.shape[0] if recurrent.ndim == 2 else 0
    columns = GATES[weights.kind] * rows
    biases: list[tuple[int, ...] | None] = [None, (columns,)]
    if weights.kind != "rnn":
        biases.append((2 * columns,) if weights.kind == "lstm" else (2, columns))
    fits = kernel.ndim == 2 and kernel.size > 0 and kernel.shape[1] == columns
    if not rows or recurrent.shape != (rows, columns) or not fits or bias not in biases:
        parts = [f"{spoken(weights.tensors.recurrent)} has shape {recurrent.shape}"]
        parts.append(f"{spoken(weights.tensors.kernel)} {kernel.shape}")
        parts += [] if bias is None else [f"{spoken(weights.tensors.bias or '')} {bias}"]
        gates = GATES[weights.kind]
        wide = "N" if gates == 1 else f"{gates}N"
        raise ShapeError(
            f"{', '.join(parts)}: expected (N, {wide}), (D, {wide}) and a bias that fits of "
            f"a Keras layer with {gates} block{'s' if gates > 1 else ''} of columns"
        )


def canonical(weights: KerasWeights) -> tuple[dict[str, Array], dict[str, str]]:
    """Weights by the cell's attribute names, and what each is called in the file.

    Parameters
    ----------
    weights
        Of shapes that fit each other.

    Returns
    -------
    arrays
        Rows are outputs, gates in gradlab's order; the two biases of a GRU that resets the
        product apart.
    tensors
        A name of the file for each.
    """
    kernel, recurrent, bias = weights.kernel, weights.recurrent, weights.bias
    biases: Sequence[Array] = () if bias is None else list(np.atleast_2d(bias))
    if weights.is_cudnn_lstm and bias is not None:
        # cuDNN keeps the input side in the other memory order, and the recurrent side transposed.
        kernel = _by_gate(kernel, lambda block: block.T.reshape(block.shape, order="F"))
        recurrent = _by_gate(recurrent, lambda block: block.T)
        # Added in the stored type, as Keras does when it loads such weights into an LSTM layer.
        with np.errstate(all="ignore"):  # what is not finite is refused by name later
            biases = [np.add(*np.split(bias, 2))]
    arrays = [kernel.T, recurrent.T, *biases]
    if weights.kind == "gru":
        arrays = [_reordered(array) for array in arrays]
    names = ("W_xh", "W_hh", "b_h") if weights.kind == "rnn" else ("W_x", "W_h", "b_x", "b_h")
    held = weights.tensors
    sources = (held.kernel, held.recurrent, held.bias or "", held.bias or "")
    keyed = list(zip(names, arrays, sources, strict=False))
    return {name: array for name, array, _ in keyed}, {name: key for name, _, key in keyed}


def _by_gate(kernel: Array, change: Callable[[Array], Array]) -> Array:
    return np.concatenate([change(block) for block in np.split(kernel, 4, axis=1)], axis=1)


def _reordered(rows: Array) -> Array:
    blocks = np.split(rows, 3)
    return np.concatenate([blocks[index] for index in GRU_ORDER])
