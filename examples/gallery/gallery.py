"""Measure the networks of the gallery, and draw their pictures.

Prints a table for each page; with --write also puts the tables into docs/gallery and the pictures
into docs/pictures, whose other words stay. Run in gradlab's own environment, a page takes seconds
(the sweep up to a minute):

    python examples/gallery/gallery.py vanishing
    python examples/gallery/gallery.py --write
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import gradlab as gl

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
COLORS = 255  # of a picture: enough for flat drawings, and a third of the bytes

DIGITS = "examples/digits/digits_rnn.safetensors --inputs examples/digits/digits_test_inputs.npy"
LOSS = "--targets examples/digits/digits_test_targets.npy --at last"


@dataclass(frozen=True, kw_only=True)
class Page:
    """One page: the command that measures, and the kinds of figures that it shows."""

    command: str
    kinds: Sequence[str]


PAGES: Mapping[str, Page] = {
    "vanishing": Page(command="analyze vanishing", kinds=["decay"]),
    "exploding": Page(command="analyze exploding", kinds=["decay"]),
    "saturated": Page(command="analyze saturated", kinds=["decay", "saturation"]),
    "non-normal": Page(
        command="analyze out/non-normal.npz --input-std 0.01 --length 200",
        kinds=["decay", "spectrum"],
    ),
    "digits": Page(command=f"analyze {DIGITS} {LOSS}", kinds=["decay", "gradient"]),
    "cells": Page(command="compare rnn lstm gru", kinds=["compare"]),
    "sweep": Page(
        command="sweep --gamma 0.5:1.5:21 --hidden-size 64 --length 100 --seeds 10",
        kinds=["rate"],
    ),
}


def chain(units: int = 24, *, keep: float = 0.8, pass_on: float = 0.6) -> gl.VanillaCell:
    """Units in a row: each keeps a share of itself and hands a share to the next one."""
    return gl.VanillaCell(
        W_hh=keep * np.eye(units) + pass_on * np.eye(units, k=-1),
        W_xh=np.eye(units, 1),
        b_h=np.zeros(units),
    )


def measured(name: str, folder: Path) -> Path:
    """Run the command of a page; its output folder."""
    words = shlex.split(PAGES[name].command)
    if name == "non-normal":
        words[1] = str(folder / "non-normal.npz")
        gl.export_npz(chain(), words[1])
    output = folder / name
    gradlab(*words, "--quiet", "-o", str(output))
    return output


def gradlab(*words: str) -> None:
    """Run gradlab as a reader would, from the repository's root."""
    subprocess.run(
        [sys.executable, "-m", "gradlab_cli", *words],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def table(name: str, folder: Path) -> str:
    """What the page tabulates, as Markdown."""
    if name == "sweep":
        return _markdown(SWEPT, _sweep_rows(folder))
    summary = json.loads((folder / _summary_name(name)).read_text(encoding="utf-8"))
    found = [_row(entry) for entry in summary["recurrences"]]
    if name == "cells":
        labels = [str(entry["label"]) for entry in summary["recurrences"]]
        rows = [[label, *list(row.values())[:6]] for label, row in zip(labels, found, strict=True)]
        return _markdown(["cell", *list(found[0])[:6]], rows)
    return _markdown(["quantity", "value"], [list(item) for item in found[0].items()])


def _summary_name(name: str) -> str:
    return "compare.json" if name == "cells" else "summary.json"


def _row(entry: Mapping[str, Any]) -> dict[str, str]:
    """The numbers of a recurrence that the pages speak of."""
    regime, horizon = entry["regime"], entry["horizon"]
    low, high = (math.exp(regime[end]) for end in ("rate_low", "rate_high"))
    row = {
        "verdict": regime["name"],
        "measured per step back": f"× {math.exp(regime['rate']):.3f}",
        "95 % interval": f"{low:.3f} to {high:.3f}",
        "σ_max": _number(entry["gamma_w"]),
        "spectral radius": _number(entry["spectral_radius"]),
        "less than 1 % is left from lag": str(horizon["lag_1pct"] or "beyond the run"),
    }
    if regime["name"] == "vanishing" and (regime["transient_height"] or 0.0) > 0.0:
        highest = f"{math.exp(regime['transient_height']):.3g} at lag {regime['transient_lag']}"
        row["highest median norm before it falls"] = highest
    return row


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


SWEPT = ("σ_max", "measured per step back", "bound per step", "less than 1 % is left from lag")


def _sweep_rows(folder: Path) -> Iterator[list[str]]:
    """Every fifth σ_max: medians over the seeds."""
    with (folder / "sweep.csv").open(encoding="utf-8") as file:
        points = list(csv.DictReader(file))
    for gamma in sorted({round(float(point["gamma_w"]), 6) for point in points})[::5]:
        same = [point for point in points if round(float(point["gamma_w"]), 6) == gamma]
        rate, bound, lag = (
            float(np.median([float(point[key] or "nan") for point in same]))
            for key in ("rate", "bound_rate", "horizon_1pct")
        )
        left = f"{lag:g}" if math.isfinite(lag) else "beyond the run"
        yield [f"{gamma:g}", f"× {math.exp(rate):.3f}", f"× {math.exp(bound):.3f}", left]


def _markdown(header: Sequence[str], rows: Any) -> str:
    lines = [list(header), ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def draw(name: str, folder: Path) -> None:
    """Draw the pictures of a page, in few colors so that they stay small."""
    for kind in PAGES[name].kinds:
        picture = folder / f"{kind}.png"
        gradlab("plot", str(folder), "--kind", kind, "-o", str(picture), "--force", "--quiet")
        target = ROOT / "docs/pictures" / f"{name}-{kind}.png"
        # Coverage keeps the hues of thin lines, which the median of all pixels would lose.
        how: Any = {"method": Image.Quantize.MAXCOVERAGE, "kmeans": 2, "dither": Image.Dither.NONE}
        Image.open(picture).convert("RGB").quantize(COLORS, **how).save(target, optimize=True)


def write(name: str, found: str) -> None:
    """Replace the table of a page."""
    page = ROOT / "docs/gallery" / f"{name}.md"
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n{found}\n\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Measure the pages that are named, or all."""
    parser = argparse.ArgumentParser(description="Measure the networks of the gallery.")
    parser.add_argument("pages", nargs="*", choices=[*PAGES, []], help="all if none is named")
    parser.add_argument("--write", action="store_true", help="also write tables and pictures")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for name in arguments.pages or PAGES:
            folder = measured(name, Path(scratch))
            found = table(name, folder)
            print(f"{name}\n\n{found}\n")
            if arguments.write:
                draw(name, folder)
                write(name, found)


if __name__ == "__main__":
    main()
