"""The page on very large sweeps says what its simulation found."""

from __future__ import annotations

import csv
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "scaling"
SIZES = ("64", "128", "256", "512")
WORKERS = ("2", "16", "64", "256", "1024", "4096")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scaling", FOLDER / "scaling.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("workers", "chunk"), [(100, 1), (100, 3)])
def test_parent_that_is_always_busy_feeds_as_many_workers_as_it_has_time_for(
    script: ModuleType, workers: int, chunk: int
) -> None:
    parent = {"chunk": 0.001, "save": 0.0, "point": 0.0001}
    each = parent["chunk"] + parent["point"] * chunk + script.NETWORK_SECONDS
    fed = 0.02 * chunk / each
    played = script.Queue(workers, chunk, 0.02, parent).play()
    assert played.lost_share == pytest.approx(1.0 - fed / workers, abs=0.02)
    assert played.chunk == chunk


def test_free_parent_keeps_its_workers_busy_and_saves_what_has_come_in_one_go(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = {"chunk": 0.0, "save": 0.0, "point": 0.0}
    assert script.Queue(20, 1, 1.0, free).play().lost_share < 0.01
    monkeypatch.setattr(script, "NETWORK_SECONDS", 0.0)
    # Saved one by one, 20 ms a chunk would feed 50 of 100 workers.
    assert script.Queue(100, 1, 1.0, free | {"save": 0.02}).play().lost_share < 0.05


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with (FOLDER / "scaling.csv").open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def page() -> str:
    return (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")


def test_page_has_the_smallest_chunks_of_the_table(rows: list[dict[str, str]], page: str) -> None:
    fitting = [row for row in rows if row["chunk"] != "own" and float(row["lost_share"]) <= 0.05]
    for size in SIZES:
        smallest = [
            min(
                (int(r["chunk"]) for r in fitting if (r["hidden_size"], r["workers"]) == (size, w)),
                default="none",
            )
            for w in WORKERS
        ]
        assert f"| {size} | {' | '.join(map(str, smallest))} |" in page


def test_page_has_what_sweeps_choose_which_loses_little_where_that_can_be(
    rows: list[dict[str, str]], page: str
) -> None:
    own = {(row["hidden_size"], row["workers"]): row for row in rows if row["chunk"] == "own"}
    for size in SIZES:
        chosen = [own[size, workers] for workers in WORKERS]
        cells = [f"{float(r['points']):.3g} ({float(r['lost_share']):.0%})" for r in chosen]
        assert f"| {size} | {' | '.join(cells)} |" in page
        assert all(float(row["lost_share"]) < 0.05 for row in chosen[:-1])


def test_page_has_the_core_days_of_the_measured_times(page: str) -> None:
    costs = json.loads((FOLDER / "costs.json").read_text(encoding="utf-8"))
    for size, seconds in costs["points"].items():
        days = float(f"{1e7 * seconds / 86400:.4g}")
        told = f"{days:.1f}" if days < 10 else f"{days:.0f}"
        assert f"| {size} | {float(f'{seconds:.2g}'):g} | {told} |" in page
