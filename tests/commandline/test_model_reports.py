"""Reports of other people's models: what was read and assumed is told, and what is measured."""

from __future__ import annotations

import html
import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

Run = Callable[..., Any]
Model = Callable[[str], Path]

SHORT = ("--length", 3, "--batch", 1, "--exponents", 0)
# By format: a file, what had to be assumed of it, and the extra that reading it needs.
ASSUMED = {
    "PyTorch": ("rnn_relu_2l.pt", "non-linearity of l0, l1: tanh assumed", None),
    "whole module": ("rnn_relu_wholemodule.pt", "relu, as the source says", None),
    "TorchScript": ("lstm_1l.ts.pt", "torch.nn.modules.rnn.LSTM, as the source says", None),
    "safetensors": ("gru_1l.safetensors", "read as PyTorch's GRU", None),
    "NumPy": ("dyn_vanish.npz", "batch axis: inputs (time, batch, features) assumed", None),
    "pickle": ("lstm_statedict.pkl", "read as PyTorch's LSTM", None),
    "Keras": ("keras_lstm.keras", "Keras reads (batch, time, features)", "h5py"),
    "Keras weights": ("keras_gru_names.weights.h5", "candidates tanh assumed", "h5py"),
    "ONNX": ("onnx_lstm_layout1.onnx", "as the node says (layout 1)", "onnx"),
    "Flax": ("flax_simplecell.msgpack", "activation of encoder: tanh assumed", "msgpack"),
    "Haiku": ("haiku_gru.npz", "z overwriting the old state", None),
}


@pytest.fixture
def page_without_figures(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], str]:
    """The page of a run as words; figures are left out, which take most of its time."""
    bundle = importlib.import_module("gradlab_reports.bundle")
    monkeypatch.setattr(bundle, "RUN_KINDS", ())
    return lambda run: words(bundle.write_report(run))


def words(page: Path) -> str:
    """What a reader sees: no styles, no pictures, no marks."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"<style>.*?</style>|<svg.*?</svg>|<[^>]+>", " ", text, flags=re.DOTALL)
    return " ".join(html.unescape(text).split())


@pytest.mark.parametrize("source", ASSUMED)
def test_assumptions_are_printed_and_in_the_manifest_and_on_the_page(
    gradlab: Run,
    model: Model,
    tmp_path: Path,
    source: str,
    page_without_figures: Callable[[Path], str],
) -> None:
    name, expected, extra = ASSUMED[source]
    if extra is not None:
        pytest.importorskip(extra)
    run = tmp_path / "run"
    outcome = gradlab("analyze", model(name), *SHORT, "-o", run)
    assert outcome.code == 0, outcome.err
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    told = manifest["assumptions"]
    assert any(expected in sentence for sentence in told)
    assert outcome.err.splitlines() == [*(f"note: {line}" for line in told), f"wrote {run}"]
    page = page_without_figures(run)
    assert [sentence for sentence in told if sentence not in page] == []


def test_report_of_silero_shows_the_norm_that_its_weights_do_not_let_expect(
    gradlab: Run, model: Model, tmp_path: Path
) -> None:
    """Measured 7.61 at lag 40; σ_max of the stacked gates is 28.2, whose 40th power is 1e58."""
    with np.load(model("real/silero_vad_16k_lstm.oracle.npz"), allow_pickle=False) as stored:
        inputs, expected = stored["x"], float(stored["norm2_dsT_dsk"][0])
    np.save(tmp_path / "x.npy", inputs)
    folder = tmp_path / "out"
    outcome = gradlab(
        "report", model("real/silero_vad_16k_lstm.safetensors"), "--inputs", tmp_path / "x.npy",
        "--exponents", 0, "--no-pairs", "-o", folder,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    profile = pd.read_csv(folder / "lag_profile.csv").set_index("lag")
    assert profile.loc[40, "log_norm_median"] == pytest.approx(np.log(expected), rel=1e-9)
    [entry] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["recurrences"]
    assert entry["gates"]["stack"]["sigma_max"] == pytest.approx(28.2459, abs=5e-5)
    assert entry["gamma_w"] is None
    assert entry["regime"]["name"] == "near-critical"
    page = words(folder / "report.html")
    assert re.search(r"measured median norm goes from \S+ at lag 1 to 7\.61 at lag 40", page)
    assert re.search(r"stack 28\.25 .*?No gate's σ max bounds the gradient", page)
