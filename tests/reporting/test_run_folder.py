"""Run folders are read as their contract says, and refused in one clear line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gradlab as gl
from gradlab_reports.catalog import KINDS
from gradlab_reports.loading import load_frame
from gradlab_reports.run_folder import open_run, read_table

WriteRun = Callable[..., Path]


def one_line(error: pytest.ExceptionInfo[gl.GradlabError]) -> str:
    words = str(error.value)
    assert "\n" not in words
    return words


def test_infinities_missing_numbers_and_odd_names_are_read_as_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("recurrence,lag,log_norm_median\nnull,1,-inf\n1e5,2,nan\nNA,3,-16118.1\n")
    table = read_table(path, ("lag", "log_norm_median"))
    assert table["recurrence"].tolist() == ["null", "1e5", "NA"]
    assert table["log_norm_median"][0] == -math.inf
    assert math.isnan(table["log_norm_median"][1])
    assert table["log_norm_median"][2] == -16118.1


def test_shortest_floats_are_read_back_to_the_last_bit(tmp_path: Path) -> None:
    values = [math.log(0.9) * lag for lag in range(1, 2000)]
    path = tmp_path / "t.csv"
    path.write_text("lag,log_norm_median\n" + "".join(f"{i},{v!r}\n" for i, v in enumerate(values)))
    assert read_table(path, ("lag",))["log_norm_median"].tolist() == values


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a CSV table"),
        (b"lag,log_norm_median\n", "no rows"),
        (b"lag,norm\n1,2\n", "no column 'log_norm_median': found lag, norm"),
        (b"lag,log_norm_median\n1,-0.5\n2,soon\n", "line 3: column 'log_norm_median' holds 'soon'"),
        (b'lag,log_norm_median\n"1,2\n', "not a CSV table"),
        (b"\xff\xfe\x00\x01lag", "t.csv"),
    ],
)
def test_a_broken_table_is_refused_by_name_and_place(
    tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(gl.RunFolderError) as error:
        read_table(path, ("lag", "log_norm_median"))
    assert words in one_line(error)
    assert str(path) in one_line(error)


def test_a_folder_that_is_not_there_or_not_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(gl.RunFolderError, match="is not a folder: expected a run folder"):
        open_run(tmp_path / "nothing")
    with pytest.raises(gl.RunFolderError, match=r"lacks manifest\.json, summary\.json") as error:
        open_run(tmp_path)
    one_line(error)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("summary.json", "{", "is not JSON (line 1"),
        ("summary.json", "[1]", "holds a list: expected a JSON object"),
        ("summary.json", "{}", "no list of named recurrences"),
        ("summary.json", '{"recurrences": [{"cell": "rnn"}]}', "no list of named recurrences"),
        ("manifest.json", "nope", "is not JSON"),
    ],
)
def test_a_broken_document_is_refused_by_name(
    write_run: WriteRun, name: str, content: str, words: str
) -> None:
    folder = write_run("run", pairs=False)
    (folder / name).write_text(content)
    with pytest.raises(gl.RunFolderError) as error:
        open_run(folder)
    assert words in one_line(error)
    assert name in one_line(error)


def test_recurrences_are_kept_apart(write_run: WriteRun, decay: Any) -> None:
    run = write_run("run", decay(name="a", rate=-0.1), decay(name="b", rate=-0.2), steps=3)
    frame = load_frame(run, KINDS["decay"], "b")
    assert frame["log_norm_median"].tolist() == pytest.approx([-0.2, -0.4, -0.6])
    with pytest.raises(gl.SettingError, match="2 recurrences: choose one of a, b"):
        load_frame(run, KINDS["decay"])
    with pytest.raises(gl.UnknownNameError, match="unknown recurrence 'c'"):
        load_frame(run, KINDS["decay"], "c")


def test_a_single_recurrence_needs_no_choice(write_run: WriteRun) -> None:
    assert len(load_frame(write_run("run", steps=7), KINDS["decay"])) == 7


def test_missing_pairs_say_how_to_have_them(write_run: WriteRun) -> None:
    with pytest.raises(gl.RunFolderError, match=r"no pairs.csv.*--pairs") as error:
        load_frame(write_run("run", pairs=False), KINDS["pairs"])
    one_line(error)


def test_sweep_profiles_take_gamma_from_the_points_beside_them(write_sweep: WriteRun) -> None:
    sweep = write_sweep("sweep", [0.5, 1.5], seeds=2, steps=2)
    kind = KINDS["decay-by-gamma"]
    for source in (sweep, sweep / "sweep_profiles.csv"):
        frame = load_frame(source, kind)
        assert frame["gamma"].tolist() == [0.5] * 4 + [1.5] * 4
    (sweep / "sweep.csv").unlink()
    with pytest.raises(gl.RunFolderError, match=r"holds no sweep.csv beside sweep_profiles.csv"):
        load_frame(sweep, kind)


def test_documents_of_the_samples_are_strict_json(write_run: WriteRun, decay: Any) -> None:
    """The samples follow the contract: null and strings where a number is not finite."""

    def refuse(token: str) -> None:
        raise AssertionError(token)

    run = write_run("run", decay(zero_from=2), pairs=False)
    document = json.loads((run / "summary.json").read_text(), parse_constant=refuse)
    assert document["recurrences"][0]["regime"]["rate"] == "-inf"
