"""Whole pickled modules and TorchScript archives: tensors and attributes, and nothing that runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from gradlab.checkpoints.recognition import read_archive

if TYPE_CHECKING:
    from tests.checkpoints.conftest import ModelWriter

HALF = 0.5 * np.eye(2)
WHOLE = ("rnn_relu_wholemodule.pt", "rnn_relu_wholemodule.ts.pt")


def oracle(models: Path, name: str) -> dict[str, Array]:
    with np.load(models / f"{name}.oracle.npz", allow_pickle=False) as stored:
        return dict(stored)


def module(write: ModelWriter, kind: tuple[str, str], **state: Any) -> Any:
    """Pickled module; its parameters, modules and attributes by name."""
    empty: dict[str, Any] = {"_parameters": {}, "_buffers": {}, "_modules": {}}
    return write.called(write.named(*kind), (), empty | state)


def rnn(write: ModelWriter, W_hh: Array = HALF, **attributes: Any) -> Any:
    kind = ("torch.nn.modules.rnn", "RNN")
    return module(write, kind, _parameters=write.layer(W_hh), **attributes)


@pytest.mark.parametrize("name", WHOLE)
def test_stored_nonlinearity_and_batch_axis_are_used_and_said(models: Path, name: str) -> None:
    """The framework's own outputs in float64; a state dict of the same net would not say relu."""
    network = gl.load(models / name)
    expected = oracle(models, "rnn_relu_wholemodule")
    assert list(network) == ["net.l0", "net.l1"]
    run = gl.rollout_network(network, expected["x"][:, None])["net.l1"]
    np.testing.assert_allclose(run.states[1:, 0], expected["y"], rtol=0, atol=1e-12)
    assert network.assumptions == (
        "net.l0, net.l1: torch.nn.modules.rnn.RNN, as the source says",
        "net.l0, net.l1: non-linearity relu, as the source says",
        "net.l0, net.l1: built for inputs (batch, time, features), as the source says; sequences "
        "are read as (time, batch, features) here",
    )


def test_trace_says_the_nonlinearity_in_its_calls(models: Path) -> None:
    """A traced layer has no constants; the framework's outputs in float64."""
    network = gl.load(models / "rnn_relu_traced.ts.pt")
    expected = oracle(models, "rnn_relu_traced")
    runs = gl.rollout_network(network, expected["x"][:, None])
    y = runs["net.l1"].states[1:, 0]
    np.testing.assert_allclose(y, expected["y"], rtol=0, atol=1e-12)
    cell = gl.rollout(network["cell"], y[-1][None, None])
    np.testing.assert_allclose(cell.states[1], expected["cell"], rtol=0, atol=1e-12)
    assert {
        "net.l0, net.l1, cell: non-linearity relu, as the source says",
        "net.l0, net.l1: built for inputs (batch, time, features), as the source says; sequences "
        "are read as (time, batch, features) here",
    } <= set(network.assumptions)


@pytest.mark.parametrize("name", WHOLE)
def test_names_are_those_of_the_state_dict_and_copies_are_dropped(models: Path, name: str) -> None:
    tensors = read_archive(models / name).tensors
    expected = oracle(models, "rnn_relu_wholemodule")
    assert [f"torch/{key}" for key in tensors] == [key for key in expected if "/" in key]
    for key in tensors:
        np.testing.assert_array_equal(tensors[key], expected[f"torch/{key}"].astype(np.float32))


def test_what_is_stored_goes_before_what_the_caller_says(models: Path) -> None:
    network = gl.load(models / WHOLE[0], nonlinearity="tanh", batch_first=True)
    assert {cell.activation for cell in network.values()} == {"relu"}  # type: ignore[attr-defined]
    assert any("nonlinearity = tanh has no vanilla layer" in said for said in network.assumptions)
    assert any(said.endswith("(batch, time, features), as the source says")
               for said in network.assumptions)  # fmt: skip


