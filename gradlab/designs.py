"""The inverse of theory: the setting with which a random network has a wished horizon."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradlab.analysis.gated_field import gated_field
from gradlab.analysis.jacobians import jacobian_profile
from gradlab.analysis.meanfield import ENSEMBLES, critical_gain, mean_field
from gradlab.analysis.precision import LOG_1PCT, precision_horizon
from gradlab.cells.kinds import CELLS
from gradlab.engine.rollout import rollout
from gradlab.engine.synthetic import synthetic_sequences
from gradlab.errors import SettingError, UnreachableTargetError, unknown_name
from gradlab.linalg import single_threaded_blas
from gradlab.records.design import Design
from gradlab.records.gated_field import GatedField
from gradlab.records.meanfield import MeanField

# What can be found for each kind of cell; the first unless told otherwise.
SOLVABLE = {"rnn": ("gain", "input_std"), "lstm": ("forget_bias",), "gru": ("forget_bias",)}
DEFAULT_GAIN = 0.5  # of gated cells: the feedback through the gates stays small
TOLERANCE = 1.25  # factor between the horizons of theory and simulation
SEQUENCES = 2
BURN_IN = 50  # steps before the longest lag measured
LONGEST = 100_000  # steps; a longer horizon could not be checked
SMALLEST, FACTOR, DOUBLINGS = 1e-4, 1.25, 40
LARGEST_INPUT = 100.0
LOWEST_BIAS, HIGHEST_BIAS = -10.0, 25.0

Theory = Callable[[float], MeanField | GatedField]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a network is to be like, but for the setting to be found."""

    horizon: int
    cell: str
    hidden_size: int
    input_size: int
    settings: Mapping[str, Any]  # gain, input_std, activation, recurrent


def design(
    horizon: int,
    *,
    cell: str = "rnn",
    solve: str | None = None,
    hidden_size: int = 64,
    input_size: int = 8,
    gain: float | int | None = None,
    input_std: float | int | None = None,
    activation: str = "tanh",
    recurrent: str = "gaussian",
    networks: int = 3,
    seed: int = 0,
    on_done: Callable[[int], None] | None = None,
) -> Design:
    """Find the setting with which the gradient of a random network reaches back so far.

    Parameters
    ----------
    horizon
        Wished lag from which the median norm of dh_t/dh_{t-l} stays below 1 %.
    cell
        ``rnn``, ``lstm`` or ``gru``.
    solve
        Setting to find: ``gain`` (rnn), ``input_std`` (rnn with a given gain) or ``forget_bias``
        (lstm and gru); the first of these that is not given if None.
    hidden_size, input_size
        N and D.
    gain
        Of every recurrent block, 0.5 unless given; not where it is to be found.
    input_std
        Standard deviation of the inputs, 0.5 unless given; not where it is to be found.
    activation
        Of states and candidates.
    recurrent
        ``gaussian`` or ``orthogonal``.
    networks
        Networks to draw and to measure.
    seed
        Of the first; the others count on.
    on_done
        Called with 1 after each network.

    Returns
    -------
    design
        Theory finds the setting; it is then checked by simulation: networks are drawn with it, run
        along Gaussian inputs, and their horizons measured as `analyze` does.

    Raises
    ------
    UnreachableTargetError
        If no value of the setting gives that horizon.
    SettingError, UnknownNameError
        If a setting is out of range, contradicts another, or names nothing.

    Notes
    -----
    Source of the theory: `MeanField.log_norm`, `gated_field`.
    """
    given = {"gain": gain, "input_std": input_std}
    solved = _setting_to_find(cell, solve, given)
    _check(horizon=horizon, networks=networks, recurrent=recurrent)
    defaults = {"gain": DEFAULT_GAIN, "input_std": 0.5}
    settings = {
        name: float(defaults[name] if value is None else value)
        for name, value in given.items()
        if name != solved
    }
    wish = Wish(
        horizon=horizon,
        cell=cell,
        hidden_size=hidden_size,
        input_size=input_size,
        settings=settings | {"activation": activation, "recurrent": recurrent},
    )
    value, rate = _found(wish, solved)
    measured = []
    for index in range(networks):
        measured.append(_measured(wish, {solved: value}, seed + index))
        (on_done or _ignore)(1)
    sizes = {"hidden_size": hidden_size, "input_size": input_size}
    return Design(
        cell=cell,
        solved=solved,
        value=value,
        settings=sizes | dict(wish.settings),
        horizon=horizon,
        rate=rate,
        measured=tuple(measured),
        max_lag=_longest_lag(horizon),
        tolerance=TOLERANCE,
        seed=seed,
    )


