"""Measurements in other processes: the same to the last bit, and failures that say what to do."""

from __future__ import annotations

import os
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.analysis.working import Work
from gradlab.cells.base import Cell


def cells() -> dict[str, Cell]:
    rng = np.random.default_rng(0)
    return {
        "rnn": gl.VanillaCell.initialize(input_size=2, hidden_size=6, rng=rng),
        "lstm": gl.LSTMCell.initialize(input_size=2, hidden_size=4, rng=rng),
    }


def test_any_number_of_processes_gives_the_same_bits() -> None:
    network = gl.Network(
        [gl.Recurrence(name=name, cell=cell, stack=name) for name, cell in cells().items()]
    )
    inputs = np.random.default_rng(1).standard_normal((12, 3, 2))
    here = gl.analyze(network, inputs, lengths=np.array([12, 5, 12]))
    with gl.LocalProcesses(2) as executor:
        there = gl.analyze(network, inputs, lengths=np.array([12, 5, 12]), executor=executor)
    assert list(here.recurrences) == list(there.recurrences) == ["rnn", "lstm"]
    assert here.summary() == there.summary()
    for name, entry in here.recurrences.items():
        other = there[name]
        for ours, theirs in (
            (entry.jacobians.log_norm, other.jacobians.log_norm),
            (entry.jacobians.log_sigma_min, other.jacobians.log_sigma_min),
            (entry.step_log_norm, other.step_log_norm),
            (entry.ladder.rungs["blocks"], other.ladder.rungs["blocks"]),
        ):
            np.testing.assert_array_equal(ours, theirs)


def test_work_is_sent_away_only_where_there_is_an_executor() -> None:
    assert Work(None).begin(os.getpid)() == os.getpid()
    with gl.LocalProcesses(1) as executor:
        assert Work(executor).begin(os.getpid)() != os.getpid()


def test_errors_of_a_measurement_come_back_as_they_are() -> None:
    cell = cells()["rnn"]
    with ThreadPoolExecutor(1) as executor, pytest.raises(gl.SettingError, match="block"):
        gl.analyze(cell, np.zeros((4, 1, 2)), block="long", executor=executor)


def test_a_lost_process_is_told_in_one_line() -> None:
    class Lost(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(BrokenProcessPool("killed"))
            return future

    with pytest.raises(gl.WorkerError, match="use fewer jobs"):
        gl.analyze(cells()["rnn"], np.zeros((4, 1, 2)), executor=Lost())
