"""Tasks: their definitions, and baselines as frequencies and closed forms."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from gradlab.arrays import Array
from gradlab.cells.vanilla import VanillaCell
from gradlab.engine.batches import Batch, accuracy
from gradlab.engine.bptt import bptt
from gradlab.engine.losses import Readout, chosen_steps
from gradlab.engine.synthetic_tasks import CopyMemory, DelayedEcho, TemporalOrder
from gradlab.engine.tasks import TASKS, task
from gradlab.errors import InputFileError, SettingError, UnknownNameError

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
SAMPLES = 10_000


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def symbols_of(batch: Batch) -> Array:
    """Index of the one 1 of every one-hot step."""
    np.testing.assert_array_equal(batch.inputs.sum(axis=2), 1.0)
    return np.asarray(batch.inputs.argmax(axis=2))


def test_adding_marks_one_number_of_each_half_and_asks_for_the_sum() -> None:
    batch = task("adding", length=11).batch(200, rng())
    values, marks = batch.inputs[..., 0], batch.inputs[..., 1]
    assert set(np.unique(marks)) == {0.0, 1.0}
    np.testing.assert_array_equal(marks[:5].sum(axis=0), 1.0)
    np.testing.assert_array_equal(marks[5:].sum(axis=0), 1.0)
    np.testing.assert_allclose(batch.targets[:, 0], (values * marks).sum(axis=0), rtol=1e-15)
    assert batch.at == "last"


def test_baseline_of_adding_is_a_sixth_and_not_the_number_often_printed() -> None:
    problem = task("adding", length=50)
    errors = (problem.batch(SAMPLES, rng(1)).targets[:, 0] - 1.0) ** 2
    sd = 0.19720 / math.sqrt(SAMPLES)
    assert abs(errors.mean() - problem.baseline) < 5.0 * sd
    assert abs(errors.mean() - 0.1767) > 3.0 * sd
    right = np.abs(problem.batch(SAMPLES, rng(2)).targets - 1.0) < problem.tolerance
    p = problem.baseline_accuracy
    assert abs(right.mean() - p) < 5.0 * math.sqrt(p * (1.0 - p) / SAMPLES)


def test_adding_as_first_posed_has_lengths_markers_and_a_twenty_fourth() -> None:
    problem = task("adding_1997", length=100)
    batch = problem.batch(SAMPLES, rng(3))
    assert batch.lengths is not None
    each = np.arange(SAMPLES)
    assert set(batch.lengths.tolist()) == set(range(100, 111))
    values, markers = batch.inputs[..., 0], batch.inputs[..., 1]
    assert (markers[0] == -1.0).all()
    assert (markers[batch.lengths - 1, each] == -1.0).all()
    marked = markers == 1.0
    np.testing.assert_array_equal(marked.sum(axis=0), 2)
    assert marked[:10].any(axis=0).all()
    assert not marked[50:].any()
    sums = (values * marked).sum(axis=0)
    np.testing.assert_allclose(batch.targets[:, 0], 0.5 + sums / 4.0, rtol=1e-14)
    errors = (batch.targets[:, 0] - 0.5) ** 2
    # The fourth moment of (a + b)/4 is (2/5 + 6/9)/256.
    sd = math.sqrt((2.0 / 5.0 + 6.0 / 9.0) / 256.0 - problem.baseline**2) / math.sqrt(SAMPLES)
    assert abs(errors.mean() - 1.0 / 24.0) < 5.0 * sd
    right = (np.abs(batch.targets[:, 0] - 0.5) < problem.tolerance).mean()
    p = problem.baseline_accuracy
    assert abs(right - p) < 5.0 * math.sqrt(p * (1.0 - p) / SAMPLES)


def test_copy_repeats_its_symbols_after_the_delimiter() -> None:
    problem = CopyMemory(length=7, count=3, symbols=4)
    batch = problem.batch(50, rng())
    read = symbols_of(batch)
    assert len(read) == 7 + 2 * 3
    assert ((read[:3] >= 1) & (read[:3] <= 4)).all()
    assert (read[3:9] == 0).all()
    assert (read[9] == 5).all()
    assert (read[10:] == 0).all()
    assert (batch.targets[:10] == 0).all()
    np.testing.assert_array_equal(batch.targets[10:], read[:3])
    assert batch.at is None
    assert batch.mask is None


@pytest.mark.parametrize(
    ("length", "baseline"),
    [
        (100, 0.17328679513999), (200, 0.094520070076356), (300, 0.064982548177495),
        (500, 0.03998926041692), (1000, 0.020386681781175), (2000, 0.010294265057821),
    ],
)  # fmt: skip
def test_baseline_of_copy_is_the_closed_form(length: int, baseline: float) -> None:
    problem = CopyMemory(length=length)
    assert problem.baseline == pytest.approx(baseline, rel=1e-12)
    assert problem.baseline_accuracy == pytest.approx((length + 10 + 10 / 8) / (length + 20))


def test_baseline_of_copy_is_the_loss_of_equal_chances_for_the_symbols() -> None:
    """Sure of the blanks, and undecided between the symbols: what a clock alone can do."""
    problem = CopyMemory(length=5, count=2, symbols=8)
    batch = problem.batch(3, rng())
    blank = np.where(np.arange(9) == 0, 0.0, -800.0)
    symbols = np.where(np.arange(9) == 0, -800.0, 0.0)
    logits = np.concatenate([np.tile(blank, (7, 3, 1)), np.tile(symbols, (2, 3, 1))])
    shifted = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    own = np.take_along_axis(shifted, batch.targets[:, :, None], axis=2)
    assert -own.mean() == pytest.approx(problem.baseline, rel=1e-12)


@pytest.mark.parametrize("symbols", [2, 3])
def test_temporal_order_places_its_symbols_as_published(symbols: int) -> None:
    problem = TemporalOrder(length=100, symbols=symbols)
    published = {2: [(10, 20), (50, 60)], 3: [(10, 20), (33, 43), (66, 76)]}[symbols]
    assert problem.places == published
    batch = problem.batch(2000, rng(symbols))
    assert batch.lengths is not None
    assert set(batch.lengths.tolist()) == set(range(100, 111))
    read = symbols_of(batch)
    classes = np.zeros(2000, dtype=int)
    for low, high in published:
        span = read[low - 1 : high]
        found = span >= 6
        np.testing.assert_array_equal(found.sum(axis=0), 1)
        times = low + found.argmax(axis=0)
        assert (times.min(), times.max()) == (low, high)
        classes = 2 * classes + (np.where(found, span, 0).sum(axis=0) - 6)
    np.testing.assert_array_equal(batch.targets, classes)
    each = np.arange(2000)
    valid = np.arange(len(read))[:, None] < batch.lengths
    assert ((read >= 6) & valid).sum() == symbols * 2000
    assert (read[0] == 0).all()
    assert (read[batch.lengths - 1, each] == 1).all()
    share = np.bincount(classes, minlength=2**symbols) / 2000
    p = 0.5**symbols
    assert np.abs(share - p).max() < 5.0 * math.sqrt(p * (1.0 - p) / 2000)
    assert problem.baseline == pytest.approx({2: 1.38629436, 3: 2.07944154}[symbols], abs=5e-9)


def test_echo_repeats_the_input_after_the_delay() -> None:
    batch = DelayedEcho(length=12, delay=5).batch(40, rng())
    assert set(np.unique(batch.inputs)) == {-1.0, 1.0}
    np.testing.assert_array_equal(batch.targets[5:], batch.inputs[:7])
    assert batch.mask is not None
    assert not batch.mask[:5].any()
    assert batch.mask[5:].all()


def test_digits_come_from_the_example_and_are_permuted_in_one_fixed_order() -> None:
    plain = task("digits", folder=DIGITS)
    permuted = task("digits", folder=DIGITS, permutation=3)
    first, second = (problem.batch(16, rng(5)) for problem in (plain, permuted))
    assert first.inputs.shape == (64, 16, 1)
    np.testing.assert_array_equal(first.targets, second.targets)
    assert not np.array_equal(first.inputs, second.inputs)
    np.testing.assert_array_equal(np.sort(first.inputs, axis=0), np.sort(second.inputs, axis=0))
    again = permuted.batch(16, rng(5))
    np.testing.assert_array_equal(again.inputs, second.inputs)
    digits = np.load(DIGITS / "digits_test_targets.npy")
    assert plain.baseline_accuracy == np.bincount(digits).max() / 64
    assert plain.baseline == pytest.approx(2.30258509, abs=5e-9)
    every = plain.batch(64, rng(6)).targets
    np.testing.assert_array_equal(np.sort(every), np.sort(digits))


@pytest.mark.parametrize("name", [name for name in TASKS if name != "digits"])
def test_every_task_feeds_backpropagation(name: str) -> None:
    """Constant outputs of a zero readout cost what the task's formulas say."""
    problem = task(name, length=24)
    batch = problem.batch(5, rng(7))
    cell = VanillaCell.initialize(input_size=problem.input_size, hidden_size=4, rng=rng(8))
    readout = Readout(W_hy=np.zeros((problem.output_size, 4)), loss=problem.loss, average="steps")
    loss, gradients = bptt(
        cell, readout, batch.inputs, batch.targets,
        lengths=batch.lengths, mask=batch.mask, at=batch.at,
    )  # fmt: skip
    if problem.loss == "cross_entropy":
        assert loss == pytest.approx(math.log(problem.output_size), rel=1e-14)
    else:
        chosen = batch.targets if batch.mask is None else batch.targets[batch.mask]
        assert loss == pytest.approx(np.mean(chosen**2), rel=1e-14)
    assert gradients["W_hy"].shape == (problem.output_size, 4)
    assert problem.name == name


