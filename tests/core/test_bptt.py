"""Backpropagation through time: reference values, frameworks' gradients, complex steps, windows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.arrays import Array
from gradlab.cells.stack import Network, Recurrence
from gradlab.cells.vanilla import VanillaCell
from gradlab.engine.bptt import backpropagate, bptt, forward_runs
from gradlab.engine.losses import Readout
from gradlab.errors import SettingError, ShapeError, UnknownNameError
from gradlab.records.trajectory import Trajectory

MODELS = Path(__file__).parents[1] / "fixtures" / "models"
ALONE = ("rnn_tanh_1l", "rnn_tanh_nobias", "lstm_1l", "gru_1l")
STACKS = (
    "rnn_relu_2l", "rnn_tanh_bi_2l", "lstm_bi_1l", "gru_bi_1l", "lstm_proj_2l",
    "gru_2l_dataparallel", "lstm_2l_lightning",
)  # fmt: skip
STEMS = {
    "W_hh": "weight_hh", "W_xh": "weight_ih", "b_h": "bias_hh",
    "W_h": "weight_hh", "W_x": "weight_ih", "b_x": "bias_ih", "W_hr": "weight_hr",
}  # fmt: skip
BUILT_TO_ORDER = ("vanish", "orthogonal", "explode", "nonnormal", "saturated", "chaotic")


def lcg(seed: int, *shape: int) -> Array:
    """Entries in (-1, 1) of the linear congruential generator that the reference values name."""
    x, values = seed, []
    for _ in range(int(np.prod(shape))):
        x = (1103515245 * x + 12345) % 2**31
        values.append(x / 2.0**30 - 1.0)
    return np.array(values).reshape(shape)


def reference_instance() -> tuple[VanillaCell, Readout, Array, Array]:
    cell = VanillaCell(W_hh=0.8 * lcg(31, 3, 3), W_xh=lcg(32, 3, 2), b_h=0.2 * lcg(33, 3))
    readout = Readout(W_hy=lcg(34, 3, 3), b_y=0.1 * lcg(35, 3))
    return cell, readout, lcg(36, 6, 2)[:, None], np.array([0, 2, 1, 1, 0, 2])[:, None]


REFERENCE_GRADIENT = [
    [0.18015059297214, 0.094401830408926, 0.24239002788997],
    [0.079754678008437, -0.21848136015188, 0.90914445663904],
    [-0.032839072560984, 0.18733759425918, -0.034575601066464],
]


def complex_loss(weights: dict[str, Array], inputs: Array, h: Array, targets: Array) -> complex:
    """Cross entropy of a tanh network, by formulas that stay analytic for complex weights."""
    loss = 0.0 + 0.0j
    for x, classes in zip(inputs, targets, strict=True):
        h = np.tanh(h @ weights["W_hh"].T + x @ weights["W_xh"].T + weights["b_h"])
        logits = h @ weights["W_hy"].T + weights["b_y"]
        own = logits[np.arange(len(classes)), classes]
        loss += np.sum(np.log(np.sum(np.exp(logits - own[:, None]), axis=1)))
    return complex(loss)


def complex_step(
    name: str, place: tuple[int, ...], quantities: dict[str, Array], targets: Array
) -> float:
    """Derivative without cancellation: the imaginary part of a step of 1e-40 i."""
    moved = {key: array.astype(complex) for key, array in quantities.items()}
    moved[name][place] += 1e-40j
    inputs, h = moved.pop("inputs"), moved.pop("initial_state")
    return complex_loss(moved, inputs, h, targets).imag / 1e-40


def random_case(seed: int, batch: int = 2) -> tuple[VanillaCell, Readout, dict[str, Array]]:
    rng = np.random.default_rng(seed)
    cell = VanillaCell.initialize(input_size=2, hidden_size=4, gain=1.4, bias_std=0.3, rng=rng)
    readout = Readout(W_hy=rng.standard_normal((3, 4)), b_y=rng.standard_normal(3))
    return (
        cell,
        readout,
        {
            "inputs": rng.standard_normal((7, batch, 2)),
            "initial_state": 0.5 * rng.standard_normal((batch, 4)),
            "targets": rng.integers(0, 3, (7, batch)),
        },
    )


def network_of(name: str) -> tuple[Network, dict[str, Array], dict[str, Array]]:
    """A framework's network, its oracle and its initial states by recurrence."""
    suffix = "npz" if name.startswith("dyn") else "pt"
    network = gl.load(MODELS / f"{name}.{suffix}", nonlinearity="relu" if "relu" in name else None)
    oracle = dict(np.load(MODELS / f"{name}.oracle.npz"))
    cells = np.concatenate([oracle["h0"], oracle.get("c0", oracle["h0"][:, :0])], axis=1)
    starts = {entry.name: cells[i] for i, entry in enumerate(network.recurrences)}
    return network, oracle, starts


