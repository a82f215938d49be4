r"""Weights stored in parts: the matrix in use is rebuilt from what the file holds.

=====================  =============================================================
weight norm            :math:`g\,v / \lVert v \rVert`, row by row
spectral norm          :math:`W / (u \cdot W v)` with the stored vectors, not estimated anew
orthogonal, square     :math:`B\,e^{A}`, :math:`A = \mathrm{tril}(W) - \mathrm{tril}(W)^T`
orthogonal, other      :math:`B\,H_1 \cdots H_k`, :math:`H_i = I - \tau_i v_i v_i^T`, times signs
weight drop            the raw matrix, not the masked copy of one training step
=====================  =============================================================

Source: the formulas of ``torch.nn.utils.parametrizations`` and of the older ``weight_norm`` and
``spectral_norm``; Merity, Keskar and Socher (2018), "Regularizing and optimizing LSTM language
models", ICLR, for the dropped weights.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.checkpoints.archive import Tensors
from gradlab.checkpoints.element_types import real_numbers
from gradlab.errors import ShapeError

WEIGHT = r"weight_(?:ih|hh|hr)(?:_l\d+)?(?:_reverse)?"
PART = re.compile(
    rf"(?P<prefix>.*?)(?:parametrizations\.(?P<new>{WEIGHT})\..+|(?P<old>{WEIGHT})_(?:g|v|orig|u|raw))",
    re.ASCII,
)


UNKNOWN = (
    "a parametrization that gradlab does not know, or whose file does not tell it: take it off "
    "with torch.nn.utils.parametrize.remove_parametrizations and save again"
)


class Weight(NamedTuple):
    """A weight by the prefix of its layer and its own name."""

    prefix: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How to rebuild one weight: the parts it needs, by pattern, and what to do with them."""

    name: str
    parts: tuple[str, ...]  # {p} is the prefix, {w} the weight's name
    fits: Callable[..., bool]  # whether the parts' shapes belong together
    rebuild: Callable[..., Array]
    note: str  # follows the weight's name in the list of assumptions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EffectiveTensors:
    """Tensors as the network uses them, read on demand."""

    stored: Tensors
    readers: Mapping[str, Callable[[], Array]]  # None of the parts, all of the wholes
    parts: Mapping[str, Sequence[str]]  # by a whole that is rebuilt: what it is rebuilt from
    notes: Mapping[str, str]  # by tensor: how it was rebuilt
    unreadable: Mapping[str, str]  # by tensor: why it could not be rebuilt

    def sources(self, name: str) -> Sequence[str]:
        """Tensors of the file that a tensor of the network is made of."""
        return self.parts.get(name, (name,))


def effective_tensors(stored: Tensors, names: Iterable[str]) -> EffectiveTensors:
    """Tensors by the names that an unparametrized layer would have.

    Parameters
    ----------
    stored
        As in the file.
    names
        Those of its tensors that are weights.

    Returns
    -------
    effective
        Everything stored, the weights of recurrent layers that are stored in parts as wholes.
    """
    matches = {name: PART.fullmatch(name) for name in names}
    parts_of: dict[Weight, set[str]] = {}
    for name, match in matches.items():
        if match is not None:
            parts_of.setdefault(_weight(match), set()).add(name)
    readers: dict[str, Callable[[], Array]] = {}
    notes: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    parts: dict[str, list[str]] = {}
    for name, match in matches.items():
        if match is None:
            readers.setdefault(name, partial(stored.__getitem__, name))
            continue
        weight = _weight(match)
        recipe = _recipe(parts_of[weight], weight)
        target = _target(stored, weight)
        if recipe is not None:
            parts[target] = _parts(recipe, weight)
            readers[target] = partial(_rebuild, stored, recipe, parts[target])
            notes[target] = f"{target} {recipe.note}"
        elif target not in stored:
            unreadable[target] = f"{target} has {UNKNOWN}"
    return EffectiveTensors(
        stored=stored, readers=readers, parts=parts, notes=notes, unreadable=unreadable
    )


def _weight(match: re.Match[str]) -> Weight:
    return Weight(match["prefix"], match["new"] or match["old"])


def _recipe(found: set[str], weight: Weight) -> Recipe | None:
    """First recipe whose parts are all there; a nested parametrization must use up all it has."""
    nested = {name for name in found if name.startswith(f"{weight.prefix}parametrizations.")}
    for recipe in RECIPES:
        parts = set(_parts(recipe, weight))
        if nested <= parts <= found:
            return recipe
    return None


def _parts(recipe: Recipe, weight: Weight) -> list[str]:
    return [part.format(p=weight.prefix, w=weight.name) for part in recipe.parts]


def _target(stored: Tensors, weight: Weight) -> str:
    """Name of the whole weight; weight-drop wrappers keep the raw matrix one level above it."""
    sibling = weight.name.replace("_hh", "_ih").replace("_hr", "_ih")
    inside = f"{weight.prefix}module."
    wrapped = f"{inside}{sibling}" in stored and f"{weight.prefix}{sibling}" not in stored
    return f"{inside if wrapped else weight.prefix}{weight.name}"


