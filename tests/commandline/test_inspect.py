"""``gradlab inspect``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Run = Callable[..., Any]
Model = Callable[[str], Path]

BIDIRECTIONAL = ("l0", "l0.reverse", "l1", "l1.reverse")


def oracle(path: Path, key: str) -> float:
    with np.load(path, allow_pickle=False) as stored:
        return float(np.ravel(stored[key])[0])


def test_two_bidirectional_layers_are_four_recurrences_with_their_norms(
    gradlab: Run, model: Model
) -> None:
    document = json.loads(gradlab("inspect", model("rnn_tanh_bi_2l.pt"), "--json").out)
    found = {entry["name"]: entry for entry in document["recurrences"]}
    assert tuple(found) == BIDIRECTIONAL
    for name, entry in found.items():
        suffix = name.replace(".", "_")
        wanted = oracle(model("rnn_tanh_bi_2l.oracle.npz"), f"sigma_stack_{suffix}")
        # The oracle's matrix is the stored float32 one: only the order of the sums differs.
        np.testing.assert_allclose(entry["gamma_w"], wanted, rtol=1e-12)
        assert entry["direction"] == ("backward" if "reverse" in name else "forward")
        assert entry["layer"] == int(name[1])


def test_table_lists_every_recurrence_with_sizes_and_norms(gradlab: Run, model: Model) -> None:
    lines = gradlab("inspect", model("rnn_tanh_bi_2l.pt")).out.splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["recurrence", *BIDIRECTIONAL]
    wanted = oracle(model("rnn_tanh_bi_2l.oracle.npz"), "sigma_stack_l1")
    cells = lines[3].split()
    assert cells[1:6] == ["rnn", "1", "forward", "4", "8"]
    assert float(cells[6]) == pytest.approx(wanted, rel=1e-6)


def test_table_tells_the_type_and_the_tensors_of_every_recurrence(
    gradlab: Run, model: Model
) -> None:
    lines = gradlab("inspect", model("lstm_1l.bf16.safetensors")).out.splitlines()
    [row] = [line for line in lines if "weight_hh" in line]
    tensors = "weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0"
    assert row.split(maxsplit=2) == ["l0", "bfloat16", tensors]


def test_gates_have_a_table_of_their_own(gradlab: Run, model: Model) -> None:
    lines = gradlab("inspect", model("gru_1l.pt")).out.splitlines()
    assert lines[2].split() == ["recurrence", "gate", "sigma_max", "spectral", "radius", "note"]
    with np.load(model("gru_1l.oracle.npz"), allow_pickle=False) as stored:
        sigma, radius = stored["sigma_gate_l0"], stored["rho_gate_l0"]
    for row, gate in enumerate("rzn"):
        name, found, *numbers = lines[3 + row].split()
        assert (name, found) == ("l0", gate)
        assert [float(x) for x in numbers] == pytest.approx([sigma[row], radius[row]], rel=1e-6)
    assert lines[6].split()[:2] == ["l0", "stack"]
    assert lines[6].endswith("-                not a bound for gated cells")
    document = json.loads(gradlab("inspect", model("gru_1l.pt"), "--json").out)
    assert document["recurrences"][0]["gamma_w"] is None
    assert list(document["recurrences"][0]["gates"]) == ["r", "z", "n", "stack"]


def test_same_weights_in_three_containers_give_the_same_document(
    gradlab: Run, model: Model
) -> None:
    documents = []
    for suffix in ("pt", "safetensors", "npz"):
        outcome = gradlab("inspect", model(f"rnn_tanh_1l.{suffix}"), "--json", "--budget", "60")
        document = json.loads(outcome.out)
        documents.append(document["recurrences"])
    assert documents[0] == documents[1] == documents[2]


def test_assumptions_go_to_stderr_and_into_the_document(gradlab: Run, model: Model) -> None:
    outcome = gradlab("inspect", model("rnn_tanh_1l.pt"), "--json")
    assumptions = json.loads(outcome.out)["assumptions"]
    assert any("tanh assumed" in line for line in assumptions)
    assert outcome.err.splitlines() == [f"note: {line}" for line in assumptions]


def test_quiet_leaves_the_data_and_drops_the_messages(gradlab: Run, model: Model) -> None:
    loud = gradlab("inspect", model("rnn_tanh_1l.pt"))
    quiet = gradlab("inspect", model("rnn_tanh_1l.pt"), "--quiet")
    assert (quiet.out, quiet.err) == (loud.out, "")
    assert loud.err


def test_stated_nonlinearity_is_taken_and_no_longer_assumed(gradlab: Run, model: Model) -> None:
    outcome = gradlab("inspect", model("rnn_relu_2l.pt"), "--nonlinearity", "relu", "--json")
    document = json.loads(outcome.out)
    assert {entry["activation"] for entry in document["recurrences"]} == {"relu"}
    assert not any("non-linearity" in line for line in document["assumptions"])


def test_misspelled_nonlinearity_is_refused_with_the_nearest(gradlab: Run, model: Model) -> None:
    outcome = gradlab("inspect", model("rnn_relu_2l.pt"), "--nonlinearity", "rellu")
    assert outcome.code == 1
    assert "did you mean 'relu'?" in outcome.error


@pytest.fixture
def rotating(tmp_path: Path) -> Path:
    """A network whose norm is 1.66 and whose gradient vanishes whatever the inputs."""
    path = tmp_path / "rotating.npz"
    W = np.array([[0.6, 0.9], [-0.9, -0.9]])
    np.savez(path, W_hh=W, W_xh=np.zeros((2, 1)), b_h=np.zeros(2))
    return path


def test_strongest_certificate_is_told_in_a_sentence(gradlab: Run, rotating: Path) -> None:
    lines = gradlab("inspect", rotating, "--budget", "60").out.splitlines()
    assert len(lines) == 5
    name, _, said = lines[-1].partition(": ")
    assert name == lines[1].split()[0]
    assert re.fullmatch(
        r"vanishes for every input: certified, r = 0\.94\d* \(LMI\), K = 3\.\d+, "
        r"although sigma_max = 1\.66",
        said,
    )


def test_certificates_are_in_the_document_with_rate_constant_and_status(
    gradlab: Run, rotating: Path
) -> None:
    outcome = gradlab("inspect", rotating, "--json", "--budget", "60")
    entry = json.loads(outcome.out)["recurrences"][0]
    names = ["sigma_max", "norm_1", "norm_inf", "perron", "diagonal", "lmi"]
    assert list(entry["certificates"]) == names
    lmi = entry["certificates"]["lmi"]
    assert lmi["rate"] <= 0.95
    assert lmi["constant"] == pytest.approx(3.3, abs=0.1)
    assert lmi["status"].startswith("proven")
    assert entry["strongest_certificate"] == "lmi"
    assert entry["certificate_floor"]["rate"] == pytest.approx(0.9)


def test_without_a_budget_nothing_is_searched_for(gradlab: Run, rotating: Path) -> None:
    outcome = gradlab("inspect", rotating, "--budget", "0")
    said = outcome.out.splitlines()[-1].partition(": ")[2]
    assert said.startswith(
        "no certificate of vanishing found (diagonal scaling and LMI not searched for); "
    )
    document = json.loads(gradlab("inspect", rotating, "--budget", "0", "--json").out)
    lmi = document["recurrences"][0]["certificates"]["lmi"]
    assert (lmi["rate"], lmi["constant"], lmi["status"]) == (None, None, "skipped")


def test_gated_certificates_tell_the_inputs_they_hold_for(gradlab: Run, model: Model) -> None:
    text = gradlab("inspect", model("lstm_1l.pt"), "--input-bound", "0.5").out
    assert "every input with |x| <= 0.5, from |h_0| <= 1 and |c_0| <= " in text
    document = json.loads(gradlab("inspect", model("lstm_1l.pt"), "--json").out)
    assert list(document["recurrences"][0]["certificates"]) == ["gamma_lstm"]


@pytest.mark.parametrize("option", ["--budget", "--input-bound"])
def test_a_budget_or_bound_below_zero_is_a_wrong_use(
    gradlab: Run, rotating: Path, option: str
) -> None:
    assert gradlab("inspect", rotating, option, "-1").code == 2