def last_step_only(oracle: dict[str, Array]) -> Array:
    upstream = np.zeros((len(oracle["x"]), 1, len(oracle["loss_v"])))
    upstream[-1, 0] = oracle["loss_v"]
    return upstream


def oracle_name(entry: Recurrence, attribute: str) -> str:
    return f"{STEMS[attribute]}_l{entry.layer}" + (
        "_reverse" if entry.direction == "backward" else ""
    )


def test_reference_instance_has_the_printed_loss_and_gradient() -> None:
    loss, gradients = bptt(*reference_instance())
    assert loss == pytest.approx(6.2549552486249, rel=1e-13)
    np.testing.assert_allclose(gradients["W_hh"], REFERENCE_GRADIENT, rtol=1e-11)
    assert list(gradients) == ["W_hh", "W_xh", "b_h", "W_hy", "b_y"]


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_gradient_agrees_with_the_complex_step(seed: int) -> None:
    cell, readout, case = random_case(seed)
    _, gradients = bptt(
        cell, readout, case["inputs"], case["targets"], initial_state=case["initial_state"]
    )
    quantities = {**cell.parameters, **readout.parameters}
    quantities |= {name: case[name] for name in ("inputs", "initial_state")}
    computed = dict(gradients) | {
        "inputs": gradients.inputs, "initial_state": gradients.initial_state
    }  # fmt: skip
    assert set(computed) == set(quantities)
    for name, array in computed.items():
        for place in list(np.ndindex(array.shape))[::3]:
            expected = complex_step(name, place, quantities, case["targets"])
            assert array[place] == pytest.approx(expected, rel=1e-11, abs=1e-13)


def test_gradient_agrees_with_central_differences_of_the_library_itself() -> None:
    cell, readout, inputs, targets = reference_instance()
    gradient = bptt(cell, readout, inputs, targets)[1]["W_hh"]
    step = 6e-6
    for place in np.ndindex(3, 3):
        shift = np.zeros((3, 3))
        shift[place] = step
        up, down = (
            bptt(
                VanillaCell(W_hh=cell.W_hh + sign * shift, W_xh=cell.W_xh, b_h=cell.b_h),
                readout, inputs, targets,
            )[0]
            for sign in (1.0, -1.0)
        )  # fmt: skip
        assert gradient[place] == pytest.approx((up - down) / (2.0 * step), abs=2e-9)


@pytest.mark.parametrize("name", ALONE + STACKS)
@pytest.mark.parametrize("loss", ["last", "sum"])
def test_gradients_of_all_weights_agree_with_the_framework(name: str, loss: str) -> None:
    network, oracle, starts = network_of(name)
    runs = forward_runs(network, oracle["x"][:, None], initial_state=starts)
    upstream = last_step_only(oracle) if loss == "last" else oracle["loss_u"][:, None]
    passes = backpropagate(network, runs, upstream)
    compared = set()
    for entry in network.recurrences:
        for attribute, gradient in passes[entry.name].gradients.items():
            key = f"grad_{loss}/{oracle_name(entry, attribute)}"
            if key in oracle:
                np.testing.assert_allclose(gradient, oracle[key], rtol=0.0, atol=1e-10)
                compared.add(key)
    # The two biases of a vanilla layer are one here; their gradients are equal there.
    vanilla = {key for key in oracle if "bias_ih" in key and name.startswith("rnn")}
    assert compared == {key for key in oracle if key.startswith(f"grad_{loss}/")} - vanilla


