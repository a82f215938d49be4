"""The rungs of the bound ladder in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Rung:
    """What a rung is, and what explains the slack between it and the next upper one."""

    words: str
    cause: str = ""
    follows: tuple[str, ...] = ()  # next rungs that are proven to lie below it


RUNGS = {
    "lstm_weights": Rung(
        words="norms of the weights and the largest cell state",
        cause="gates below their largest slopes",
        follows=("lstm_gates",),
    ),
    "lstm_gates": Rung(
        words="largest factor of each gate, step by step",
        cause="factors that are not largest together",
        follows=("lstm_data",),
    ),
    "lstm_data": Rung(words="norms of the four blocks of each step's Jacobian"),
    "gru_rows": Rung(words="row sums of each step, from the weights and z"),
    "gamma": Rung(
        words="(γ_a γ_w)^l: weights alone", cause="saturation", follows=("saturation_max",)
    ),
    "saturation_max": Rung(
        words="(max‖D‖ γ_w)^l: largest derivative seen", cause="saturation", follows=("saturation",)
    ),
    "saturation": Rung(
        words="Π ‖D_j‖ γ_w: largest derivative of each step",
        cause="one-step structure",
        follows=("onestep",),
    ),
    "onestep": Rung(
        words="Π ‖J_j‖: each step's own Jacobian",
        cause="alignment across steps",
        follows=("blocks", "exact"),
    ),
    "blocks": Rung(words="blocks of steps", cause="alignment across steps", follows=("exact",)),
    "exact": Rung(words="measured norm"),
    "radius": Rung(words="ρ(P): largest eigenvalue of the product"),
    "determinant": Rung(words="|det P|^(1/n): mean of all directions"),
    "sigma_min": Rung(words="Π σ_min(J_j): worst direction of each step"),
}
KINDS = {"upper": "upper bound", "lower": "lower bound", "exact": "measured"}
