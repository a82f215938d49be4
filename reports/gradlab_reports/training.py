"""A training in words: what it reached, what its gradient did meanwhile, what clipping did."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gradlab_reports.frames import column
from gradlab_reports.spelling import factor, plain, share
from gradlab_reports.tables import Table, number
from gradlab_reports.views import TONES, KeyNumber

if TYPE_CHECKING:
    import pandas as pd

# Less of the loss without memory than this shows that the network uses its memory.
BETTER = 0.95
OFTEN = 0.5  # share of clipped updates from which the threshold sets most steps' lengths
TURNED = 0.99  # cosine below which clipping has changed the direction of the whole
MEASURED = {
    "test_loss": "test loss",
    "accuracy": "right answers",
    "rate": "gradient per step back",
    "regime": "regime",
    "horizon_1pct": "less than 1 % left from lag",
    "gamma_w": "σ_max of the recurrent weights",
    "spectral_radius": "spectral radius ρ",
    "saturated_share": "saturated units",
}

HOW_TO_READ = (
    "Every so many updates the training was looked at: loss and right answers on sequences that it "
    "never learns from, and the gradient's dynamics along some of these. What is called loss and "
    "norm are means over the updates since the look before.",
    "The rate is the slope of the median ln ‖∂h_t/∂h_k‖ over the lag: below 0 a gradient fades "
    "with the lag, above 0 it grows. It is measured; ln σ_max and ln ρ are what the weights alone "
    "would give, and no measurement.",
    "The loss without memory is that of the best guess that never looks back. A network above it "
    "has not learned to use its memory, however far its loss has fallen.",
)


def title(manifest: Mapping[str, Any]) -> str:
    """Name the page after the task and the cell."""
    settings = manifest.get("settings") or {}
    task = (settings.get("task") or {}).get("name", "training")
    return " · ".join(str(part) for part in (task, settings.get("cell")) if part)


def finding(manifest: Mapping[str, Any], log: pd.DataFrame) -> str:
    """State in a sentence or two what the training reached and what its gradient does at the end.

    Parameters
    ----------
    manifest
        ``manifest.json`` of the training.
    log
        ``training.csv``.
    """
    first, last = log.iloc[0], log.iloc[-1]
    baseline = number((manifest.get("baseline") or {}).get("loss"))
    loss = float(last["test_loss"])
    learned = f"{int(last['step'])} updates take the test loss from {plain(first['test_loss'])} to "
    learned += plain(loss)
    if not math.isnan(baseline):
        learned += f", {_against(loss, baseline)}"
    return f"{learned}. {_gradient(last, manifest)}"


def _against(loss: float, baseline: float) -> str:
    spelled = f"the {plain(baseline)} of the best guess without memory"
    if not math.isfinite(loss):
        return f"and {spelled} is not reached"
    if loss < BETTER * baseline:
        return f"below {spelled}: the network uses its memory"
    return f"no better than {spelled}: the network has not learned to use its memory"


def _gradient(last: pd.Series[Any], manifest: Mapping[str, Any]) -> str:
    rate, lag = float(last["rate"]), float(last["horizon_1pct"])
    if math.isnan(rate):
        return "At the end the gradient could not be measured."
    words = f"At the end each step back in time multiplies the gradient by {factor(rate)}"
    if not math.isnan(lag):
        return f"{words}, and less than 1 % of it is left from lag {lag:g} on."
    steps = number(manifest.get("probe_length"))
    within = "" if math.isnan(steps) else f" over the {steps:g} steps measured"
    return f"{words}, and more than 1 % of it is left{within}."


def regime(log: pd.DataFrame) -> str:
    """Name the regime at the end."""
    return str(log["regime"].iloc[-1]) if "regime" in log.columns else ""


def tone(log: pd.DataFrame) -> str:
    """Return the name of the color that the regime at the end has on a page."""
    return TONES.get(regime(log), "open")


def key_numbers(manifest: Mapping[str, Any], log: pd.DataFrame) -> list[KeyNumber]:
    """Numbers to take away."""
    last, audit = log.iloc[-1], manifest.get("clipping") or {}
    baseline = number((manifest.get("baseline") or {}).get("loss"))
    numbers = [KeyNumber(value=plain(float(last["test_loss"])), meaning="test loss at the end")]
    if not math.isnan(baseline):
        words = "loss of the best guess without memory"
        numbers.append(KeyNumber(value=plain(baseline), meaning=words))
    rate = float(last["rate"])
    if not math.isnan(rate):
        words = f"measured per step back, at the end (rate {plain(rate)} nats)"
        numbers.append(KeyNumber(value=f"× {factor(rate)}", meaning=words))
    clipped = number(audit.get("clipped_share"))
    if not math.isnan(clipped):
        numbers.append(KeyNumber(value=share(clipped), meaning="of the updates were clipped"))
    return numbers


def meaning(manifest: Mapping[str, Any], log: pd.DataFrame) -> list[str]:
    """Say what the log means for another training of this kind.

    Parameters
    ----------
    manifest, log
        As of `finding`.

    Returns
    -------
    sentences
        How far the gradient reached meanwhile, whether the weights' norms told it, what clipping
        did, and which threshold the training's own norms speak for.
    """
    audit = manifest.get("clipping") or {}
    said = [_reach(manifest, log), _weights(log), _clipped(audit), _threshold(audit)]
    policy = (manifest.get("settings") or {}).get("nonfinite")
    said += [_direction(audit), _nonfinite(audit, policy)]
    return [words for words in said if words]


def _reach(manifest: Mapping[str, Any], log: pd.DataFrame) -> str:
    lags, steps = column(log, "horizon_1pct"), number(manifest.get("probe_length"))
    known = lags[lags == lags]
    if not len(known):
        if math.isnan(steps) or log["rate"].isna().any():
            return ""
        return (
            f"At every look more than 1 % of the gradient arrived {steps:g} steps back: what "
            "this network fails to learn within so many steps, it fails for another reason."
        )
    shortest = int(known.argmin())
    step = int(log["step"].to_numpy()[lags == lags][shortest])
    return (
        f"The gradient reached least far at update {step}: less than 1 % was left from lag "
        f"{known.min():g} on. What lies further back could hardly be learned then. {len(known)} of "
        f"{len(log)} looks had such a lag within the sequence."
    )


def _weights(log: pd.DataFrame) -> str:
    sigma, rate = float(column(log, "gamma_w")[-1]), float(log["rate"].iloc[-1])
    if not (sigma > 1.0 and rate < 0.0):
        return ""
    return (
        f"σ_max of the recurrent weights is {plain(sigma)} at the end, which permits growth, and "
        f"the gradient is multiplied by {factor(rate)} per step all the same (measured): a large "
        "norm of the weights causes no growth."
    )


def _clipped(audit: Mapping[str, Any]) -> str:
    clipped, threshold = number(audit.get("clipped_share")), number(audit.get("threshold"))
    if math.isnan(clipped):
        return ""
    if math.isinf(threshold):
        return "Nothing was clipped."
    if clipped == 0.0:
        return f"The threshold {plain(threshold)} was never reached: it changed nothing."
    words = f"The threshold {plain(threshold)} clipped {share(clipped)} of the updates (measured)"
    if clipped < OFTEN:
        return f"{words}: it held back the long ones and left most as they were."
    return (
        f"{words}: it set the length of most gradients before the optimizer saw them, and hid "
        "which of them were large."
    )


def _threshold(audit: Mapping[str, Any]) -> str:
    quantiles = audit.get("quantiles") or {}
    median, high, top = (number(quantiles.get(name)) for name in ("q50", "q90", "q99"))
    if math.isnan(median) or math.isnan(high) or math.isnan(top):
        return ""
    return (
        f"By this training's own norms, half of them below {plain(median)}, a threshold of "
        f"{plain(high)} would clip 10 % of the updates and one of {plain(top)} 1 % (measured, "
        "before clipping; with another threshold the training takes another path)."
    )


def _direction(audit: Mapping[str, Any]) -> str:
    cosine = number(audit.get("cosine_with_unclipped_sum"))
    if math.isnan(cosine) or cosine >= TURNED:
        return ""
    return (
        "Each clipped gradient keeps its direction, but their sum does not: its cosine with the "
        f"sum of the unclipped ones is {plain(cosine)}, since the longest of them count for less."
    )


def _nonfinite(audit: Mapping[str, Any], policy: object) -> str:
    count = number(audit.get("nonfinite_steps"))
    if not count > 0.0:
        return ""
    updates = "1 update" if count == 1 else f"{count:g} updates"
    return (
        f"{updates} had no finite gradient, the first of them update "
        f"{audit.get('first_nonfinite')} (policy {policy}): these enter no share and no mean."
    )


def all_tables(manifest: Mapping[str, Any], log: pd.DataFrame) -> list[Table]:
    """Tables of the page: before and after, and what thresholds would have clipped."""
    tables = [_ends_table(log), _thresholds_table(manifest.get("clipping") or {})]
    return [table for table in tables if table.rows]


def _ends_table(log: pd.DataFrame) -> Table:
    first, last = log.iloc[0], log.iloc[-1]
    rows = [
        (words, _spelled(name, first[name]), _spelled(name, last[name]))
        for name, words in MEASURED.items()
        if name in log.columns and not (first[name] != first[name] and last[name] != last[name])
    ]
    header = ("measured", f"update {int(first['step'])}", f"update {int(last['step'])}")
    return Table(title="Before and after", header=header, rows=rows)


def _spelled(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    known = number(value)
    if name in ("accuracy", "saturated_share"):
        return share(known)
    if name == "rate":
        return f"× {factor(known)}"
    if name == "horizon_1pct":
        return "beyond" if math.isnan(known) else f"{known:g}"
    return plain(known)


def _thresholds_table(audit: Mapping[str, Any]) -> Table:
    candidates = audit.get("share_above") or {}
    rows = [(str(name), share(number(value))) for name, value in candidates.items()]
    return Table(
        title="What a threshold would clip",
        header=("threshold", "updates with a longer gradient"),
        rows=rows,
        note="Norms over all weights, before clipping, of the updates that this training took.",
    )
