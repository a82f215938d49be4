"""How the rungs of the bound ladder are drawn, above and below what was measured."""

from __future__ import annotations

from gradlab_reports.style import (
    FAINT,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    BoundStyle,
)

_GRAY = "#4a4f54"
# Upper bounds are dashed, lower ones dotted; the largest derivative seen lies between two others.
UPPER = {
    "lstm_weights": BoundStyle(
        column="lstm_weights",
        label="upper: weights' norms",
        color=VERMILLION,
        dashes=(6, 2),
        ink="#b34f00",
    ),
    "lstm_gates": BoundStyle(
        column="lstm_gates",
        label="upper: largest gates",
        color=ORANGE,
        dashes=(6, 2, 1.2, 2),
        ink="#8a5f00",
    ),
    "lstm_data": BoundStyle(
        column="lstm_data",
        label="upper: blocks of $J_j$",
        color=SKY,
        dashes=(4, 1.5, 1.2, 1.5),
        ink="#1d6fa5",
    ),
    "gru_rows": BoundStyle(
        column="gru_rows",
        label="upper: row sums",
        color=VERMILLION,
        dashes=(6, 2),
        ink="#b34f00",
    ),
    "gamma": BoundStyle(
        column="gamma",
        label=r"upper: $(\gamma_a\gamma_w)^l$",
        color=VERMILLION,
        dashes=(6, 2),
        ink="#b34f00",
    ),
    "saturation": BoundStyle(
        column="saturation",
        label=r"upper: $\prod\,\|D_j\|\,\gamma_w$",
        color=ORANGE,
        dashes=(6, 2, 1.2, 2),
        ink="#8a5f00",
    ),
    "onestep": BoundStyle(
        column="onestep",
        label=r"upper: $\prod\,\|J_j\|$",
        color=GREEN,
        dashes=(3.5, 1.2),
        ink="#00724f",
    ),
    "blocks": BoundStyle(
        column="blocks", label="upper: blocks", color=PURPLE, dashes=(3, 1.5), ink="#96457a"
    ),
}
LOWER = {
    "radius": BoundStyle(
        column="radius", label=r"lower: $\rho(P)$", color=_GRAY, dashes=(1, 1), ink=_GRAY
    ),
    "determinant": BoundStyle(
        column="determinant",
        label=r"lower: $|\det P|^{1/n}$",
        color="#71767b",
        dashes=(1, 2),
        ink=FAINT,
    ),
    "sigma_min": BoundStyle(
        column="sigma_min",
        label=r"lower: $\prod\,\sigma_{\min}(J_j)$",
        color="#9aa0a6",
        dashes=(1, 3.5),
        ink=FAINT,
    ),
}
