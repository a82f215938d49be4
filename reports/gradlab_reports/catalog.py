"""Every kind of figure by name: light, so that a command can list the kinds without drawing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class FigureKind:
    """Where a kind of figure is drawn, and from what.

    The module ``gradlab_reports.figures.<module>`` holds ``plot_<module>``, ``caption`` and
    ``finding``. The table of a ``partial`` kind leaves recurrences out that have nothing to show.
    """

    name: str
    module: str
    table: str
    columns: tuple[str, ...]
    optional: tuple[str, ...] = ()
    wide: bool = False
    partial: bool = False


_PROFILE_BOUNDS = (
    "log_bound_gamma",
    "log_bound_saturation",
    "log_bound_onestep",
    "log_bound_blocks",
)

# In the order of a report's page.
RUN_KINDS = (
    FigureKind(
        name="decay",
        module="decay",
        table="lag_profile.csv",
        columns=("lag", "log_norm_median"),
        optional=(
            "log_norm_min",
            "log_norm_q05",
            "log_norm_q95",
            "log_norm_max",
            *_PROFILE_BOUNDS,
        ),
        wide=True,
    ),
    FigureKind(
        name="gradient",
        module="gradient",
        table="gradient.csv",
        columns=("lag", "share", "cumulative_share", "log_term_norm_median"),
        optional=("log_term_bound_median",),
        wide=True,
        partial=True,
    ),
    FigureKind(
        name="ladder",
        module="ladder",
        table="lag_profile.csv",
        columns=("lag", "log_norm_median", "log_bound_onestep"),
        optional=("log_bound_gamma", "log_bound_saturation", "log_bound_blocks"),
    ),
    FigureKind(
        name="bounds",
        module="bounds",
        table="ladder.csv",
        columns=("rung", "kind", "lag", "log_bound"),
        wide=True,
    ),
    FigureKind(
        name="directions",
        module="directions",
        table="product_spectrum.csv",
        columns=("lag", "index", "log_singular_value"),
        wide=True,
        partial=True,
    ),
    FigureKind(
        name="pairs",
        module="pairs",
        table="pairs.csv",
        columns=("t", "k", "log_norm"),
        optional=("sequence",),
    ),
    FigureKind(
        name="gradient-pairs",
        module="gradient_pairs",
        table="gradient_pairs.csv",
        columns=("sequence", "t", "k", "log_term_norm"),
        partial=True,
    ),
    FigureKind(
        name="spectrum",
        module="spectrum",
        table="spectrum.csv",
        columns=("singular_value", "eigenvalue_re", "eigenvalue_im"),
        optional=("gate",),
    ),
    FigureKind(
        name="singular-values",
        module="singular_values",
        table="spectrum.csv",
        columns=("index", "singular_value"),
        optional=("gate",),
    ),
    FigureKind(
        name="lyapunov",
        module="lyapunov",
        table="lyapunov.csv",
        columns=("index", "exponent", "standard_error"),
        partial=True,
    ),
    FigureKind(
        name="saturation",
        module="saturation",
        table="steps.csv",
        columns=(
            "t",
            "derivative_mean",
            "derivative_q05",
            "derivative_q95",
            "derivative_max",
            "saturated_share",
        ),
        optional=("activation",),
    ),
    FigureKind(
        name="slopes",
        module="slopes",
        table="slopes.csv",
        columns=("activation", "t_first", "t_last", "derivative_low", "derivative_high", "share"),
    ),
    FigureKind(
        name="units",
        module="units",
        table="units.csv",
        columns=(
            "activation",
            "unit_first",
            "unit_last",
            "t_first",
            "t_last",
            "derivative_mean",
            "derivative_sup",
            "saturated_share",
        ),
    ),
    FigureKind(
        name="gates",
        module="gates",
        table="gates.csv",
        columns=("sequence", "t", "gate", "mean", "q05", "q95"),
        partial=True,
    ),
    FigureKind(
        name="paths",
        module="paths",
        table="paths.csv",
        columns=("quantity", "name", "lag", "value"),
        partial=True,
    ),
)

# Drawn when asked for, with the columns that were asked for.
SWEEP_COLUMNS = FigureKind(
    name="sweep",
    module="sweep_columns",
    table="sweep.csv",
    columns=("gamma_w", "rate"),
)

SWEEP_KINDS = (
    FigureKind(
        name="rate",
        module="sweep_rate",
        table="sweep.csv",
        columns=("gamma_w", "rate", "bound_rate"),
    ),
    FigureKind(
        name="decay-by-gamma",
        module="sweep_decay",
        table="sweep_profiles.csv",
        columns=("point", "lag", "log_norm_median", "log_bound_gamma"),
    ),
    FigureKind(
        name="regime-map",
        module="sweep_map",
        table="sweep.csv",
        columns=("gamma_w", "rate", "regime"),
    ),
    SWEEP_COLUMNS,
)

# Of model files, in place of the map.
SWEEP_MODELS = FigureKind(
    name="models",
    module="sweep_models",
    table="sweep.csv",
    columns=("model", "rate", "horizon_1pct"),
)

COMPARISON = FigureKind(
    name="compare",
    module="compare",
    table="compare.csv",
    columns=("label", "lag", "log_norm_median"),
    optional=("log_norm_q05", "log_norm_q95"),
    wide=True,
)

TRAINING_KINDS = (
    FigureKind(
        name="training",
        module="training",
        table="training.csv",
        columns=("step", "loss", "test_loss", "gradient_norm", "clipped_norm", "rate"),
        optional=("gamma_w", "spectral_radius", "horizon_1pct"),
        wide=True,
    ),
    FigureKind(
        name="clipping",
        module="clipping",
        table="clipping.csv",
        columns=("step", "norm_before"),
        wide=True,
    ),
)

KINDS = {
    kind.name: kind
    for kind in (*RUN_KINDS, *SWEEP_KINDS, SWEEP_MODELS, COMPARISON, *TRAINING_KINDS)
}


# Formats of a run's page, the usual one first.
PAGE_FORMATS = ("html", "md", "json")
# Files of the pages that are not about one run, by the kind that a manifest tells.
PAGE_FILES = {
    "comparison": {"html": "compare.html", "md": "compare.md", "json": "compare.page.json"},
    "training": {name: f"training.{name}" for name in PAGE_FORMATS},
}


def page_formats() -> tuple[str, ...]:
    """Formats that a run's page can have, the usual one first."""
    return PAGE_FORMATS


def figure_kinds() -> tuple[str, ...]:
    """Names of all figures: of a run, of a sweep, of a comparison, of a training."""
    return tuple(KINDS)
