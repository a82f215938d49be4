"""The command as a process of its own: pipes, a missing display, a full disk, a light start."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Model = Callable[[str], Path]

SMALL = "random --hidden-size 4 --input-size 2 --length 6 --batch 2".split()
LOADED = (
    "import sys; from gradlab_cli.app import main\n"
    "try: main(sys.argv[1:])\n"
    "except SystemExit: pass\n"
    "heavy = {'numpy', 'scipy', 'pandas', 'matplotlib', 'seaborn'}\n"
    "print(*heavy & set(sys.modules), file=sys.stderr)"
)


@pytest.mark.parametrize("words", ["--help", "--version", "analyze --help", "sweep --help", ""])
def test_help_loads_nothing_heavy(environment: dict[str, str], words: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LOADED, *words.split()],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout
    assert ended.stderr.split() == []


def test_version_is_that_of_the_package(shell: Run) -> None:
    import gradlab

    outcome = shell("--version")
    assert (outcome.code, outcome.out) == (0, f"gradlab {gradlab.__version__}\n")


def test_wrong_usage_is_one_line_and_exit_code_2(shell: Run) -> None:
    for words in (["inspect"], ["analyse"], ["analyze", "random", "--length", "long"]):
        outcome = shell(*words)
        assert outcome.code == 2
        assert outcome.error
        assert outcome.out == ""


def test_bad_input_is_one_line_and_exit_code_1(shell: Run, tmp_path: Path) -> None:
    outcome = shell("inspect", tmp_path / ("long-name-" * 20 + ".pt"))
    assert outcome.code == 1
    assert "long-name-" * 20 in outcome.error
    assert "\x1b" not in outcome.err


def test_document_is_strict_json_on_stdout_alone(shell: Run, model: Model) -> None:
    def refuse(token: str) -> None:
        raise AssertionError(token)

    outcome = shell("analyze", model("dyn_saturated.npz"), "--length", "30", "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out, parse_constant=refuse)["recurrences"]


def test_figures_need_no_display(gradlab: Run, shell: Run, tmp_path: Path) -> None:
    """H43."""
    assert gradlab("analyze", *SMALL, "-o", tmp_path / "run").code == 0
    for number, display in enumerate(["localhost:64.0", None]):
        for suffix in ("png", "svg"):
            output = tmp_path / f"{number}.{suffix}"
            words = ("plot", tmp_path / "run", "--kind", "decay", "-o", output)
            outcome = shell(*words, environment={"DISPLAY": display})
            assert (outcome.code, outcome.err) == (0, "")
            assert output.stat().st_size > 1000


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_standard_output_is_one_line(shell: Run, model: Model) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        outcome = shell("inspect", model("rnn_tanh_1l.npz"), "--json", "--quiet", stdout=full)
    assert outcome.code == 1
    assert "No space left on device" in outcome.error


# Bytecode that such a process caches would be cut off too, and break every later one.
UNCACHED = {"PYTHONDONTWRITEBYTECODE": "1"}


def limit_files_to(size: int) -> Callable[[], None]:
    """A file that grows beyond the size fails to be written, as on a full disk."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.parametrize("command", ["analyze", "report"])
def test_disk_that_fills_up_leaves_nothing_behind(shell: Run, tmp_path: Path, command: str) -> None:
    outcome = shell(
        command,
        *SMALL,
        "-o",
        tmp_path / "out",
        preexec_fn=limit_files_to(2_000),
        environment=UNCACHED,
    )
    assert outcome.code == 1
    assert "out" in outcome.error
    assert list(tmp_path.iterdir()) == []


def test_disk_that_fills_up_while_drawing_keeps_the_numbers(shell: Run, tmp_path: Path) -> None:
    outcome = shell(
        "report",
        *SMALL,
        "-o",
        tmp_path / "out",
        preexec_fn=limit_files_to(25_000),
        environment=UNCACHED,
    )
    assert outcome.code == 1
    assert "the numbers are complete in" in outcome.error
    assert (tmp_path / "out" / "summary.json").is_file()
    assert not (tmp_path / "out" / "report.html").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_without_permission_is_refused(shell: Run, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    outcome = shell("analyze", *SMALL, "-o", closed / "out")
    assert outcome.code == 1
    assert "permission" in outcome.error


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a place nobody can write to")
def test_place_that_takes_no_folder_is_refused(shell: Run) -> None:
    outcome = shell("analyze", *SMALL, "-o", "/proc/gradlab-run")
    assert outcome.code == 1
    assert "/proc/gradlab-run" in outcome.error


def test_reader_that_stops_early_is_no_error_message(
    environment: dict[str, str], model: Model
) -> None:
    """As in ``gradlab inspect FILE | head -0``."""
    command = [sys.executable, "-m", "gradlab_cli", "inspect", str(model("rnn_tanh_1l.npz")), "-q"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
