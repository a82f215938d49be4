"""What theory predicts of random networks with the statistics of a run, as a table of words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradlab_reports.spelling import factor, plain, share
from gradlab_reports.tables import Table, number

ENSEMBLES = {
    "gaussian": "independent entries, g = ‖W‖_F/√N = {}",
    "orthogonal": "orthogonal, g = {}",
}


def mean_field_table(theory: Mapping[str, Any]) -> Table | None:
    """The mean-field prediction, with the statistics that it was made from.

    Parameters
    ----------
    theory
        Entry ``mean_field`` of a recurrence's summary.

    Returns
    -------
    table
        None where there is no theory.
    """
    if not theory:
        return None
    value = {key: number(entry) for key, entry in theory.items() if key != "ensemble"}
    ensemble = ENSEMBLES.get(str(theory["ensemble"]), f"{theory['ensemble']}, g = {{}}")
    deviations = f"{plain(value['input_std'])} and {plain(value['bias_std'])}"
    band = " to ".join(f"× {factor(value[f'lambda_1_{end}'])}" for end in ("low", "high"))
    norm = f"{plain(value['sigma_max'], 4)} ± {plain(value['sigma_max_spread'], 2)}"
    return Table(
        title="Theory of random networks with these statistics",
        header=("quantity", "value"),
        rows=[
            ("recurrent weights", ensemble.format(plain(value["gain"], 4))),
            ("standard deviation of input and bias, as measured", deviations),
            ("critical gain", plain(value["critical_gain"], 4)),
            ("growth of the gradient, infinitely many units", _growth(value["lambda_1"])),
            ("band for as many units and steps", f"{band} per step"),
            ("largest singular value, and its spread over draws", norm),
            ("exponents above 0", share(value["fraction_positive"])),
            ("Kaplan–Yorke dimension", f"{plain(value['kaplan_yorke'])} of N"),
        ],
        note="Mean field: a prediction for networks drawn at random, no measurement of this one.",
    )


def _growth(rate: float) -> str:
    return f"× {factor(rate)} per step ({plain(rate)} nats)"
