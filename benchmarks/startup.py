"""How long a command takes to start, by the clock on the wall and in processor time."""

import os
import subprocess
import sys
import time
from functools import partial

from benchmarks.comparing import Costs, Problem, share
from benchmarks.timing import Candidate, Clock, raced

BARE, NUMPY = "python -c pass", "import numpy"
COMMANDS = {
    BARE: ("-c", "pass"),
    NUMPY: ("-c", "import numpy"),
    "gradlab --help": ("-m", "gradlab_cli", "--help"),
    "gradlab --version": ("-m", "gradlab_cli", "--version"),
    "import gradlab": ("-c", "import gradlab"),
}
MOST = {
    ("gradlab --help", BARE): 12.0,
    ("gradlab --version", BARE): 12.0,
    ("import gradlab", NUMPY): 1.1,
}
ROUNDS = 20


def problems() -> list[Problem]:
    """The same commands by two clocks: the second is not disturbed by other processes."""
    targets = [share(command, against, most) for (command, against), most in MOST.items()]
    clocks = {"wall": time.perf_counter, "processor": processor_of_children}
    return [
        Problem(
            name=f"start-up, {name} time",
            targets=targets,
            measure=partial(measure, clock),
            quick=True,
        )
        for name, clock in clocks.items()
    ]


def processor_of_children() -> float:
    """Seconds that processes have taken which this one started and saw end."""
    import resource  # not on Windows

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(clock: Clock) -> Costs:
    """Race the commands, each in a fresh interpreter with this one's packages."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    candidates: dict[str, Candidate | None] = {
        name: Candidate(run=partial(started, arguments, environment))
        for name, arguments in COMMANDS.items()
    }
    return raced(candidates, rounds=ROUNDS, clock=clock)


def started(arguments: tuple[str, ...], environment: dict[str, str]) -> None:
    """Run an interpreter to its end."""
    command = [sys.executable, *arguments]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
