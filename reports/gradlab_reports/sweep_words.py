"""What a sweep found, in sentences made of its saved analysis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gradlab as gl
from gradlab_reports.run_folder import read_document
from gradlab_reports.spelling import plain, share
from gradlab_reports.tables import number

ANALYSIS = "sweep_analysis.json"
PAGE = "sweep.md"
MOST_CURVES = 8  # told one by one; the rest is in the file
FIGURES = {
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
    text = sweep_text(read_document(folder / ANALYSIS))
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
    seen = f"{curve['points']} networks at {curve['levels']} spectral norms"
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
