"""Every command of the pages runs: in little, but with the words that stand there."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradlab_reports

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits"
PAGES = ("README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md")))

# Words added to a command, so that it takes a second; of an option given twice the last one counts.
MEASURED = "--anchors last --max-lag 10 --exponents 0 --block 8"
SMALLER = {
    "analyze": MEASURED,
    "report": MEASURED,
    "sweep": "--gamma 0.5,1.5 --hidden-size 8 --length 10 --seeds 2",
    "compare": "--hidden-size 8 --length 10",
    "train": "--hidden-size 4 --length 8 --epochs 1 --every 2",
    "design": "--networks 1",
}
# Drawn pages have tests of their own, and take seconds each.
DRAWN = (
    "write_comparison",
    "write_report",
    "write_sweep_figures",
    "write_training",
)


def commands(page: str) -> list[list[str]]:
    """Words of each command line of a page that starts with gradlab, without its comment."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("gradlab ")]


def programs(page: str) -> list[str]:
    """Python blocks of a page that are no sessions: these have no output to compare."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return [block for block in blocks if ">>>" not in block]


def without_redirection(words: list[str]) -> list[str]:
    return words[: words.index(">")] if ">" in words else words


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all pages, with the files that they speak of."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "ckpt").mkdir()
    for name in ("model.pt", "model.safetensors", "ckpt/1.pt"):  # recognized by their content
        shutil.copy(DIGITS / "digits_rnn.safetensors", folder / name)
    rng = np.random.default_rng(0)
    np.save(folder / "x.npy", rng.standard_normal((12, 4, 1)))
    np.save(folder / "y.npy", rng.integers(10, size=(12, 4)))
    write_named_weights(folder)
    return folder


@pytest.fixture
def workspace(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder as the current one; nothing is drawn in it but single figures."""
    monkeypatch.chdir(folder)
    for name in DRAWN:
        monkeypatch.setattr(gradlab_reports, name, undrawn)
    return folder


@pytest.fixture(scope="module")
def done() -> set[str]:
    """Command lines that have run: several pages show the same ones."""
    return set()


def write_named_weights(folder: Path) -> None:
    """Weights under names of their own, with the mapping that the page on files prints."""
    arrays: dict[str, Any] = {
        "enc/kernel": np.ones((3, 6)),
        "enc/recurrent": np.eye(2, 6),
        "enc/bias": np.ones(6),
    }
    np.savez(folder / "weights.npz", **arrays)
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    mapping = re.findall(r"^```toml\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    (folder / "mapping.toml").write_text(mapping[0], encoding="utf-8")


def undrawn(folder: Path, **_: Any) -> Any:
    return folder / "report.html"


def in_little(words: list[str]) -> Iterator[str]:
    yield from without_redirection(words)
    if "--models" in words:
        yield from ("--length", "10")
        return
    if words[0] == "report" and Path(words[1]).is_dir():
        return  # a saved run is rendered as it is
    yield from SMALLER.get(words[0], "").split()
    if "random" in words:
        yield from ("--hidden-size", "8", "--length", "20")


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)])
@pytest.mark.usefixtures("workspace")
def test_every_command_of_the_page_runs(
    page: str, done: set[str], gradlab: Callable[..., Any]
) -> None:
    for words in commands(page):
        line = shlex.join(words)
        if line in done:
            continue
        outcome = gradlab(*in_little(words))
        allowed = {0, 3} if words[0] == "check" else {0}  # a threshold may well not be met
        assert outcome.code in allowed, f"gradlab {line}: {outcome.err}"
        done.add(line)


@pytest.mark.parametrize("page", [page for page in PAGES if programs(page)])
@pytest.mark.usefixtures("workspace")
def test_every_program_of_the_page_runs(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    for program in programs(page):
        exec(compile(program, page, "exec"), {})
    assert "print(" not in "".join(programs(page)) or capsys.readouterr().out


def test_readme_and_pages_show_every_command() -> None:
    shown = {words[0] for page in PAGES for words in commands(page)}
    expected = {"inspect", "analyze", "report", "sweep", "compare", "train", "design"}
    assert expected | {"check", "verify"} <= shown
