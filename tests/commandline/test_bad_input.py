"""Bad input: one clear line on stderr, exit code 1, nothing half-written."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Run = Callable[..., Any]
Model = Callable[[str], Path]

SMALL = ("random", "--hidden-size", 4, "--input-size", 2, "--length", 6, "--batch", 2)


def write_network(path: Path, **changes: Any) -> Path:
    """A network of 3 units and 2 features, some of its arrays changed."""
    arrays = {"W_hh": 0.5 * np.eye(3), "W_xh": np.ones((3, 2)), "b_h": np.zeros(3), **changes}
    np.savez(path, **arrays)
    return path


@pytest.fixture
def refused(gradlab: Run, tmp_path: Path) -> Callable[..., str]:
    """The one line that `analyze` with an output says; no output may come of it."""

    def line(*arguments: object) -> str:
        before = sorted(tmp_path.rglob("*"))
        outcome = gradlab("analyze", *arguments, "-o", tmp_path / "never")
        assert outcome.code == 1, outcome
        assert outcome.out == ""
        assert sorted(tmp_path.rglob("*")) == before
        return str(outcome.error)

    return line


@pytest.mark.parametrize("name", ["missing.pt", "missing.npz", "missing.safetensors", "a/b.npz"])
def test_missing_model_is_named(refused: Callable[..., str], tmp_path: Path, name: str) -> None:
    line = refused(tmp_path / name)
    assert name in line
    assert "does not exist" in line


def test_traceback_is_written_if_asked_for_and_only_then(
    gradlab: Run, model: Model, tmp_path: Path
) -> None:
    truncated = tmp_path / "cut.pt"
    truncated.write_bytes(model("lstm_1l.pt").read_bytes()[:900])
    plain = gradlab("inspect", truncated)
    told = gradlab("inspect", truncated, "--debug")
    assert (plain.code, told.code) == (1, 1)
    assert told.err.startswith("Traceback (most recent call last):\n")
    assert "read_archive" in told.err
    assert told.err.splitlines()[-1] == plain.error
    assert told.out == plain.out == ""


def test_missing_inputs_are_named(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "missing.npy" in refused("random", "--inputs", tmp_path / "missing.npy")


def test_missing_initial_state_is_named(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "missing.npy" in refused(*SMALL, "--initial-state", tmp_path / "missing.npy")


NOT_A_MODEL = {
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4,
    "text": b"a few words, and no network\n",
    "empty": b"",
    "zeros": bytes(4096),
}


@pytest.mark.parametrize("suffix", ["pt", "npz", "safetensors", "png"])
@pytest.mark.parametrize("name", NOT_A_MODEL)
def test_file_that_is_no_model_is_refused_by_its_content(
    refused: Callable[..., str], tmp_path: Path, name: str, suffix: str
) -> None:
    path = tmp_path / f"{name}.{suffix}"
    path.write_bytes(NOT_A_MODEL[name])
    assert path.name in refused(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("suffix", ["pt", "npz", "safetensors"])
def test_truncated_model_is_refused(
    refused: Callable[..., str], model: Model, tmp_path: Path, suffix: str, share: float
) -> None:
    whole = model(f"rnn_tanh_1l.{suffix}").read_bytes()
    path = tmp_path / f"cut.{suffix}"
    path.write_bytes(whole[: int(share * len(whole))])
    assert path.name in refused(path)


def test_nan_in_a_weight_is_named_with_tensor_index_and_count(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    """H5."""
    W = 0.5 * np.eye(3)
    W[1, 2] = np.nan
    line = refused(write_network(tmp_path / "nan.npz", W_hh=W))
    assert "W_hh" in line
    assert "(1, 2)" in line
    assert "1 non-finite" in line


def test_infinite_weight_is_named_by_the_files_own_key(
    refused: Callable[..., str], model: Model, tmp_path: Path
) -> None:
    with np.load(model("rnn_tanh_1l.npz"), allow_pickle=False) as stored:
        arrays = {name: stored[name].copy() for name in stored.files}
    arrays["weight_hh_l0"][[0, 3], [5, 1]] = np.inf
    np.savez(tmp_path / "inf.npz", **arrays)
    line = refused(tmp_path / "inf.npz")
    assert "weight_hh_l0" in line
    assert "(0, 5)" in line
    assert "2 non-finite" in line


SHAPES: dict[str, dict[str, Any]] = {
    "recurrent weights that are not square": {"W_hh": np.ones((3, 2))},
    "input weights of another size": {"W_xh": np.ones((4, 2))},
    "bias of another size": {"b_h": np.ones(4)},
    "recurrent weights with three axes": {"W_hh": np.ones((3, 3, 1))},
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_that_do_not_fit_are_named(
    refused: Callable[..., str], tmp_path: Path, name: str
) -> None:
    [(tensor, array)] = SHAPES[name].items()
    line = refused(write_network(tmp_path / "net.npz", **{tensor: array}))
    assert str(array.shape) in line or " ".join(map(str, array.shape)) in line


def test_wrong_feature_count_names_both(
    refused: Callable[..., str], model: Model, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", np.zeros((5, 1, 3)))
    line = refused(model("rnn_tanh_1l.pt"), "--inputs", tmp_path / "x.npy")
    assert "3" in line
    assert "4" in line
    assert "features" in line


def test_inputs_without_a_step_are_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((0, 2, 3)))
    assert "(0, 2, 3)" in refused("random", "--inputs", tmp_path / "x.npy")


def test_empty_sequence_is_named_counted_from_one(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    """H27."""
    np.savez(tmp_path / "x.npz", inputs=np.zeros((3, 2, 1)), lengths=np.array([3, 0]))
    assert "sequence 2" in refused("random", "--inputs", tmp_path / "x.npz")


def test_short_row_of_a_table_is_named_by_its_line(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    """H39."""
    (tmp_path / "x.csv").write_text("1,2,3\n4,5\n6,7,8\n", encoding="utf-8")
    assert "line 2" in refused("random", "--inputs", tmp_path / "x.csv")


def test_cell_that_is_no_number_is_named_by_line_and_column(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    """H38, read without its options."""
    (tmp_path / "x.csv").write_text("t;x\n0;0,5\n1;-1,25\n", encoding="utf-8")
    assert "line" in refused("random", "--inputs", tmp_path / "x.csv")
    (tmp_path / "y.csv").write_text("1,2\n3,four\n", encoding="utf-8")
    line = refused("random", "--inputs", tmp_path / "y.csv")
    assert "line 2" in line
    assert "column 2" in line


def test_initial_state_of_another_size_is_refused(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    np.save(tmp_path / "h0.npy", np.zeros(7))
    assert "(7,)" in refused(*SMALL, "--initial-state", tmp_path / "h0.npy")


def test_initial_state_that_would_run_code_is_refused(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    np.save(tmp_path / "h0.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert "h0.npy" in refused(*SMALL, "--initial-state", tmp_path / "h0.npy")


@pytest.mark.parametrize("command", ["analyze", "report"])
@pytest.mark.parametrize(
    ("typed", "nearest"), [("vanishng", "vanishing"), ("explode", "exploding"), ("rand", "random")]
)
def test_unknown_scenario_is_refused_with_the_nearest(
    gradlab: Run, tmp_path: Path, command: str, typed: str, nearest: str
) -> None:
    outcome = gradlab(command, typed, "-o", tmp_path / "never")
    assert outcome.code == 1
    assert f"did you mean {nearest!r}?" in outcome.error
    assert list(tmp_path.iterdir()) == []


def test_unreachable_target_is_refused_with_its_reason(refused: Callable[..., str]) -> None:
    empty = ("--recurrent", "sparse", "--density", 1e-9)
    assert "radius" in refused(*SMALL, *empty, "--radius", 0.9)


def test_setting_out_of_range_is_refused(refused: Callable[..., str]) -> None:
    assert "threshold" in refused(*SMALL, "--threshold", 2)
    assert "end times" in refused(*SMALL, "--anchors", "99,100")


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that must refuse before any work fail the test if they measure."""

    def measure(*_: object) -> None:
        raise AssertionError("measured before the output was checked")

    for name in ("analyze", "report"):
        module = importlib.import_module(f"gradlab_cli.commands.{name}")
        monkeypatch.setattr(module, "measure", measure)


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("command", ["analyze", "report"])
def test_folder_that_exists_is_refused_before_any_work(
    gradlab: Run, tmp_path: Path, command: str
) -> None:
    (tmp_path / "kept.txt").write_text("mine", encoding="utf-8")
    outcome = gradlab(command, *SMALL, "-o", tmp_path)
    assert outcome.code == 1
    assert "--force" in outcome.error
    assert (tmp_path / "kept.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("command", ["analyze", "report"])
def test_force_never_replaces_a_folder_that_gradlab_did_not_write(
    gradlab: Run, tmp_path: Path, command: str
) -> None:
    (tmp_path / "kept.txt").write_text("mine", encoding="utf-8")
    outcome = gradlab(command, *SMALL, "-o", tmp_path, "--force")
    assert outcome.code == 1
    assert outcome.error
    assert (tmp_path / "kept.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("command", ["analyze", "report"])
def test_output_below_a_file_is_refused_before_any_work(
    gradlab: Run, tmp_path: Path, command: str
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    outcome = gradlab(command, *SMALL, "-o", tmp_path / "file" / "run")
    assert outcome.code == 1
    assert "not a folder" in outcome.error


def test_force_replaces_a_whole_older_run(gradlab: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert gradlab("analyze", *SMALL, "--pairs", "-o", folder).code == 0
    assert gradlab("analyze", *SMALL, "-o", folder, "--force").code == 0
    assert not (folder / "pairs.csv").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_interrupted_command_says_so_and_ends_with_130(
    gradlab: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(
        importlib.import_module("gradlab_cli.commands.analyze"), "measure", interrupt
    )
    outcome = gradlab("analyze", *SMALL)
    assert (outcome.code, outcome.error) == (130, "Error: interrupted")


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (OSError(28, "No space left on device", "runs/a"), "runs/a: No space left on device"),
        (PermissionError(13, "Permission denied", "runs"), "runs: Permission denied"),
        (MemoryError("Unable to allocate 8 GiB"), "Unable to allocate 8 GiB"),
    ],
)
def test_what_the_system_refuses_is_one_line(
    gradlab: Run, monkeypatch: pytest.MonkeyPatch, raised: Exception, words: str
) -> None:
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(importlib.import_module("gradlab_cli.commands.analyze"), "measure", fail)
    outcome = gradlab("analyze", *SMALL)
    assert outcome.code == 1
    assert words in outcome.error


def test_defect_of_the_program_keeps_its_traceback(
    gradlab: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(importlib.import_module("gradlab_cli.commands.analyze"), "measure", fail)
    with pytest.raises(ZeroDivisionError, match="a defect"):
        gradlab("analyze", *SMALL)
