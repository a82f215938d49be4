"""Where the settings of ``gradlab sweep`` come from: options, environment, file, defaults."""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradlab as gl
import gradlab_reports

Run = Callable[..., Any]
Model = Callable[[str], Path]

TINY = ("--hidden-size", 4, "--length", 8, "--batch", 2, "--jobs", 1)
TABLES = ("sweep.csv", "sweep_profiles.csv")


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made elsewhere."""
    monkeypatch.setattr(gradlab_reports, "write_sweep_figures", lambda folder: [], raising=False)


def columns(folder: Path) -> dict[str, list[str]]:
    header, *rows = (folder / "sweep.csv").read_text(encoding="utf-8").splitlines()
    cells = zip(*(row.split(",") for row in rows), strict=True)
    return dict(zip(header.split(","), map(list, cells), strict=False))


@pytest.fixture
def config(tmp_path: Path) -> Callable[[str], Path]:
    """Write a file of settings."""

    def write(text: str) -> Path:
        path = tmp_path / "config.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_option_comes_before_variable_before_file_before_default(
    gradlab: Run, tmp_path: Path, config: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = config('gamma = [0.7, 0.8]\nbias = 0.25\nbatch = 2\nlength = 8\nhidden_size = "4"\n')
    monkeypatch.setenv("GRADLAB_BIAS", "0.5")
    monkeypatch.setenv("GRADLAB_GAMMA", "1.5")
    monkeypatch.setenv("GRADLAB_JOBS", "1")
    words = ("--config", file, "--gamma", 0.9, "-o", tmp_path / "out")
    outcome = gradlab("sweep", *words)
    assert outcome.code == 0, outcome.err
    found = columns(tmp_path / "out")
    assert [found[name] for name in ("gamma", "bias", "batch", "seed")] == [
        ["0.9"],
        ["0.5"],
        ["2"],
        ["0"],
    ]
    document = tomllib.loads((tmp_path / "out" / "sweep.toml").read_text(encoding="utf-8"))
    assert (document["gamma"], document["bias"], document["hidden_size"]) == (0.9, 0.5, 4)
    assert document["settings"]["activation"] == "tanh"


def test_saved_settings_measure_the_same_again(gradlab: Run, tmp_path: Path) -> None:
    words = ("--gamma", "0.5:1.5:3", "--activation", "tanh,relu", "--seeds", 2, "--seed", 7)
    assert gradlab("sweep", *words, *TINY, "-o", tmp_path / "first").code == 0
    again = ("--config", tmp_path / "first" / "sweep.toml", "--jobs", 1)
    assert gradlab("sweep", *again, "-o", tmp_path / "again").code == 0
    for name in (*TABLES, "sweep.toml"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_settings_saved_by_the_library_are_read_too(gradlab: Run, tmp_path: Path) -> None:
    points = gl.grid(gamma=np.linspace(0.5, 1.0, 2), seed=range(3, 6))
    gl.run_sweep(points, tmp_path / "first", hidden_size=4, length=8, batch=2)
    again = ("--config", tmp_path / "first" / "sweep.toml", "--jobs", 1)
    assert gradlab("sweep", *again, "-o", tmp_path / "again").code == 0
    for name in TABLES:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gama = 1", "did you mean 'gamma'?"),
        ("gamma = ", "cannot be read as TOML"),
        ("settings = 3", "is no table"),
        ("seeds = 0", "expected a whole number from 1"),
        ('gamma = "1:2"', "start:stop:count"),
        ("[settings]\ngamma = true", "expected a number"),
    ],
)
def test_file_that_says_something_else_is_one_line(
    gradlab: Run, tmp_path: Path, config: Any, text: str, expected: str
) -> None:
    outcome = gradlab("sweep", "--config", config(text), "-o", tmp_path / "never")
    assert outcome.code in (1, 2)
    assert expected in outcome.error
    assert "config.toml" in outcome.error
    assert not (tmp_path / "never").exists()


def test_wrong_variable_is_named(
    gradlab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADLAB_SEEDS", "many")
    outcome = gradlab("sweep", *TINY, "-o", tmp_path / "never")
    assert outcome.code == 2
    assert "GRADLAB_SEEDS" in outcome.error


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--cell", "lstm", "--gamma", "1"], "gamma shapes no cell of the kind lstm"),
        (["--cell", "rnn,lstm", "--forget-bias", "0,1"], "is no setting of the cell rnn"),
        (["--cell", "lstn"], "did you mean 'lstm'?"),
        (["--gamma", "1", "--gain", "2"], "no effect beside gamma"),
        (["--density", "0.5"], "belongs to the sparse ensemble"),
        (["--cell", "lstm", "--chrono", "9", "--forget-bias", "1"], "no effect beside chrono"),
        (["--synthetic", "zeros", "--input-std", "1"], "inputs that are zero"),
        (["--nonlinearity", "relu"], "belongs to model files"),
        (["--anchors", "0"], "expected a whole number from 1"),
    ],
)
def test_setting_without_effect_is_refused_before_any_work(
    gradlab: Run, tmp_path: Path, words: list[str], expected: str
) -> None:
    outcome = gradlab("sweep", *words, "-o", tmp_path / "never")
    assert outcome.code == 1
    assert expected in outcome.error
    assert not (tmp_path / "never").exists()


def test_every_kind_of_cell_is_a_row_and_takes_what_it_has(gradlab: Run, tmp_path: Path) -> None:
    words = ("--cell", "rnn,leaky,lstm,gru,mgu", "--forget-bias", 2, "--leak", 0.5)
    assert gradlab("sweep", *words, *TINY, "-o", tmp_path / "out").code == 0
    found = columns(tmp_path / "out")
    assert found["cell"] == ["rnn", "leaky", "lstm", "gru", "mgu"]
    assert found["status"] == ["ok"] * 5
    gated = [gamma == "nan" for gamma in found["gamma_w"]]
    assert gated == [False, False, True, True, True]
    assert gated == [bound == "nan" for bound in found["bound_rate"]]


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """Checkpoints of a training whose orthogonal network slowly decays: the rate is known."""
    folder = tmp_path / "ckpt"
    folder.mkdir()
    for epoch in (1, 2, 10):
        arrays = {"W_hh": 0.5 ** (1 / epoch) * np.eye(3), "W_xh": np.ones((3, 1))}
        np.savez(folder / f"epoch-{epoch}.npz", **arrays, b_h=np.zeros(3))
    return folder


def test_checkpoints_are_rows_in_the_order_of_their_numbers(
    gradlab: Run, tmp_path: Path, checkpoints: Path
) -> None:
    """Under the identity the rate of 2^(-1/epoch) I is its logarithm."""
    words = ("--models", checkpoints / "*.npz", "--nonlinearity", "identity", "--length", 12)
    outcome = gradlab("sweep", *words, "--jobs", 1, "-o", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    found = columns(tmp_path / "out")
    names = [f"epoch-{epoch}.npz" for epoch in (1, 2, 10)]
    assert [Path(name).name for name in found["model"]] == names
    rates = np.array(list(map(float, found["rate"])))
    np.testing.assert_allclose(rates, -np.log(2) / np.array([1, 2, 10]), atol=1e-12)
    assert found["horizon_1pct"][:2] == ["7.0", "nan"]


def test_what_files_do_not_say_is_a_column_where_several_answers_are_tried(
    gradlab: Run, tmp_path: Path, checkpoints: Path
) -> None:
    words = ("--models", checkpoints / "*.npz", "--length", 12, "--jobs", 1)
    several = ("--nonlinearity", "identity,tanh", "-o", tmp_path / "several")
    assert gradlab("sweep", *words, *several).code == 0
    one = ("--nonlinearity", "identity", "-o", tmp_path / "one")
    assert gradlab("sweep", *words, *one).code == 0
    found = columns(tmp_path / "several")
    assert found["nonlinearity"] == ["identity", "tanh"] * 3
    assert found["rate"][::2] == columns(tmp_path / "one")["rate"]
    assert "nonlinearity" not in columns(tmp_path / "one")
    again = ("--config", tmp_path / "several" / "sweep.toml", "--jobs", 1)
    assert gradlab("sweep", *again, "-o", tmp_path / "again").code == 0
    assert columns(tmp_path / "again") == found


def test_switches_come_from_options_and_files(
    gradlab: Run, tmp_path: Path, config: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 9, 3)))
    words = ("--hidden-size", 4, "--input-size", 3, "--inputs", tmp_path / "x.npy", "--jobs", 1)
    first = ("--batch-first", "--inclusive", "-o", tmp_path / "typed")
    assert gradlab("sweep", *words, *first).code == 0
    written = (tmp_path / "typed" / "sweep.toml").read_text(encoding="utf-8")
    settings = tomllib.loads(written)["settings"]
    assert (settings["batch_first"], settings["inclusive"]) == (True, True)
    file = ("--config", tmp_path / "typed" / "sweep.toml", "-o", tmp_path / "filed")
    assert gradlab("sweep", *file, "--jobs", 1).code == 0
    assert columns(tmp_path / "filed") == columns(tmp_path / "typed")
    monkeypatch.setenv("GRADLAB_BATCH_FIRST", "perhaps")
    outcome = gradlab("sweep", *words, "-o", tmp_path / "never")
    assert outcome.code == 2
    assert "'perhaps' found, expected true or false" in outcome.error


def assumptions(folder: Path) -> list[str]:
    """What the manifest says of how the models were read."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return [str(sentence) for sentence in manifest["assumptions"]]