def _rebuild(stored: Tensors, recipe: Recipe, names: Sequence[str]) -> Array:
    parts = [real_numbers(name, stored[name]) for name in names]
    if not recipe.fits(*parts):
        shapes = ", ".join(f"{name} {part.shape}" for name, part in zip(names, parts, strict=True))
        raise ShapeError(f"{shapes}: these shapes do not fit the formula of {recipe.name}")
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return recipe.rebuild(*parts)


def weight_norm(g: Float[Array, "..."], v: Float[Array, "..."]) -> Float[Array, "..."]:
    """Direction v with norms g.

    Parameters
    ----------
    g
        Size 1 along the axes that a norm runs over: (rows, 1) in the usual case, () for one norm
        of the whole.
    v
        (rows, columns).
    """
    axes = tuple(axis for axis in range(v.ndim) if g.ndim == 0 or g.shape[axis] == 1)
    return np.asarray(g * v / np.sqrt(np.sum(v**2, axis=axes, keepdims=True)))


def spectral_norm(
    W: Float[Array, "rows columns"], u: Float[Array, " rows"], v: Float[Array, " columns"]
) -> Float[Array, "rows columns"]:
    """W over the stored estimate of its norm, which is rarely exact."""
    return np.asarray(W / (u @ (W @ v)))


def orthogonal(
    W: Float[Array, "rows columns"], base: Float[Array, "n n"]
) -> Float[Array, "rows columns"]:
    """Base times the rotation that the strictly lower triangle of a square W generates.

    Of any other W, base times reflections: that is what PyTorch takes for each unless it is told
    otherwise, and a file does not say whether it was.
    """
    if W.shape[0] != W.shape[1]:
        return householder(W, base)
    from scipy.linalg import expm

    lower = np.tril(W)
    return np.asarray(base @ expm(lower - lower.T))


def householder(
    W: Float[Array, "rows columns"], base: Float[Array, "n n"]
) -> Float[Array, "rows columns"]:
    """Base times the first columns of a product of reflections, whose vectors lie in W.

    Reflection i has the vector with 1 at place i and below it what column i of W has below its
    diagonal; column i of the product is multiplied by that diagonal's entry, 1 or -1. A wide
    matrix is the transpose of a tall one.
    """
    tall = W if W.shape[0] >= W.shape[1] else W.T
    columns = tall.shape[1]
    vectors = np.tril(tall, -1) + np.eye(*tall.shape)
    product = np.eye(*tall.shape)
    for v in vectors.T[::-1]:
        product -= np.outer(2.0 / (v @ v) * v, v @ product)
    signed = base @ (product * np.trunc(tall.diagonal()[:columns]))
    return np.asarray(signed if tall is W else signed.T)


def raw_weight(W: Float[Array, "..."]) -> Float[Array, "..."]:
    """W itself."""
    return W


def _norms_fit(g: Array, v: Array) -> bool:
    if g.ndim == 0:
        return True
    return g.ndim == v.ndim and all(a in (1, b) for a, b in zip(g.shape, v.shape, strict=True))


def _vectors_fit(W: Array, u: Array, v: Array) -> bool:
    return W.ndim == 2 and (u.shape, v.shape) == (W.shape[:1], W.shape[1:])


def _base_fits(W: Array, base: Array) -> bool:
    return W.ndim == 2 and base.shape == (max(W.shape),) * 2


RECIPES = (
    Recipe(
        name="weight norm",
        parts=("{p}parametrizations.{w}.original0", "{p}parametrizations.{w}.original1"),
        fits=_norms_fit,
        rebuild=weight_norm,
        note="is rebuilt from its weight norm (magnitude and direction)",
    ),
    Recipe(
        name="weight norm",
        parts=("{p}{w}_g", "{p}{w}_v"),
        fits=_norms_fit,
        rebuild=weight_norm,
        note="is rebuilt from its weight norm (magnitude and direction)",
    ),
    Recipe(
        name="spectral norm",
        parts=(
            "{p}parametrizations.{w}.original",
            "{p}parametrizations.{w}.0._u",
            "{p}parametrizations.{w}.0._v",
        ),
        fits=_vectors_fit,
        rebuild=spectral_norm,
        note="is rebuilt from its spectral norm with the stored vectors u and v",
    ),
    Recipe(
        name="spectral norm",
        parts=("{p}{w}_orig", "{p}{w}_u", "{p}{w}_v"),
        fits=_vectors_fit,
        rebuild=spectral_norm,
        note="is rebuilt from its spectral norm with the stored vectors u and v",
    ),
    Recipe(
        name="orthogonal parametrization",
        parts=("{p}parametrizations.{w}.original", "{p}parametrizations.{w}.0.base"),
        fits=_base_fits,
        rebuild=orthogonal,
        note="is rebuilt from its orthogonal parametrization, with the map assumed that PyTorch "
        "takes by itself: the matrix exponential of a square one, else Householder's reflections",
    ),
    Recipe(
        name="weight drop",
        parts=("{p}{w}_raw",),
        fits=lambda W: True,
        rebuild=raw_weight,
        note="is the raw matrix of a weight-dropped layer, not the masked copy",
    ),
)
