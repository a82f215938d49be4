"""The whole command `gradlab report` against the sum of the measurements in it."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import gradlab as gl
from benchmarks.comparing import Costs, Problem, share
from benchmarks.networks import tanh_network
from benchmarks.startup import processor_of_children

SIZE, STEPS, BATCH = 256, 1000, 16
REPORT, KERNELS = "gradlab report", "its measurements alone"


def problems() -> list[Problem]:
    """One problem."""
    return [
        Problem(
            name=f"report, gaussian g = 1.2, N = {SIZE}, T = {STEPS}, B = {BATCH}",
            targets=[share(REPORT, KERNELS, 1.5)],
            measure=lambda: measure(SIZE, STEPS, BATCH),
        )
    ]


def measure(size: int, steps: int, batch: int) -> Costs:
    """Run the command once, then what it measured; processor seconds of either."""
    cell, trajectory = tanh_network("gaussian", size, gain=1.2, steps=steps, batch=batch)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        gl.export_npz(cell, folder / "model.npz")
        np.save(folder / "inputs.npy", trajectory.inputs)
        seconds = reported(folder)
        dynamics = gl.load_run(folder / "report")
    return Costs(values={REPORT: seconds, KERNELS: measured(cell, trajectory, dynamics)})


def reported(folder: Path) -> float:
    """Seconds of the command, from the start of the interpreter to the written page."""
    options = ["--inputs", "inputs.npy", "-o", "report", "--quiet"]
    command = [sys.executable, "-m", "gradlab_cli", "report", "model.npz", *options]
    paths = [str(Path(each or ".").resolve()) for each in sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    before = processor_of_children()
    subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
    return processor_of_children() - before


def measured(
    cell: gl.VanillaCell, trajectory: gl.Trajectory, dynamics: gl.GradientDynamics
) -> float:
    """Seconds of the long measurements, each at the end times and sizes of the report's."""
    found = next(iter(dynamics.recurrences.values()))
    ends = np.unique(found.jacobians.t).tolist()
    exponents = found.lyapunov
    largest = float(np.abs(trajectory.inputs).max())
    kernels: list[Callable[[], object]] = [
        lambda: gl.jacobian_profile(cell, trajectory, anchors=ends),
        lambda: gl.bound_ladder(cell, trajectory, profile=found.jacobians),
        lambda: gl.certificates(cell, budget=0.0, input_bound=largest),
        lambda: gl.saturation(cell, trajectory),
        lambda: gl.spectral_summary(cell),
    ]
    if exponents is not None:
        kernels.append(
            lambda: gl.lyapunov_spectrum(
                cell, trajectory, k=len(exponents.exponents), transient=len(trajectory.inputs) // 10
            )
        )
    if found.directions is not None:
        kernels.append(lambda: gl.directions(cell, trajectory))
    started = time.process_time()
    for kernel in kernels:
        kernel()
    return time.process_time() - started
