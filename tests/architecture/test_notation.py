"""The notation of the built pages: what becomes an index or a power, and what stays a word."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

markdown = pytest.importorskip("markdown")

NOTATION = Path(__file__).parents[2] / "docs" / "notation.py"


def built(text: str) -> str:
    notation = runpy.run_path(str(NOTATION))["Notation"]
    html = markdown.markdown(text, extensions=[notation()])
    return str(html).replace("<span>", "").replace("</span>", "")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("γ_w^l and σ_max(W_hh)", "γ<sub>w</sub><sup>l</sup> and σ<sub>max</sub>(W<sub>hh</sub>)"),
        ("∂h_t/∂h_{t−1}", "∂h<sub>t</sub>/∂h<sub>t−1</sub>"),
        ("‖(J v)_a‖ ≤ ‖J_t v‖", "‖(J v)<sub>a</sub>‖ ≤ ‖J<sub>t</sub> v‖"),
        ("|det P|^(1/n)", "|det P|<sup>1/n</sup>"),
        ("inf_S ‖S W‖, max_θ", "inf<sub>S</sub> ‖S W‖, max<sub>θ</sub>"),
        ("dL/dh_t and 2^-64", "dL/dh<sub>t</sub> and 2<sup>-64</sup>"),
        ("‖W‖_F² and σ_x²", "‖W‖<sub>F</sub>² and σ<sub>x</sub>²"),
        ("max_lag and min_horizon", "max_lag and min_horizon"),
        ("log_norm of model_x.pt", "log_norm of model_x.pt"),
        ("`h_t` and *h_t*", "<code>h_t</code> and <em>h<sub>t</sub></em>"),
        ("_no emphasis_", "_no emphasis_"),
    ],
)
def test_indices_are_low_powers_high_and_names_as_they_are(text: str, html: str) -> None:
    assert built(text) == f"<p>{html}</p>"
