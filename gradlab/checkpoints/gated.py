"""Tensors of one gated layer to its cell, in the order of gates that PyTorch and gradlab share."""

from __future__ import annotations

from collections.abc import Mapping

from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.cells.gru import GRUCell
from gradlab.cells.lstm import LSTMCell

# What the file does not say, by kind.
ASSUMED = {
    "lstm": "read as PyTorch's LSTM, with the gates i, f, g, o in this order, logistic, and tanh",
    "gru": "read as PyTorch's GRU, with the gates r, z, n in this order, logistic, and tanh, the "
    "reset after the product, z keeping the old state",
}


def gated_cell(kind: str, weights: Mapping[str, Array | None], dtype: str) -> Cell:
    """LSTM or GRU from its weights by attribute name.

    Parameters
    ----------
    kind
        ``lstm`` or ``gru``.
    weights
        W_x, W_h, b_x and b_h, of an LSTM also W_hr and peepholes; None where the file has none.
    dtype
        Type the states are computed in.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other.
    """
    given = {name: array for name, array in weights.items() if array is not None}
    if kind == "lstm":
        return LSTMCell(
            W_x=given["W_x"],
            W_h=given["W_h"],
            b_x=given.get("b_x"),
            b_h=given.get("b_h"),
            W_hr=given.get("W_hr"),
            peepholes=given.get("peepholes"),
            dtype=dtype,
        )
    return GRUCell(
        W_x=given["W_x"], W_h=given["W_h"], b_x=given.get("b_x"), b_h=given.get("b_h"), dtype=dtype
    )
