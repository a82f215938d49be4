"""What the weights of a file become: sums, casts, rebuilt matrices, and refusals by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from gradlab.checkpoints.archive import Tensors
from gradlab.checkpoints.parametrizations import orthogonal

if TYPE_CHECKING:
    from tests.checkpoints.conftest import ModelWriter

HALF = 0.5 * np.eye(2)
Write = Callable[["ModelWriter", Mapping[str, Array]], Path]
CONTAINERS: dict[str, Write] = {
    "torch": lambda write, tensors: write.torch(dict(tensors)),
    "npz": lambda write, tensors: write.npz(tensors),
    "safetensors": lambda write, tensors: write.safetensors(tensors),
}


def sigma(network: gl.Network) -> float:
    return float(np.linalg.norm(network.only().parameters["W_hh"], 2))


def test_two_biases_of_a_layer_add_up(write: ModelWriter) -> None:
    """Case H24."""
    layer = write.layer(HALF)
    layer["bias_ih_l0"], layer["bias_hh_l0"] = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    np.testing.assert_array_equal(gl.load(write.npz(layer)).only().parameters["b_h"], [11.0, 22.0])


def test_absent_biases_are_zeros_and_said_to_be(write: ModelWriter) -> None:
    layer = write.layer(HALF, "rnn.")
    del layer["rnn.bias_ih_l0"], layer["rnn.bias_hh_l0"]
    network = gl.load(write.npz(layer))
    np.testing.assert_array_equal(network.only().parameters["b_h"], np.zeros(2))
    assert "rnn.l0 has no bias in the file: zeros used" in network.assumptions


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weight_that_is_not_finite_is_named_with_index_and_count(
    write: ModelWriter, container: str, value: float
) -> None:
    """Case H5: it never reaches a solver, which would complain about something else."""
    W_hh = 0.5 * np.eye(3)
    W_hh[1, 2] = value
    path = CONTAINERS[container](write, write.layer(W_hh, "rnn."))
    with pytest.raises(gl.NonFiniteError) as refusal:
        gl.load(path)
    for part in (str(path), "rnn.weight_hh_l0", "W_hh", "1 non-finite entry of 9", "(1, 2)"):
        assert part in str(refusal.value)


@pytest.mark.parametrize("key", ["weight_ih_l0", "bias_ih_l0", "bias_hh_l0"])
def test_every_tensor_of_a_layer_must_be_finite(write: ModelWriter, key: str) -> None:
    layer = write.layer(HALF)
    layer[key].flat[0] = np.nan
    with pytest.raises(gl.NonFiniteError, match=key):
        gl.load(write.npz(layer))


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        ("weight_hh_l0", (2, 3)),
        ("weight_hh_l0", (2,)),
        ("weight_hh_l0", (1, 2, 2)),
        ("weight_ih_l0", (3, 2)),
        ("weight_ih_l0", (2,)),
        ("bias_ih_l0", (3,)),
        ("bias_hh_l0", (2, 1)),
    ],
)
def test_shapes_that_do_not_fit_are_named_with_their_tensors(
    write: ModelWriter, key: str, shape: tuple[int, ...]
) -> None:
    layer = write.layer(HALF)
    layer[key] = np.ones(shape)
    with pytest.raises(gl.ShapeError) as refusal:
        gl.load(write.npz(layer))
    for part in (key, str(shape), "weight_hh_l0"):
        assert part in str(refusal.value)


def test_layer_that_cannot_read_the_one_below_is_an_error(write: ModelWriter) -> None:
    """A bidirectional layer of 2 units gives 4 features."""
    tensors = write.layer(HALF) | write.layer(HALF, "", "_l0_reverse")
    stacked = tensors | write.layer(HALF, "", "_l1", 4)
    assert list(gl.load(write.npz(stacked))) == ["l0", "l0.reverse", "l1"]
    with pytest.raises(gl.ShapeError, match=r"weight_ih_l1 .*\(2, 2\) .*layer 0 gives 4"):
        gl.load(write.npz(tensors | write.layer(HALF, "", "_l1", 2)))


def test_directions_of_a_layer_must_read_the_same_features(write: ModelWriter) -> None:
    tensors = write.layer(HALF, D=3) | write.layer(HALF, "", "_l0_reverse", 5)
    with pytest.raises(gl.ShapeError, match=r"weight_ih_l0_reverse .*other direction reads 3"):
        gl.load(write.npz(tensors))


def test_layer_without_input_weights_is_an_error(write: ModelWriter) -> None:
    layer = write.layer(HALF)
    del layer["weight_ih_l0"]
    with pytest.raises(gl.ModelFileError, match="weight_hh_l0 has no weight_ih_l0 beside it"):
        gl.load(write.npz(layer))


def test_what_a_file_does_not_store_is_assumed_aloud(write: ModelWriter) -> None:
    path = write.npz(write.layer(HALF, "rnn."))
    network = gl.load(path)
    assert network.source == str(path)
    assert network.assumptions == (
        "the file does not store the non-linearity of rnn.l0: tanh assumed (option nonlinearity)",
        "the file does not store the batch axis: inputs (time, batch, features) assumed "
        "(option batch_first)",
    )
    told = gl.load(path, nonlinearity="relu", batch_first=True)
    assert told.assumptions == ()
    assert told.only().parameters["W_hh"].dtype == np.float64


@pytest.mark.parametrize(
    ("option", "value", "hint"),
    [("nonlinearity", "thanh", "did you mean 'tanh'"), ("dtype", "float16", "float32")],
)
def test_unknown_option_value_is_refused_before_the_file_is_opened(
    tmp_path: Path, option: str, value: str, hint: str
) -> None:
    with pytest.raises(gl.UnknownNameError, match=f"unknown {option} '{value}'.*{hint}"):
        gl.load(tmp_path / "missing.pt", **{option: value})  # type: ignore[arg-type]


def test_float32_is_the_nearest_of_the_stored_numbers(write: ModelWriter) -> None:
    rng = np.random.default_rng(1)
    W_hh = rng.normal(size=(3, 3))
    cell = gl.load(write.npz(write.layer(W_hh)), dtype="float32").only()
    assert cell.parameters["W_hh"].dtype == np.float32
    np.testing.assert_array_equal(cell.parameters["W_hh"], W_hh.astype(np.float32))


def test_weight_beyond_the_range_of_float32_is_refused_by_name(write: ModelWriter) -> None:
    path = write.npz(write.layer(1e300 * np.eye(2), "rnn."))
    assert sigma(gl.load(path)) == pytest.approx(1e300)
    with pytest.raises(gl.NonFiniteError, match=r"W_hh of rnn\.l0 in float32"):
        gl.load(path, dtype="float32")


@pytest.mark.parametrize("kind", ["int8", "complex128", "bool"])
def test_quantized_and_complex_weights_are_refused(write: ModelWriter, kind: str) -> None:
    layer = write.layer(HALF)
    layer["weight_hh_l0"] = layer["weight_hh_l0"].astype(kind)
    with pytest.raises(gl.ModelFileError, match=f"weight_hh_l0 .*is {kind}"):
        gl.load(write.npz(layer))


@pytest.mark.parametrize("kind", ["float16", "float32", ">f8", "int64"])
def test_any_real_type_becomes_float64(write: ModelWriter, kind: str) -> None:
    layer = {key: array.astype(kind) for key, array in write.layer(2 * HALF).items()}
    assert sigma(gl.load(write.npz(layer))) == 1.0


def test_transposed_views_and_big_endian_storages_are_followed(write: ModelWriter) -> None:
    W_hh, offset = np.arange(6.0).reshape(2, 3)[:, :2], 3
    storage = np.concatenate([np.full(offset, np.nan), W_hh.ravel(order="F")])
    layer: dict[str, object] = dict(write.layer(W_hh))
    layer["weight_hh_l0"] = write.view(storage, offset, (2, 2), (1, 2))
    paths = (
        write.torch(layer),
        write.torch(layer, name="big.pt", byte_order=">"),
        write.legacy(layer, name="old.pt"),
    )
    for path in paths:
        np.testing.assert_array_equal(gl.load(path).only().parameters["W_hh"], W_hh)


def test_arrays_in_column_order_keep_their_rows(write: ModelWriter) -> None:
    W_hh = np.arange(4.0).reshape(2, 2)
    layer = write.layer(W_hh) | {"weight_hh_l0": np.asfortranarray(W_hh)}
    np.testing.assert_array_equal(gl.load(write.npz(layer)).only().parameters["W_hh"], W_hh)


def test_raw_matrix_of_a_weight_dropped_layer_is_taken(write: ModelWriter) -> None:
    """Case H34: the masked copy beside it has norm 1."""
    masked = np.array([[1.0, 0.0], [0.0, 0.0]])
    layer = write.layer(masked, "rnn.") | {"rnn.weight_hh_l0_raw": HALF}
    network = gl.load(write.npz(layer))
    assert sigma(network) == 0.5
    assert any("raw matrix of a weight-dropped layer" in said for said in network.assumptions)


def test_raw_matrix_above_its_wrapped_layer_is_taken(write: ModelWriter) -> None:
    """Case H34: some wrappers keep the raw matrix one level above the module it belongs to."""
    layer = write.layer(np.diag([1.0, 0.0]), "rnn.module.") | {"rnn.weight_hh_l0_raw": HALF}
    network = gl.load(write.npz(layer))
    assert list(network) == ["rnn.module.l0"]
    assert sigma(network) == 0.5


def test_masked_copy_alone_is_taken_with_a_warning(write: ModelWriter) -> None:
    """Case H34; a diagonal matrix has zeros too, and is no copy of anything."""
    masked = gl.load(write.npz(write.layer(np.diag([1.0, 0.0]))))
    assert any("75% of weight_hh_l0 are exactly 0" in said for said in masked.assumptions)
    for plain in (HALF, np.zeros((2, 2)), np.ones((2, 2))):
        network = gl.load(write.npz(write.layer(plain)))
        assert not any("exactly 0" in said for said in network.assumptions)


@pytest.mark.parametrize("style", ["old", "new"])
@pytest.mark.parametrize(("vector", "expected"), [((1.0, 0.0), 1.0), ((0.6, 0.8), 1.74418604651)])
def test_spectral_norm_uses_the_stored_vectors(
    write: ModelWriter, style: str, vector: tuple[float, float], expected: float
) -> None:
    """Case H35: a vector that has not converged leaves a 'normalized' weight above 1."""
    new = "parametrizations.weight_hh_l0."
    keys = {
        "old": ("weight_hh_l0_orig", "weight_hh_l0_u", "weight_hh_l0_v"),
        "new": (f"{new}original", f"{new}0._u", f"{new}0._v"),
    }
    layer = write.layer(HALF, "rnn.")
    del layer["rnn.weight_hh_l0"]
    parts = (np.diag([3.0, 1.0]), np.array(vector), np.array(vector))
    layer |= {f"rnn.{key}": part for key, part in zip(keys[style], parts, strict=True)}
    network = gl.load(write.npz(layer))
    assert list(network) == ["rnn.l0"]
    assert sigma(network) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("shape", [(2, 1), (1, 2), ()])
def test_weight_norm_runs_over_the_axes_where_its_magnitude_has_size_one(
    write: ModelWriter, shape: tuple[int, ...]
) -> None:
    v = np.array([[3.0, 1.0], [4.0, 1.0]])
    g = np.full(shape, 2.0)
    layer = write.layer(HALF)
    del layer["weight_hh_l0"]
    layer |= {"weight_hh_l0_g": g, "weight_hh_l0_v": v}
    W_hh = gl.load(write.npz(layer)).only().parameters["W_hh"]
    axis = {(2, 1): 1, (1, 2): 0, (): None}[shape]
    np.testing.assert_allclose(np.linalg.norm(W_hh, axis=axis), 2.0, rtol=1e-15)
    direction = v / np.linalg.norm(v, axis=axis, keepdims=True)
    np.testing.assert_allclose(W_hh, 2.0 * direction, rtol=1e-15)


def test_orthogonal_parametrization_is_orthogonal_whatever_is_stored(write: ModelWriter) -> None:
    rng = np.random.default_rng(2)
    base = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    layer = write.layer(np.eye(5))
    del layer["weight_hh_l0"]
    nested = "parametrizations.weight_hh_l0."
    layer |= {f"{nested}original": rng.normal(size=(5, 5)), f"{nested}0.base": base}
    W_hh = gl.load(write.npz(layer)).only().parameters["W_hh"]
    np.testing.assert_allclose(W_hh @ W_hh.T, np.eye(5), atol=1e-13)
    assert np.abs(W_hh - base).max() > 0.1


@pytest.mark.parametrize("shape", [(8, 2), (2, 8)])
def test_orthogonal_parametrization_of_a_matrix_that_is_not_square_reflects(
    shape: tuple[int, int],
) -> None:
    """The columns stay orthonormal, and without reflections are those of the base, negated."""
    rng = np.random.default_rng(4)
    base = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    start = -np.eye(*shape)
    W = np.asarray(start + (np.tril(rng.normal(size=(8, 2)), -1).T if shape[0] == 2 else
                            np.tril(rng.normal(size=(8, 2)), -1)))  # fmt: skip
    found = orthogonal(W, base)
    assert found.shape == shape
    tall = found if shape[0] == 8 else found.T
    np.testing.assert_allclose(tall.T @ tall, np.eye(2), atol=1e-14)
    still = orthogonal(start, base)
    np.testing.assert_allclose(still if shape[0] == 8 else still.T, base[:, :2], atol=1e-14)


@pytest.mark.parametrize("extra", ["parametrizations.weight_hh_l0.0.mask", "weight_hh_l0_u"])
def test_unknown_parametrization_is_refused_by_name(write: ModelWriter, extra: str) -> None:
    layer = write.layer(HALF, "rnn.")
    del layer["rnn.weight_hh_l0"]
    layer |= {"rnn.parametrizations.weight_hh_l0.original": HALF, f"rnn.{extra}": HALF}
    with pytest.raises(gl.ModelFileError, match=r"rnn\.weight_hh_l0 has a parametrization"):
        gl.load(write.npz(layer))


def test_parametrization_on_top_of_a_known_one_is_refused(write: ModelWriter) -> None:
    """Weight norm, then something else: the parts of the first alone would be another matrix."""
    layer = write.layer(HALF)
    del layer["weight_hh_l0"]
    nested = "parametrizations.weight_hh_l0."
    layer |= {f"{nested}original0": np.ones((2, 1)), f"{nested}original1": np.ones((2, 2))}
    assert sigma(gl.load(write.npz(layer))) == pytest.approx(np.sqrt(2.0))
    with pytest.raises(gl.ModelFileError, match="parametrization that gradlab does not know"):
        gl.load(write.npz(layer | {f"{nested}1._u": np.ones(2)}))


def test_parts_that_do_not_fit_their_formula_are_named(write: ModelWriter) -> None:
    layer = write.layer(HALF)
    del layer["weight_hh_l0"]
    layer |= {
        "weight_hh_l0_orig": HALF,
        "weight_hh_l0_u": np.ones(3),
        "weight_hh_l0_v": np.ones(2),
    }
    with pytest.raises(gl.ShapeError, match=r"weight_hh_l0_u \(3,\).*spectral norm"):
        gl.load(write.npz(layer))


def test_vanishing_normalization_is_refused_as_not_finite(write: ModelWriter) -> None:
    layer = write.layer(HALF)
    del layer["weight_hh_l0"]
    layer |= {
        "weight_hh_l0_orig": HALF,
        "weight_hh_l0_u": np.zeros(2),
        "weight_hh_l0_v": np.ones(2),
    }
    with pytest.raises(gl.NonFiniteError, match="weight_hh_l0"):
        gl.load(write.npz(layer))


@pytest.mark.parametrize("container", CONTAINERS)
def test_recurrent_tensors_alone_are_read_and_each_but_once(
    write: ModelWriter, container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An embedding beside a layer may be as large as it likes."""
    layer = write.layer(np.ones((8, 2)), "rnn.")
    path = CONTAINERS[container](write, layer | {"embedding.weight": np.ones((50, 2))})
    read: list[str] = []
    plain = Tensors.__getitem__

    def counted(self: Tensors, name: str) -> Array:
        read.append(name)
        return plain(self, name)

    monkeypatch.setattr(Tensors, "__getitem__", counted)
    assert list(gl.load(path)) == ["rnn.l0"]
    assert sorted(read) == sorted(layer)


def test_half_precision_of_safetensors_is_widened_without_change(write: ModelWriter) -> None:
    layer = {name: array.astype(np.float16) for name, array in write.layer(HALF / 3).items()}
    header: dict[str, object] = {}
    position = 0
    for name, array in layer.items():
        end = position + array.nbytes
        entry = {"dtype": "F16", "shape": list(array.shape), "data_offsets": [position, end]}
        header[name] = entry
        position = end
    values = b"".join(array.tobytes() for array in layer.values())
    network = gl.load(write.header_and_values(json.dumps(header), values))
    assert network.recurrences[0].stored_dtype == "float16"
    expected = layer["weight_hh_l0"].astype(np.float64)
    np.testing.assert_array_equal(network.only().parameters["W_hh"], expected)
