"""Run folders: complete or absent, strict, the same bytes for the same numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gradlab as gl
from gradlab.records.strict import strict_json
from gradlab.storage.folder import new_folder, write_csv

STABLE = ("summary.json", "lag_profile.csv", "ladder.csv", "steps.csv", "spectrum.csv", "pairs.csv")


@pytest.fixture
def dynamics() -> gl.GradientDynamics:
    rng = np.random.default_rng(0)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=4, gain=1.4, rng=rng)
    return gl.analyze(cell, rng.standard_normal((6, 2, 2)), lengths=np.array([6, 4]), seed=0)


def test_equal_runs_give_equal_bytes(dynamics: gl.GradientDynamics, tmp_path: Path) -> None:
    gl.save(dynamics, tmp_path / "a", pairs=True)
    gl.save(dynamics, tmp_path / "b", pairs=True)
    for name in STABLE:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_run_is_read_back_to_the_last_bit(dynamics: gl.GradientDynamics, tmp_path: Path) -> None:
    again = gl.load_run(gl.save(dynamics, tmp_path / "run"))
    assert again.summary() == dynamics.summary()
    pd.testing.assert_frame_equal(again.to_frame(), dynamics.to_frame(), check_exact=True)
    for name in ("log_norm", "log_sigma_min", "t"):
        ours, theirs = (getattr(d.only().jacobians, name) for d in (dynamics, again))
        np.testing.assert_array_equal(ours, theirs)
    assert again.provenance.sha256_weights == dynamics.provenance.sha256_weights


def test_csv_keeps_every_digit_and_spells_the_infinite(tmp_path: Path) -> None:
    values = [0.1, 1 / 3, -1e-300, -np.inf, np.inf, np.nan, 5e-324]
    write_csv(pd.DataFrame({"x": values}), tmp_path / "x.csv")
    lines = (tmp_path / "x.csv").read_text().split("\n")
    assert lines[4:7] == ["-inf", "inf", "nan"]
    again = [float(line) for line in lines[1:-1]]
    np.testing.assert_array_equal(again, values)


def test_columns_follow_the_contract(dynamics: gl.GradientDynamics, tmp_path: Path) -> None:
    folder = gl.save(dynamics, tmp_path / "run", pairs=True)
    columns = {name: list(pd.read_csv(folder / name).columns) for name in STABLE[1:]}
    assert columns["lag_profile.csv"] == [
        "recurrence", "lag", "pairs", "log_norm_min", "log_norm_q05", "log_norm_median",
        "log_norm_mean", "log_norm_q95", "log_norm_max", "log_frobenius_median",
        "log_sigma_min_median", "log_bound_gamma", "log_bound_saturation", "log_bound_onestep",
        "log_bound_blocks",
    ]  # fmt: skip
    assert columns["pairs.csv"] == [
        "recurrence", "sequence", "t", "k", "lag", "log_norm", "log_frobenius", "log_bound_gamma",
    ]  # fmt: skip
    assert columns["steps.csv"] == [
        "recurrence", "sequence", "t", "activation", "derivative_mean", "derivative_q05",
        "derivative_q50", "derivative_q95", "derivative_max", "saturated_share",
        "log_jacobian_norm",
    ]  # fmt: skip
    assert columns["spectrum.csv"] == [
        "recurrence", "gate", "index", "singular_value", "eigenvalue_re", "eigenvalue_im",
    ]  # fmt: skip


def test_summary_is_strict_json_with_the_documented_keys(
    dynamics: gl.GradientDynamics, tmp_path: Path
) -> None:
    folder = gl.save(dynamics, tmp_path / "run")
    text = (folder / "summary.json").read_text()
    entry = json.loads(text, parse_constant=pytest.fail)["recurrences"][0]
    assert {
        "name", "cell", "layer", "direction", "hidden_size", "input_size", "state_size", "gamma_w",
        "spectral_radius", "gates", "certificates", "saturated_share", "regime", "horizon",
        "lyapunov", "assumptions",
    } <= set(entry)  # fmt: skip
    assert set(entry["regime"]) == {
        "name", "rate", "rate_low", "rate_high", "tolerance", "rule", "transient_height",
        "transient_lag", "contradicts",
    }  # fmt: skip


def test_non_finite_numbers_are_null_or_strings_and_words_stay() -> None:
    document = strict_json({"exponents": [-0.1, -math.inf, math.nan], "name": "BaNaNa"})
    assert document == {"exponents": [-0.1, "-inf", None], "name": "BaNaNa"}


def test_an_existing_folder_is_kept_without_force(
    dynamics: gl.GradientDynamics, tmp_path: Path
) -> None:
    folder = gl.save(dynamics, tmp_path / "run")
    before = (folder / "manifest.json").read_bytes()
    with pytest.raises(gl.OutputError, match="exists"):
        gl.save(dynamics, folder)
    assert (folder / "manifest.json").read_bytes() == before
    gl.save(dynamics, folder, force=True)


def test_force_never_replaces_a_folder_of_other_things(
    dynamics: gl.GradientDynamics, tmp_path: Path
) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("precious")
    with pytest.raises(gl.OutputError, match="did not write"):
        gl.save(dynamics, tmp_path / "thesis", force=True)
    assert (tmp_path / "thesis" / "chapter1.tex").read_text() == "precious"


def test_a_manifest_of_something_else_does_not_make_a_folder_ours(
    dynamics: gl.GradientDynamics, tmp_path: Path
) -> None:
    (tmp_path / "extension").mkdir()
    (tmp_path / "extension" / "manifest.json").write_text('{"name": "my extension"}')
    with pytest.raises(gl.OutputError, match="did not write"):
        gl.save(dynamics, tmp_path / "extension", force=True)


def test_notes_in_a_run_folder_survive_its_replacement(
    dynamics: gl.GradientDynamics, tmp_path: Path
) -> None:
    folder = gl.save(dynamics, tmp_path / "run")
    (folder / "notes.txt").write_text("mine")
    gl.save(dynamics, folder, force=True)
    assert (folder / "notes.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_the_current_folder_and_links_are_refused(
    dynamics: gl.GradientDynamics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = gl.save(dynamics, tmp_path / "run")
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(gl.OutputError, match="is a link"):
        gl.save(dynamics, tmp_path / "link", force=True)
    monkeypatch.chdir(folder)
    for place in (".", "..", str(folder)):
        with pytest.raises(gl.OutputError, match="the folder you are in"):
            gl.save(dynamics, place, force=True)
    assert gl.load_run(folder).summary() == dynamics.summary()


def test_nothing_is_left_of_a_run_that_could_not_be_written(tmp_path: Path) -> None:
    def write_half() -> None:
        with new_folder(tmp_path / "run", force=False) as folder:
            (folder / "half.csv").write_text("x")
            raise OSError(28, "No space left on device")

    with pytest.raises(gl.OutputError, match="No space left on device"):
        write_half()
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_refused_by_name(
    dynamics: gl.GradientDynamics, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(gl.OutputError, match="cannot be written"):
        gl.save(dynamics, tmp_path / "file" / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("damage", ["missing", "truncated", "text"])
def test_a_damaged_run_is_refused_in_one_line(
    dynamics: gl.GradientDynamics, tmp_path: Path, damage: str
) -> None:
    folder = gl.save(dynamics, tmp_path / "run")
    archive = folder / "records.npz"
    if damage == "missing":
        archive.unlink()
    else:
        archive.write_bytes(archive.read_bytes()[:200] if damage == "truncated" else b"no zip")
    with pytest.raises(gl.RunFolderError, match=r"records\.npz") as caught:
        gl.load_run(folder)
    assert "\n" not in str(caught.value)


def test_the_same_weights_have_the_same_hash_in_every_container() -> None:
    models = Path(__file__).parents[1] / "fixtures" / "models"
    inputs = np.load(models / "rnn_tanh_1l.oracle.npz")["x"][:, None]
    runs = [gl.analyze(gl.load(models / f"rnn_tanh_1l.{suffix}"), inputs)
            for suffix in ("pt", "safetensors", "npz")]  # fmt: skip
    assert len({run.provenance.sha256_weights for run in runs}) == 1
    assert (
        runs[0].summary()["recurrences"][0]["gamma_w"]
        == (runs[2].summary()["recurrences"][0]["gamma_w"])
    )


def test_a_training_begun_anew_leaves_what_is_not_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "training"
    gl.claim_training(folder)
    (folder / "checkpoint.npz").write_bytes(b"old")
    (folder / "notes.txt").write_text("mine")
    checkpoint = gl.claim_training(folder, force=True)
    assert not checkpoint.exists()
    assert (folder / "notes.txt").read_text() == "mine"
