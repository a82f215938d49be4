"""``--max-bytes``: a limit of declared sizes on every command that reads a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
SHORT = ("--length", 5, "--batch", 1)


@pytest.fixture
def lstm(models: Path) -> Path:
    """File whose largest tensor has 400 bytes."""
    return models / "lstm_1l.pt"


@pytest.fixture
def models() -> Path:
    return Path(__file__).parents[1] / "fixtures" / "models"


@pytest.mark.parametrize("command", [("inspect",), ("analyze", *SHORT), ("report", *SHORT)])
def test_file_that_declares_more_is_refused_in_one_line(
    gradlab: Run, lstm: Path, tmp_path: Path, command: tuple[Any, ...]
) -> None:
    name, *options = command
    target = ("-o", tmp_path / "out") if name == "report" else ()
    outcome = gradlab(name, lstm, *options, *target, "--max-bytes", 399)
    assert outcome.code == 1
    for part in (str(lstm), "declares", "at most 399", "max_bytes"):
        assert part in outcome.error


def test_file_within_the_limit_is_read(gradlab: Run, lstm: Path) -> None:
    assert gradlab("inspect", lstm, "--max-bytes", 10_000, "--quiet").code == 0
    assert gradlab("analyze", lstm, *SHORT, "--max-bytes", 10_000, "--quiet").code == 0


def test_limit_of_a_source_that_is_no_file_is_a_usage_error(gradlab: Run) -> None:
    for source in ("random", "vanishing"):
        outcome = gradlab("analyze", source, *SHORT, "--max-bytes", 10_000)
        assert outcome.code == 2
        assert "--max-bytes" in outcome.err