@pytest.mark.parametrize("name", ALONE)
def test_the_use_of_the_weights_at_every_step_agrees_with_the_framework(name: str) -> None:
    network, oracle, starts = network_of(name)
    runs = forward_runs(network, oracle["x"][:, None], initial_state=starts)
    (entry,) = network.recurrences
    adjoints = backpropagate(network, runs, last_step_only(oracle))[entry.name].adjoints
    hidden = adjoints[1:, 0, : entry.cell.hidden_size]
    np.testing.assert_allclose(hidden, oracle["dLlast_dh"], rtol=0.0, atol=1e-10)
    linearization = entry.cell.linearize(runs[entry.name])
    for step, contribution in enumerate(oracle["contrib_last/weight_hh_l0"]):
        blocks = linearization.recurrent_terms(step, adjoints[step + 1][:, :, None])
        outer = np.concatenate([left[0] * right[0] for left, right in blocks])
        np.testing.assert_allclose(outer, contribution, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("name", BUILT_TO_ORDER)
def test_long_runs_agree_with_the_framework(name: str) -> None:
    network, oracle, starts = network_of(f"dyn_{name}")
    runs = forward_runs(network, oracle["x"][:, None], initial_state=starts)
    only = next(iter(backpropagate(network, runs, last_step_only(oracle)).values()))
    # Rounding of the states of a chaotic run has grown to 1e-11 at its end, and the gradients of
    # exploding ones are themselves in the thousands.
    tolerance = 1e-8 if name == "chaotic" else 1e-10
    for computed, key in (
        (only.adjoints[1:, 0], "dLlast_dh"), (only.gradients["W_hh"], "grad_last/weight_hh_l0")
    ):  # fmt: skip
        scale = max(1.0, np.abs(oracle[key]).max())
        np.testing.assert_allclose(computed, oracle[key], rtol=0.0, atol=tolerance * scale)


def test_a_squared_error_gives_the_framework_s_linear_loss() -> None:
    """With W_hy = I and targets h - u/2 the derivative of (h - target)² by h is u."""
    network, oracle, starts = network_of("rnn_relu_2l")
    states = forward_runs(network, oracle["x"][:, None], initial_state=starts)
    top = list(states.values())[-1].states[1:]
    readout = Readout(W_hy=np.eye(5), loss="squared_error")
    _, gradients = bptt(
        network, readout, oracle["x"][:, None], top - 0.5 * oracle["loss_u"][:, None],
        initial_state=starts,
    )  # fmt: skip
    for entry in network.recurrences:
        for attribute, gradient in gradients.of(entry.name).items():
            assert gradients[f"{entry.name}.{attribute}"] is gradient
            expected = oracle[f"grad_sum/{oracle_name(entry, attribute)}"]
            np.testing.assert_allclose(gradient, expected, rtol=0.0, atol=1e-10)


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), short=st.integers(1, 6))
def test_gradients_through_directions_and_padding_agree_with_differences(
    seed: int, short: int
) -> None:
    rng = np.random.default_rng(seed)
    names = [
        ("l0", 0, "forward"),
        ("l0r", 0, "backward"),
        ("l1", 1, "forward"),
        ("l1r", 1, "backward"),
    ]
    sizes = {0: 2, 1: 6}
    network = Network([
        Recurrence(
            name=name, layer=layer, direction=direction, stack="s",
            cell=VanillaCell.initialize(
                input_size=sizes[layer], hidden_size=3, bias_std=0.5, rng=rng
            ),
        )
        for name, layer, direction in names
    ])  # fmt: skip
    readout = Readout(W_hy=rng.standard_normal((2, 6)))
    inputs, lengths = rng.standard_normal((6, 2, 2)), np.array([6, short])
    targets = rng.integers(0, 2, (6, 2))
    starts = {name: rng.standard_normal((2, 3)) for name in network}

    def run(inputs: Array, starts: dict[str, Array]) -> tuple[float, gl.Gradients]:
        return bptt(network, readout, inputs, targets, initial_state=starts, lengths=lengths)

    gradients = run(inputs, starts)[1]
    step = 6e-6
    for place in [(0, 0, 1), (5, 0, 0), (short - 1, 1, 0), (0, 1, 1)]:
        shift = np.zeros_like(inputs)
        shift[place] = step
        slope = (run(inputs + shift, starts)[0] - run(inputs - shift, starts)[0]) / (2.0 * step)
        assert gradients.inputs[place] == pytest.approx(slope, abs=1e-8)
    assert np.all(gradients.inputs[short:, 1] == 0.0)
    for name in network:
        shift = np.zeros((2, 3))
        shift[1, 2] = step
        up = run(inputs, starts | {name: starts[name] + shift})[0]
        down = run(inputs, starts | {name: starts[name] - shift})[0]
        assert gradients.passes[name].initial_state[1, 2] == pytest.approx(
            (up - down) / (2.0 * step), abs=1e-8
        )  # fmt: skip


