"""What Keras's words and silences mean, which has changed over its versions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.checkpoints.keras.conftest import KerasWriter

pytest.importorskip("h5py")

PARTS = ("kernel:0", "recurrent_kernel:0", "bias:0")
FORGET_ONE = [np.zeros((1, 4)), np.zeros((1, 4)), np.array([0.0, 1.0, 0.0, 0.0])]


def old(
    keras: KerasWriter, weights: Sequence[Array], version: str | None, config: object = None
) -> Path:
    """A file of Keras 2 with one layer."""
    named = {f"layer/{part}": weight for part, weight in zip(PARTS, weights, strict=False)}
    return keras.listed({"layer": named}, version=version, config=config)


def carried(network: gl.Network, steps: int = 20) -> float:
    """What is left of the cell state's gradient after so many steps without input."""
    cell = network.only()
    run = gl.rollout(cell, np.zeros((steps, 1, 1)))
    product = np.eye(2)
    for step in cell.linearize(run):
        product = step.matrix()[0] @ product
    return float(product[1, 1])


@pytest.mark.parametrize(
    ("version", "settings", "expected"),
    [
        ("2.2.4", {"recurrent_activation": "sigmoid"}, 0.0019012689),
        ("2.2.4", {"recurrent_activation": "hard_sigmoid"}, 0.00079792266),
        ("2.9.0", {"recurrent_activation": "hard_sigmoid"}, 0.00079792266),
        ("3.0.5", {"recurrent_activation": "hard_sigmoid"}, (4.0 / 6.0) ** 20),
    ],
)
def test_gates_are_what_the_configuration_says_in_its_version(
    keras: KerasWriter, version: str, settings: dict[str, str], expected: float
) -> None:
    """Case H13: forget pre-activation 1 over 20 steps."""
    config = keras.sequential(("LSTM", {"name": "layer", **settings}))
    network = gl.load(old(keras, FORGET_ONE, version, config), batch_first=True)
    assert carried(network) == pytest.approx(expected, rel=1e-6)
    assert network.assumptions == ()


@pytest.mark.parametrize(
    ("version", "gates"),
    [
        ("2.0.8", "hard_sigmoid"),
        ("2.2.4", "hard_sigmoid"),
        ("2.2.4-tf", "sigmoid"),
        ("2.3.0", "sigmoid"),
        ("2.10.1", "sigmoid"),
        ("3.1.0", "sigmoid"),
        (None, "sigmoid"),
    ],
)
def test_default_for_gates_is_that_of_the_version_and_is_said(
    keras: KerasWriter, version: str | None, gates: str
) -> None:
    network = gl.load(old(keras, FORGET_ONE, version))
    slope = {"sigmoid": 1.0 / (1.0 + math.exp(-1.0)), "hard_sigmoid": 0.7}[gates]
    assert carried(network) == pytest.approx(slope**20, rel=1e-9)
    reason = f" (the default of Keras {version})" if version else ""
    assert network.assumptions[0] == (
        f"the file does not store the activations of layer: gates {gates}{reason} and candidates "
        "tanh assumed (option recurrent_activation)"
    )


def test_activation_of_the_gates_can_be_told(keras: KerasWriter) -> None:
    path = old(keras, FORGET_ONE, "2.2.4")
    network = gl.load(path, recurrent_activation="sigmoid")
    assert carried(network) == pytest.approx(0.0019012689, rel=1e-6)
    assert network.assumptions[0] == "layer: gates sigmoid as told, candidates tanh assumed"
    assert not any("to act on" in said for said in network.assumptions)


@pytest.mark.parametrize(
    ("told", "version", "slope"),
    [(None, None, 1 / 5), (2, None, 1 / 5), (3, None, 1 / 6), (3, "2.4.0", 1 / 5)],
)
def test_slope_of_a_hard_sigmoid_goes_by_the_version(
    keras: KerasWriter, told: int | None, version: str | None, slope: float
) -> None:
    """That of the file before the one that is told."""
    path = old(keras, FORGET_ONE, version)
    network = gl.load(path, recurrent_activation="hard_sigmoid", keras_version=told)
    assert carried(network) == pytest.approx((slope + 0.5) ** 20, rel=1e-9)
    said = "\n".join(network.assumptions)
    assumed = "the slope 1/5 of Keras 1 and 2 assumed for hard_sigmoid (option keras_version)"
    assert (assumed in said) == (told is None and version is None)
    assert ("the option keras_version = 3 has" in said) == (version is not None)


def test_file_of_the_new_layout_without_a_version_is_taken_for_keras_3(keras: KerasWriter) -> None:
    path = keras.numbered({"layers/lstm/cell": FORGET_ONE}, {"layers/lstm": "lstm"})
    network = gl.load(path, recurrent_activation="hard_sigmoid")
    assert carried(network) == pytest.approx((4 / 6) ** 20, rel=1e-9)
    assert any("Keras 3's slope 1/6 assumed" in said for said in network.assumptions)
    older = gl.load(path, recurrent_activation="hard_sigmoid", keras_version=2)
    assert carried(older) == pytest.approx(0.7**20, rel=1e-9)


