"""Networks written as plain arrays come back as they were, with nothing left to assume."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.cells.base import Cell
from tests.checkpoints.conftest import ModelWriter

N, D = 4, 3


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def leaky() -> Cell:
    W = rng().normal(size=(N, N))
    return gl.LeakyCell(W_hh=W, W_xh=W[:, :D], b_h=W[0], activation="relu", leak=0.3)


def lstm() -> Cell:
    draw = rng()
    return gl.LSTMCell(
        W_x=draw.normal(size=(4 * N, D)), W_h=draw.normal(size=(4 * N, 2)), b_x=None,
        b_h=draw.normal(size=4 * N), W_hr=draw.normal(size=(2, N)),
        peepholes=draw.normal(size=(3, N)), recurrent_activation="hard_sigmoid", coupled="forget",
        clip=2.0, forget_bias=1.5,
    )  # fmt: skip


def gru() -> Cell:
    draw = rng()
    return gl.GRUCell(
        W_x=draw.normal(size=(3 * N, D)), W_h=draw.normal(size=(3 * N, N)), reset="before",
        update="overwrite", activation="softsign",
    )  # fmt: skip


def minimal() -> Cell:
    draw = rng()
    return gl.MinimalGatedCell(W_x=draw.normal(size=(2 * N, D)), W_h=draw.normal(size=(2 * N, N)))


def vanilla() -> Cell:
    W = rng().normal(size=(N, N))
    return gl.VanillaCell(W_hh=W, W_xh=W[:, :D], b_h=None, activation="elu")


CELLS = (vanilla, leaky, lstm, gru, minimal)


def facts(cell: Any) -> dict[str, Any]:
    names = {"activation", "recurrent_activation", "leak", "reset", "update", "coupled", "clip",
             "forget_bias", "kind"}  # fmt: skip
    return {name: getattr(cell, name) for name in names if hasattr(cell, name)}


@pytest.mark.parametrize("make", CELLS)
def test_cell_comes_back_with_every_setting_and_no_assumption(
    make: Callable[[], Cell], tmp_path: Path
) -> None:
    cell = make()
    network = gl.load(gl.export_npz(cell, tmp_path / "cell.npz"), batch_first=True)
    found = network.only()
    assert network.assumptions == ()
    assert facts(found) == facts(cell)
    assert found.parameters.keys() == cell.parameters.keys()
    for name, array in cell.parameters.items():
        np.testing.assert_array_equal(found.parameters[name], array)
    x, state = np.ones((1, D)), np.full((1, cell.state_size), 0.3)
    np.testing.assert_array_equal(found.step(x, state), cell.step(x, state))


@pytest.mark.parametrize("name", ["rnn_tanh_bi_2l.pt", "lstm_proj_2l.pt", "cells.pt"])
def test_stacks_and_directions_come_back(name: str, models: Path, tmp_path: Path) -> None:
    network = gl.load(models / name)
    again = gl.load(gl.export_npz(network, tmp_path / "network.npz"))
    key = [(e.name, e.layer, e.direction, e.stack, e.cell.kind) for e in network.recurrences]
    assert [(e.name, e.layer, e.direction, e.stack, e.cell.kind) for e in again.recurrences] == key


def test_equal_networks_give_equal_bytes(tmp_path: Path) -> None:
    first, second = (gl.export_npz(lstm(), tmp_path / f"{k}.npz") for k in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_file_that_exists_is_not_replaced(tmp_path: Path) -> None:
    path = gl.export_npz(vanilla(), tmp_path / "a.npz")
    before = path.read_bytes()
    with pytest.raises(gl.OutputError, match="exists"):
        gl.export_npz(lstm(), path)
    assert path.read_bytes() == before


def test_name_of_another_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(gl.OutputError, match=r"\.pt: expected a name in \.npz"):
        gl.export_npz(vanilla(), tmp_path / "a.pt")


def test_folder_that_is_not_there_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(gl.OutputError, match="cannot be written"):
        gl.export_npz(vanilla(), tmp_path / "none" / "a.npz")
    assert list(tmp_path.iterdir()) == []


def test_joint_state_is_refused_for_its_layers_are_what_is_stored(
    models: Path, tmp_path: Path
) -> None:
    joint = gl.load(models / "lstm_proj_2l.pt").joint()
    with pytest.raises(gl.SettingError, match="JointCell"):
        gl.export_npz(joint, tmp_path / "a.npz")


DAMAGE: tuple[Callable[[dict[str, Any]], object], ...] = (
    lambda d: d.update(schema=99),
    lambda d: d.update(recurrences={}),
    lambda d: d.pop("recurrences"),
    lambda d: d["recurrences"][0].update(cell="mlstm"),
    lambda d: d["recurrences"][0]["weights"].update(W_hh="gone"),
    lambda d: d["recurrences"][0]["settings"].update(kind="lstm"),
    lambda d: d["recurrences"][0]["settings"].update(__class__="lstm"),
    lambda d: d["recurrences"][0]["settings"].update(activation="thanh"),
    lambda d: d["recurrences"][0]["settings"].update(activation=["tanh"]),
    lambda d: d["recurrences"][0]["settings"].update(activation=3),
    lambda d: d["recurrences"][0]["settings"].update(leak=0.5),
    lambda d: d["recurrences"][0].update(direction="sideways"),
    lambda d: d["recurrences"][0].update(layer="x"),
    lambda d: d["recurrences"][0].update(name=None),
    lambda d: d["recurrences"].append(3),
)


def members(tmp_path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    with np.load(gl.export_npz(vanilla(), tmp_path / "whole.npz")) as stored:
        arrays = dict(stored)
    return arrays, json.loads(arrays["gradlab.json"].tobytes())


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_description_is_one_clear_error(
    damage: Callable[[dict[str, Any]], object], write: ModelWriter, tmp_path: Path
) -> None:
    arrays, document = members(tmp_path)
    damage(document)
    arrays["gradlab.json"] = np.frombuffer(json.dumps(document).encode(), np.uint8)
    with pytest.raises(gl.GradlabError) as refusal:
        gl.load(write.npz(arrays))
    assert "\n" not in str(refusal.value)


@settings(max_examples=50, deadline=None)
@given(junk=st.binary(max_size=60))
def test_any_bytes_in_place_of_the_description_are_one_clear_error(
    junk: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("junk")
    arrays, _ = members(folder)
    arrays["gradlab.json"] = np.frombuffer(junk, np.uint8)
    np.savez(folder / "junk.npz", **arrays)
    with pytest.raises(gl.ModelFileError):
        gl.load(folder / "junk.npz")