def test_padding_enters_no_gradient() -> None:
    cell, readout, case = random_case(3)
    inputs = case["inputs"].copy()
    inputs[4:, 1] = np.nan
    loss, both = bptt(cell, readout, inputs, case["targets"], lengths=np.array([7, 4]))
    alone = [
        bptt(cell, readout, inputs[:n, [i]], case["targets"][:n, [i]]) for i, n in ((0, 7), (1, 4))
    ]
    assert loss == pytest.approx(alone[0][0] + alone[1][0], rel=1e-14)
    for name, gradient in both.items():
        np.testing.assert_allclose(gradient, alone[0][1][name] + alone[1][1][name], atol=1e-13)


def test_case_h28_truncation_is_no_property_of_the_weights() -> None:
    """Case H28: dh_t/dh_k does not know the window; the gradient used in training does."""
    cell = VanillaCell(W_hh=np.array([[0.9]]), W_xh=np.ones((1, 1)), activation="identity")
    inputs = np.ones((10, 1, 1))
    profile = gl.jacobian_profile(cell, gl.rollout(cell, inputs), anchors="last")
    norms = dict(zip(profile.lag.tolist(), np.exp(profile.log_norm).tolist(), strict=True))
    for lag, expected in {1: 0.9, 3: 0.729, 4: 0.6561, 9: 0.387420489}.items():
        assert norms[lag] == pytest.approx(expected, rel=1e-13)
    readout = Readout(W_hy=np.ones((1, 1)), loss="squared_error")
    targets = np.zeros((10, 1, 1))
    _, whole = bptt(cell, readout, inputs, targets, at="last")
    _, cut = bptt(cell, readout, inputs, targets, at="last", window=4)
    assert cut.truncated
    assert cut.window == 4
    assert not whole.truncated
    upstream = float(whole.adjoints[10, 0, 0])
    for lag in range(11):
        full = upstream * 0.9**lag
        assert whole.adjoints[10 - lag, 0, 0] == pytest.approx(full, rel=1e-13)
        expected = full if lag <= 3 else 0.0
        assert cut.adjoints[10 - lag, 0, 0] == pytest.approx(expected, rel=1e-13)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), window=st.integers(1, 9), layers=st.integers(1, 2))
