"""What a sweep found, in sentences made of its saved analysis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradlab as gl
from gradlab_reports.catalog import SWEEP_MODELS as MODELS
from gradlab_reports.loading import load_frame
from gradlab_reports.run_folder import read_document
from gradlab_reports.spelling import plain, share
from gradlab_reports.sweep_axes import short_names, swept
from gradlab_reports.sweep_loading import fitting_kinds
from gradlab_reports.tables import number

if TYPE_CHECKING:
    import pandas as pd

ANALYSIS = "sweep_analysis.json"
PAGE = "sweep.md"
MOST_CURVES = 8  # told one by one; the rest is in the file
FIGURES = {
    "models": "Measured rate and horizon over the model files",
    "rate": "Measured rate against ln γ_w, the bound dashed, mean-field theory dotted",
    "decay-by-gamma": "Measured decay of the gradient by spectral norm",
    "regime-map": "Sign and size of the measured rate by spectral norm and size",
}


def write_sweep_words(folder: Path) -> str:
    """Write ``sweep.md`` beside a sweep's analysis.

    Parameters
    ----------
    folder
        Of a sweep with ``sweep_analysis.json``; figures that are there are shown on the page.

    Returns
    -------
    text
        The paragraph, one sentence or more for each curve.

    Raises
    ------
    gl.RunFolderError
        If there is no analysis, or it is damaged.
    gl.OutputError
        If the page cannot be written.
    """
    folder = Path(folder)
    analysis = read_document(folder / ANALYSIS)
    text = sweep_text(analysis)
    if not analysis.get("scale") and MODELS in fitting_kinds(folder):
        text = models_text(load_frame(folder, MODELS))
    pictures = [
        f"![{words}](figures/{name}.png)\n"
        for name, words in FIGURES.items()
        if (folder / "figures" / f"{name}.png").is_file()
    ]
    page = "\n".join(("# What the sweep found\n", f"{text}\n", *pictures))
    try:
        (folder / PAGE).write_text(page, encoding="utf-8")
    except OSError as error:
        raise gl.OutputError(
            f"{folder / PAGE} cannot be written ({error.strerror or error}): expected the folder "
            "of a sweep, with room on the disk"
        ) from error
    return text


def sweep_text(analysis: Mapping[str, Any]) -> str:
    """Say what a sweep found.

    Parameters
    ----------
    analysis
        Document ``sweep_analysis.json``.

    Returns
    -------
    text
        One paragraph a curve; spectral norms are norms, and a bound is called a bound.
    """
    curves = analysis.get("curves") or []
    if not curves:
        return (
            "No spectral norm was swept: there is no γ_w along which the rate could cross zero."
            if not analysis.get("scale")
            else "No network of the sweep has a finite rate and a spectral norm of its own."
        )
    varying = _varying([curve["parameters"] for curve in curves])
    confidence = number(analysis.get("confidence"))
    said = [_paragraph(curve, varying, confidence) for curve in curves[:MOST_CURVES]]
    if len(curves) > MOST_CURVES:
        said.append(f"{len(curves) - MOST_CURVES} more curves are in {ANALYSIS}.")
    return "\n\n".join(said)


def models_text(frame: pd.DataFrame) -> str:
    """Say what a sweep over model files found.

    Parameters
    ----------
    frame
        Columns of ``sweep.csv``.

    Returns
    -------
    text
        One paragraph for every combination of the other settings, such as a recurrence.
    """
    axes = swept(frame.drop(columns="model"))
    groups = frame.groupby(axes, sort=False) if axes else [((), frame)]
    said = []
    for names, rows in groups:
        told = ", ".join(f"{axis} {name}" for axis, name in zip(axes, names, strict=True))
        text = _over_models(rows)
        said.append(f"{told}: {text[0].lower()}{text[1:]}" if told else text)
    if len(said) > MOST_CURVES:
        said = [*said[:MOST_CURVES], f"{len(said) - MOST_CURVES} more are in sweep.csv."]
    return "\n\n".join(said)


def _over_models(rows: pd.DataFrame) -> str:
    """The way of rate and horizon from the first to the last model that was measured."""
    measured = rows[rows["rate"].notna()].groupby("model", sort=False)
    rates, horizons = measured["rate"].median(), measured["horizon_1pct"].median()
    lost = rows["model"].nunique() - len(rates)
    files = short_names([str(name) for name in rates.index])
    failed = f" {lost} {'file' if lost == 1 else 'files'} could not be measured." if lost else ""
    if not files:
        return f"No model file has a rate.{failed}"
    seen = f"{len(files)} model files from {files[0]} to {files[-1]}"
    first, last = (plain(float(rates.iloc[end])) for end in (0, -1))
    low, high = plain(float(rates.min())), plain(float(rates.max()))
    ends = [_lag(float(horizons.iloc[end])) for end in (0, -1)]
    return (
        f"Over {seen} the measured rate goes from {first} to {last} nats per step (lowest {low}, "
        f"highest {high}), and the lag from which the norm stays below 1 % from {ends[0]} to "
        f"{ends[1]}.{failed}"
    )


def _lag(lag: float) -> str:
    return "beyond the run" if math.isnan(lag) else f"{lag:g}"


def _varying(parameters: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the settings in which curves differ; of a single curve, its size."""
    names = list(parameters[0])
    return [name for name in names if len({str(some.get(name)) for some in parameters}) > 1]