def test_what_is_assumed_of_models_is_printed_and_in_the_manifest(
    gradlab: Run, tmp_path: Path, model: Model
) -> None:
    """With the file's name where it does not hold for all of them."""
    rnn, lstm = model("trained_rnn_echo3.pt"), model("trained_lstm_echo8.pt")
    words = ("--models", rnn, "--models", lstm, "--length", 4, "--batch", 1, "--jobs", 1)
    outcome = gradlab("sweep", *words, "-o", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    told = assumptions(tmp_path / "out")
    assert outcome.err.splitlines() == [f"note: {sentence}" for sentence in told]
    batch_axis = "the file does not store the batch axis: inputs (time, batch, features) assumed"
    assert [sentence for sentence in told if batch_axis in sentence] == [
        f"{batch_axis} (option batch_first)"
    ]
    assert any(sentence.startswith(f"{rnn}: ") and "tanh assumed" in sentence for sentence in told)
    assert any(sentence.startswith(f"{lstm}: rnn.l0: read as") for sentence in told)


def test_checkpoint_that_changed_is_not_mixed_with_what_was_measured(
    gradlab: Run, tmp_path: Path, checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("sweep", "--models", checkpoints / "*.npz", "--length", 12, "--jobs", 1)

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("gradlab.sweeps.sweeping.finish_sweep", stop)
        assert gradlab(*words, "-o", tmp_path / "out").code == 130
    shutil.copy(checkpoints / "epoch-1.npz", checkpoints / "epoch-2.npz")
    outcome = gradlab(*words, "-o", tmp_path / "out")
    assert outcome.code == 1
    assert "epoch-2.npz" in outcome.error


def test_recurrences_of_a_file_are_an_axis(gradlab: Run, tmp_path: Path, model: Model) -> None:
    words = ("--models", model("gru_bi_1l.pt"), "--length", 8, "--batch", 2, "--jobs", 1)
    assert gradlab("sweep", *words, "-o", tmp_path / "both").code == 0
    both = columns(tmp_path / "both")["recurrence"]
    assert len(both) == 2
    chosen = ("--recurrence", both[1])
    assert gradlab("sweep", *words, *chosen, "-o", tmp_path / "one").code == 0
    assert columns(tmp_path / "one")["recurrence"] == both[1:]
    assert columns(tmp_path / "one")["rate"] == columns(tmp_path / "both")["rate"][1:]


@pytest.mark.parametrize("epoch", [0, 11])
def test_damaged_checkpoint_is_a_row(
    gradlab: Run, tmp_path: Path, checkpoints: Path, epoch: int
) -> None:
    (checkpoints / f"epoch-{epoch}.npz").write_bytes(b"PK\x03\x04 nothing")
    words = ("--models", checkpoints / "*.npz", "--length", 12, "--jobs", 1)
    outcome = gradlab("sweep", *words, "-o", tmp_path / "out")
    assert outcome.code == 1
    *notes, error = outcome.err.splitlines()
    assert "1 of 4 points failed" in error
    assert notes == [f"note: {sentence}" for sentence in assumptions(tmp_path / "out")]
    found = dict(zip([0, 1, 2, 10, 11], ["ok"] * 5, strict=True)) | {epoch: "refused"}
    del found[11 - epoch]
    assert columns(tmp_path / "out")["status"] == list(found.values())


@pytest.mark.parametrize("words", [["--models", "none-*.pt"], ["--models", "none.pt"]])
def test_models_that_are_not_there_are_wrong_usage(
    gradlab: Run, tmp_path: Path, words: list[str]
) -> None:
    outcome = gradlab("sweep", *words, "-o", tmp_path / "never")
    assert outcome.code == 2
    assert "--models" in outcome.error


def test_settings_of_random_networks_do_not_go_with_models(
    gradlab: Run, tmp_path: Path, checkpoints: Path
) -> None:
    words = ("--models", checkpoints / "*.npz", "--gamma", 1, "-o", tmp_path / "never")
    assert "come from model files" in gradlab("sweep", *words).error


@pytest.mark.parametrize("jobs", ["-1", "many", "1.5"])
def test_number_of_jobs_is_whole_or_auto(gradlab: Run, tmp_path: Path, jobs: str) -> None:
    outcome = gradlab("sweep", "--jobs", jobs, "-o", tmp_path / "never")
    assert outcome.code == 2
    assert "--jobs" in outcome.error


def test_dry_run_of_a_million_points_measures_a_few(gradlab: Run) -> None:
    words = ("--gamma", "0.5:1.5:2500", "--hidden-size", "4,6", "--length", 8, "--batch", 2)
    outcome = gradlab("sweep", *words, "--seeds", 200, "--jobs", 4, "--dry-run", "--json")
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    assert (document["points"], document["shapes"], document["jobs"]) == (1_000_000, 2, 4)
    assert 1 <= document["probed"] <= 2
    assert document["seconds"] == pytest.approx(document["seconds_a_point"] * 250_000)
    assert document["disk_bytes"] > 100 * document["points"]


def test_sweep_without_a_folder_is_wrong_usage(gradlab: Run) -> None:
    outcome = gradlab("sweep", *TINY)
    assert outcome.code == 2
    assert "--output" in outcome.error


def test_unfinished_folder_is_gone_on_with_unless_told_otherwise(
    gradlab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("sweep", "--gamma", "0.5,1", *TINY, "-o", tmp_path / "out")

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("gradlab.sweeps.sweeping.finish_sweep", interrupt)
        assert gradlab(*words).code == 130
    assert "unfinished sweep" in gradlab(*words, "--no-resume").error
    assert "length 8 there, 9 here" in gradlab(*words, "--length", 9).error
    assert gradlab(*words).code == 0
    assert not (tmp_path / "out" / "INCOMPLETE").exists()
    assert "exists" in gradlab(*words).error


def test_scheduler_hands_the_points_to_its_executor(
    gradlab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    @contextmanager
    def executor(scheduler: str) -> Iterator[tuple[Executor, int]]:
        asked.append(scheduler)
        with ThreadPoolExecutor(1) as threads:
            yield threads, 1

    monkeypatch.setattr(gl, "dask_executor", executor)
    words = ("sweep", "--gamma", "0.5,1", *TINY)
    assert gradlab(*words, "--scheduler", "tcp://host:8786", "-o", tmp_path / "far").code == 0
    assert gradlab(*words, "-o", tmp_path / "near").code == 0
    assert asked == ["tcp://host:8786"]
    for name in TABLES:
        assert (tmp_path / "far" / name).read_bytes() == (tmp_path / "near" / name).read_bytes()


def test_scheduler_without_dask_names_the_extra(
    gradlab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    outcome = gradlab("sweep", *TINY, "--scheduler", "tcp://host:1", "-o", tmp_path / "never")
    assert outcome.code == 1
    assert "pip install 'gradlab-rnn[cluster]'" in outcome.error
    assert not (tmp_path / "never").exists()


def test_a_single_point_that_fails_is_told_as_one(gradlab: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    typed = ("--gamma", -1, "--hidden-size", 4, "--length", 8, "--jobs", 1, "-o", out)
    outcome = gradlab("sweep", *typed)
    assert outcome.code == 1
    assert outcome.out.splitlines()[0] == "1 point: none measured"
    assert "1 of 1 point failed, the first with refused: gamma -1.0" in outcome.error
    assert outcome.error.endswith(f"; each is in {out / 'sweep.csv'}")