def test_answers_are_right_by_the_largest_output_or_within_the_tolerance() -> None:
    order = TemporalOrder(length=20)
    outputs = np.zeros((2, 3, 4))
    outputs[1, [0, 1, 2], [3, 1, 0]] = 1.0
    last = chosen_steps(np.full(3, 2), 2, at="last")
    assert accuracy(order, outputs, np.array([3, 1, 2]), last) == pytest.approx(2.0 / 3.0)
    adding = task("adding", length=2)
    given = np.array([[[0.0]] * 3, [[1.0], [1.03], [1.05]]])
    assert accuracy(adding, given, np.ones((3, 1)), last) == pytest.approx(2.0 / 3.0)


def test_equal_generators_give_equal_batches() -> None:
    for name in TASKS:
        problem = task(name, **({"folder": DIGITS} if name == "digits" else {}))
        one, two = problem.batch(4, rng(9)), problem.batch(4, rng(9))
        np.testing.assert_array_equal(one.inputs, two.inputs)
        np.testing.assert_array_equal(one.targets, two.targets)


def test_tasks_and_settings_that_do_not_exist_or_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'adding'"):
        task("addding")
    with pytest.raises(UnknownNameError, match="setting of the task copy 'delay'"):
        task("copy", delay=3)
    for name, settings in (
        ("adding", {"length": 1}), ("echo", {"length": 3, "delay": 3}), ("copy", {"symbols": 1}),
        ("temporal_order", {"length": 10}), ("temporal_order", {"symbols": 4}),
        ("digits", {}),
    ):  # fmt: skip
        with pytest.raises(SettingError, match="expected"):
            task(name, **settings)
    with pytest.raises(InputFileError, match="digits_test_inputs"):
        task("digits", folder=tmp_path)
    (tmp_path / "digits_test_inputs.npy").write_bytes(
        (DIGITS / "digits_test_inputs.npy").read_bytes()
    )
    with pytest.raises(InputFileError, match="digits_test_targets"):
        task("digits", folder=tmp_path)
