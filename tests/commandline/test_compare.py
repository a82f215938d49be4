"""``gradlab compare``."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradlab_reports

Run = Callable[..., Any]
Model = Callable[[str], Path]

SMALL = ("--hidden-size", 5, "--input-size", 2, "--length", 12, "--batch", 2)
FILES = {
    "compare.csv",
    "compare.json",
    "compare.html",
    "manifest.json",
    "figures/compare.png",
    "figures/compare.svg",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of saved runs: a and b with one recurrence, deep with four."""
    from gradlab_cli.app import main

    place = tmp_path_factory.mktemp("runs")
    model = Path(__file__).parents[1] / "fixtures" / "models" / "rnn_tanh_bi_2l.pt"
    for name, source in {
        "a": ("random", *SMALL, "--gain", 0.5),
        "b": ("random", *SMALL, "--gain", 2.0, "--seed", 3),
        "deep": (model, "--length", 6, "--batch", 1),
    }.items():
        with pytest.raises(SystemExit) as ended:
            main(["analyze", *map(str, source), "--quiet", "-o", str(place / name)])
        assert not ended.value.code
    return place


@pytest.fixture
def blank_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page without drawing, for tests of what happens around it."""

    def write(folder: Path, **_: Any) -> Path:
        page = folder / "compare.html"
        page.write_text("<!doctype html>", encoding="utf-8")
        return page

    monkeypatch.setattr(gradlab_reports, "write_comparison", write, raising=False)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def document_of(outcome: Any) -> dict[str, Any]:
    assert outcome.code == 0, outcome.err
    loaded: dict[str, Any] = json.loads(outcome.out)
    return loaded


def test_without_a_folder_only_the_table_is_printed(
    gradlab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = gradlab("compare", "rnn", "lstm", "gru", *SMALL)
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].split()[:3] == ["label", "cell", "units"]
    assert lines[0].endswith("norm at lag 12")
    assert [line.split()[0] for line in lines[1:]] == ["rnn", "lstm", "gru"]
    assert "synthetic inputs" in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_folder_holds_table_document_page_and_figure(gradlab: Run, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    outcome = gradlab("compare", "rnn", "lstm", "gru", "leaky", "mgu", *SMALL, "-o", folder)
    assert outcome.code == 0, outcome.err
    assert set(contents(folder)) == FILES
    assert outcome.out.splitlines()[0].startswith("Each step back in time multiplies")
    assert outcome.out.splitlines()[-1] == str(folder / "compare.html")
    with (folder / "compare.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(dict.fromkeys(row["label"] for row in rows)) == [
        "rnn",
        "lstm",
        "gru",
        "leaky",
        "mgu",
    ]
    assert len(rows) == 5 * 12
    assert {row["log_bound_gamma"] for row in rows if row["label"] == "lstm"} == {"nan"}
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["kind"] == "comparison"


def test_document_on_stdout_is_the_document_of_the_folder(gradlab: Run, tmp_path: Path) -> None:
    outcome = gradlab("compare", "rnn", "lstm", *SMALL, "--json", "--quiet", "-o", tmp_path / "out")
    document = document_of(outcome)
    assert outcome.err == ""
    assert document == json.loads((tmp_path / "out" / "compare.json").read_text(encoding="utf-8"))
    assert document["labels"] == ["rnn", "lstm"]
    assert document["same_inputs"] is True
    assert [entry["state_size"] for entry in document["recurrences"]] == [5, 10]


@pytest.mark.usefixtures("blank_page")
def test_equal_commands_give_equal_bytes(gradlab: Run, tmp_path: Path) -> None:
    for name in "ab":
        assert gradlab("compare", "lstm", "mgu", *SMALL, "-o", tmp_path / name).code == 0
    for file in ("compare.csv", "compare.json"):
        assert len({(tmp_path / name / file).read_bytes() for name in "ab"}) == 1


def test_a_cell_is_the_same_whatever_it_is_compared_with(gradlab: Run) -> None:
    """And the vanilla one is that of `analyze random` with the same seed."""

    def weights(*arguments: object) -> dict[str, str]:
        entries = document_of(gradlab("compare", *arguments, *SMALL, "--json"))["recurrences"]
        return {entry["label"]: entry["sha256_weights"] for entry in entries}

    first, second = weights("rnn", "gru", "lstm"), weights("lstm", "rnn")
    assert second == {name: first[name] for name in ("lstm", "rnn")}
    assert weights("lstm", "rnn", "--seed", 1)["lstm"] != first["lstm"]
    both = document_of(gradlab("compare", "rnn", "gru", *SMALL, "--anchors", "all", "--json"))
    alone = document_of(gradlab("analyze", "random", *SMALL, "--anchors", "all", "--json"))
    assert both["recurrences"][0]["regime"] == alone["recurrences"][0]["regime"]


def test_options_reach_the_cells_that_have_them(gradlab: Run) -> None:
    """At zero weights and inputs an LSTM keeps σ(5) of its state, a leaky cell half of it."""
    shape = (*SMALL, "--gain", 0.0, "--synthetic", "zeros")
    given = ("--forget-bias", 5.0, "--leak", 0.5)
    lstm, leaky, gru = document_of(
        gradlab("compare", "lstm", "leaky", "gru", *shape, *given, "--json")
    )["recurrences"]
    kept = -math.log1p(math.exp(-5.0))
    assert lstm["regime"]["rate"] == pytest.approx(kept, abs=1e-12)
    assert gru["regime"]["rate"] == pytest.approx(kept, abs=1e-12)
    assert leaky["regime"]["rate"] == pytest.approx(math.log(0.5), abs=1e-12)


def test_without_options_gated_cells_start_with_a_forget_bias_of_one(gradlab: Run) -> None:
    shape = (*SMALL, "--gain", 0.0, "--synthetic", "zeros")
    for entry in document_of(gradlab("compare", "lstm", "gru", "mgu", *shape, "--json"))[
        "recurrences"
    ]:
        assert entry["regime"]["rate"] == pytest.approx(-math.log1p(math.exp(-1.0)), abs=1e-12)


def test_chrono_spreads_the_biases_of_the_cells_that_know_it(gradlab: Run) -> None:
    """Kept shares between σ(0) = 1/2 and σ(ln 8) = 8/9; the minimal gated unit keeps σ(3)."""
    shape = (*SMALL, "--gain", 0.0, "--synthetic", "zeros")
    given = ("--chrono", 10, "--forget-bias", 3.0)
    lstm, mgu = document_of(gradlab("compare", "lstm", "mgu", *shape, *given, "--json"))[
        "recurrences"
    ]
    assert math.log(1 / 2) < lstm["regime"]["rate"] < math.log(8 / 9)
    assert mgu["regime"]["rate"] == pytest.approx(-math.log1p(math.exp(-3.0)), abs=1e-12)


def test_sequences_of_a_file_set_the_number_of_features(gradlab: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((9, 2, 3)))
    outcome = gradlab(
        "compare", "rnn", "lstm", "--hidden-size", 4, "--inputs", tmp_path / "x.npy", "--json"
    )
    for entry in document_of(outcome)["recurrences"]:
        assert entry["input_size"] == 3
        assert entry["sequences"]["synthetic"] is False
    assert "No real data" not in outcome.err


def test_saved_runs_are_compared_under_the_names_of_their_folders(gradlab: Run, runs: Path) -> None:
    document = document_of(gradlab("compare", runs / "a", runs / "b", "--json"))
    assert document["labels"] == ["a", "b"]
    assert document["same_inputs"] is False
    assert "seed" in document["differing"]
    for name, entry in zip("ab", document["recurrences"], strict=True):
        saved = json.loads((runs / name / "summary.json").read_text(encoding="utf-8"))
        assert entry["regime"] == saved["recurrences"][0]["regime"]


def test_recurrences_of_a_run_are_labeled_with_run_and_name(gradlab: Run, runs: Path) -> None:
    document = document_of(gradlab("compare", runs / "deep", runs / "a", "--json"))
    assert document["labels"] == [
        "deep/l0",
        "deep/l0.reverse",
        "deep/l1",
        "deep/l1.reverse",
        "a",
    ]


def test_one_recurrence_of_a_run_can_be_named(gradlab: Run, runs: Path) -> None:
    names = (runs / "deep" / "l1.reverse", runs / "deep" / "l0")
    document = document_of(gradlab("compare", *names, "--json"))
    assert document["labels"] == ["deep/l1.reverse", "deep/l0"]
    refused = gradlab("compare", runs / "a", runs / "deep" / "l7")
    assert refused.code == 1
    assert "unknown recurrence 'l7'" in refused.error


@pytest.mark.usefixtures("blank_page")
def test_folders_of_one_name_are_told_apart_by_those_above(
    gradlab: Run, runs: Path, tmp_path: Path
) -> None:
    for place in ("old", "new"):
        shutil.copytree(runs / "a", tmp_path / place / "a")
    names = (tmp_path / "old" / "a", tmp_path / "new" / "a")
    assert document_of(gradlab("compare", *names, "--json"))["labels"] == ["old/a", "new/a"]


def test_a_folder_called_like_a_kind_is_named_by_its_path(
    gradlab: Run, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("lstm", "gru"):
        shutil.copytree(runs / "a", tmp_path / name)
    monkeypatch.chdir(tmp_path)
    document = document_of(gradlab("compare", "./lstm", "./gru", "--json"))
    assert [entry["cell"] for entry in document["recurrences"]] == ["rnn", "rnn"]


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (("rnn",), 2, "rnn alone, expected two or more"),
        (("rnn", "rnn"), 2, "rnn is named twice"),
        (("rnn", "lsmt"), 1, "unknown kind of cell 'lsmt'"),
        (("nothing", "here"), 1, "no kind of cell and no folder"),
        (("some/where", "some/else"), 1, "some/where is not a folder"),
        (("rnn", "gru", "--leak", 0.5), 2, "shapes none of rnn, gru"),
        (("lstm", "gru", "--chrono", 9, "--forget-bias", 2), 2, "--forget-bias"),
        (("rnn", "leaky", "--leak", 2.0), 1, "leak"),
        (("rnn", "lstm", "--activation", "thanh"), 1, "did you mean 'tanh'?"),
        (("rnn", "lstm", "--inputs", "x.npy", "--length", 5), 2, "--inputs names a file"),
        (("rnn", "lstm", "--separator", ";"), 2, "file of --inputs"),
    ],
)
def test_bad_names_and_options_are_one_line(
    gradlab: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[object, ...],
    code: int,
    part: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = gradlab("compare", *arguments, "-o", tmp_path / "out")
    assert outcome.code == code
    assert part in outcome.error
    assert list(tmp_path.iterdir()) == []


def test_kinds_and_folders_do_not_mix(gradlab: Run, runs: Path) -> None:
    outcome = gradlab("compare", "rnn", runs / "a")
    assert outcome.code == 2
    assert "./rnn is the folder of that name" in outcome.error


def test_options_of_cells_are_refused_for_saved_runs(gradlab: Run, runs: Path) -> None:
    for option in (("--hidden-size", 3), ("--length", 9), ("--seed", 1)):
        outcome = gradlab("compare", runs / "a", runs / "b", *option)
        assert outcome.code == 2
        assert str(option[0]) in outcome.error
        assert "no effect on saved runs" in outcome.error


def test_one_run_of_one_recurrence_is_refused(gradlab: Run, runs: Path) -> None:
    outcome = gradlab("compare", runs / "a")
    assert outcome.code == 1
    assert "expected at least 2" in outcome.error
    twice = gradlab("compare", runs / "a", runs / "." / "a")
    assert twice.code == 2
    assert "named twice" in twice.error


def test_more_recurrences_than_a_figure_shows_are_refused(
    gradlab: Run, runs: Path, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        shutil.copytree(runs / "deep", tmp_path / name)
    places = (runs / "deep", tmp_path / "one", tmp_path / "two")
    outcome = gradlab("compare", *places, "-o", tmp_path / "out")
    assert outcome.code == 1
    assert "12 recurrences in these runs: expected at most 8" in outcome.error
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_no_run_is_refused(gradlab: Run, runs: Path, tmp_path: Path) -> None:
    outcome = gradlab("compare", runs / "a", tmp_path)
    assert outcome.code == 1
    assert str(tmp_path) in outcome.error


@pytest.mark.usefixtures("blank_page")
def test_existing_folder_is_kept_without_force_and_replaced_with_it(
    gradlab: Run, tmp_path: Path
) -> None:
    arguments = ("compare", "rnn", "leaky", *SMALL, "-o", tmp_path / "out")
    assert gradlab(*arguments).code == 0
    before = contents(tmp_path / "out")
    refused = gradlab(*arguments, "--seed", 1)
    assert refused.code == 1
    assert "--force" in refused.error
    assert contents(tmp_path / "out") == before
    assert gradlab(*arguments, "--seed", 1, "--force").code == 0
    assert contents(tmp_path / "out")["compare.csv"] != before["compare.csv"]


def test_the_page_is_written_in_the_formats_asked_for(
    gradlab: Run, runs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    outcome = gradlab("compare", runs / "a", runs / "b", "--format", "md,json", "-o", out)
    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines()[-1] == str(out / "compare.md")
    assert set(contents(out)) == FILES - {"compare.html"} | {"compare.md", "compare.page.json"}
    assert gradlab("compare", "rnn", "gru", "--format", "tex").code == 1
    again = gradlab("report", out)
    assert (again.code, again.out) == (0, f"{out / 'compare.html'}\n")


def test_figure_that_fails_loses_no_number(
    gradlab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: Path, **_: Any) -> Path:
        raise RuntimeError("no picture")

    monkeypatch.setattr(gradlab_reports, "write_comparison", fail, raising=False)
    outcome = gradlab("compare", "rnn", "gru", *SMALL, "-o", tmp_path / "out")
    assert outcome.code == 1
    assert "no picture" in outcome.error
    assert {"compare.csv", "compare.json"} <= set(contents(tmp_path / "out"))


def test_assumptions_are_told_with_the_run_they_belong_to(gradlab: Run, runs: Path) -> None:
    outcome = gradlab("compare", runs / "a", runs / "deep" / "l0")
    assert "note: deep/l0: the file does not store" in outcome.err
