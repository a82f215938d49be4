"""Folded operators, against the reference evaluator of the onnx package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from gradlab.arrays import Array
from gradlab.checkpoints.onnx.operators import OPERATORS, result_size

onnx = pytest.importorskip("onnx")
reference = pytest.importorskip("onnx.reference")

RNG = np.random.default_rng(0)
M = RNG.normal(size=(4, 6)).astype(np.float32)
P = np.abs(M) + 0.5
CUBE = RNG.normal(size=(2, 3, 4)).astype(np.float32)
BYTES = RNG.integers(-128, 128, (4, 6)).astype(np.int8)


def ints(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


Case = tuple[str, int, list[Array], Mapping[str, Any]]  # operator, operator set, inputs, attributes
CASES: list[Case] = [
    ("Identity", 17, [M], {}),
    ("Cast", 17, [M], {"to": 11}),
    ("Cast", 17, [M], {"to": 7}),
    ("CastLike", 17, [M, ints(1)], {}),
    ("Transpose", 17, [CUBE], {}),
    ("Transpose", 17, [CUBE], {"perm": [1, 0, 2]}),
    ("Reshape", 17, [CUBE, ints(0, -1)], {}),
    ("Reshape", 17, [CUBE, ints(4, 6)], {}),
    ("Flatten", 17, [CUBE], {}),
    ("Flatten", 17, [CUBE], {"axis": 2}),
    ("Squeeze", 17, [M[None], ints(0)], {}),
    ("Squeeze", 17, [M[None]], {}),
    ("Squeeze", 11, [M[None]], {"axes": [0]}),
    ("Unsqueeze", 17, [M, ints(0, -1)], {}),
    ("Unsqueeze", 11, [M], {"axes": [1]}),
    ("Slice", 17, [M, ints(1), ints(3)], {}),
    ("Slice", 17, [M, ints(-3, 1), ints(2**62, -1), ints(0, 1)], {}),
    ("Slice", 17, [M, ints(5), ints(-(2**62)), ints(1), ints(-2)], {}),
    ("Concat", 17, [M, P, M], {"axis": 0}),
    ("Concat", 17, [M, P], {"axis": -1}),
    ("Split", 17, [M, ints(1, 2, 3)], {"axis": 1}),
    ("Split", 17, [M], {"axis": 0}),
    ("Split", 18, [M], {"axis": 1, "num_outputs": 4}),
    ("Split", 11, [M], {"axis": 1, "split": [2, 4]}),
    ("Gather", 17, [M, ints(2, 0, -1)], {"axis": 1}),
    ("Gather", 17, [M, np.array(1)], {}),
    ("Shape", 17, [CUBE], {}),
    ("Shape", 17, [CUBE], {"start": 1, "end": -1}),
    ("Size", 17, [CUBE], {}),
    ("Expand", 17, [M[:, :1], ints(2, 1, 6)], {}),
    ("Tile", 17, [M, ints(2, 1)], {}),
    ("Add", 17, [M, P[0]], {}),
    ("Sub", 17, [M, P], {}),
    ("Mul", 17, [M, P[:, :1]], {}),
    ("Div", 17, [M, P], {}),
    ("Div", 17, [ints(7, 9), ints(2, 3)], {}),
    ("Pow", 17, [P, np.array(2.0, np.float32)], {}),
    ("Neg", 17, [M], {}),
    ("Abs", 17, [M], {}),
    ("Sqrt", 17, [P], {}),
    ("Exp", 17, [M], {}),
    ("Reciprocal", 17, [P], {}),
    ("Equal", 17, [BYTES, BYTES.T.reshape(4, 6)], {}),
    ("Not", 17, [M > 0], {}),
    ("And", 17, [M > 0, P > 1], {}),
    ("Or", 17, [M > 0, P > 1], {}),
    ("Where", 17, [M > 0, M, P], {}),
    ("MatMul", 17, [M, P.T], {}),
    ("MatMul", 17, [CUBE, CUBE[0].T], {}),
    ("ReduceSum", 17, [CUBE, ints(1)], {"keepdims": 0}),
    ("ReduceSum", 17, [CUBE], {}),
    ("ReduceSum", 17, [CUBE], {"noop_with_empty_axes": 1}),
    ("ReduceMean", 17, [CUBE], {"axes": [0, 2]}),
    ("ReduceMax", 17, [CUBE], {"axes": [2], "keepdims": 0}),
    ("ReduceL2", 17, [CUBE], {"axes": [2]}),
    ("ReduceL2", 18, [CUBE, ints(2)], {}),
    ("ConstantOfShape", 17, [ints(2, 3)], {}),
    ("ConstantOfShape", 17, [ints(2, 3)], {"value": np.array([7], np.int64)}),
    ("DequantizeLinear", 19, [BYTES, np.array(0.1, np.float32)], {}),
    ("DequantizeLinear", 19, [BYTES, P[0], BYTES[1]], {"axis": 1}),
    ("DequantizeLinear", 19, [BYTES, P[:, 0], BYTES[:, 1]], {"axis": 0}),
    ("DequantizeLinear", 21, [BYTES, P[:, :2], BYTES[:, :2]], {"axis": 1, "block_size": 3}),
]


def name_of(case: Case) -> str:
    op, opset, inputs, attributes = case
    return f"{op}-{opset}-{len(inputs)}-{','.join(attributes)}"


def expected(case: Case, outputs: int) -> list[Array]:
    """What the reference evaluator gives."""
    op, opset, inputs, attributes = case
    tensors = {
        key: onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for key, value in attributes.items()
    }
    names = [f"i{k}" for k in range(len(inputs))]
    results = [f"o{k}" for k in range(outputs)]
    H = onnx.helper
    node = H.make_node(op, names, results, **tensors)
    given = [
        H.make_tensor_value_info(name, H.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, inputs, strict=True)
    ]
    made = [H.make_tensor_value_info(name, 1, None) for name in results]
    graph = H.make_graph([node], "graph", given, made)
    model = H.make_model(graph, opset_imports=[H.make_opsetid("", opset)])
    found: list[Array] = reference.ReferenceEvaluator(model).run(
        None, dict(zip(names, inputs, strict=True))
    )
    return found


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_operators_give_what_the_reference_gives_within_the_size_foretold(case: Case) -> None:
    op, _, inputs, attributes = case
    outputs = {"Split": attributes.get("num_outputs", 3 if len(inputs) == 2 else 2)}.get(op, 1)
    result = OPERATORS[op](inputs, {"outputs": outputs} | dict(attributes))
    found = result if isinstance(result, list) else [result]
    for ours, theirs in zip(found, expected(case, outputs), strict=True):
        assert np.shape(ours) == np.shape(theirs)
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)
    size = result_size(op, inputs, attributes)
    assert sum(np.size(array) for array in found) <= size


def test_every_operator_has_a_case() -> None:
    assert {case[0] for case in CASES} == set(OPERATORS)
