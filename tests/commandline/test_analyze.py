"""``gradlab analyze``."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Run = Callable[..., Any]
Model = Callable[[str], Path]

SMALL = ("random", "--hidden-size", 8, "--input-size", 2, "--length", 20, "--batch", 2)


def document(outcome: Any) -> dict[str, Any]:
    assert outcome.code == 0, outcome.err
    read: dict[str, Any] = json.loads(outcome.out)
    return read


def only(outcome: Any) -> dict[str, Any]:
    [entry] = document(outcome)["recurrences"]
    assert isinstance(entry, dict)
    return entry


def test_document_is_the_summary_of_the_saved_run(gradlab: Run, tmp_path: Path) -> None:
    printed = document(gradlab("analyze", *SMALL, "--json", "-o", tmp_path / "run"))
    assert printed == json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))


def test_verdict_comes_first_and_evidence_after_it(gradlab: Run) -> None:
    lines = gradlab("analyze", *SMALL, "--gamma", 0.5).out.splitlines()
    assert lines[0].startswith("rnn: The gradient vanishes")
    assert any(line.startswith("  weights") and "sigma_max 0.5" in line for line in lines)


def test_linear_orthogonal_network_has_the_rate_of_its_scale(gradlab: Run) -> None:
    """sigma_max(c Q)^l = c^l: the rate is ln c to rounding, whatever the inputs are."""
    scaled = ("--recurrent", "orthogonal", "--activation", "identity", "--gamma", 0.9)
    entry = only(gradlab("analyze", *SMALL, *scaled, "--json"))
    assert entry["gamma_w"] == pytest.approx(0.9, rel=1e-12)
    assert entry["regime"]["rate"] == pytest.approx(math.log(0.9), rel=1e-9)


def test_surviving_directions_are_counted(gradlab: Run) -> None:
    told = only(gradlab("analyze", *SMALL, "--json"))["directions"]
    assert told["lag"] == 20
    [line] = [
        x for x in gradlab("analyze", *SMALL).out.splitlines() if x.startswith("  directions")
    ]
    assert f"{told['surviving']:g} of 8 keep 1 % or more at lag 20" in line


def test_blocks_are_chosen_or_as_long_as_told(gradlab: Run) -> None:
    chosen = only(gradlab("analyze", *SMALL, "--json"))["ladder"]["block"]
    assert chosen in (1, 2, 4, 8, 16)
    assert only(gradlab("analyze", *SMALL, "--block", 3, "--json"))["ladder"]["block"] == 3


def test_lyapunov_exponents_are_measured_as_the_options_say(gradlab: Run, tmp_path: Path) -> None:
    chosen = ("--exponents", 3, "--transient", 4, "-o", tmp_path / "run")
    told = only(gradlab("analyze", *SMALL, *chosen, "--json"))["lyapunov"]
    assert (told["count"], told["state_size"], told["transient"]) == (3, 8, 4)
    with (tmp_path / "run" / "lyapunov.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["index"] for row in rows] == ["0", "1", "2"]
    assert max(float(row["exponent"]) for row in rows) == told["leading"]
    [line] = [x for x in gradlab("analyze", *SMALL).out.splitlines() if x.startswith("  lyapunov")]
    assert "8 of 8 exponents, driven by inputs" in line
    assert "lyapunov" not in gradlab("analyze", *SMALL, "--exponents", 0).out


@pytest.mark.parametrize(
    ("option", "key"), [("--gamma", "gamma_w"), ("--radius", "spectral_radius")]
)
def test_exact_target_reaches_the_network(gradlab: Run, option: str, key: str) -> None:
    assert only(gradlab("analyze", *SMALL, option, 0.7, "--json"))[key] == pytest.approx(0.7)


def test_theory_is_told_of_networks_that_could_be_random(gradlab: Run) -> None:
    wide = ("random", "--hidden-size", 32, "--length", 20, "--batch", 2)
    outcome = gradlab("analyze", *wide, "--recurrent", "orthogonal", "--gain", 1.5)
    [line] = [x for x in outcome.out.splitlines() if x.startswith("  theory")]
    assert "random networks like it (orthogonal, gain 1.5): rate " in line
    entry = only(gradlab("analyze", *wide, "--recurrent", "identity", "--json"))
    assert entry["mean_field"] is None
    assert "  theory" not in gradlab("analyze", *wide, "--recurrent", "identity").out


def test_without_output_nothing_is_written(
    gradlab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert gradlab("analyze", *SMALL).code == 0
    assert list(tmp_path.iterdir()) == []


def test_run_folder_holds_the_tables_and_pairs_on_request(gradlab: Run, tmp_path: Path) -> None:
    plain, full = tmp_path / "plain", tmp_path / "parents" / "full"
    assert gradlab("analyze", *SMALL, "-o", plain).code == 0
    assert gradlab("analyze", *SMALL, "-o", full, "--pairs").code == 0
    names = {path.name for path in plain.iterdir()}
    assert {"manifest.json", "summary.json", "lag_profile.csv", "steps.csv"} <= names
    assert {path.name for path in full.iterdir()} == names | {"pairs.csv"}


def test_equal_commands_give_equal_tables(gradlab: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert gradlab("analyze", *SMALL, "--seed", 7, "-o", tmp_path / name).code == 0
    tables = sorted(path.name for path in (tmp_path / "a").glob("*.csv"))
    assert tables
    for name in [*tables, "summary.json"]:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_certificates_are_searched_for_on_request_and_the_same_every_time(
    gradlab: Run, tmp_path: Path
) -> None:
    sized = ("--hidden-size", "12", "--gain", "0.6", "--length", "20")
    for name in ("a", "b"):
        gradlab("analyze", "random", *sized, "--certificates", "all", "-o", tmp_path / name)
    first, second = ((tmp_path / name / "summary.json").read_bytes() for name in ("a", "b"))
    assert first == second
    searched = json.loads(first)["recurrences"][0]
    cheap = only(gradlab("analyze", "random", *sized, "--json"))
    assert cheap["certificates"]["lmi"]["status"] == "skipped"
    assert searched["certificates"]["lmi"]["rate"] < cheap["gamma_w"]
    assert searched["certificates"]["perron"] == cheap["certificates"]["perron"]
    text = gradlab("analyze", "random", *sized, "--certificates", "all").out
    assert "  certificate  vanishes for every input: certified, r = " in text


def test_another_seed_gives_another_network(gradlab: Run) -> None:
    rates = {
        only(gradlab("analyze", *SMALL, "--seed", seed, "--json"))["gamma_w"] for seed in (1, 2)
    }
    assert len(rates) == 2


def test_input_options_do_not_move_the_weights(gradlab: Run) -> None:
    """Weights and inputs have a stream each."""
    norms = {
        only(gradlab("analyze", *SMALL, "--synthetic", kind, "--json"))["gamma_w"]
        for kind in ("gaussian", "sine")
    }
    assert len(norms) == 1


def test_synthetic_inputs_are_named_so(gradlab: Run) -> None:
    entry = only(gradlab("analyze", *SMALL, "--synthetic", "zeros", "--json"))
    assert entry["sequences"]["synthetic"] is True
    assert "zeros" in entry["sequences"]["description"]
    assert entry["sequences"]["count"] == 2


def test_long_term_jacobian_of_the_last_step_is_that_of_the_framework(
    gradlab: Run, model: Model, tmp_path: Path
) -> None:
    with np.load(model("rnn_tanh_1l.oracle.npz"), allow_pickle=False) as oracle:
        inputs, state, norms = oracle["x"], oracle["h0"], oracle["norm2_dsT_dsk_l0"]
    np.save(tmp_path / "x.npy", inputs)
    np.save(tmp_path / "h0.npy", state)
    files = ("--inputs", tmp_path / "x.npy", "--initial-state", tmp_path / "h0.npy")
    options = ("--anchors", "last", "--pairs", "-o", tmp_path / "run")
    assert gradlab("analyze", model("rnn_tanh_1l.pt"), *files, *options).code == 0
    with (tmp_path / "run" / "pairs.csv").open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table))
    measured = {int(row["k"]): float(row["log_norm"]) for row in rows}
    assert {int(row["t"]) for row in rows} == {10}
    # The oracle is autograd through the whole run: only rounding differs.
    np.testing.assert_allclose(
        [measured[k] for k in range(10)], np.log(norms[:10]), rtol=0, atol=1e-10
    )


def test_initial_states_by_name_reach_their_recurrence(
    gradlab: Run, model: Model, tmp_path: Path
) -> None:
    np.savez(tmp_path / "h0.npz", l1=np.full(4, 0.5))
    source = (model("rnn_tanh_bi_2l.pt"), "--length", 5, "--json")
    rates = [
        [entry["saturation"]["mean_derivative"] for entry in document(outcome)["recurrences"]]
        for outcome in (
            gradlab("analyze", *source),
            gradlab("analyze", *source, "--initial-state", tmp_path / "h0.npz"),
        )
    ]
    differs = [before != after for before, after in zip(*rates, strict=True)]
    assert differs == [False, False, True, False]


def test_initial_state_of_an_unknown_recurrence_is_refused(
    gradlab: Run, model: Model, tmp_path: Path
) -> None:
    states: dict[str, Any] = {"l0.revers": np.zeros(4)}
    np.savez(tmp_path / "h0.npz", **states)
    outcome = gradlab("analyze", model("rnn_tanh_bi_2l.pt"), "--initial-state", tmp_path / "h0.npz")
    assert outcome.code == 1
    assert "did you mean 'l0.reverse'?" in outcome.error


def test_batch_axis_is_transposed_and_not_reshaped(gradlab: Run, tmp_path: Path) -> None:
    """H26: the same data in both layouts are the same sequences."""
    np.savez(tmp_path / "net.npz", W_hh=[[0.5]], W_xh=[[1.0]], b_h=[0.0])
    inputs = np.array([[[1.0], [0.5], [-0.5]], [[0.2], [-0.4], [0.6]]])
    np.save(tmp_path / "batch_first.npy", inputs)
    np.save(tmp_path / "time_first.npy", inputs.transpose(1, 0, 2))
    means = []
    for name, option in (("batch_first", ["--batch-first"]), ("time_first", [])):
        files = ("--inputs", tmp_path / f"{name}.npy", *option)
        entry = only(gradlab("analyze", tmp_path / "net.npz", *files, "--json"))
        assert (entry["sequences"]["count"], entry["sequences"]["length_max"]) == (2, 3)
        means.append(entry["saturation"]["mean_derivative"])
    assert means[0] == means[1]


def test_table_with_decimal_comma_is_read_as_the_options_say(gradlab: Run, tmp_path: Path) -> None:
    """H38: two rows, one feature beside the time index."""
    (tmp_path / "x.csv").write_text("t;x\n0;0,5\n1;-1,25\n", encoding="utf-8")
    spelled = ("--inputs", tmp_path / "x.csv", "--separator", ";", "--decimal", ",")
    outcome = gradlab("analyze", "random", "--hidden-size", 3, *spelled, "--json")
    entry = only(outcome)
    assert (entry["input_size"], entry["sequences"]["length_max"]) == (1, 2)
    assert any("time index" in line for line in entry["assumptions"])


def test_ragged_rows_are_sequences_of_their_own_length(gradlab: Run, tmp_path: Path) -> None:
    """H39: lengths 3, 2, 3."""
    (tmp_path / "x.csv").write_text("1,2,3\n4,5\n6,7,8\n", encoding="utf-8")
    options = ("--inputs", tmp_path / "x.csv", "--ragged", "--json")
    sequences = only(gradlab("analyze", "random", "--hidden-size", 3, *options))["sequences"]
    assert [sequences[key] for key in ("count", "steps", "length_min", "length_max")] == [
        3,
        8,
        2,
        3,
    ]


def test_named_columns_are_the_features(gradlab: Run, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b,c\n1,2,3\n4,5,6\n", encoding="utf-8")
    options = ("--inputs", tmp_path / "x.csv", "--columns", "c,a", "--json")
    assert only(gradlab("analyze", "random", "--hidden-size", 3, *options))["input_size"] == 2


def test_threshold_counts_strictly_unless_inclusive(gradlab: Run, tmp_path: Path) -> None:
    """H23: every activation is 0.5 exactly, which is the threshold."""
    np.savez(tmp_path / "net.npz", W_hh=[[0.0]], W_xh=[[1.0]], b_h=[0.0])
    np.save(tmp_path / "x.npy", np.full((4, 1, 1), 0.5))
    source = (tmp_path / "net.npz", "--nonlinearity", "hard_tanh", "--inputs", tmp_path / "x.npy")
    shares = [
        only(gradlab("analyze", *source, "--threshold", 0.5, "--json", *inclusive))[
            "saturated_share"
        ]
        for inclusive in ([], ["--inclusive"])
    ]
    assert shares == [0.0, 1.0]


def test_dtype_of_the_run_is_recorded(gradlab: Run, tmp_path: Path) -> None:
    assert gradlab("analyze", *SMALL, "--dtype", "float32", "-o", tmp_path / "run").code == 0
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["dtype"] == "float32"


@pytest.mark.parametrize("text", ["all", "last", "auto", "3", "5,20"])
def test_anchors_take_every_form(gradlab: Run, text: str) -> None:
    assert gradlab("analyze", *SMALL, "--anchors", text).code == 0


def test_scenario_can_read_other_inputs(gradlab: Run) -> None:
    entry = only(gradlab("analyze", "vanishing", "--length", 12, "--batch", 3, "--json"))
    assert (entry["sequences"]["count"], entry["sequences"]["length_max"]) == (3, 12)


def test_quiet_run_says_nothing_on_stderr(gradlab: Run, model: Model, tmp_path: Path) -> None:
    options = ("--length", 5, "-o", tmp_path / "run")
    outcome = gradlab("analyze", model("rnn_tanh_1l.pt"), *options, "--quiet")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out


WRONG_USAGE = {
    "pairs without a folder": (["--pairs"], "--pairs"),
    "anchors that are no word and no number": (["--anchors", "most"], "--anchors"),
    "activation of a file for a random network": (["--nonlinearity", "relu"], "--nonlinearity"),
    "table layout without a table": (["--decimal", ","], "--decimal"),
    "synthetic inputs beside a file": (["--inputs", "x.npy"], "--length"),
    "an option that does not exist": (["--colour", "red"], "--colour"),
    "an ensemble that does not exist": (["--recurrent", "guassian"], "--recurrent"),
}


@pytest.mark.parametrize("name", WRONG_USAGE)
def test_wrong_usage_is_one_line_that_names_the_option(gradlab: Run, name: str) -> None:
    typed, option = WRONG_USAGE[name]
    outcome = gradlab("analyze", *SMALL, *typed)
    assert outcome.code == 2
    assert option in outcome.error
    assert "gradlab analyze --help" in outcome.error or "gradlab --help" in outcome.error


def test_option_that_shapes_a_random_network_is_refused_for_a_scenario(gradlab: Run) -> None:
    outcome = gradlab("analyze", "vanishing", "--gain", 2)
    assert outcome.code == 2
    assert "--gain" in outcome.error
    assert "vanishing" in outcome.error


@pytest.mark.parametrize(
    ("options", "idle"),
    [
        (["--gamma", "0.9", "--gain", "2"], "--gain"),
        (["--radius", "0.9", "--gain", "2"], "--gain"),
        (["--density", "0.3"], "--density"),
    ],
)
def test_options_without_effect_are_refused(gradlab: Run, options: list[str], idle: str) -> None:
    outcome = gradlab("analyze", "random", *options)
    assert outcome.code == 2
    assert idle in outcome.err


def test_a_single_end_time_is_spelled_with_a_comma(gradlab: Run) -> None:
    assert document(gradlab("analyze", *SMALL, "--anchors", "5,", "--json"))
    assert gradlab("analyze", *SMALL, "--anchors", "5,x").code == 2


def test_number_of_jobs_changes_no_byte(gradlab: Run, tmp_path: Path) -> None:
    for jobs in (1, 2):
        folder = tmp_path / str(jobs)
        assert gradlab("analyze", *SMALL, "--jobs", jobs, "--pairs", "-o", folder).code == 0
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert "pairs.csv" in names
    for name in set(names) - {"manifest.json", "records.npz"}:  # these two hold the time of day
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name
