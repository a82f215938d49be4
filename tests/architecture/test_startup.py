"""What a start of gradlab loads: nothing that takes long before it is needed."""

import json
import os
import subprocess
import sys

import pytest

HEAVY = ("numpy", "scipy", "pandas", "matplotlib", "seaborn", "jinja2")

RUN_COMMAND = """
import sys
from gradlab_cli.app import main
sys.argv = ["gradlab", {option!r}]
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
"""

LOAD_EVERY_NAME = """
import gradlab
for name in gradlab.__all__:
    getattr(gradlab, name)
"""


def modules_loaded_by(code: str) -> set[str]:
    """Top-level modules in memory after the code has run in a fresh interpreter."""
    report = "import json, sys\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    # The same packages as in this process, whether installed or found in a checkout.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    finished = subprocess.run(
        [sys.executable, "-P", "-c", f"{code}\n{report}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return {name.partition(".")[0] for name in json.loads(finished.stderr.splitlines()[-1])}


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_start_without_numerical_or_drawing_libraries(option: str) -> None:
    loaded = modules_loaded_by(RUN_COMMAND.format(option=option))
    assert "gradlab_cli" in loaded
    assert loaded & set(HEAVY) == set()


def test_the_list_of_commands_is_written_without_what_draws_boxes() -> None:
    assert "rich" not in modules_loaded_by(RUN_COMMAND.format(option="--help"))


def test_importing_the_facade_loads_no_other_library() -> None:
    loaded = modules_loaded_by("import gradlab")
    assert "gradlab" in loaded
    assert loaded & set(HEAVY) == set()


def test_the_whole_core_loads_numpy_alone() -> None:
    loaded = modules_loaded_by(LOAD_EVERY_NAME)
    assert loaded & set(HEAVY) == {"numpy"}


def test_a_small_measurement_loads_no_compiler() -> None:
    code = (
        "import numpy as np, gradlab as gl\n"
        "cell = gl.VanillaCell(W_hh=np.eye(2), W_xh=np.ones((2, 1)))\n"
        "gl.jacobian_profile(cell, gl.rollout(cell, np.zeros((5, 1, 1))))"
    )
    loaded = modules_loaded_by(code)
    assert "numpy" in loaded
    assert "numba" not in loaded
