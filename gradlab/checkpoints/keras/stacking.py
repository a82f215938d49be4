"""Stacks of a configuration, cut where a layer was left out or does not read what lies below."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gradlab.checkpoints.keras.config import KerasLayer
from gradlab.checkpoints.layers import StoredLayer


def unbroken(
    layers: Sequence[StoredLayer], left_out: Iterable[KerasLayer]
) -> tuple[list[StoredLayer], dict[str, str]]:
    """Layers on stacks in which each one really reads the one below.

    Parameters
    ----------
    layers
        In the model's order, as the configuration connects them.
    left_out
        Layers of the same configuration that cannot be read.

    Returns
    -------
    layers
        Above a gap they begin a stack of their own.
    reads
        By the name of a stack's first layer, what it reads in place of the one below.
    """
    gaps = {(layer.stack, layer.layer) for layer in left_out}
    groups: dict[tuple[str, int], list[StoredLayer]] = {}
    for entry in layers:
        groups.setdefault((entry.stack, entry.layer), []).append(entry)
    moved: dict[tuple[str, int], tuple[str, int]] = {}
    reads = {}
    for (stack, layer), group in groups.items():
        below = (stack, layer - 1)
        if layer == 0 or _reads(group, groups.get(below, []), below in gaps):
            moved[stack, layer] = (moved[below][0], moved[below][1] + 1) if layer else (stack, 0)
            continue
        first = group[0].name
        moved[stack, layer] = (first.removesuffix(".forward").removesuffix(".backward"), 0)
        reads[first] = "a layer that was left out"
    places = [moved[entry.stack, entry.layer] for entry in layers]
    return [
        replace(entry, stack=stack, layer=layer)
        for entry, (stack, layer) in zip(layers, places, strict=True)
    ], reads


def _reads(group: Sequence[StoredLayer], below: Sequence[StoredLayer], gap: bool) -> bool:
    """Whether a group of directions reads all that the group below gives."""
    width = sum(entry.output_size for entry in below)
    return bool(below) and not gap and all(entry.input_size == width for entry in group)