def test_scripted_lstm_is_that_of_the_state_dict(models: Path) -> None:
    """Three containers of one net; states and Jacobians of the state dict have their own oracle."""
    scripted, plain = gl.load(models / "lstm_1l.ts.pt"), gl.load(models / "lstm_1l.pt")
    assert list(scripted) == ["l0"]
    for name, array in plain["l0"].parameters.items():
        np.testing.assert_array_equal(scripted["l0"].parameters[name], array)
    with np.load(models / "lstm_1l.oracle.npz") as stored:
        run = gl.rollout(scripted["l0"], stored["x"][:, None], initial_state=stored["s_l0"][0])
        J = [step.matrix()[0] for step in scripted["l0"].linearize(run)]
        np.testing.assert_allclose(run.states[:, 0], stored["s_l0"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(J, stored["J_l0"], rtol=0, atol=1e-12)


def test_gates_of_a_known_class_are_no_assumption(models: Path) -> None:
    said = gl.load(models / "gru_1l_wholemodule.pt").assumptions
    assert said == (
        "rnn.l0: torch.nn.modules.rnn.GRU, as the source says",
        "rnn.l0: built for inputs (time, batch, features), as the source says",
    )


def test_gates_of_somebody_elses_class_are_assumed(write: ModelWriter) -> None:
    own = module(write, ("project.cells", "GRU"), _parameters=write.layer(np.ones((6, 2))))
    said = "\n".join(gl.load(write.torch(own)).assumptions)
    assert "l0: read as PyTorch's GRU" in said


@pytest.mark.parametrize("form", ["torch", "legacy"])
def test_modules_inside_a_checkpoint_are_named_by_their_attributes(
    write: ModelWriter, form: str
) -> None:
    """A submodule called net is no wrapper; a second way to the same module is not followed."""
    inner = rnn(write, mode="RNN_RELU", batch_first=False, _flat_weights=[np.ones((2, 2))])
    whole = module(write, ("project", "Net"), _modules={"net": inner})
    network = gl.load(getattr(write, form)({"model": whole, "epoch": 3}))
    assert list(network) == ["net.l0"]
    assert "net.l0: non-linearity relu, as the source says" in network.assumptions


def test_class_that_an_old_file_stores_with_its_source_is_its_name_only(
    write: ModelWriter,
) -> None:
    """Before 1.6 a module's class came as a reference with its file and text."""
    source = write.persistent(("module", write.named("project", "Net"), "net.py", "import os"))
    state = {"_parameters": write.layer(HALF), "_modules": {}, "_buffers": {}}
    network = gl.load(write.legacy(write.called(source, (), state)))
    assert list(network) == ["l0"]


def test_hooks_of_a_module_are_neither_read_nor_run(write: ModelWriter, tmp_path: Path) -> None:
    hook = write.called(write.named("functools", "partial"), (write.named("project", "hook"),))
    network = gl.load(write.torch(rnn(write, _forward_hooks={0: hook})))
    assert list(network) == ["l0"]
    assert not any("hook" in said for said in network.assumptions)
    trace = tmp_path / "ran"
    evil = write.called(write.named("os", "system"), (f"touch {trace}",))
    for path in (
        write.torch(rnn(write, _forward_hooks={0: evil}), name="evil.pt"),
        write.legacy(rnn(write, _forward_hooks={0: evil}), name="old.pt"),
    ):
        with pytest.raises(gl.ModelFileError, match=r"names os\.system.*nothing was run"):
            gl.load(path)
    assert not trace.exists()


def test_object_that_is_no_module_gives_its_attributes(write: ModelWriter) -> None:
    agent = write.called(write.named("project", "Agent"), (), {"core": write.layer(HALF), "n": 1})
    assert list(gl.load(write.torch(agent))) == ["core.l0"]


def test_module_that_holds_itself_ends(write: ModelWriter) -> None:
    own = b"}X\x0b\x00\x00\x00_parameters}sX\x08\x00\x00\x00_modules}X\x01\x00\x00\x00ah\x01ss"
    loop = b"cproject\nNet\n)Rq\x01" + own + b"b"  # its module a is itself
    network = gl.load(write.torch({"model": rnn(write), "odd": loop}))
    assert list(network) == ["l0"]


@pytest.mark.parametrize("name", ["lstm_quantized.pt", "lstm_quantized_wholemodule.pt"])
def test_dynamically_quantized_layer_is_refused_by_name(models: Path, name: str) -> None:
    with pytest.raises(gl.ModelFileError, match=r"net.* skipped \(torch\..*quantized: save the"):
        gl.load(models / name)
