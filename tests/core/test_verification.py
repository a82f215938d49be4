"""The verification passes on a sound machine, and fails when a kernel is broken."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab import linalg
from gradlab.analysis import lower_bounds, meanfield
from gradlab.analysis.precision import FloatFormat
from gradlab.arrays import Array
from gradlab.verification import certificates, published, verifying
from gradlab.verification.bounds import BOUNDS
from gradlab.verification.certificates import CERTIFICATES
from gradlab.verification.expectations import Expectation, Group
from gradlab.verification.linear import LINEAR
from gradlab.verification.mean_field import MEAN_FIELD
from gradlab.verification.precision import PRECISION


@pytest.fixture(scope="module")
def verification() -> gl.Verification:
    return gl.verify()


def test_every_check_passes_here(verification: gl.Verification) -> None:
    assert [(c.name, c.computed, c.message) for c in verification.failures] == []
    assert verification.passed


def test_checks_have_names_of_their_own_and_every_room_has_some(
    verification: gl.Verification,
) -> None:
    names = [check.name for check in verification.checks]
    assert len(set(names)) == len(names) > 290
    assert {check.group for check in verification.checks} == {g.title for g in verifying.GROUPS}


def test_table_has_a_row_for_each_check(verification: gl.Verification) -> None:
    table = verification.to_frame()
    assert len(table) == len(verification.checks)
    assert set(table.columns) >= {"name", "computed", "expected", "tolerance", "pass"}


@pytest.mark.parametrize(
    ("computed", "expected", "passed"),
    [
        (1.0, 1.0, True),
        (1.01, 1.0, True),
        (1.2, 1.0, False),
        (-math.inf, -math.inf, True),
        (-1e9, -math.inf, False),
        (-math.inf, 1.0, False),
        (math.nan, 1.0, False),
        (math.nan, math.nan, False),
    ],
)
def test_only_what_is_close_passes(computed: float, expected: float, passed: bool) -> None:
    entry = Expectation(name="x", compute=lambda: computed, expected=expected, absolute=0.1)
    assert entry.check("here").passed is passed


def test_computation_that_breaks_is_a_check_that_fails_and_says_how() -> None:
    def broken() -> float:
        raise ZeroDivisionError("no such thing")

    check = Expectation(name="x", compute=broken, expected=1.0).check("here")
    assert not check.passed
    assert check.message == "ZeroDivisionError: no such thing"


def fails(group: Group) -> bool:
    return not all(check.passed for check in group.checks())


def test_norm_that_is_wrong_in_the_ninth_digit_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> tuple[Array, Array]:
        norms, right = linalg.spectral_norms(*args, **kwargs)
        return norms * (1.0 + 1e-9), right

    monkeypatch.setattr("gradlab.analysis.products.scaled.spectral_norms", broken)
    assert fails(BOUNDS)


def test_derivative_that_is_wrong_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Array:
        raise FloatingPointError("broken on purpose")

    monkeypatch.setattr("gradlab.cells.vanilla.VanillaCell.linearize", broken)
    assert fails(LINEAR)


def test_theory_that_is_wrong_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    original = meanfield.mean_field

    def broken(activation: str, *, gain: float, **others: Any) -> Any:
        return original(activation, gain=gain * (1.0 + 1e-6), **others)

    monkeypatch.setattr("gradlab.verification.mean_field.mean_field", broken)
    assert fails(MEAN_FIELD)


def test_search_that_proves_too_little_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(cell: Any, **_: Any) -> gl.Certificates:
        return gl.certificates(cell, search=False)

    certificates._found.cache_clear()
    monkeypatch.setattr("gradlab.verification.certificates.certificates", broken)
    assert fails(CERTIFICATES)
    certificates._found.cache_clear()


@pytest.mark.parametrize("answer", [True, False])
def test_proof_that_is_always_or_never_accepted_is_seen(
    monkeypatch: pytest.MonkeyPatch, answer: bool
) -> None:
    def broken(*_: Any) -> bool:
        return answer

    monkeypatch.setattr("gradlab.verification.certificates.verify_lmi", broken)
    failed = [check.name for check in CERTIFICATES.checks() if not check.passed]
    assert [name.split(": ")[1][0] for name in failed] == ["0" if answer else "1"]


def test_lower_rung_that_is_too_high_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    original = lower_bounds.log_dets

    def broken(*arguments: Any) -> Array:
        return np.asarray(original(*arguments) + 1e-10)

    monkeypatch.setattr("gradlab.analysis.lower_bounds.log_dets", broken)
    failed = [check.name for check in BOUNDS.checks() if not check.passed]
    assert failed == ["ladder, rung determinant: ln of the bound at lag 12"]


def test_rounding_that_is_off_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def truncated(self: FloatFormat, x: float) -> float:
        unit = math.ldexp(1.0, math.frexp(x)[1] - self.significand_bits)
        return math.floor(x / unit) * unit

    monkeypatch.setattr(FloatFormat, "round", truncated)
    assert fails(PRECISION)


def test_published_spectra_state_size_and_length() -> None:
    names = [entry.name for entry in published.expectations()]
    assert all(f"N = {published.N}, T = {published.STEPS}" in name for name in names)
    assert {name.split(", ")[2] for name in names} == {"g = 1.5", "g = 3.0", "g = 10.0"}


def test_published_spectrum_is_met_by_a_small_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machinery of --full, at a size that a test can afford; g = 3 alone."""
    monkeypatch.setattr(published, "N", 96)
    monkeypatch.setattr(published, "STEPS", 300)
    spectrum = published._spectrum.__wrapped__(3.0)
    assert spectrum.exponents.shape == (96,)
    assert spectrum.exponents[0] == pytest.approx(0.3096, abs=0.08)
    assert np.mean(spectrum.exponents) == pytest.approx(-2.27, abs=0.15)