def test_options_without_effect_are_said(keras: KerasWriter) -> None:
    config = keras.sequential(("LSTM", {"name": "layer", "recurrent_activation": "sigmoid"}))
    path = old(keras, FORGET_ONE, "2.9.0", config)
    network = gl.load(path, recurrent_activation="sigmoid", keras_version=2, nonlinearity="relu")
    assert [said.split(" has ")[0] for said in network.assumptions if "to act on" in said] == [
        "the option nonlinearity = relu",
        "the option recurrent_activation = sigmoid",
        "the option keras_version = 2",
    ]


def test_vanilla_layer_of_a_file_of_weights_takes_the_told_nonlinearity(
    keras: KerasWriter,
) -> None:
    path = old(keras, keras.weights("SimpleRNN", 2, 3), "2.9.0")
    assumed, told = gl.load(path), gl.load(path, nonlinearity="relu")
    assert isinstance(told.only(), gl.VanillaCell)
    assert [getattr(network.only(), "activation", "") for network in (assumed, told)] == [
        "tanh", "relu",
    ]  # fmt: skip
    assert "tanh assumed (option nonlinearity)" in assumed.assumptions[0]
    assert not any("to act on" in said for said in told.assumptions)


@pytest.mark.parametrize(
    ("bias", "said", "version", "reset"),
    [
        ((2, 6), False, "2.9.0", "after"),
        ((6,), True, "2.9.0", "before"),
        (None, True, "2.9.0", "after"),
        (None, False, "2.9.0", "before"),
        (None, None, "2.9.0", "after"),
        (None, None, "2.3.1", "before"),
        (None, None, None, "after"),
    ],
)
def test_reset_goes_by_the_bias_then_by_the_configuration_then_by_the_version(
    keras: KerasWriter,
    bias: tuple[int, ...] | None,
    said: bool | None,
    version: str | None,
    reset: str,
) -> None:
    settings: dict[str, Any] = {} if said is None else {"reset_after": said}
    config = keras.sequential(
        ("GRU", {"name": "layer", "recurrent_activation": "sigmoid", **settings})
    )
    network = gl.load(old(keras, keras.weights("GRU", 3, 2, bias=bias), version, config))
    assert getattr(network.only(), "reset", "") == reset
    assumed = any(
        "no bias, whose shape would tell the reset" in text for text in network.assumptions
    )
    assert assumed == (bias is None and said is None)


@pytest.mark.parametrize(
    ("word", "name"),
    [(None, "identity"), ("linear", "identity"), ("swish", "silu"), ("hard_tanh", "hard_tanh"),
     ("leaky_relu", "leaky_relu(0.2)"), ("hard_sigmoid", "hard_sigmoid_6")],
)  # fmt: skip
def test_words_of_keras_become_those_of_gradlab(
    keras: KerasWriter, word: str | None, name: str
) -> None:
    config = keras.sequential(("SimpleRNN", {"name": "layer", "activation": word}))
    network = gl.load(old(keras, keras.weights("SimpleRNN", 2, 3), "3.4.1", config))
    assert getattr(network.only(), "activation", "") == name


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("softmax", "softmax"),
        ({"module": "builtins", "class_name": "function", "config": "mine>act"}, "mine>act"),
        ({"module": "builtins", "class_name": "function", "config": "tanh"}, "tanh"),
        ({"module": "keras.layers", "class_name": "LeakyReLU", "config": {}}, "LeakyReLU"),
        ({"value": ["4wEAAAAA", None, None]}, "of a lambda"),
        (["tanh"], "of a lambda"),
    ],
)
@pytest.mark.parametrize("option", ["activation", "recurrent_activation"])
def test_activation_of_another_kind_is_refused_by_name(
    keras: KerasWriter, option: str, word: object, shown: str
) -> None:
    """A function of the user's is stored as an object, even one that is named like Keras's."""
    config = keras.sequential(("LSTM", {"name": "layer", option: word}))
    path = old(keras, FORGET_ONE, "3.4.1", config)
    with pytest.raises(gl.ModelFileError) as refusal:
        gl.load(path)
    assert f"layer (LSTM) has the {option} {shown}, which gradlab does not know" in str(
        refusal.value
    )


def test_layer_of_cudnn_says_its_activations_by_its_layout(keras: KerasWriter) -> None:
    """It has no others, so that nothing is assumed."""
    weights = keras.weights("LSTM", 3, 2, bias=(16,))
    for config in (None, keras.sequential(("CuDNNLSTM", {"name": "layer"}))):
        network = gl.load(old(keras, weights, "2.1.5", config), batch_first=True)
        assert getattr(network.only(), "recurrent_activation", "") == "sigmoid"
        assert network.assumptions == ()
