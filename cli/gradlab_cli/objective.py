"""From the loss's options to targets and a readout."""

from __future__ import annotations

from typing import Any

import typer

import gradlab as gl
from gradlab_cli.groups import LossOptions, MeasureOptions, given, limit, option_name


def objective(
    source: str, loss: LossOptions, options: MeasureOptions, *, batch_first: bool
) -> dict[str, Any]:
    """The loss as arguments of the analysis; none without targets.

    Parameters
    ----------
    source
        Path of a model file, which holds the readout beside the recurrent layers.
    loss, options
        The command's options.
    batch_first
        Whether the file of the inputs, and so that of the targets, is batch-first.

    Returns
    -------
    arguments
        ``targets``, ``readout`` and ``at``.

    Raises
    ------
    GradlabError
        If a file is not what it should be, or the readout is not clear.
    typer.BadParameter
        If another option of the loss is given without targets.
    """
    if loss.targets is None:
        for field in given(loss):
            raise typer.BadParameter(
                "belongs to the loss of --targets, and there is none", param_hint=option_name(field)
            )
        return {}
    return {
        "readout": gl.load_readout(
            source,
            loss.readout,
            loss.loss,
            dtype=options.dtype,
            **limit(options.max_bytes),
        ),
        "targets": gl.read_targets(loss.targets, loss.loss, batch_first=batch_first),
        "at": None if loss.at == "all" else loss.at,
    }


def refuse_targets(loss: LossOptions, source: str) -> None:
    """A usage error for a loss on a network that has no readout."""
    if loss.targets is not None:
        raise typer.BadParameter(
            f"needs a model file, which holds a readout; SOURCE is {source}", param_hint="--targets"
        )