def _paragraph(curve: Mapping[str, Any], varying: Sequence[str], confidence: float) -> str:
    parameters = curve["parameters"]
    head = ", ".join(f"{name} {parameters.get(name)}" for name in varying)
    sentences = (
        _crossing(curve, confidence),
        _prediction(curve),
        _slope(curve, confidence),
        _left_out(curve),
    )
    text = " ".join(sentence for sentence in sentences if sentence)
    return f"{head}: {text[0].lower()}{text[1:]}" if head else text


def _crossing(curve: Mapping[str, Any], confidence: float) -> str:
    first, last, zero, bound = (
        number(curve.get(name))
        for name in ("gamma_w_first", "gamma_w_last", "zero_gamma", "bound_gamma")
    )
    seen = f"{_counted(curve['points'], 'network')} at {_counted(curve['levels'], 'spectral norm')}"
    seen += f" from γ_w = {plain(first)} to {plain(last)}"
    if zero == math.inf:
        freely = f" although the bound allows growth from γ_w = {plain(bound)} on"
        return (
            f"Of {seen}, the mean measured rate is below zero throughout: the gradient shrinks"
            f"{freely if last > bound else ''}."
        )
    if zero == 0.0:
        return f"Of {seen}, the mean measured rate is nowhere below zero."
    low, high = number(curve.get("zero_gamma_low")), number(curve.get("zero_gamma_high"))
    return (
        f"Of {seen}, the measured rate crosses zero at γ_w = {plain(zero)}"
        f"{_interval(_end(low), _end(high), confidence)}, where the textbook's bound says no "
        f"more than that the gradient vanishes below γ_w = {plain(bound)}."
    )


def _prediction(curve: Mapping[str, Any]) -> str:
    gamma, off = number(curve.get("mean_field_gamma")), number(curve.get("mean_field_difference"))
    inside = number(curve.get("mean_field_inside"))
    if math.isnan(off):
        return ""
    said = "Mean-field theory of random networks "
    if math.isfinite(gamma):
        said += f"expects the crossing at {plain(gamma)}; the measured rates lie "
    else:
        said += "predicts rates, and the measured ones lie "
    side = "above" if off >= 0.0 else "below"
    said += f"{plain(abs(off), 2)} nats per step {side} it on average"
    if math.isnan(inside):
        return said + "."
    return f"{said}, {share(inside)} of the means within the band for networks of this size."


def _slope(curve: Mapping[str, Any], confidence: float) -> str:
    slope, low, high = (number(curve.get(name)) for name in ("slope", "slope_low", "slope_high"))
    if math.isnan(slope):
        return ""
    ends = _interval(plain(low), plain(high), confidence) if not math.isnan(low) else ""
    return f"The rate rises by {plain(slope)}{ends} for each unit of ln γ_w, the bound by 1."


def _left_out(curve: Mapping[str, Any]) -> str:
    count = int(curve.get("left_out") or 0)
    return f"{count} points without a finite rate are left out." if count else ""


def _interval(low: str, high: str, confidence: float) -> str:
    known = "undefined" not in (low, high)
    return f" ({share(confidence)} interval {low} to {high})" if known else ""


def _end(gamma: float) -> str:
    if gamma == 0.0:
        return "below all levels"
    return "beyond all levels" if gamma == math.inf else plain(gamma)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
