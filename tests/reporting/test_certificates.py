"""Certificates in words and as a table."""

from __future__ import annotations

from typing import Any

import pytest

from gradlab_reports.certificates import certificates_table, remark, sentence, upward


def certificate(rate: float | None, constant: float | None = 1.0, **more: Any) -> dict[str, Any]:
    status = "proven" if rate is not None else "skipped"
    held = {"status": status, "holds_for": "every input"}
    return {"rate": rate, "constant": constant} | held | more


def entry(strongest: str | None, floor: dict[str, Any] | None = None, **found: Any) -> Any:
    return {
        "certificates": found,
        "strongest_certificate": strongest,
        "certificate_floor": floor,
        "gamma_w": 1.66,
    }


def test_a_certified_rate_is_told_with_the_norm_that_suggests_otherwise() -> None:
    found = entry("lmi", sigma_max=certificate(1.66), lmi=certificate(0.94003, 3.2))
    assert sentence(found) == (
        "vanishes for every input: certified, r = 0.9401 (LMI), K = 3.2, although sigma_max = 1.66"
    )
    assert remark(found) == [
        "The gradient vanishes for every input: certified, r = 0.9401 (LMI), K = 3.2, "
        "although σ_max = 1.66."
    ]


def test_the_norm_itself_needs_no_although() -> None:
    found = entry("sigma_max", sigma_max=certificate(0.9)) | {"gamma_w": 0.9}
    assert sentence(found) == "vanishes for every input: certified, r = 0.9 (sigma_max), K = 1"


def test_a_floor_above_one_says_that_none_can_exist() -> None:
    floor = {"rate": 1.0412, "units": [0, 3]}
    found = entry("lmi", floor, lmi=certificate(1.1, 2.0))
    assert sentence(found, searched="within 2 s") == (
        "no certificate of vanishing found within 2 s; none of this kind can exist: rho = 1.04 "
        "with units 0, 3 at full slope and the others at the least; certified for every input: "
        "growth by at most r = 1.1 a step (LMI)"
    )


def test_a_floor_below_one_leaves_it_open() -> None:
    found = entry("lmi", {"rate": 0.97123, "units": [1]}, lmi=certificate(1.0023, 2.0))
    assert sentence(found) == (
        "no certificate of vanishing found; none below r = 0.9712 can exist; certified for every "
        "input: growth by at most r = 1.003 a step (LMI)"
    )


def test_many_units_are_counted_and_not_all_listed() -> None:
    floor = {"rate": 1.2, "units": list(range(20))}
    said = sentence(entry("lmi", floor, lmi=certificate(1.5)))
    assert "units 0, 1, 2, 3, 4, 5, 6, 7, ... (20 in all) at full slope" in said


def test_what_was_not_searched_for_is_said() -> None:
    found = entry(
        "perron",
        {"rate": 0.5, "units": [0]},
        perron=certificate(1.2),
        diagonal=certificate(None, None),
        lmi=certificate(None, None),
    )
    assert sentence(found, searched="within 0 s").startswith(
        "no certificate of vanishing found (diagonal scaling and LMI not searched for); "
    )


def test_a_certificate_that_fails_tells_why() -> None:
    reason = "not found: the forget gate may come to 1"
    found = entry(None, gamma_lstm=certificate(None, None, status=reason))
    assert sentence(found) == f"no certificate: {reason}"


def test_limits_of_a_gated_certificate_are_part_of_the_sentence() -> None:
    held = "every input with |x| <= 1, from |h_0| <= 1 on"
    found = entry("gamma_gru", gamma_gru=certificate(0.96, 2.0, holds_for=held))
    assert sentence(found | {"gamma_w": None}) == (
        f"vanishes for {held}: certified, r = 0.96 (gamma_GRU), K = 2"
    )
    assert "|x| ≤ 1" in remark(found)[0]


def test_nothing_is_said_of_cells_without_certificates() -> None:
    nothing: tuple[dict[str, Any], ...] = ({}, entry(None))
    for found in nothing:
        assert sentence(found) == ""
        assert remark(found) == []
        assert certificates_table(found) is None


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (0.94003, "0.9401"),
        (0.99996, "0.99996"),
        (0.999999999, "0.999999999"),
        (0.9 * (1 + 2e-10), "0.9"),
        (1.0, "1"),
        (1.00001, "1.001"),
        (0.0, "0"),
        (1.94e130, "1.94e+130"),
    ],
)
def test_bounds_are_rounded_up_and_stay_below_one_where_they_are(
    value: float, spelled: str
) -> None:
    assert upward(value) == spelled


def test_table_has_a_row_a_certificate_and_a_dash_where_none_was_found() -> None:
    table = certificates_table(
        entry("perron", perron=certificate(0.80001, 2.0), lmi=certificate(None, None))
    )
    assert table is not None
    assert table.rows == [
        ("Perron root", "0.8001", "2", "proven", "every input"),
        ("LMI", "–", "–", "skipped", "–"),
    ]
    assert "Bounds, not measurements" in table.note
