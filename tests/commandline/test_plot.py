"""``gradlab plot``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gradlab_reports

Run = Callable[..., Any]

RUN_KINDS = ("decay", "pairs", "spectrum", "singular-values", "saturation", "ladder")
START = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run with its pairs."""
    from gradlab_cli.app import main

    folder = tmp_path_factory.mktemp("saved") / "run"
    shape = "random --hidden-size 4 --input-size 2 --length 6 --batch 2 --quiet --pairs"
    with pytest.raises(SystemExit) as ended:
        main(["analyze", *shape.split(), "-o", str(folder)])
    assert not ended.value.code
    return folder


@pytest.mark.parametrize("kind", RUN_KINDS)
def test_every_kind_is_drawn_from_a_run(
    gradlab: Run, run_folder: Path, tmp_path: Path, kind: str
) -> None:
    output = tmp_path / f"{kind}.svg"
    outcome = gradlab("plot", run_folder, "--kind", kind, "-o", output)
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{output}\n", "")
    assert output.read_bytes().startswith(START["svg"])


@pytest.mark.parametrize("suffix", START)
def test_every_format_is_what_its_name_says(
    gradlab: Run, run_folder: Path, tmp_path: Path, suffix: str
) -> None:
    output = tmp_path / f"decay.{suffix}"
    table = run_folder / "lag_profile.csv"
    outcome = gradlab("plot", table, "--kind", "decay", "-o", output, "--json")
    assert json.loads(outcome.out)["figure"] == str(output)
    assert output.read_bytes().startswith(START[suffix])


def test_help_names_every_kind(gradlab: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    told = gradlab("plot", "--help").out
    assert set(RUN_KINDS) <= set(gradlab_reports.figure_kinds())
    for kind in gradlab_reports.figure_kinds():
        assert kind in told


def test_file_that_exists_is_kept_without_force(
    gradlab: Run, run_folder: Path, tmp_path: Path
) -> None:
    output = tmp_path / "decay.png"
    output.write_bytes(b"mine")
    outcome = gradlab("plot", run_folder, "--kind", "decay", "-o", output)
    assert outcome.code == 1
    assert "--force" in outcome.error
    assert output.read_bytes() == b"mine"
    assert gradlab("plot", run_folder, "--kind", "decay", "-o", output, "--force").code == 0
    assert output.read_bytes() != b"mine"


@pytest.mark.parametrize(
    ("kind", "name", "option"), [("decline", "x.png", "--kind"), ("decay", "x.jpg", "--output")]
)
def test_unknown_kind_or_format_is_wrong_usage(
    gradlab: Run, run_folder: Path, tmp_path: Path, kind: str, name: str, option: str
) -> None:
    outcome = gradlab("plot", run_folder, "--kind", kind, "-o", tmp_path / name)
    assert outcome.code == 2
    assert option in outcome.error
    assert "expected" in outcome.error


@pytest.mark.parametrize("source", ["missing", "missing.csv"])
def test_missing_source_is_named(gradlab: Run, tmp_path: Path, source: str) -> None:
    outcome = gradlab("plot", tmp_path / source, "--kind", "decay", "-o", tmp_path / "x.png")
    assert outcome.code == 1
    assert source in outcome.error
    assert list(tmp_path.iterdir()) == []


def test_one_of_several_recurrences_is_chosen_by_name(
    gradlab: Run, model: Callable[[str], Path], tmp_path: Path
) -> None:
    source = (model("rnn_tanh_bi_2l.pt"), "--length", 5, "--batch", 2, "--quiet")
    assert gradlab("analyze", *source, "-o", tmp_path / "run").code == 0
    wanted = ("plot", tmp_path / "run", "--kind", "decay", "-o", tmp_path / "x.png")
    undecided = gradlab(*wanted)
    assert undecided.code == 1
    assert "l0.reverse" in undecided.error
    assert gradlab(*wanted, "--recurrence", "l1.reverse").code == 0
    misspelled = gradlab(*wanted, "--recurrence", "l1.revers", "--force")
    assert "did you mean 'l1.reverse'?" in misspelled.error


def test_any_columns_of_a_sweep_are_drawn(gradlab: Run, tmp_path: Path) -> None:
    sweep, picture = tmp_path / "sweep", tmp_path / "x.png"
    shape = "--hidden-size 3,4 --length 6 --batch 1 --gamma 0.5,1.5 --jobs 1 --quiet"
    assert gradlab("sweep", *shape.split(), "-o", sweep).code == 0
    wanted = ("plot", sweep, "--kind", "sweep", "--x", "gamma", "--y", "rate", "-o", picture)
    assert gradlab(*wanted, "--hue", "hidden_size", "--facet", "regime").code == 0
    assert picture.read_bytes().startswith(START["png"])
    misspelled = gradlab(*wanted, "--hue", "hidden_sise", "--force")
    assert misspelled.code == 1
    assert "did you mean 'hidden_size'?" in misspelled.error
