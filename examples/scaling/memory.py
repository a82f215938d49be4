"""Peak memory of a sweep's analysis and figures, for made-up tables of many points.

    python examples/scaling/memory.py 100000 1000000

Writes tables of so many points (25 spectral norms, 4 sizes, the rest seeds; 5 lags each) into a
temporary folder below this one, and analyzes and draws them in a process of its own, from CSV and,
where pyarrow is there, from Parquet.
"""

from __future__ import annotations

import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gradlab as gl
from gradlab.storage.sweeps import write_sweep_tables

GAMMAS, SIZES = np.geomspace(0.5, 4.0, 25).tolist(), (32, 64, 128, 256)
LAGS = 5


def main(counts: list[int]) -> None:
    """Write, analyze and draw a sweep of each number of points, and say what it took."""
    for count in counts:
        with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as place:
            folder = Path(place)
            write_sweep_tables(folder, ["gamma", "hidden_size", "seed"], made_up(count))
            tell(f"{count} points, CSV", folder)
            if importlib.util.find_spec("pyarrow"):
                gl.save_sweep_parquet(folder)
                for name in ("sweep", "sweep_profiles"):
                    (folder / f"{name}.csv").unlink()
                tell(f"{count} points, Parquet", folder)


def made_up(count: int) -> Iterator[tuple[dict[str, Any], dict[str, Any], str]]:
    """Finished points of known rates."""
    rng = np.random.default_rng(0)
    seeds = count // (len(GAMMAS) * len(SIZES))
    for point in gl.grid(gamma=GAMMAS, hidden_size=SIZES, seed=range(seeds)):
        bound = float(np.log(point["gamma"]))
        rate = bound - 1.0 + 0.05 * float(rng.normal())
        found = {"gamma_w": point["gamma"], "spectral_radius": 0.5 * point["gamma"], "rate": rate}
        found |= {"rate_se": 0.01, "bound_rate": bound, "mean_field_rate": bound - 1.0}
        found |= {"saturated_share": 0.1, "lyapunov_leading": rate, "horizon_1pct": 9.0}
        regime = "exploding" if rate > 0.0 else "vanishing"
        lines = [
            ",".join(map(repr, (lag, *[lag * rate] * 3, lag * bound))) for lag in range(1, 1 + LAGS)
        ]
        yield (
            dict(point),
            found | {"regime": regime, "status": "ok", "message": ""},
            "\n".join(lines),
        )


def tell(name: str, folder: Path) -> None:
    """Analyze and draw in a new process, and print its peak memory and time."""
    command = [sys.executable, __file__, "--draw", str(folder)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    print(name, json.loads(ended.stdout))


def draw(folder: Path) -> None:
    """What ``gradlab sweep`` does when its tables are written."""
    from gradlab_reports import write_sweep_figures, write_sweep_words

    started = time.process_time()
    gl.save_sweep_analysis(gl.analyze_sweep(folder), folder)
    analyzed = time.process_time()
    write_sweep_figures(folder)
    write_sweep_words(folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kilobytes
    seconds = (analyzed - started, time.process_time() - analyzed)
    found = {"peak_MB": peak // 1000, "analysis_s": seconds[0], "figures_s": seconds[1]}
    print(json.dumps({key: round(value, 1) for key, value in found.items()}))


if __name__ == "__main__":
    if sys.argv[1] == "--draw":
        draw(Path(sys.argv[2]))
    else:
        main([int(word) for word in sys.argv[1:]])