def _setting_to_find(cell: str, solve: str | None, given: Mapping[str, float | None]) -> str:
    """The setting to find, if it goes with the cell and with what is given."""
    if cell not in SOLVABLE:
        raise unknown_name("cell to design", cell, SOLVABLE)
    left = [name for name in SOLVABLE[cell] if given.get(name) is None]
    solved = next(iter([*left, *SOLVABLE[cell]])) if solve is None else solve
    if solved not in SOLVABLE[cell]:
        raise unknown_name(f"setting to find for {cell}", solved, SOLVABLE[cell])
    if given.get(solved) is not None:
        raise SettingError(f"{solved} is given and to be found: leave one of both out")
    if solved == "input_std" and given["gain"] is None:
        raise SettingError("input_std is to be found: give the gain that it goes with")
    return solved


def _check(*, horizon: int, networks: int, recurrent: str) -> None:
    if recurrent not in ENSEMBLES:
        raise unknown_name("recurrent ensemble with a theory", recurrent, ENSEMBLES)
    if not 1 <= horizon <= LONGEST:
        raise SettingError(f"horizon {horizon}: expected 1 to {LONGEST} steps")
    if networks < 1:
        raise SettingError(f"networks {networks}: expected at least 1")


def _found(wish: Wish, solved: str) -> tuple[float, float]:
    """Value of the setting, and the rate that theory predicts with it."""
    from scipy.optimize import brentq

    theory = _theory(wish, solved)

    def excess(value: float) -> float:
        return theory(value).log_norm(wish.horizon, wish.hidden_size) - LOG_1PCT

    low, high = _bracket(wish, solved, excess)
    value = float(brentq(excess, low, high, xtol=1e-10, rtol=1e-10))
    prediction = theory(value)
    if isinstance(prediction, GatedField):
        return value, prediction.rate
    return value, prediction.lambda_1 + prediction.bias(wish.hidden_size)


def _theory(wish: Wish, solved: str) -> Theory:
    """Prediction by the value of the setting."""
    settings = dict(wish.settings)
    recurrent = settings.pop("recurrent")
    if wish.cell == "rnn":
        activation = settings.pop("activation")
        return lambda value: mean_field(
            activation, ensemble=recurrent, **(settings | {solved: value})
        )
    return lambda value: gated_field(wish.cell, **(settings | {solved: value}))


def _bracket(wish: Wish, solved: str, excess: Callable[[float], float]) -> tuple[float, float]:
    """Values of the setting with horizons below and above the wished one."""
    if solved == "gain":
        return SMALLEST, _large_gain(wish, excess)
    low, high = (0.0, LARGEST_INPUT) if solved == "input_std" else (LOWEST_BIAS, HIGHEST_BIAS)
    if excess(low) * excess(high) > 0.0:
        raise UnreachableTargetError(_reason(wish, solved, too_short=excess(low) < 0.0))
    return low, high


def _large_gain(wish: Wish, excess: Callable[[float], float]) -> float:
    """A gain with a horizon that is longer than wished, near or above the critical one."""
    settings = wish.settings
    gain = critical_gain(settings["activation"], input_std=settings["input_std"])
    if excess(SMALLEST) < 0.0 and math.isfinite(gain):
        for _ in range(DOUBLINGS):
            if excess(gain) > 0.0:
                return gain
            gain *= FACTOR
    raise UnreachableTargetError(_reason(wish, "gain", too_short=excess(SMALLEST) < 0.0))


def _reason(wish: Wish, solved: str, *, too_short: bool) -> str:
    gain = "" if solved == "gain" else f" at gain {wish.settings['gain']:g}"
    way = "shorter" if too_short else "longer"
    other = {"gain": "other inputs", "input_std": "another gain", "forget_bias": "another gain"}
    return (
        f"every {solved} gives {wish.cell} with {wish.settings['activation']}{gain} a {way} "
        f"horizon than {wish.horizon} steps, in theory: try {other[solved]} or another activation"
    )


def _measured(wish: Wish, found: Mapping[str, float], seed: int) -> int | None:
    """Horizon of a network drawn with the settings; None beyond the longest lag."""
    settings = {**wish.settings, **found}
    weights, inputs = (np.random.default_rng([seed, stream]) for stream in range(2))
    std = settings.pop("input_std")
    cell = CELLS[wish.cell].initialize(
        input_size=wish.input_size, hidden_size=wish.hidden_size, rng=weights, **settings
    )
    max_lag = _longest_lag(wish.horizon)
    sequences = synthetic_sequences(
        "gaussian",
        length=max_lag + BURN_IN,
        batch=SEQUENCES,
        input_size=wish.input_size,
        rng=inputs,
        std=std,
    )
    with single_threaded_blas():
        run = rollout(cell, sequences.inputs)
        profile = jacobian_profile(cell, run, anchors="last", max_lag=max_lag, smallest=False)
    groups = profile.groups
    median = groups.quantile(profile.log_norm, 0.5)
    return precision_horizon(groups.lag, median, math.nan, math.nan).lag_1pct


def _longest_lag(horizon: int) -> int:
    """Lags to measure: half as many again, so that a longer horizon is seen."""
    return horizon + max(10, horizon // 2)


def _ignore(count: int) -> None:
    """Progress that nobody watches."""
