"""The operators that exporters compute weights with, on NumPy arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from gradlab.arrays import Array
from gradlab.checkpoints.element_types import BFLOAT16
from gradlab.checkpoints.onnx.stored import KINDS

Inputs: TypeAlias = Sequence[Array | None]  # None for an input that is left out
Attributes: TypeAlias = Mapping[str, Any]
Operator: TypeAlias = Callable[[Inputs, Attributes], Any]


def _present(inputs: Inputs, index: int) -> Array | None:
    return inputs[index] if index < len(inputs) else None


def _needed(inputs: Inputs, index: int = 0) -> Array:
    array = _present(inputs, index)
    if array is None:
        raise ValueError(f"input {index} is missing")
    return array


def _integers(inputs: Inputs, index: int, attributes: Attributes, name: str) -> list[int] | None:
    """Integers of an input, or of the attribute that older operator sets have in its place."""
    array = _present(inputs, index)
    if array is not None:
        return [int(number) for number in np.atleast_1d(array)]
    return attributes.get(name)


def _elementwise(function: Callable[..., Any]) -> Operator:
    return lambda inputs, attributes: function(*map(np.asarray, inputs))


def _divide(a: Array, b: Array) -> Array:
    """Integers are divided toward zero."""
    quotient = np.true_divide(a, b)
    return np.trunc(quotient).astype(a.dtype) if a.dtype.kind in "iu" else quotient


def _cast(inputs: Inputs, attributes: Attributes) -> Array:
    kind = KINDS[attributes["to"]]
    if kind == BFLOAT16:
        raise ValueError("rounds to bfloat16")
    return _needed(inputs).astype(kind)


def _reshape(inputs: Inputs, attributes: Attributes) -> Array:
    data, shape = _needed(inputs), _integers(inputs, 1, attributes, "shape") or []
    kept = shape if attributes.get("allowzero") else [
        data.shape[axis] if length == 0 else length for axis, length in enumerate(shape)
    ]  # fmt: skip
    return data.reshape(kept)


def _flatten(inputs: Inputs, attributes: Attributes) -> Array:
    data, axis = _needed(inputs), attributes.get("axis", 1)
    return data.reshape(math.prod(data.shape[:axis]), -1)


def _squeeze(inputs: Inputs, attributes: Attributes) -> Array:
    axes = _integers(inputs, 1, attributes, "axes")
    return np.squeeze(_needed(inputs), None if axes is None else tuple(axes))


def _unsqueeze(inputs: Inputs, attributes: Attributes) -> Array:
    return np.expand_dims(_needed(inputs), tuple(_integers(inputs, 1, attributes, "axes") or []))


def _slice(inputs: Inputs, attributes: Attributes) -> Array:
    data = _needed(inputs)
    starts, ends = (
        _integers(inputs, index, attributes, name) or []
        for index, name in ((1, "starts"), (2, "ends"))
    )
    axes = _integers(inputs, 3, attributes, "axes") or list(range(len(starts)))
    steps = _integers(inputs, 4, attributes, "steps") or [1] * len(starts)
    places = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        places[axis] = slice(start, end, step)
    return data[tuple(places)]


def _split(inputs: Inputs, attributes: Attributes) -> list[Array]:
    data, axis = _needed(inputs), attributes.get("axis", 0)
    lengths = _integers(inputs, 1, attributes, "split")
    if lengths is None:
        count = attributes.get("num_outputs", attributes["outputs"])
        return np.array_split(data, _even(data.shape[axis], count), axis)
    return np.split(data, np.cumsum(lengths)[:-1], axis)


def _even(length: int, count: int) -> list[int]:
    """Places of equal cuts; the last part is the shorter one."""
    part = -(-length // count)
    return [part * index for index in range(1, count)]


def _shape(inputs: Inputs, attributes: Attributes) -> Array:
    shape = _needed(inputs).shape
    return np.array(shape[attributes.get("start", 0) : attributes.get("end")], np.int64)


def _expand(inputs: Inputs, attributes: Attributes) -> Array:
    data = _needed(inputs)
    wanted = _integers(inputs, 1, attributes, "shape") or []
    return np.broadcast_to(data, np.broadcast_shapes(data.shape, tuple(wanted)))


def _constant_of_shape(inputs: Inputs, attributes: Attributes) -> Array:
    value = np.ravel(attributes.get("value", np.zeros(1, np.float32)))[0]
    return np.full(tuple(_integers(inputs, 0, attributes, "shape") or []), value)


def _tile(inputs: Inputs, attributes: Attributes) -> Array:
    return np.tile(_needed(inputs), tuple(_integers(inputs, 1, attributes, "repeats") or []))


def _reduce(function: Callable[..., Any]) -> Operator:
    def reduced(inputs: Inputs, attributes: Attributes) -> Array:
        data, axes = _needed(inputs), _integers(inputs, 1, attributes, "axes")
        if not axes and attributes.get("noop_with_empty_axes"):
            return data
        kept = bool(attributes.get("keepdims", 1))
        return np.asarray(function(data, axis=tuple(axes) if axes else None, keepdims=kept))

    return reduced


def dequantized(
    data: Array, scale: Array, zero_point: Array | None, axis: int = 1, block: int = 0
) -> Array:
    """(q - zero point) * scale, per tensor, per entry of an axis, or per block along it.

    Parameters
    ----------
    data
        Integers.
    scale, zero_point
        One number, one an entry of the axis, or an array of blocks; zero points are 0 if None.
    axis
        The axis of the entries or blocks.
    block
        Entries of a block; 0 if there are none.

    Returns
    -------
    values
        In float64.
    """
    shift = np.zeros_like(scale) if zero_point is None else zero_point
    parts = [np.asarray(part) for part in (scale, shift)]
    if block:
        along = slice(0, data.shape[axis])
        parts = [np.repeat(part, block, axis) for part in parts]
        parts = [np.moveaxis(np.moveaxis(part, axis, 0)[along], 0, axis) for part in parts]
    elif parts[0].size > 1:
        lengths = [1] * data.ndim
        lengths[axis] = -1
        parts = [part.reshape(lengths) for part in parts]
    else:
        parts = [part.reshape(()) for part in parts]
    factor, zero = parts
    return np.asarray((data.astype(np.float64) - zero) * factor.astype(np.float64))


def _dequantize(inputs: Inputs, attributes: Attributes) -> Array:
    scale, axis, block = _needed(inputs, 1), attributes.get("axis", 1), attributes.get("block_size")
    values = dequantized(_needed(inputs), scale, _present(inputs, 2), axis, block or 0)
    return values.astype(scale.dtype)


def _norm(data: Array, **options: Any) -> Array:
    return np.asarray(np.sqrt(np.sum(np.square(data), **options)))


def _mean(data: Array, **options: Any) -> Array:
    return np.asarray(np.mean(data, **options))


OPERATORS: Mapping[str, Operator] = {
    "Identity": lambda inputs, attributes: _needed(inputs),
    "Cast": _cast,
    "CastLike": lambda inputs, attributes: _needed(inputs).astype(_needed(inputs, 1).dtype),
    "Transpose": lambda inputs, attributes: np.transpose(_needed(inputs), attributes.get("perm")),
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Slice": _slice,
    "Concat": lambda inputs, attributes: np.concatenate(
        [_needed(inputs, index) for index in range(len(inputs))], attributes.get("axis", 1)
    ),
    "Split": _split,
    "Gather": lambda inputs, attributes: np.take(
        _needed(inputs), _needed(inputs, 1), attributes.get("axis", 0)
    ),
    "Shape": _shape,
    "Size": lambda inputs, attributes: np.array(_needed(inputs).size, np.int64),
    "Expand": _expand,
    "ConstantOfShape": _constant_of_shape,
    "Tile": _tile,
    "Add": _elementwise(np.add),
    "Sub": _elementwise(np.subtract),
    "Mul": _elementwise(np.multiply),
    "Div": _elementwise(_divide),
    "Pow": _elementwise(np.power),
    "Neg": _elementwise(np.negative),
    "Abs": _elementwise(np.abs),
    "Sqrt": _elementwise(np.sqrt),
    "Exp": _elementwise(np.exp),
    "Reciprocal": _elementwise(np.reciprocal),
    "Equal": _elementwise(np.equal),
    "Not": _elementwise(np.logical_not),
    "And": _elementwise(np.logical_and),
    "Or": _elementwise(np.logical_or),
    "Where": _elementwise(np.where),
    "MatMul": _elementwise(np.matmul),
    "ReduceSum": _reduce(np.sum),
    "ReduceMean": _reduce(_mean),
    "ReduceMax": _reduce(np.max),
    "ReduceL2": _reduce(_norm),
    "DequantizeLinear": _dequantize,
}

BROADCAST = ("Add", "Sub", "Mul", "Div", "Pow", "Equal", "And", "Or", "Where")


def result_size(op: str, inputs: Inputs, attributes: Attributes) -> int:
    """Largest number of entries, or of products, that an operator can need.

    Parameters
    ----------
    op
        One of the keys of ``OPERATORS``.
    inputs, attributes
        What it is applied to.

    Returns
    -------
    size
        An upper bound, known before any memory is taken.
    """
    shapes: list[tuple[int, ...]] = [array.shape for array in inputs if array is not None]
    if op in ("Expand", "ConstantOfShape", "Tile"):
        wanted = [max(1, abs(int(length))) for length in np.ravel(_needed(inputs, len(inputs) - 1))]
        return math.prod(wanted) * (1 if op == "ConstantOfShape" else math.prod(shapes[0]))
    if op == "Gather":
        return math.prod(shapes[0]) * max(1, math.prod(shapes[1]))
    if op == "MatMul":
        return math.prod(shapes[0]) * math.prod(shapes[1][:-2] + shapes[1][-1:])
    if op in BROADCAST:
        return math.prod(np.broadcast_shapes(*shapes))
    return sum(map(math.prod, shapes))
