"""How long a command takes to start, by the clock on the wall."""

import os
import subprocess
import sys
import time
from functools import partial

from benchmarks.comparing import Costs, Problem, share
from benchmarks.timing import Candidate, raced

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
    """One problem: all commands take turns."""
    return [
        Problem(
            name="start-up",
            targets=[share(command, against, most) for (command, against), most in MOST.items()],
            measure=measure,
            quick=True,
        )
    ]


def measure() -> Costs:
    """Race the commands, each in a fresh interpreter with this one's packages."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    candidates: dict[str, Candidate | None] = {
        name: Candidate(run=partial(started, arguments, environment))
        for name, arguments in COMMANDS.items()
    }
    return raced(candidates, rounds=ROUNDS, clock=time.perf_counter)


def started(arguments: tuple[str, ...], environment: dict[str, str]) -> None:
    """Run an interpreter to its end."""
    command = [sys.executable, *arguments]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
