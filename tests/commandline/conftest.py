"""Ways to run the command line: inside this process, and as a process of its own."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FIXTURES = Path(__file__).parents[1] / "fixtures" / "models"


@dataclass(frozen=True)
class Outcome:
    """What a run of the command left behind."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line on stderr; a second line or a traceback fails the test."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("Error: "), self.err
        return lines[0]


Run = Callable[..., Outcome]


@pytest.fixture
def gradlab(capfd: pytest.CaptureFixture[str]) -> Run:
    """The entry point ``gradlab``, called in this process; arguments may be paths and numbers."""

    def run(*arguments: object) -> Outcome:
        main = importlib.import_module("gradlab_cli.app").main
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Outcome(int(ended.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def environment() -> dict[str, str]:
    """Environment in which a child finds the packages that this process finds."""
    roots = [
        str(Path(importlib.import_module(name).__file__ or "").parents[1])
        for name in ("gradlab", "gradlab_cli", "gradlab_reports")
    ]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(roots), "OPENBLAS_NUM_THREADS": "1"}


@pytest.fixture
def shell(environment: dict[str, str]) -> Run:
    """The command as a process of its own; a variable of ``environment`` that is None is unset."""

    def run(
        *arguments: object, environment: Mapping[str, str | None] = environment, **options: Any
    ) -> Outcome:
        ended = subprocess.run(
            [sys.executable, "-m", "gradlab_cli", *map(str, arguments)],
            env=changed(environment),
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            **{"stdout": subprocess.PIPE, **options},
        )
        return Outcome(ended.returncode, ended.stdout or "", ended.stderr or "")

    def changed(changes: Mapping[str, str | None]) -> dict[str, str]:
        together = {**environment, **changes}
        return {name: value for name, value in together.items() if value is not None}

    return run


@pytest.fixture
def model() -> Callable[[str], Path]:
    """Path of a model file among the fixtures."""
    return lambda name: FIXTURES / name
