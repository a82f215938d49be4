"""Options that belong together, and the decorator that gives a command those of its groups."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, get_type_hints

from gradlab_cli.options import cells, measurement, network, objective, output, sequences


class Group(Protocol):
    """Any dataclass whose fields are options."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


@dataclass(frozen=True, kw_only=True)
class RandomOptions:
    """The shape of a random network; None where the library's default holds."""

    recurrent: network.RecurrentOption = None
    gain: network.GainOption = None
    gamma: network.GammaOption = None
    radius: network.RadiusOption = None
    density: network.DensityOption = None
    activation: network.ActivationOption = None
    hidden_size: network.HiddenSizeOption = None
    input_size: network.InputSizeOption = None
    bias: network.BiasOption = None
    bias_std: network.BiasStdOption = None


@dataclass(frozen=True, kw_only=True)
class CellOptions:
    """The shape of the random cells that are compared; each kind takes those that it has."""

    hidden_size: cells.HiddenSizeOption = None
    input_size: cells.InputSizeOption = None
    recurrent: cells.RecurrentOption = None
    gain: cells.GainOption = None
    activation: cells.ActivationOption = None
    forget_bias: cells.ForgetBiasOption = None
    chrono: cells.ChronoOption = None
    leak: cells.LeakOption = None


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """Where the sequences come from, and how their file is laid out."""

    inputs: sequences.InputsOption = None
    batch_first: sequences.BatchFirstOption = False
    separator: sequences.SeparatorOption = ","
    decimal: sequences.DecimalOption = "."
    ragged: sequences.RaggedOption = False
    columns: sequences.ColumnsOption = None
    synthetic: sequences.SyntheticOption = None
    length: sequences.LengthOption = None
    batch: sequences.BatchOption = None
    input_std: sequences.InputStdOption = None


@dataclass(frozen=True, kw_only=True)
class SequenceOptions(InputOptions):
    """The sequences of one network, and the state before their first step."""

    tokens: sequences.TokensOption = None
    embedding: sequences.EmbeddingOption = None
    initial_state: sequences.InitialStateOption = None


@dataclass(frozen=True, kw_only=True)
class LossOptions:
    """The loss whose gradient is taken apart."""

    targets: objective.TargetsOption = None
    readout: objective.ReadoutOption = None
    loss: objective.LossOption = "cross_entropy"
    at: objective.AtOption = "all"


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How a model file is read: what it does not say; None where the library's default holds."""

    nonlinearity: network.NonlinearityOption = None
    recurrent_activation: network.RecurrentActivationOption = None
    keras_version: network.KerasVersionOption = None
    map: network.MapOption = None
    max_bytes: network.MaxBytesOption = None

    def arguments(self) -> dict[str, Any]:
        """What was given, as arguments of `gl.load`."""
        values = {entry.name: getattr(self, entry.name) for entry in _fields(ReadingOptions)}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class MeasureOptions(ReadingOptions):
    """What is measured, and how."""

    anchors: measurement.AnchorsOption = "auto"
    max_pairs: measurement.MaxPairsOption = None
    max_lag: measurement.MaxLagOption = None
    threshold: measurement.ThresholdOption = 0.97
    inclusive: measurement.InclusiveOption = False
    block: measurement.BlockOption = None
    exponents: measurement.ExponentsOption = None
    transient: measurement.TransientOption = None
    certificates: measurement.CertificatesOption = "cheap"
    kernel: measurement.KernelOption = "auto"
    dtype: measurement.DtypeOption = "float64"
    seed: measurement.SeedOption = 0
    jobs: measurement.ProcessesOption = 1


@dataclass(frozen=True, kw_only=True)
class ComparedOptions:
    """What is measured of every cell alike, and how."""

    anchors: measurement.AnchorsOption = "auto"
    max_lag: measurement.MaxLagOption = None
    threshold: measurement.ThresholdOption = 0.97
    inclusive: measurement.InclusiveOption = False
    block: measurement.BlockOption = None
    dtype: measurement.DtypeOption = "float64"
    seed: measurement.SeedOption = 0


@dataclass(frozen=True, kw_only=True)
class MessageOptions:
    """What is written to stdout and stderr."""

    json: output.JsonOption = False
    quiet: output.QuietOption = False
    debug: output.DebugOption = False  # heeded where errors are caught: `errors.guarded`


def given(group: Group) -> dict[str, Any]:
    """Options of a group that differ from their defaults, by field name."""
    return {
        field.name: getattr(group, field.name)
        for field in _fields(group)
        if getattr(group, field.name) != field.default
    }


def limit(max_bytes: int | None) -> dict[str, Any]:
    """The limit of sizes as an argument of the library, whose default holds where none is given."""
    return {} if max_bytes is None else {"max_bytes": max_bytes}


def option_name(field: str) -> str:
    """The option as it is typed: ``bias_std`` is ``--bias-std``."""
    return "--" + field.replace("_", "-")


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Command that takes each option of its option groups by itself.

    Parameters
    ----------
    command
        Function some of whose parameters are annotated with a group of this module.

    Returns
    -------
    run
        Same deed; its signature has the fields of each group in the group's place, which is the
        form Typer reads.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, type[Group]] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if _is_group(parameter.annotation)
    }

    @functools.wraps(command)
    def run(**values: object) -> None:
        bundles = {
            name: group(**{field.name: values.pop(field.name) for field in _fields(group)})
            for name, group in groups.items()
        }
        command(**values, **bundles)

    parameters = list(_spread_parameters(signature))
    run.__dict__["__signature__"] = signature.replace(parameters=parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _spread_parameters(signature: inspect.Signature) -> Iterator[inspect.Parameter]:
    for parameter in signature.parameters.values():
        if not _is_group(parameter.annotation):
            yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            continue
        hints = get_type_hints(parameter.annotation, include_extras=True)
        for field in _fields(parameter.annotation):
            yield inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=hints[field.name],
            )


def _is_group(annotation: object) -> bool:
    return isinstance(annotation, type) and dataclasses.is_dataclass(annotation)


def _fields(group: Group | type[Group]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(group)
