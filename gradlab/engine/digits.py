"""Digits read pixel by pixel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array, close
from gradlab.engine.batches import Batch
from gradlab.engine.sequences import read_sequences
from gradlab.errors import InputFileError, ShapeError

DIGIT_CLASSES = 10
DIGIT_FILES = ("digits_test_inputs.npy", "digits_test_targets.npy")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequentialDigits:
    """Name the digit after its pixels, one a step; optionally in one fixed random order.

    Guessing costs ln 10; the best constant answer is the commonest digit of the data.
    """

    images: Float[Array, "time images features"]
    digits: Int[Array, " images"]
    permutation: int | None = None  # seed of the order; the images' own if None
    name: ClassVar[str] = "digits"
    output_size: ClassVar[int] = DIGIT_CLASSES
    loss: ClassVar[str] = "cross_entropy"
    baseline: ClassVar[float] = math.log(DIGIT_CLASSES)
    tolerance: ClassVar[float] = math.nan

    def __post_init__(self) -> None:
        """Check that there is a digit for every image."""
        if self.images.shape[1] != len(self.digits):
            raise ShapeError(
                f"{self.images.shape[1]} images with {len(self.digits)} digits: expected one each"
            )

    @classmethod
    def read(cls, folder: Path | str, *, permutation: int | None = None) -> SequentialDigits:
        """Images and digits of the example's folder, ``examples/digits``.

        Raises
        ------
        InputFileError
            If a file is missing or damaged.
        """
        images = read_sequences(Path(folder) / DIGIT_FILES[0]).inputs
        path = Path(folder) / DIGIT_FILES[1]
        try:
            digits = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputFileError(f"{path} cannot be read: expected digits as .npy") from error
        return cls(images=images, digits=digits.astype(np.int64), permutation=permutation)

    @property
    def input_size(self) -> int:
        """Pixels a step."""
        return int(self.images.shape[2])

    @property
    def baseline_accuracy(self) -> float:
        """Share of the commonest digit."""
        return float(np.bincount(self.digits).max() / len(self.digits))

    def batch(self, size: int, rng: np.random.Generator) -> Batch:
        """Images chosen at random, none twice unless there are too few."""
        count = len(self.digits)
        chosen = rng.choice(count, size, replace=size > count)
        order = np.arange(len(self.images))
        if self.permutation is not None:
            order = np.random.default_rng(self.permutation).permutation(order)
        images = self.images[order][:, chosen]
        return Batch(inputs=close(images), targets=close(self.digits[chosen]), at="last")