def test_a_window_keeps_exactly_the_terms_that_its_own_short_runs_have(
    seed: int, window: int, layers: int
) -> None:
    """Oracle: for every loss step, start anew from the state `window` steps before it."""
    rng = np.random.default_rng(seed)
    network = Network([
        Recurrence(
            name=f"l{layer}", layer=layer, stack="s",
            cell=VanillaCell.initialize(input_size=3, hidden_size=3, bias_std=0.4, rng=rng),
        )
        for layer in range(layers)
    ])  # fmt: skip
    readout = Readout(W_hy=rng.standard_normal((2, 3)))
    inputs, targets = rng.standard_normal((7, 2, 3)), rng.integers(0, 2, (7, 2))
    runs = forward_runs(network, inputs)
    _, cut = bptt(network, readout, inputs, targets, window=window)
    expected = {name: np.zeros_like(array) for name, array in cut.items()}
    expected_inputs = np.zeros_like(inputs)
    for t in range(1, 8):
        first = max(0, t - window)
        starts = {name: run.states[first] for name, run in runs.items()}
        _, short = bptt(
            network, readout, inputs[first:t], targets[first:t], initial_state=starts, at="last"
        )
        for name in expected:
            expected[name] += short[name]
        expected_inputs[first:t] += short.inputs
    for name, array in expected.items():
        np.testing.assert_allclose(cut[name], array, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(cut.inputs, expected_inputs, rtol=1e-11, atol=1e-13)


def test_a_window_of_the_whole_length_leaves_nothing_out() -> None:
    cell, readout, case = random_case(5)
    _, whole = bptt(cell, readout, case["inputs"], case["targets"])
    _, wide = bptt(cell, readout, case["inputs"], case["targets"], window=8)
    for name, gradient in whole.items():
        np.testing.assert_allclose(wide[name], gradient, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(wide.adjoints, whole.adjoints, rtol=1e-12, atol=1e-14)


def test_the_cell_s_own_truncated_pass_is_that_of_the_loss() -> None:
    cell, readout, case = random_case(6)
    _, cut = bptt(cell, readout, case["inputs"], case["targets"], window=3)
    run: Trajectory = gl.rollout(cell, case["inputs"])
    network = Network.of(cell)
    # With a window of one step the adjoints are the explicit derivatives.
    upstream = bptt(cell, readout, case["inputs"], case["targets"], window=1)[1].adjoints[1:]
    own = cell.backward(run, upstream, window=3)
    np.testing.assert_allclose(own.gradients["W_hh"], cut["W_hh"], rtol=1e-13, atol=1e-15)
    through = backpropagate(network, {"rnn": run}, upstream, window=3)["rnn"]
    np.testing.assert_array_equal(through.adjoints, own.adjoints)


def test_single_precision_stays_so_and_is_near() -> None:
    cell, readout, case = random_case(7)
    small = replace(cell, dtype="float32")
    _, expected = bptt(cell, readout, case["inputs"], case["targets"])
    _, gradients = bptt(small, readout, case["inputs"], case["targets"])
    assert gradients["W_hh"].dtype == np.float32
    np.testing.assert_allclose(gradients["W_hh"], expected["W_hh"], rtol=1e-4, atol=1e-5)


def test_an_exploding_gradient_is_infinite_rather_than_an_exception() -> None:
    cell = VanillaCell(
        W_hh=np.array([[1e30]]), W_xh=np.zeros((1, 1)), activation="identity", dtype="float64"
    )
    readout = Readout(W_hy=np.ones((1, 1)), loss="squared_error")
    _, gradients = bptt(cell, readout, np.zeros((20, 1, 1)), np.ones((20, 1, 1)), at="last")
    assert np.isinf(gradients.initial_state).all()


def test_what_has_no_defined_gradient_is_refused() -> None:
    rng = np.random.default_rng(0)
    cell = VanillaCell.initialize(input_size=1, hidden_size=2, rng=rng)
    readout = Readout(W_hy=np.eye(2))
    inputs, targets = np.ones((3, 1, 1)), np.zeros((3, 1), dtype=int)
    two = Network([Recurrence(name=n, cell=cell, stack=n) for n in ("a", "b")])
    with pytest.raises(SettingError, match="stacks 'a', 'b'"):
        bptt(two, readout, inputs, targets)
    both = Network(
        [
            Recurrence(name="f", cell=cell, stack="s"),
            Recurrence(name="b", cell=cell, stack="s", direction="backward"),
        ]
    )
    with pytest.raises(SettingError, match="backward recurrence b"):
        bptt(both, Readout(W_hy=np.ones((2, 4))), inputs, targets, window=2)
    with pytest.raises(SettingError, match="mapping by name"):
        bptt(both, Readout(W_hy=np.ones((2, 4))), inputs, targets, initial_state=np.zeros(2))
    with pytest.raises(SettingError, match="window 0"):
        bptt(cell, readout, inputs, targets, window=0)
    with pytest.raises(ShapeError, match="targets"):
        bptt(cell, readout, inputs, targets[:2])
    gradients = bptt(cell, readout, inputs, targets)[1]
    with pytest.raises(UnknownNameError, match="did you mean 'W_hh'"):
        gradients["W_hhh"]
    with pytest.raises(UnknownNameError, match="recurrence"):
        gradients.of("other")
    several = bptt(both, Readout(W_hy=np.ones((2, 4))), inputs, targets)[1]
    with pytest.raises(SettingError, match=r"2 recurrences \(f, b\)"):
        several.only()
