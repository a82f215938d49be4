"""``gradlab report``."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import gradlab_reports

Run = Callable[..., Any]
Model = Callable[[str], Path]

SMALL = ("random", "--hidden-size", 4, "--input-size", 2, "--length", 6, "--batch", 2)
FEW = ("--anchors", 3)  # end times: the verdict of a scenario is clear from few
NUMBERS = {"manifest.json", "summary.json", "lag_profile.csv", "steps.csv", "spectrum.csv"}


@pytest.fixture(scope="module")
def saved_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run without a page."""
    from gradlab_cli.app import main

    folder = tmp_path_factory.mktemp("saved") / "run"
    with pytest.raises(SystemExit) as ended:
        main(["analyze", *map(str, SMALL), "--quiet", "--pairs", "-o", str(folder)])
    assert not ended.value.code
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def blank_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page without drawing, for tests of what happens around it."""

    def write(folder: Path, *, formats: Sequence[str]) -> Path:
        assert formats == ("html",)
        page = folder / "report.html"
        page.write_text("<!doctype html>", encoding="utf-8")
        return page

    monkeypatch.setattr(gradlab_reports, "write_report", write, raising=False)


@pytest.mark.usefixtures("blank_page")
@pytest.mark.parametrize(
    ("scenario", "regime", "sign"),
    [("vanishing", "vanishing", -1), ("exploding", "exploding", 1)],
)
def test_scenario_gets_its_verdict(
    gradlab: Run, tmp_path: Path, scenario: str, regime: str, sign: int
) -> None:
    outcome = gradlab("report", scenario, *FEW, "-o", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    [entry] = summary["recurrences"]
    assert entry["regime"]["name"] == regime
    assert sign * entry["regime"]["rate"] > 0


def test_saturated_network_vanishes_and_contradicts_its_norm(gradlab: Run, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    outcome = gradlab("report", "saturated", *FEW, "-o", folder)
    assert outcome.out.splitlines()[0].startswith("rnn: The gradient vanishes")
    assert outcome.out.splitlines()[-1] == str(folder / "report.html")
    [entry] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["recurrences"]
    assert entry["gamma_w"] == pytest.approx(3.0, rel=1e-12)
    assert entry["regime"]["name"] == "vanishing"
    assert "3 would suggest explosion" in entry["regime"]["contradicts"]
    assert "3 would suggest explosion" in (folder / "report.html").read_text(encoding="utf-8")
    assert set(contents(folder)) >= NUMBERS | {"pairs.csv", "report.html", "figures/decay.svg"}


@pytest.mark.usefixtures("blank_page")
def test_document_names_page_run_and_regimes(gradlab: Run, model: Model, tmp_path: Path) -> None:
    source = (model("rnn_tanh_bi_2l.pt"), "--length", 5, "--batch", 2)
    outcome = gradlab("report", *source, "-o", tmp_path / "out", "--json", "--quiet")
    document = json.loads(outcome.out)
    assert Path(document["page"]).is_file()
    assert list(document["regimes"]) == ["l0", "l0.reverse", "l1", "l1.reverse"]
    assert outcome.err == ""


@pytest.mark.usefixtures("blank_page")
def test_assumptions_are_printed(gradlab: Run, model: Model, tmp_path: Path) -> None:
    source = (model("rnn_tanh_1l.pt"), "--length", 5, "--batch", 2)
    outcome = gradlab("report", *source, "-o", tmp_path / "out")
    assert "tanh assumed" in outcome.err


@pytest.mark.usefixtures("blank_page")
def test_saved_run_is_rendered_in_place_and_its_numbers_stay(
    gradlab: Run, saved_run: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(saved_run, tmp_path / "run")
    before = contents(run)
    assert gradlab("report", run).code == 0
    after = contents(run)
    assert {name: after[name] for name in before} == before
    assert "report.html" in after
    refused = gradlab("report", run)
    assert refused.code == 1
    assert "report.html exists" in refused.error
    assert gradlab("report", run, "--force").code == 0


@pytest.mark.usefixtures("blank_page")
def test_saved_run_is_rendered_into_a_copy_and_stays_as_it_was(
    gradlab: Run, saved_run: Path, tmp_path: Path
) -> None:
    before = contents(saved_run)
    for place in (tmp_path / "out", saved_run / "inside"):
        assert gradlab("report", saved_run, "-o", place).code == 0
        copied = contents(place)
        assert {name: copied[name] for name in before} == before
        assert "report.html" in copied
        assert not any(name.startswith((".", "inside")) for name in copied)
    shutil.rmtree(saved_run / "inside")
    assert contents(saved_run) == before


@pytest.mark.usefixtures("blank_page")
def test_copy_over_an_older_run_needs_force(gradlab: Run, saved_run: Path, tmp_path: Path) -> None:
    assert gradlab("report", saved_run, "-o", tmp_path / "out").code == 0
    assert "--force" in gradlab("report", saved_run, "-o", tmp_path / "out").error
    assert gradlab("report", saved_run, "-o", tmp_path / "out", "--force").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_folder_that_is_no_run_is_refused(gradlab: Run, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for options in ([], ["-o", tmp_path / "out"]):
        outcome = gradlab("report", tmp_path / "folder", *options)
        assert outcome.code == 1
        assert "is not a complete run" in outcome.error
        assert "numbers" not in outcome.error
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_setting_has_no_place_in_rendering(gradlab: Run, saved_run: Path) -> None:
    outcome = gradlab("report", saved_run, "--seed", 3)
    assert outcome.code == 2
    assert "--seed" in outcome.error


def test_report_of_a_scenario_needs_an_output(gradlab: Run) -> None:
    outcome = gradlab("report", "vanishing")
    assert outcome.code == 2
    assert "--output" in outcome.error


def test_page_that_fails_loses_no_number(
    gradlab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: Path, *, formats: Sequence[str]) -> Path:
        raise RuntimeError("no picture\ntoday")

    monkeypatch.setattr(gradlab_reports, "write_report", fail, raising=False)
    outcome = gradlab("report", *SMALL, "-o", tmp_path / "out")
    assert outcome.code == 1
    assert "no picture today" in outcome.error
    assert f"the numbers are complete in {tmp_path / 'out'}" in outcome.error
    assert set(contents(tmp_path / "out")) >= NUMBERS


def test_figure_that_fails_is_told_and_everything_else_is_written(
    gradlab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gradlab_reports.figures import spectrum

    def fail(frame: object) -> None:
        raise RuntimeError("no circle")

    monkeypatch.setattr(spectrum, "plot_spectrum", fail)
    outcome = gradlab("report", *SMALL, "-o", tmp_path / "out")
    assert outcome.code == 1
    assert "spectrum" in outcome.error
    assert "no circle" in outcome.error
    assert outcome.out.splitlines()[-1] == str(tmp_path / "out" / "report.html")
    written = set(contents(tmp_path / "out"))
    assert written >= NUMBERS | {"report.html", "figures/decay.png"}
    assert "figures/spectrum.png" not in written


@pytest.mark.usefixtures("blank_page")
def test_listening_for_failures_ends_with_the_command(gradlab: Run, tmp_path: Path) -> None:
    assert gradlab("report", *SMALL, "-o", tmp_path / "out").code == 0
    assert logging.getLogger("gradlab_reports").handlers == []


@pytest.mark.parametrize("lost", ["regime", "assumptions", "contradicts"])
def test_a_summary_that_lacks_a_key_is_refused_by_the_key(
    gradlab: Run, tmp_path: Path, lost: str
) -> None:
    folder = tmp_path / "run"
    assert gradlab("analyze", *SMALL, "-o", folder).code == 0
    document = json.loads((folder / "summary.json").read_text())
    entry = document["recurrences"][0]
    (entry["regime"] if lost == "contradicts" else entry).pop(lost)
    (folder / "summary.json").write_text(json.dumps(document))
    outcome = gradlab("report", folder)
    assert outcome.code == 1
    assert f"lacks the key '{lost}'" in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_page_has_the_formats_asked_for(gradlab: Run, saved_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(saved_run, run)
    outcome = gradlab("report", run, "--format", "md,json", "--json")
    assert outcome.code == 0, outcome.err
    told = json.loads(outcome.out)
    assert told["pages"] == [str(run / "report.md"), str(run / "report.json")]
    assert not (run / "report.html").exists()
    words = (run / "report.md").read_text(encoding="utf-8")
    document = json.loads((run / "report.json").read_text(encoding="utf-8"))
    assert words.startswith("# ")
    assert document["sections"][0]["name"] == "rnn"
    again = gradlab("report", run, "--format", "json")
    assert again.code == 1
    assert "report.json exists" in again.err


def test_an_unknown_format_is_refused_before_any_work(gradlab: Run, tmp_path: Path) -> None:
    outcome = gradlab("report", *SMALL, "--format", "html,docx", "-o", tmp_path / "out")
    assert outcome.code == 1
    assert "docx" in outcome.err
    assert "md" in outcome.err
    assert not (tmp_path / "out").exists()
