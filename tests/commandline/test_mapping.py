"""Files with names of their own on the command line: list, propose, map."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def model(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path / "abc.npz"
    np.savez(path, a=rng.normal(size=(12, 4)), b=rng.normal(size=(12, 3)), c=rng.normal(size=12))
    return path


def test_refused_proposed_edited_and_read(gradlab: Any, model: Path, tmp_path: Path) -> None:
    refused = gradlab("inspect", model)
    assert refused.code == 1
    assert "--propose-map" in refused.err
    proposed = gradlab("inspect", model, "--propose-map")
    assert proposed.code == 0
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(proposed.out.replace('"after"', '"before"'))
    read = gradlab("inspect", model, "--map", mapping, "--json")
    [entry] = json.loads(read.out)["recurrences"]
    assert (entry["cell"], entry["hidden_size"], entry["input_size"]) == ("gru", 4, 3)
    assert entry["tensors"] == ["a", "b", "c"]
    assert entry["stored_dtype"] == "float64"


def test_mapping_reaches_the_analysis(gradlab: Any, model: Path, tmp_path: Path) -> None:
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(gradlab("inspect", model, "--propose-map").out)
    run = gradlab("analyze", model, "--map", mapping, "--length", "10", "--batch", "1", "--json")
    assert run.code == 0
    assert any(
        "read as the mapping says" in said
        for said in json.loads(run.out)["recurrences"][0]["assumptions"]
    )


def test_list_shows_every_array(gradlab: Any, model: Path) -> None:
    shown = gradlab("inspect", model, "--list")
    assert [line.split() for line in shown.out.splitlines()[1:]] == [
        ["a", "12", "x", "4", "float64"],
        ["b", "12", "x", "3", "float64"],
        ["c", "12", "float64"],
    ]
    document = json.loads(gradlab("inspect", model, "--list", "--json").out)
    assert document["tensors"][0]["shape"] == [12, 4]


@pytest.mark.parametrize("options", [("--list", "--propose-map"), ("--list", "--map", "m.toml")])
def test_options_without_effect_are_usage_errors(
    options: tuple[str, ...], gradlab: Any, model: Path
) -> None:
    assert gradlab("inspect", model, *options).code == 2


@pytest.mark.parametrize("options", [("--map", "m.toml"), ("--keras-version", "2")])
def test_reading_options_without_a_file_are_usage_errors(
    options: tuple[str, ...], gradlab: Any
) -> None:
    assert gradlab("analyze", "random", *options).code == 2


def test_tokens_run_through_the_embedding_of_the_file(gradlab: Any, tmp_path: Path) -> None:
    model, ids = tmp_path / "model.npz", tmp_path / "ids.npy"
    rng = np.random.default_rng(0)
    np.savez(model, allow_pickle=True, **{
        "emb.weight": rng.normal(size=(9, 3)), "weight_ih_l0": rng.normal(size=(4, 3)),
        "weight_hh_l0": rng.normal(size=(4, 4)),
    })  # fmt: skip
    np.save(ids, rng.integers(9, size=(12, 2)))
    run = gradlab("analyze", model, "--tokens", ids, "--embedding", "emb.weight", "--json")
    assert run.code == 0
    [entry] = json.loads(run.out)["recurrences"]
    assert entry["sequences"]["description"] == (
        "ids.npy, token ids through emb.weight of model.npz"
    )
    assert not entry["sequences"]["synthetic"]
    assert gradlab("analyze", "random", "--tokens", ids).code == 2
    assert gradlab("analyze", model, "--tokens", ids, "--inputs", ids).code == 2
    assert gradlab("analyze", model, "--embedding", "emb.weight").code == 2
