"""From SOURCE and the options to a network, its sequences, and the measured dynamics."""

from __future__ import annotations

import zipfile
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import gradlab as gl
from gradlab_cli.groups import (
    InputOptions,
    LossOptions,
    MeasureOptions,
    RandomOptions,
    SequenceOptions,
    given,
    limit,
    option_name,
)
from gradlab_cli.objective import objective, refuse_targets

if TYPE_CHECKING:
    import numpy as np

RANDOM = "random"
HIDDEN_SIZE = 64
INPUT_SIZE = 8
LENGTH = 100
BATCH = 8
INPUT_STD = 0.5
SYNTHETIC = ("synthetic", "length", "batch", "input_std")
TOKENS = ("tokens", "embedding")
FILE_LAYOUT = ("separator", "decimal", "ragged", "columns")


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A network, and the sequences it shall run on."""

    source: str
    network: gl.Network
    sequences: gl.Sequences


def measure(
    source: str,
    random: RandomOptions,
    sequence: SequenceOptions,
    options: MeasureOptions,
    loss: LossOptions,
) -> gl.GradientDynamics:
    """Measured dynamics of what SOURCE names.

    Parameters
    ----------
    source
        Path of a model file, name of a scenario, or ``random``.
    random, sequence, options, loss
        The command's options.

    Returns
    -------
    dynamics
        One record for each recurrence.

    Raises
    ------
    GradlabError
        If the source, a file or a setting is not what it should be.
    typer.BadParameter
        If an option does not go with the source.
    """
    end_times = chosen_end_times(options)
    if source == RANDOM or source in gl.scenario_names():
        refuse_targets(loss, source)
    subject = resolve(source, random, sequence, options)
    jobs = options.jobs or gl.available_cores()
    with nullcontext() if jobs == 1 else gl.LocalProcesses(jobs) as executor:
        return gl.analyze(
            subject.network,
            subject.sequences.inputs,
            lengths=subject.sequences.lengths,
            initial_state=initial_state(sequence.initial_state, subject.network),
            anchors=end_times,
            max_pairs=options.max_pairs,
            max_lag=options.max_lag,
            threshold=options.threshold,
            strict=not options.inclusive,
            block=options.block or "auto",
            exponents=options.exponents,
            transient=options.transient,
            certificates=options.certificates,
            kernel=options.kernel,
            seed=options.seed,
            source=subject.source,
            description=subject.sequences.description,
            synthetic=subject.sequences.synthetic,
            assumptions=subject.sequences.assumptions,
            executor=executor,
            **objective(source, loss, options, batch_first=sequence.batch_first),
        )


def resolve(
    source: str, random: RandomOptions, sequence: SequenceOptions, options: MeasureOptions
) -> Subject:
    """Network and sequences that SOURCE and the options name; nothing is measured yet."""
    if source == RANDOM or source in gl.scenario_names():
        refuse(_among(sequence, TOKENS), "needs the embedding of a model file, and there is none")
    if source == RANDOM:
        return _random_subject(random, sequence, options)
    refuse(given(random), f"shapes a random network, and SOURCE is {source}")
    if source in gl.scenario_names():
        return _scenario_subject(source, sequence, options)
    path = Path(source)
    if not path.exists() and path.name == source and not path.suffix:
        raise _unknown_source(source)
    return _model_subject(path, sequence, options)


def chosen_end_times(options: MeasureOptions) -> str | int | list[int]:
    """End times that the options name; a limit beside any others than auto is refused."""
    chosen = anchors(options.anchors)
    if chosen != "auto" and options.max_pairs is not None:
        refuse({"max_pairs": options.max_pairs}, "is the limit of --anchors auto")
    return chosen


def anchors(text: str) -> str | int | list[int]:
    """End times as the library takes them: a word, a number of them, or a comma list of times."""
    if text in ("all", "last", "auto"):
        return text
    try:
        times = [int(part) for part in text.removesuffix(",").split(",")]
    except ValueError as error:
        expected = "all, last, auto, a number of end times, or a comma list of end times (one: 5,)"
        raise typer.BadParameter(
            f"{text!r} found, expected {expected}", param_hint="--anchors"
        ) from error
    return times if "," in text else times[0]


def _random_subject(
    random: RandomOptions, sequence: SequenceOptions, options: MeasureOptions
) -> Subject:
    _refuse_reading(options, "belongs to a model file; a random network has --activation")
    _refuse_idle(random)
    network_rng, input_rng = generators(options.seed)
    features = random.input_size or INPUT_SIZE
    sequences = input_sequences(sequence, features, input_rng)
    shape = {"hidden_size": HIDDEN_SIZE, "input_size": sequences.inputs.shape[2], **given(random)}
    cell = gl.VanillaCell.initialize(rng=network_rng, dtype=options.dtype, **shape)
    return Subject(source=RANDOM, network=gl.Network.of(cell), sequences=sequences)


def _refuse_idle(random: RandomOptions) -> None:
    """Refuse options of the random network that another one leaves without effect."""
    if random.gamma is not None or random.radius is not None:
        target = "gamma" if random.gamma is not None else "radius"
        idle = {"gain": random.gain} if random.gain is not None else {}
        refuse(idle, f"has no effect beside --{target}, which sets the scale of W_hh")
    if random.recurrent != "sparse" and random.density is not None:
        refuse({"density": random.density}, "belongs to --recurrent sparse")


def _scenario_subject(name: str, sequence: SequenceOptions, options: MeasureOptions) -> Subject:
    _refuse_reading(options, "belongs to a model file; a scenario has its own activation")
    scenario = gl.scenario(name, seed=options.seed)
    cell = replace(scenario.cell, dtype=options.dtype)
    sequences = scenario.sequences
    if sequence != SequenceOptions(initial_state=sequence.initial_state):
        sequences = input_sequences(sequence, cell.input_size, generators(options.seed)[1])
    return Subject(source=name, network=gl.Network.of(cell), sequences=sequences)


def _model_subject(path: Path, sequence: SequenceOptions, options: MeasureOptions) -> Subject:
    network = load(
        path,
        batch_first=sequence.batch_first,
        dtype=options.dtype,
        **options.arguments(),
    )
    if sequence.tokens is not None:
        sequences = token_sequences(path, sequence, options)
    else:
        refuse(_among(sequence, ("embedding",)), "is the embedding of --tokens, and there is none")
        features = network.recurrences[0].cell.input_size
        sequences = input_sequences(sequence, features, generators(options.seed)[1])
    return Subject(source=str(path), network=network, sequences=sequences)


def token_sequences(path: Path, sequence: SequenceOptions, options: MeasureOptions) -> gl.Sequences:
    """Token ids looked up in an embedding of the model file."""
    refuse(_among(sequence, ("inputs",)), "and --tokens both name the sequences: expected one")
    refuse(_among(sequence, (*SYNTHETIC, "decimal", "columns")), "has no meaning for --tokens")
    return gl.read_tokens(
        sequence.tokens or "",
        path,
        embedding=sequence.embedding,
        batch_first=sequence.batch_first,
        separator=sequence.separator,
        ragged=sequence.ragged,
        **limit(options.max_bytes),
    )


def load(path: Path, **settings: Any) -> gl.Network:
    """Network in a model file; the folder of a run is refused with the command that takes it."""
    if (path / "summary.json").is_file():
        raise gl.ModelFileError(
            f"{path} is a folder, expected a model file; `gradlab report` renders the folder of a "
            f"saved run"
        )
    return gl.load(path, **settings)


def input_sequences(options: InputOptions, features: int, rng: np.random.Generator) -> gl.Sequences:
    """Sequences of a file, or made up for so many features."""
    if options.inputs is None:
        refuse(_among(options, FILE_LAYOUT), "says how the file of --inputs is laid out")
        return _synthetic(options, features, rng)
    refuse(_among(options, SYNTHETIC), "shapes synthetic inputs, and --inputs names a file")
    return gl.read_sequences(
        options.inputs,
        batch_first=options.batch_first,
        separator=options.separator,
        decimal=options.decimal,
        ragged=options.ragged,
        columns=options.columns.split(",") if options.columns else None,
    )


def _synthetic(options: InputOptions, features: int, rng: np.random.Generator) -> gl.Sequences:
    return gl.synthetic_sequences(
        options.synthetic or "gaussian",
        length=options.length or LENGTH,
        batch=options.batch or BATCH,
        input_size=features,
        rng=rng,
        std=INPUT_STD if options.input_std is None else options.input_std,
    )


def initial_state(path: Path | None, network: gl.Network) -> Any:
    """What the library takes: one array, or arrays by the recurrence's name."""
    if path is None:
        return None
    import numpy as np

    try:
        held = np.load(path, allow_pickle=False)
        states = dict(held) if isinstance(held, np.lib.npyio.NpzFile) else held
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise gl.InputFileError(
            f"{path} is no NumPy file: expected a state, .npy of shape (batch, N) or (N,), or "
            f"such arrays by the recurrence's name, .npz"
        ) from error
    for name in states if isinstance(states, dict) else ():
        if name not in network:
            raise gl.unknown_name("recurrence", name, network)
    return states


def generators(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """One stream for the weights and one for the inputs, so that neither moves the other."""
    import numpy as np

    weights, inputs = np.random.default_rng(seed).spawn(2)
    return weights, inputs


def _refuse_reading(options: MeasureOptions, about_activation: str) -> None:
    """Refuse what says how a model file is read, where there is none."""
    given_options = options.arguments()
    refuse({k: v for k, v in given_options.items() if k == "nonlinearity"}, about_activation)
    refuse(given_options, "belongs to a model file, and there is none")


def _among(options: InputOptions, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in given(options).items() if name in names}


def refuse(chosen: dict[str, Any], reason: str) -> None:
    """A usage error for options that would have no effect, in place of ignoring them."""
    if chosen:
        raise typer.BadParameter(reason, param_hint=option_name(next(iter(chosen))))


def _unknown_source(source: str) -> gl.UnknownNameError:
    import difflib

    known = [*gl.scenario_names(), RANDOM]
    nearest = difflib.get_close_matches(source, known, n=1, cutoff=0.5)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return gl.UnknownNameError(
        f"unknown scenario {source!r}, and no file of that name: expected a model file, or one of "
        f"{', '.join(known)}{hint}"
    )
