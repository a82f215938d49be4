"""``gradlab train``."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gradlab as gl

Run = Callable[..., Any]

SMALL = ("--hidden-size", 6, "--batch-size", 3, "--every", 4, "--epochs", 2)
FILES = {"training.csv", "clipping.csv", "weights.npz", "manifest.json"}


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "training.csv").open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


@pytest.mark.parametrize("cell", ["rnn", "leaky", "lstm", "gru", "mgu"])
def test_every_cell_learns_and_leaves_tables_and_weights(
    gradlab: Run, tmp_path: Path, cell: str
) -> None:
    out = tmp_path / "out"
    outcome = gradlab("train", "echo", "--cell", cell, "--length", 12, *SMALL, "-o", out)
    assert outcome.code == 0, outcome.err
    assert {entry.name for entry in out.iterdir()} >= FILES
    assert not (out / "INCOMPLETE").exists()
    assert [row["step"] for row in rows(out)] == ["0", "4", "8"]
    assert outcome.out.splitlines()[-1] == str(out / "training.csv")
    assert "without memory 1" in outcome.out


def test_figures_of_the_training_are_drawn_beside_its_tables(gradlab: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert gradlab("train", "echo", *SMALL, "-o", out).code == 0
    drawn = {f"{kind}.{form}" for kind in ("training", "clipping") for form in ("png", "svg")}
    assert {entry.name for entry in (out / "figures").iterdir()} == drawn
    again = tmp_path / "again.png"
    assert gradlab("plot", out, "--kind", "training", "-o", again).code == 0
    assert again.read_bytes() == (out / "figures" / "training.png").read_bytes()


def test_a_failed_figure_does_not_cost_the_training(
    gradlab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gradlab_reports.figures.clipping as figure

    monkeypatch.setattr(figure, "plot_clipping", lambda frame: 1 / 0)
    out = tmp_path / "out"
    outcome = gradlab("train", "echo", *SMALL, "-o", out)
    assert outcome.code == 1
    assert "figure clipping could not be drawn" in outcome.error
    assert "the numbers are complete" in outcome.error
    assert {entry.name for entry in out.iterdir()} == FILES | {"figures", "training.html"}
    assert (out / "figures" / "training.png").exists()


def test_the_page_of_a_training_is_written_in_the_formats_asked_for(
    gradlab: Run, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    outcome = gradlab("train", "echo", *SMALL, "--format", "json,md", "-o", out)
    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines()[-2:] == [str(out / "training.json"), str(out / "training.csv")]
    assert (out / "training.md").is_file()
    assert not (out / "training.html").exists()
    page = json.loads((out / "training.json").read_text(encoding="utf-8"))
    assert page["title"] == "echo · rnn"
    assert page["regime"] == rows(out)[-1]["regime"]
    refused = gradlab("train", "echo", *SMALL, "--format", "pdf", "-o", tmp_path / "other")
    assert refused.code == 1
    assert "format of a page" in refused.error
    assert not (tmp_path / "other").exists()


def test_the_page_of_a_training_is_rendered_again_without_training(
    gradlab: Run, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert gradlab("train", "echo", *SMALL, "-o", out).code == 0
    page = (out / "training.html").read_bytes()
    assert gradlab("report", out).error.endswith("exists: pass --force to replace it")
    outcome = gradlab("report", out, "--format", "html,md", "--force", "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["pages"] == [str(out / f"training.{n}") for n in ("html", "md")]
    assert (out / "training.html").read_bytes() == page
    refused = gradlab("report", out, "-o", tmp_path / "other")
    assert refused.code == 2
    assert "rendered in its own folder" in refused.err


def test_weights_can_be_inspected(gradlab: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert gradlab("train", "echo", *SMALL, "-o", out).code == 0
    document = json.loads(gradlab("inspect", out / "weights.npz", "--json").out)
    (recurrence,) = document["recurrences"]
    assert float(rows(out)[-1]["gamma_w"]) == pytest.approx(recurrence["gamma_w"], rel=1e-14)


def test_document_has_the_last_row_the_baseline_and_the_audit(gradlab: Run, tmp_path: Path) -> None:
    typed = ("--clip", "1e-3", "--json", "-o", tmp_path / "out")
    document = json.loads(gradlab("train", "adding", "--length", 10, *SMALL, *typed).out)
    assert document["task"] == "adding"
    assert document["baseline"]["loss"] == pytest.approx(1.0 / 6.0)
    assert document["last"]["step"] == 8
    assert document["clipping"]["clipped_share"] == 1.0
    assert document["clipping"]["threshold"] == 1e-3


def test_a_training_that_was_interrupted_goes_on_to_the_same_bytes(
    gradlab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = ("train", "echo", "--cell", "gru", *SMALL)
    assert gradlab(*typed, "-o", tmp_path / "straight").code == 0
    whole = gl.train

    def interrupted(*args: Any, on_step: Any, **settings: Any) -> Any:
        def stop(outcome: Any) -> None:
            if outcome.step == 6:
                raise KeyboardInterrupt

        return whole(*args, on_step=stop, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(gl, "train", interrupted)
        assert gradlab(*typed, "-o", tmp_path / "out").code == 130
    assert (tmp_path / "out" / "INCOMPLETE").exists()
    outcome = gradlab(*typed, "-o", tmp_path / "out")
    assert outcome.code == 0
    assert "going on" in outcome.err
    for name in FILES - {"manifest.json"}:
        straight, resumed = (tmp_path / where / name for where in ("straight", "out"))
        assert straight.read_bytes() == resumed.read_bytes(), name


def test_other_settings_do_not_go_on_with_an_unfinished_training(
    gradlab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(gl, "save_training", lambda *args, **settings: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            gradlab("train", "echo", *SMALL, "-o", tmp_path / "out")
    outcome = gradlab("train", "echo", *SMALL, "--clip", 2.0, "-q", "-o", tmp_path / "out")
    assert outcome.code == 1
    assert "clip 1.0 there, 2.0 here" in outcome.error
    assert (
        gradlab("train", "echo", *SMALL, "--clip", 2.0, "--force", "-o", tmp_path / "out").code == 0
    )


def test_a_finished_training_is_replaced_with_force_only(gradlab: Run, tmp_path: Path) -> None:
    typed = ("train", "echo", *SMALL, "-o", tmp_path / "out")
    assert gradlab(*typed).code == 0
    assert "--force" in gradlab(*typed).error
    assert gradlab(*typed, "--force").code == 0


def test_settings_of_task_cell_and_optimizer_are_taken_and_checked(
    gradlab: Run, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    typed = (
        "train", "copy", "--length", 5, "--count", 2, "--symbols", 3, "--cell", "lstm",
        "--forget-bias", 1.0, "--recurrent", "orthogonal", "--optimizer", "sgd",
        "--learning-rate", 0.1, "--momentum", 0.5, "--clip", "inf", "--window", 3, *SMALL,
    )  # fmt: skip
    assert gradlab(*typed, "-o", out).code == 0
    settings = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["settings"]
    assert settings["task"] == {"name": "copy", "length": 5, "count": 2, "symbols": 3}
    assert settings["optimizer"] == {"name": "sgd", "learning_rate": 0.1, "momentum": 0.5}
    assert (settings["clip"], settings["window"], settings["cell"]) == (None, 3, "lstm")


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        (("addding",), 1, "did you mean 'adding'"),
        (("adding", "--delay", 3), 1, "setting of the task adding 'delay'"),
        (("digits",), 1, "has no folder"),
        (("echo", "--forget-bias", 1.0), 2, "is no setting of the cell rnn"),
        (("echo", "--momentum", 0.9), 1, "setting of adam 'momentum'"),
        (("echo", "--clip", 0), 1, "above 0"),
        (("echo", "--omega", 1.0, "--cell", "gru"), 1, "omega acts on W_hh"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    gradlab: Run, tmp_path: Path, typed: tuple[Any, ...], code: int, said: str
) -> None:
    outcome = gradlab("train", *typed, *SMALL, "-o", tmp_path / "out")
    assert outcome.code == code
    assert said in outcome.error
