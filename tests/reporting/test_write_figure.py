"""One figure from saved numbers: formats, equal bytes, refusals."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gradlab as gl
from gradlab_reports import figure_kinds, write_figure, write_sweep_figures
from gradlab_reports.catalog import RUN_KINDS

WriteRun = Callable[..., Path]
RUN_NAMES = [kind.name for kind in RUN_KINDS]
MAGIC = {"png": b"\x89PNG\r\n", "svg": b"<?xml", "pdf": b"%PDF-"}


# A kind that needs seaborn, which imports pyplot, in the formats asked for.
DRAW = """
import sys
from pathlib import Path
from gradlab_reports import write_figure
run, folder, *suffixes = sys.argv[1:]
for suffix in suffixes:
    write_figure(Path(run), "spectrum", Path(folder) / f"f.{suffix}")
"""


def run_script(script: str, *arguments: str, **variables: str) -> str:
    """Output of a script in a process of its own, without a display unless given."""
    left_out = {"DISPLAY", "MPLBACKEND", "WAYLAND_DISPLAY"}
    env = {name: value for name, value in os.environ.items() if name not in left_out}
    env |= {"PYTHONPATH": os.pathsep.join(sys.path)} | variables
    command = [sys.executable, "-W", "error", "-c", script, *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_kinds_are_those_of_the_contract() -> None:
    assert set(figure_kinds()) == {
        "decay", "pairs", "spectrum", "singular-values", "saturation", "ladder",
        "gradient", "gradient-pairs", "gates", "paths", "rate", "decay-by-gamma", "compare",
        "training", "clipping", "lyapunov", "bounds", "directions", "sweep", "regime-map", "models",
        "slopes", "units",
    }  # fmt: skip


@pytest.mark.parametrize("kind", RUN_NAMES)
def test_equal_numbers_give_equal_bytes(write_run: WriteRun, tmp_path: Path, kind: str) -> None:
    run = write_run("run", steps=20, partial=True)
    outputs = [write_figure(run, kind, tmp_path / f"{i}.svg") for i in range(2)]
    first, second = (path.read_bytes() for path in outputs)
    assert first == second
    assert first.startswith(MAGIC["svg"])
    assert not list(tmp_path.glob(".*"))


def test_two_processes_give_equal_bytes_in_every_format(
    write_run: WriteRun, tmp_path: Path
) -> None:
    """Whatever the order in which sets and hashes come in a process."""
    run = write_run("run", steps=5)
    for seed in ("1", "2"):
        run_script(DRAW, str(run), str(tmp_path / seed), "png", "svg", "pdf", PYTHONHASHSEED=seed)
    for suffix, magic in MAGIC.items():
        content = (tmp_path / "1" / f"f.{suffix}").read_bytes()
        assert content == (tmp_path / "2" / f"f.{suffix}").read_bytes()
        assert content.startswith(magic)


def test_bytes_do_not_depend_on_the_time_of_drawing(write_run: WriteRun, tmp_path: Path) -> None:
    run = write_run("run", steps=5)
    for suffix, word in (("svg", b"<dc:date>"), ("pdf", b"CreationDate"), ("png", b"Software")):
        content = write_figure(run, "decay", tmp_path / f"f.{suffix}").read_bytes()
        assert word not in content


def test_text_of_an_svg_is_text(write_run: WriteRun, tmp_path: Path) -> None:
    path = write_figure(write_run("run"), "decay", tmp_path / "f.svg")
    words = [node.text for node in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")]
    assert "Gradient norm by lag · rnn" in words


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        ("decay", "lag_profile.csv"),
        ("ladder", "lag_profile.csv"),
        ("pairs", "pairs.csv"),
        ("spectrum", "spectrum.csv"),
        ("singular-values", "spectrum.csv"),
        ("saturation", "steps.csv"),
    ],
)
def test_a_table_alone_gives_the_same_figure_as_its_folder(
    write_run: WriteRun, tmp_path: Path, kind: str, table: str
) -> None:
    run = write_run("run", steps=10)
    whole = write_figure(run, kind, tmp_path / "whole.svg").read_bytes()
    assert write_figure(run / table, kind, tmp_path / "alone.svg").read_bytes() == whole


def test_an_existing_file_is_replaced_only_by_force(write_run: WriteRun, tmp_path: Path) -> None:
    run, output = write_run("run", steps=5), tmp_path / "f.svg"
    output.write_text("mine")
    with pytest.raises(gl.OutputError, match="exists: choose another name or pass --force"):
        write_figure(run, "decay", output)
    assert output.read_text() == "mine"
    assert write_figure(run, "decay", output, force=True) == output
    assert output.read_bytes().startswith(MAGIC["svg"])


def test_unknown_kinds_and_formats_name_the_nearest(write_run: WriteRun, tmp_path: Path) -> None:
    run = write_run("run", steps=5)
    with pytest.raises(gl.UnknownNameError, match=r"figure kind 'decai'.*did you mean 'decay'"):
        write_figure(run, "decai", tmp_path / "f.svg")
    with pytest.raises(gl.UnknownNameError, match=r"figure format 'pngg'.*did you mean 'png'"):
        write_figure(run, "decay", tmp_path / "f.pngg")
    with pytest.raises(gl.UnknownNameError, match="figure format ''"):
        write_figure(run, "decay", tmp_path / "decay")


def test_a_missing_source_or_a_wrong_table_is_refused(write_run: WriteRun, tmp_path: Path) -> None:
    with pytest.raises(gl.RunFolderError, match="does not exist"):
        write_figure(tmp_path / "no", "decay", tmp_path / "f.svg")
    run = write_run("run", steps=5)
    with pytest.raises(gl.RunFolderError, match="has no column 'lag', 'log_norm_median'"):
        write_figure(run / "spectrum.csv", "decay", tmp_path / "f.svg")
    with pytest.raises(gl.RunFolderError, match=r"no sweep.csv.*gradlab sweep"):
        write_figure(run, "rate", tmp_path / "f.svg")
    assert not (tmp_path / "f.svg").exists()


def test_one_of_several_recurrences_is_chosen_by_name(
    write_run: WriteRun, decay: Any, tmp_path: Path
) -> None:
    run = write_run("run", decay(name="rnn.l0"), decay(name="rnn.l1"), steps=5)
    svg = write_figure(run, "decay", tmp_path / "f.svg", recurrence="rnn.l1").read_text()
    assert "Gradient norm by lag · rnn.l1" in svg
    with pytest.raises(gl.SettingError, match=r"choose one of rnn.l0, rnn.l1"):
        write_figure(run, "decay", tmp_path / "g.svg")


def test_a_place_that_cannot_be_written_is_one_clear_error(
    write_run: WriteRun, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(gl.OutputError, match="cannot be written to") as error:
        write_figure(write_run("run", steps=5), "decay", tmp_path / "file" / "f.svg")
    assert "\n" not in str(error.value)


def test_missing_parents_of_the_output_are_made(write_run: WriteRun, tmp_path: Path) -> None:
    output = tmp_path / "a" / "b" / "f.png"
    assert write_figure(write_run("run", steps=5), "decay", output).is_file()


def test_sweep_figures_are_written_below_the_folder(write_sweep: WriteRun) -> None:
    sweep = write_sweep("sweep", [0.5, 1.0, 1.5])
    stems = ["rate", "decay-by-gamma", "regime-map"]
    names = [f"{stem}.{suffix}" for stem in stems for suffix in ("png", "svg")]
    assert write_sweep_figures(sweep) == [sweep / "figures" / name for name in names]
    assert all((sweep / "figures" / name).stat().st_size > 1000 for name in names)


def test_a_sweep_figure_that_fails_leaves_the_others(
    write_sweep: WriteRun, caplog: pytest.LogCaptureFixture
) -> None:
    sweep = write_sweep("sweep", [0.5, 1.5])
    (sweep / "sweep_profiles.csv").write_text("point,lag\n0,1\n")
    left = ["rate.png", "rate.svg", "regime-map.png", "regime-map.svg"]
    assert [path.name for path in write_sweep_figures(sweep)] == left
    assert "decay-by-gamma could not be drawn" in caplog.text
    with pytest.raises(gl.RunFolderError, match="is not a folder"):
        write_sweep_figures(sweep / "none")


@pytest.mark.parametrize("display", ["localhost:64.0", None])
def test_figures_need_no_display(write_run: WriteRun, tmp_path: Path, display: str | None) -> None:
    """H43: DISPLAY leads to a dead connection, or there is none; no backend is chosen by hand."""
    shown = {} if display is None else {"DISPLAY": display}
    run_script(DRAW, str(write_run("run", steps=5)), str(tmp_path / "out"), "png", "svg", **shown)
    for suffix in ("png", "svg"):
        assert (tmp_path / "out" / f"f.{suffix}").read_bytes().startswith(MAGIC[suffix])


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = {"matplotlib", "seaborn", "pandas", "jinja2", "numpy", "scipy"}
    words = run_script(
        "import sys; import gradlab_reports; gradlab_reports.figure_kinds(); "
        "gradlab_reports.write_report; gradlab_reports.write_figure; "
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )
    assert words.strip() == "[]"


def test_decay_loads_neither_pyplot_nor_seaborn(write_run: WriteRun) -> None:
    script = (
        "import sys; from pathlib import Path; from gradlab_reports import write_figure; "
        "write_figure(Path(sys.argv[1]), 'decay', Path(sys.argv[1]) / 'f.png'); "
        "print(sorted({'matplotlib.pyplot', 'seaborn'} & set(sys.modules)))"
    )
    assert run_script(script, str(write_run("run", steps=5))).strip() == "[]"
