"""Trainings: equal numbers after an interruption, what is logged, what is learned and refused."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from gradlab.cells.gru import GRUCell
from gradlab.cells.leaky import LeakyCell
from gradlab.cells.vanilla import VanillaCell
from gradlab.engine.batches import Task
from gradlab.engine.bptt import bptt
from gradlab.engine.losses import Readout
from gradlab.engine.optimizers import SGD, Adam
from gradlab.engine.regularizer import carry_penalty
from gradlab.engine.rollout import rollout
from gradlab.engine.training import StepOutcome, Training, TrainingRun, TrainingSettings
from gradlab.errors import NonFiniteError, OutputError, RunFolderError, SettingError
from gradlab.records.training import COLUMNS
from gradlab.storage.checkpoint import read_checkpoint, write_checkpoint
from gradlab.trainings import train

ECHO = gl.task("echo", length=12, delay=2)


class KilledError(Exception):
    """Stands for the end of the process."""


def kill_at(step: int) -> object:
    def on_step(outcome: StepOutcome) -> None:
        if outcome.step == step:
            raise KilledError

    return on_step


def vanilla(input_size: int = 1, **settings: float) -> VanillaCell:
    rng = np.random.default_rng(11)
    return VanillaCell.initialize(
        input_size=input_size, hidden_size=8, rng=rng, gain=settings.get("gain", 1.0)
    )


def gru(input_size: int = 1) -> GRUCell:
    rng = np.random.default_rng(12)
    return GRUCell(
        W_x=rng.standard_normal((18, input_size)), W_h=0.4 * rng.standard_normal((18, 6)),
        b_x=np.zeros(18), b_h=np.zeros(18),
    )  # fmt: skip


def same_bits(one: Training, two: Training) -> bool:
    weights = [{**each.cell.parameters, **each.readout.parameters} for each in (one, two)]
    equal = all(weights[0][name].tobytes() == weights[1][name].tobytes() for name in weights[0])
    logs = [json.dumps(each.log.rows()) for each in (one, two)]
    audits = [json.dumps(each.clipping.summary()) for each in (one, two)]
    return equal and logs[0] == logs[1] and audits[0] == audits[1]


@pytest.mark.parametrize(
    ("kind", "optimizer", "killed"),
    [("rnn", "sgd", 3), ("rnn", "adam", 10), ("rnn", "rmsprop", 24), ("gru", "adam", 17)],
)
def test_a_training_that_was_killed_gives_the_numbers_of_one_that_was_not(
    tmp_path: Path, kind: str, optimizer: str, killed: int
) -> None:
    cell = vanilla() if kind == "rnn" else gru()
    rule = gl.optimizer(optimizer, learning_rate=0.02)

    def go(path: Path, on_step: object = None) -> Training:
        return train(
            ECHO, cell, steps=27, seed=5, optimizer=rule, batch_size=4, clip=0.3, every=10,
            checkpoint=path, on_step=on_step,  # type: ignore[arg-type]
        )  # fmt: skip

    straight = go(tmp_path / "straight.npz")
    with pytest.raises(KilledError):
        go(tmp_path / "killed.npz", kill_at(killed))
    again: list[int] = []
    resumed = go(tmp_path / "killed.npz", lambda outcome: again.append(outcome.step))
    assert again == list(range(killed // 10 * 10 + 1, 28))
    assert same_bits(straight, resumed)
    assert straight.log["step"].tolist() == [0, 10, 20, 27]
    assert not list(tmp_path.glob(".*"))


def test_a_finished_training_can_be_continued_to_more_steps(tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    settings = {"seed": 1, "batch_size": 3, "every": 4}
    train(ECHO, vanilla(), steps=10, checkpoint=path, **settings)  # type: ignore[arg-type]
    more = train(ECHO, vanilla(), steps=16, checkpoint=path, **settings)  # type: ignore[arg-type]
    straight = train(ECHO, vanilla(), steps=16, **settings)  # type: ignore[arg-type]
    assert same_bits(straight, more)


def test_a_training_lowers_the_loss_far_below_the_baseline() -> None:
    result = train(
        gl.task("echo", length=10, delay=1), vanilla(gain=0.7), steps=400, seed=0, every=200,
        optimizer=Adam(learning_rate=0.02), batch_size=16,
    )  # fmt: skip
    assert result.log["test_loss"][-1] < 0.05 * ECHO.baseline
    assert result.log["accuracy"][-1] == 1.0
    assert result.steps == 400


def test_the_log_holds_what_the_measurements_say_of_the_network_at_that_step() -> None:
    cell = vanilla()
    seen: list[dict[str, Any]] = []
    result = train(
        ECHO, cell, steps=6, seed=3, every=3, clip=1e-3, batch_size=2, on_row=seen.append
    )
    table = result.log.to_frame()
    assert list(table.columns) == list(COLUMNS)
    assert [row["step"] for row in seen] == table["step"].tolist() == [0, 3, 6]
    first, last = table.iloc[0], table.iloc[-1]
    assert first["gamma_w"] == gl.spectral_norm(cell.W_hh)
    assert first["spectral_radius"] == gl.spectral_radius(cell.W_hh)
    assert isinstance(result.cell, VanillaCell)
    assert last["gamma_w"] == gl.spectral_norm(result.cell.W_hh)
    assert math.isnan(first["loss"])
    assert last["clipped_share"] == 1.0
    assert last["clipped_norm"] == pytest.approx(1e-3, rel=1e-12)
    assert last["gradient_norm"] > 1e-2
    before = result.clipping.before
    assert last["gradient_norm"] == pytest.approx(before[3:].mean(), rel=1e-12)
    assert result.clipping.clipped_share == 1.0


def test_gated_cells_have_a_rate_and_no_gamma() -> None:
    result = train(ECHO, gru(), steps=2, seed=3, every=2, batch_size=2)
    assert np.isfinite(result.log["rate"]).all()
    assert np.isnan(result.log["gamma_w"]).all()
    assert np.isnan(result.log["spectral_radius"]).all()


def test_a_row_of_a_network_that_diverges_says_so_and_has_no_numbers() -> None:
    """ReLU with gain 1e200 leaves float64 at the second step."""
    cell = VanillaCell(W_hh=np.full((2, 2), 1e200), W_xh=np.ones((2, 1)), activation="relu")
    result = train(ECHO, cell, steps=0, seed=0)
    (row,) = result.log.rows()
    assert row["regime"] == "diverged"
    assert math.isnan(row["rate"])
    assert row["gamma_w"] == pytest.approx(2e200)


def test_one_step_of_descent_is_the_clipped_gradient() -> None:
    rng = np.random.default_rng(0)
    readout = Readout(W_hy=rng.standard_normal((1, 8)), loss="squared_error")
    settings = TrainingSettings(task=ECHO, optimizer=SGD(learning_rate=0.5), batch_size=3, clip=0.1)
    run = TrainingRun(settings, vanilla(), readout, np.random.default_rng(9))
    outcome = run.advance()
    batch = ECHO.batch(3, np.random.default_rng(9))
    mean = dataclasses.replace(readout, average="steps")
    loss, gradients = bptt(vanilla(), mean, batch.inputs, batch.targets, mask=batch.mask)
    clipped, norm = gl.clip_by_norm(gradients, 0.1)
    assert (outcome.loss, outcome.gradient_norm) == (loss, norm)
    assert isinstance(run.cell, VanillaCell)
    np.testing.assert_array_equal(run.cell.W_hh, vanilla().W_hh - 0.5 * clipped["W_hh"])
    np.testing.assert_array_equal(run.readout.W_hy, readout.W_hy - 0.5 * clipped["W_hy"])


def test_a_step_without_a_finite_gradient_changes_nothing_if_it_is_to_be_skipped() -> None:
    cell = VanillaCell(
        W_hh=np.array([[1e30]]), W_xh=np.array([[0.0]]), b_h=np.array([1e-300]),
        activation="identity",
    )  # fmt: skip
    task = gl.task("echo", length=18, delay=0)
    readout = Readout(W_hy=np.array([[1e150]]), loss="squared_error")
    settings = TrainingSettings(task=task, optimizer=SGD(), batch_size=2, nonfinite="skip")
    run = TrainingRun(settings, cell, readout, np.random.default_rng(0))
    outcome = run.advance()
    assert math.isnan(outcome.gradient_norm)
    assert not outcome.clipped
    assert run.clip_log.audit().first_nonfinite == 1
    np.testing.assert_array_equal(run.weights["b_h"], cell.parameters["b_h"])
    strict = dataclasses.replace(settings, nonfinite="raise")
    with pytest.raises(NonFiniteError, match="gradient of"):
        TrainingRun(strict, cell, readout, np.random.default_rng(0)).advance()


@pytest.mark.parametrize("leak", [None, 0.3])
def test_the_penalty_is_its_definition_and_its_gradient_the_immediate_one(
    leak: float | None,
) -> None:
    """With states and adjoints held fixed the penalty is a function of W alone."""
    rng = np.random.default_rng(2)
    W = rng.standard_normal((4, 4))
    common = {"W_xh": rng.standard_normal((4, 2)), "b_h": 0.1 * rng.standard_normal(4)}

    def cell_of(W: Array) -> VanillaCell | LeakyCell:
        if leak is None:
            return VanillaCell(W_hh=W, W_xh=common["W_xh"], b_h=common["b_h"])
        return LeakyCell(
            W_hh=W, W_xh=common["W_xh"], b_h=common["b_h"], activation="tanh", leak=leak
        )

    cell = cell_of(W)
    run = rollout(cell, rng.standard_normal((6, 3, 2)))
    adjoints = rng.standard_normal((7, 3, 4))
    slopes = 1.0 - np.tanh(run.z) ** 2

    def value(W: Array) -> float:
        total = 0.0
        for step in range(1, 6):
            for b in range(3):
                a = adjoints[step + 1, b]
                pulled = W.T @ (slopes[step, b] * a)
                if leak is not None:
                    pulled = (1.0 - leak) * a + leak * pulled
                total += float(np.linalg.norm(pulled) / np.linalg.norm(a) - 1.0) ** 2
        return total / 3.0

    penalty = carry_penalty(cell, run, adjoints)
    assert penalty.value == pytest.approx(value(W), rel=1e-12)
    for place in np.ndindex(4, 4):
        shift = np.zeros((4, 4))
        shift[place] = 6e-6
        slope = (value(W + shift) - value(W - shift)) / 1.2e-5
        assert penalty.gradients["W_hh"][place] == pytest.approx(slope, abs=1e-8)


def test_the_penalty_needs_no_gradient_of_moderate_size_and_a_single_matrix() -> None:
    cell = vanilla()
    run = rollout(cell, np.ones((5, 1, 1)))
    adjoints = np.random.default_rng(0).standard_normal((6, 1, 8))
    expected = carry_penalty(cell, run, adjoints)
    for scale in (1e-200, 1e200):
        scaled = carry_penalty(cell, run, scale * adjoints)
        assert scaled.value == pytest.approx(expected.value, rel=1e-12)
    nothing = carry_penalty(cell, run, np.zeros_like(adjoints))
    assert nothing.value == 0.0
    assert not nothing.gradients["W_hh"].any()
    with pytest.raises(SettingError, match="gru cell has W_x"):
        carry_penalty(gru(), rollout(gru(), np.ones((5, 1, 1))), np.zeros((6, 1, 6)))


def test_the_penalty_pulls_the_carried_norm_toward_one() -> None:
    """A contracting network under a strong penalty loses less gradient a step than without."""
    lengths = {}
    for omega in (0.0, 5.0):
        result = train(
            ECHO, vanilla(gain=0.2), steps=150, seed=4, omega=omega, every=150, batch_size=8,
            optimizer=Adam(learning_rate=0.01),
        )  # fmt: skip
        lengths[omega] = result.log["rate"][-1]
    assert lengths[5.0] > lengths[0.0] + 0.2


def test_a_window_trains_on_the_truncated_gradient() -> None:
    results = [train(ECHO, vanilla(), steps=3, seed=1, window=w, every=3) for w in (None, 1, 13)]
    states = [np.asarray(each.cell.parameters["W_hh"]) for each in results]
    assert not np.allclose(states[0], states[1])
    np.testing.assert_allclose(states[0], states[2], rtol=1e-12)


def test_a_checkpoint_of_another_training_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.npz"

    def go(task: Task = ECHO, clip: float = 1.0, seed: int = 1) -> Training:
        return train(task, vanilla(), steps=4, seed=seed, clip=clip, every=2, checkpoint=path)

    go()
    with pytest.raises(RunFolderError, match=r"clip 1\.0 there, 2\.0 here"):
        go(clip=2.0)
    with pytest.raises(RunFolderError, match="task"):
        go(task=gl.task("echo", length=12, delay=3))
    with pytest.raises(RunFolderError, match="seed"):
        go(seed=2)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RunFolderError, match="cannot be read as a checkpoint"):
        go()


def test_a_checkpoint_keeps_bits_and_leaves_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "state.npz"
    arrays: dict[str, Array] = {"a": np.array([0.1, np.nan, -np.inf]), "b": np.array(7)}
    document = {"rng": np.random.default_rng(0).bit_generator.state}
    write_checkpoint(path, arrays, document)
    loaded, read = read_checkpoint(path)
    assert loaded["a"].tobytes() == arrays["a"].tobytes()
    assert read == document
    assert [entry.name for entry in path.parent.iterdir()] == ["state.npz"]
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        write_checkpoint(blocked / "state.npz", arrays, {})


def test_settings_and_cells_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SettingError, match="expected 2 for the task adding"):
        train(gl.task("adding", length=5), vanilla(), steps=1, seed=0)
    readout = Readout(W_hy=np.ones((1, 8)))
    with pytest.raises(SettingError, match="squared_error for the task echo"):
        train(ECHO, vanilla(), readout, steps=1, seed=0)
    for settings in ({"every": 0}, {"batch_size": 0}, {"omega": -1.0}, {"clip": 0.0}):
        with pytest.raises(SettingError, match="expected"):
            train(ECHO, vanilla(), steps=1, seed=0, **settings)


def test_a_folder_is_unfinished_until_it_is_finished_and_then_complete(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "training"
    path = gl.claim_training(folder)
    assert (folder / "INCOMPLETE").is_file()
    result = train(ECHO, gru(), steps=4, seed=0, every=2, batch_size=2, checkpoint=path)
    assert gl.claim_training(folder) == path
    assert path.is_file()
    gl.save_training(result, folder, argv=["gradlab", "train"])
    gl.finish_training(folder)
    names = {entry.name for entry in folder.iterdir()}
    assert names == {"training.csv", "clipping.csv", "weights.npz", "manifest.json"}
    with pytest.raises(OutputError, match="--force"):
        gl.claim_training(folder)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["kind"] == "training"
    assert manifest["settings"]["task"] == {"name": "echo", "length": 12, "delay": 2}
    assert manifest["clipping"]["steps"] == 4
    text = (folder / "training.csv").read_text(encoding="utf-8").splitlines()
    assert text[0] == ",".join(COLUMNS)
    assert [line.partition(",")[0] for line in text[1:]] == ["0", "2", "4"]
    gl.claim_training(folder, force=True)
    assert [entry.name for entry in folder.iterdir()] == ["INCOMPLETE"]


@pytest.mark.parametrize("kind", ["rnn", "gru"])
def test_saved_weights_are_a_model_file(tmp_path: Path, kind: str) -> None:
    result = train(ECHO, vanilla() if kind == "rnn" else gru(), steps=2, seed=0, every=2)
    gl.save_training(result, gl.claim_training(tmp_path / "t").parent)
    loaded = gl.load(tmp_path / "t" / "weights.npz").only()
    for name, array in result.cell.parameters.items():
        np.testing.assert_array_equal(loaded.parameters[name], array)


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("kept", encoding="utf-8")
    for force in (False, True):
        with pytest.raises(OutputError):
            gl.claim_training(tmp_path, force=force)
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.txt"]
