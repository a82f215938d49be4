"""The benchmarks' own machinery: what is said of a measurement follows from its numbers."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("benchmarks.run", reason="benchmarks come with the checkout, not the wheel")

from benchmarks import all_pairs, growth, growth_table, tables
from benchmarks.comparing import Comparison, Costs, Problem, faster, share
from benchmarks.jacobian_profile import measure
from benchmarks.lyapunov import exponents, exponents_by_numpy
from benchmarks.networks import slopes, tanh_network
from benchmarks.peers import all_norms_by_numpy, log_norms_by_svd, pairs
from benchmarks.run import BENCHMARKS, GROWTH, main, name_of
from benchmarks.timing import Candidate, raced, repeated

TARGETS = (share("ours", "floor", 0.75), faster("ours", "peer", 10.0), share("ours", "absent", 2.0))


def comparison(difference: float = 1e-12, **values: float) -> Comparison:
    """A problem with made-up costs."""
    costs = Costs(values=values, difference=difference)
    problem = Problem(name="made up", targets=TARGETS, measure=lambda: costs, tolerance=1e-10)
    return Comparison(problem=problem, costs=problem.measure())


def verdicts(made_up: Comparison) -> list[str]:
    return [row.reached for row in tables.rows([made_up])]


def test_target_is_reached_where_the_ratio_is_on_its_side_of_the_limit() -> None:
    assert verdicts(comparison(ours=0.75, floor=1.0, peer=7.5)) == ["yes", "yes", "not installed"]
    assert verdicts(comparison(ours=0.8, floor=1.0, peer=7.2)) == [
        "missed, best 0.8",
        "missed, best 9",
        "not installed",
    ]


def test_wrong_result_reaches_no_target_however_fast_it_was() -> None:
    fast = comparison(difference=1e-9, ours=0.1, floor=1.0, peer=100.0)
    assert verdicts(fast)[:2] == ["no: results differ by more than 1e-10"] * 2


def test_nothing_to_compare_with_is_no_difference() -> None:
    assert verdicts(comparison(difference=math.nan, ours=0.5, floor=1.0, peer=5.0))[0] == "yes"


def test_table_and_numbers_say_the_same(tmp_path: Path) -> None:
    rows = tables.rows([comparison(ours=0.5, floor=1.0, peer=4.0)])
    text = tables.markdown(rows).splitlines()
    assert text[2] == ("| made up | ours | 500 ms | floor | 1 s | 0.5 × | ≤ 0.75 | yes | 1e-12 |")
    assert text[3].endswith("| 8 × faster | ≥ 10 | missed, best 8 | 1e-12 |")
    assert text[-1] == "1 of 2 targets reached; 1 not measured: a peer is not installed."
    tables.write_csv(rows, tmp_path / "results.csv")
    with (tmp_path / "results.csv").open(encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert [row["ratio"] for row in written] == ["0.5", "8.0", ""]
    assert [row["reached"] for row in written] == ["yes", "missed, best 8", "not installed"]


@pytest.mark.parametrize(
    ("cost", "unit", "text"),
    [
        (2.5, "s", "2.5 s"),
        (0.0205, "s", "20.5 ms"),
        (3e-7, "s", "0.3 µs"),
        (1 << 21, "bytes", "2 MiB"),
    ],
)
def test_amounts_are_written_in_a_unit_that_suits_them(cost: float, unit: str, text: str) -> None:
    assert tables.amount(cost, unit) == text


def test_candidates_take_turns_and_the_fastest_round_counts() -> None:
    clock, order = iter_clock([5.0, 1.0, 3.0, 2.0, 1.0, 4.0]), []
    costs = raced(
        {
            "first": Candidate(run=lambda: order.append("first"), patience=9.0),
            "part": Candidate(run=lambda: order.append("part"), times=10.0, patience=9.0),
            "absent": None,
        },
        rounds=2,
        clock=clock,
    )
    assert order == ["first", "part"] * 3
    assert costs.values == {"first": 1.0, "part": 20.0}


def test_slow_candidate_is_run_once() -> None:
    runs: list[int] = []
    costs = raced(
        {"slow": Candidate(run=lambda: runs.append(1), patience=3.0)},
        rounds=5,
        clock=iter_clock([7.0]),
    )
    assert len(runs) == 1
    assert costs.values == {"slow": 7.0}


def test_short_work_is_repeated_and_costs_what_one_run_costs() -> None:
    runs: list[int] = []
    costs = raced({"short": repeated(lambda: runs.append(1), 4)}, 1, clock=iter_clock([1.5, 1.0]))
    assert len(runs) == 8
    assert costs.values == {"short": 0.25}


def iter_clock(durations: list[float]) -> Any:
    """A clock between whose two readings the given times pass."""
    readings = iter(np.repeat(np.cumsum([0.0, *durations]), 2)[1:-1].tolist())
    return lambda: next(readings)


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=name_of)
def test_every_benchmark_has_problems_with_targets(benchmark: Any) -> None:
    problems = benchmark.problems()
    names = [problem.name for problem in problems]
    assert len(set(names)) == len(names) > 0
    assert all(problem.targets for problem in problems)
    for problem in problems:
        against = [(target.candidate, target.reference) for target in problem.targets]
        assert len(set(against)) == len(against)


def test_all_benchmarks_but_those_of_large_work_have_a_quick_part() -> None:
    quick = {name_of(each) for each in BENCHMARKS if any(p.quick for p in each.problems())}
    large = {"long_profiles", "gated_profile", "batches", "inspection", "report"}
    assert quick == {name_of(each) for each in BENCHMARKS} - large


def test_profile_of_a_small_network_agrees_with_every_peer_that_is_installed() -> None:
    costs = measure("gaussian", 1.2, 8)
    assert {"floor", "norms", "product and SVD"} <= costs.values.keys()
    assert costs.difference < 1e-10


def test_textbook_loops_agree_with_a_direct_product() -> None:
    cell, trajectory = tanh_network("gaussian", 6, gain=1.2, steps=9)
    jacobians = [np.diag(slope) @ cell.W_hh for slope in slopes(cell, trajectory)[:, 0]]
    product = np.linalg.multi_dot(jacobians[:2:-1])
    expected = np.log(np.linalg.svd(product, compute_uv=False)[0])
    assert log_norms_by_svd(cell, trajectory, 6)[-1] == pytest.approx(expected, rel=1e-12)
    frame = np.linalg.qr(np.random.default_rng(1).standard_normal((6, 6)))[0]
    loop = exponents_by_numpy(cell, trajectory, frame)
    assert exponents(cell, trajectory, frame) == pytest.approx(loop, abs=1e-12)
    determinants = [np.linalg.slogdet(jacobian)[1] for jacobian in jacobians]
    assert loop.sum() == pytest.approx(np.mean(determinants), rel=1e-10)


@pytest.mark.parametrize("order", [2, "fro"])
def test_batched_products_give_the_first_end_times_of_all_pairs(order: Any) -> None:
    cell, trajectory = tanh_network("gaussian", 5, gain=1.2, steps=7)
    batched = all_norms_by_numpy(cell, trajectory, 4, order)
    exact = np.log(np.concatenate(batched.run()))
    found = all_pairs.log_norms(cell, trajectory, order)
    assert len(exact) == pairs(4)
    assert batched.times == pairs(7) / pairs(4)
    assert found[: len(exact)] == pytest.approx(exact, abs=1e-10)


def test_pairs_are_counted() -> None:
    assert pairs(4) == len([(t, k) for t in range(1, 5) for k in range(t)])


@pytest.mark.parametrize("power", [0.0, 1.0, 2.5])
def test_exponents_of_made_up_powers_are_found(power: float) -> None:
    values = (16, 32, 128)
    assert growth.fitted_exponent(values, [3e-5 * n**power for n in values]) == pytest.approx(
        power, abs=1e-12
    )


def test_exponent_is_the_least_squares_line_in_logarithms() -> None:
    costs = [1.0, 8.0, 16.0]
    slope = np.linalg.lstsq(
        np.column_stack([np.log([2.0, 4.0, 8.0]), np.ones(3)]), np.log(costs), rcond=None
    )[0][0]
    assert growth.fitted_exponent((2, 4, 8), costs) == pytest.approx(slope, rel=1e-12)


def test_growth_is_measured_and_written(tmp_path: Path) -> None:
    analysis = replace(
        growth.ANALYSES[0], at={"N": 4, "T": 6, "B": 1}, along={a: (2, 4) for a in growth.AXES}
    )
    found = [growth.curve(analysis, axis) for axis in growth.AXES]
    growth_table.write_csv(found, tmp_path / "growth.csv")
    growth_table.write_figure(found, tmp_path / "growth.png")
    assert len((tmp_path / "growth.csv").read_text(encoding="utf-8").splitlines()) == 7
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
    assert len(growth_table.markdown(found).splitlines()) == 5


def test_growth_faster_than_the_algorithm_is_told() -> None:
    analysis = growth.ANALYSES[0]
    cubic = [n**3.0 for n in (2, 4, 8)]
    curve = growth.Curve(
        analysis=analysis, axis="T", values=(2, 4, 8), seconds=cubic, bytes=[1.0, 2.0, 4.0]
    )
    assert growth_table.cells(curve)[6] == "no"
    assert growth_table.cells(replace(curve, seconds=[1.0, 2.0, 4.0]))[6] == "yes"


def test_command_measures_what_it_is_told_and_writes_both_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made_up = Problem(
        name="made up",
        targets=[share("ours", "floor", 1.0)],
        measure=lambda: Costs(values={"ours": 1.0, "floor": 2.0}),
        quick=True,
    )
    slow = replace(made_up, name="slow", quick=False)
    monkeypatch.setattr("benchmarks.run.FOLDER", tmp_path)
    monkeypatch.setattr("sys.argv", ["run", "--quick", name_of(BENCHMARKS[0])])
    monkeypatch.setattr(BENCHMARKS[0], "problems", lambda: [made_up, slow])
    main()
    printed = capsys.readouterr().out
    assert "| made up | ours | 1 s | floor | 2 s | 0.5 × | ≤ 1 | yes | – |" in printed
    assert "slow" not in printed
    assert GROWTH not in printed
    assert printed.splitlines()[:-1] == (tmp_path / "results.md").read_text().splitlines()
    assert len((tmp_path / "results.csv").read_text().splitlines()) == 2
