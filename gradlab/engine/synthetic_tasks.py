"""Tasks with generated sequences: adding, copying, order, echo."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array, close
from gradlab.engine.batches import Batch
from gradlab.errors import SettingError

ADDING_TOLERANCE = 0.04
ORDER_LETTERS = "EBabcdXY"  # start, end, distractors, and what is to be remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class Adding:
    """Sum of two marked numbers.

    Inputs are (u, m) with u uniform in [0, 1) and m = 1 at one step of each half, else 0; the
    target is the sum of the marked u, at the last step. Predicting 1 costs the variance 1/6.
    Source: Le, Jaitly and Hinton (2015), arXiv 1504.00941, section 4.1; the baseline printed there
    is another number.
    """

    length: int = 100
    name: ClassVar[str] = "adding"
    input_size: ClassVar[int] = 2
    output_size: ClassVar[int] = 1
    loss: ClassVar[str] = "squared_error"
    baseline: ClassVar[float] = 1.0 / 6.0
    baseline_accuracy: ClassVar[float] = 1.0 - (1.0 - ADDING_TOLERANCE) ** 2
    tolerance: ClassVar[float] = ADDING_TOLERANCE

    def __post_init__(self) -> None:
        """Check the length."""
        _require_at_least("length", self.length, 2)

    def batch(self, size: int, rng: np.random.Generator) -> Batch:
        """Fresh sequences of equal length."""
        values = rng.random((self.length, size))
        half = self.length // 2
        marks = np.stack([rng.integers(0, half, size), rng.integers(half, self.length, size)])
        inputs = np.stack([values, _marked(values.shape, marks)], axis=2)
        sums = np.take_along_axis(values, marks, axis=0).sum(axis=0)
        return Batch(inputs=close(inputs), targets=close(sums[:, None]), at="last")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adding1997:
    """The adding problem as first posed, with lengths from T to 1.1 T.

    Values are uniform in [-1, 1), the target is 1/2 + (a + b)/4. One mark lies in the first ten
    steps, the other anywhere in the first half; marks are 1, the first and the last step carry -1
    and are never marked. Predicting 1/2 costs 1/24. Source: Hochreiter and Schmidhuber (1997),
    "Long short-term memory", Neural Computation 9, experiment 4; there the first step may be
    marked, and then counts as 0.
    """

    length: int = 100
    name: ClassVar[str] = "adding_1997"
    input_size: ClassVar[int] = 2
    output_size: ClassVar[int] = 1
    loss: ClassVar[str] = "squared_error"
    baseline: ClassVar[float] = 1.0 / 24.0
    baseline_accuracy: ClassVar[float] = 1.0 - (1.0 - 2.0 * ADDING_TOLERANCE) ** 2
    tolerance: ClassVar[float] = ADDING_TOLERANCE

    def __post_init__(self) -> None:
        """Check the length."""
        _require_at_least("length", self.length, 20)

    def batch(self, size: int, rng: np.random.Generator) -> Batch:
        """Fresh sequences of different lengths."""
        lengths = _lengths(self.length, size, rng)
        steps = int(lengths.max())
        values = rng.uniform(-1.0, 1.0, (steps, size))
        first = rng.integers(1, 10, size)
        other = rng.integers(1, self.length // 2 - 1, size)
        marks = np.stack([first, other + (other >= first)])  # any step but the first mark's
        markers = _marked(values.shape, marks)
        markers[0] = -1.0
        markers[lengths - 1, np.arange(size)] = -1.0
        sums = np.take_along_axis(values, marks, axis=0).sum(axis=0)
        return Batch(
            inputs=close(np.stack([values, markers], axis=2)),
            targets=close(0.5 + sums[:, None] / 4.0),
            lengths=lengths,
            at="last",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyMemory:
    """Repeat M symbols after T steps.

    Inputs: M symbols of n, T - 1 blanks, a delimiter, M blanks, one-hot. Targets: T + M blanks (0),
    then the symbols (1..n). Guessing the symbols costs M ln n/(T + 2M) a step. Source: Arjovsky,
    Shah and Bengio (2016), arXiv 1511.06464, section 5.1.
    """

    length: int = 100  # T
    count: int = 10  # M
    symbols: int = 8  # n
    name: ClassVar[str] = "copy"
    loss: ClassVar[str] = "cross_entropy"
    tolerance: ClassVar[float] = math.nan

    def __post_init__(self) -> None:
        """Check the sizes."""
        for name, least in (("length", 1), ("count", 1), ("symbols", 2)):
            _require_at_least(name, getattr(self, name), least)

    @property
    def input_size(self) -> int:
        """Symbols, blank and delimiter."""
        return self.symbols + 2

    @property
    def output_size(self) -> int:
        """Symbols and blank."""
        return self.symbols + 1

    @property
    def baseline(self) -> float:
        """M ln n/(T + 2M)."""
        return self.count * math.log(self.symbols) / (self.length + 2 * self.count)

    @property
    def baseline_accuracy(self) -> float:
        """(T + M + M/n)/(T + 2M)."""
        right = self.length + self.count + self.count / self.symbols
        return right / (self.length + 2 * self.count)

    def batch(self, size: int, rng: np.random.Generator) -> Batch:
        """Fresh sequences of equal length."""
        symbols = rng.integers(1, self.symbols + 1, (self.count, size))
        blanks = np.zeros((self.length + 2 * self.count, size), dtype=np.int64)
        read, targets = blanks.copy(), blanks
        read[: self.count] = symbols
        read[self.count + self.length - 1] = self.symbols + 1
        targets[-self.count :] = symbols
        return Batch(inputs=_one_hot(read, self.input_size), targets=close(targets))


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalOrder:
    """Which of X and Y came first: two or three of them, among distractors.

    For length 100 the places are t₁ in [10, 20] and t₂ in [50, 60], or [10, 20], [33, 43] and
    [66, 76] for three, counted from 1; they scale with the length. Sequences have T to 1.1 T
    steps, begin with E and end with B; the class is asked for at the end. Source: Hochreiter and
    Schmidhuber (1997), "Long short-term memory", Neural Computation 9, experiment 6.
    """

    length: int = 100
    symbols: int = 2
    input_size: ClassVar[int] = len(ORDER_LETTERS)
    loss: ClassVar[str] = "cross_entropy"
    tolerance: ClassVar[float] = math.nan

    def __post_init__(self) -> None:
        """Check the sizes."""
        _require_at_least("length", self.length, 20)
        if self.symbols not in (2, 3):
            raise SettingError(f"symbols {self.symbols}: expected 2 or 3")

    @property
    def name(self) -> str:
        """With the number of symbols where it is not the usual one."""
        return "temporal_order" if self.symbols == 2 else f"temporal_order_{self.symbols}"

    @property
    def output_size(self) -> int:
        """All orders: 4 or 8."""
        return int(2**self.symbols)

    @property
    def baseline(self) -> float:
        """ln 4 or ln 8."""
        return math.log(self.output_size)

    @property
    def baseline_accuracy(self) -> float:
        """1/4 or 1/8."""
        return 1.0 / self.output_size

    @property
    def places(self) -> list[tuple[int, int]]:
        """First and last time of each symbol, counted from 1."""
        starts = {2: (0.1, 0.5), 3: (0.1, 0.33, 0.66)}[self.symbols]
        return [(round(s * self.length), round((s + 0.1) * self.length)) for s in starts]

    def batch(self, size: int, rng: np.random.Generator) -> Batch:
        """Fresh sequences of different lengths."""
        lengths = _lengths(self.length, size, rng)
        each = np.arange(size)
        letters = rng.integers(2, 6, (int(lengths.max()), size))
        classes = np.zeros(size, dtype=np.int64)
        for low, high in self.places:
            second = rng.integers(0, 2, size)
            letters[rng.integers(low, high + 1, size) - 1, each] = 6 + second
            classes = 2 * classes + second
        letters[0] = ORDER_LETTERS.index("E")
        letters[lengths - 1, each] = ORDER_LETTERS.index("B")
        return Batch(
            inputs=_one_hot(letters, self.input_size),
            targets=close(classes),
            lengths=lengths,
            at="last",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedEcho:
    """Repeat the input, ±1 with equal chances, a fixed number of steps later.

    Steps before the first echo have no loss. Predicting 0 costs 1.
    """

    length: int = 30
    delay: int = 8
    name: ClassVar[str] = "echo"
    input_size: ClassVar[int] = 1
    output_size: ClassVar[int] = 1
    loss: ClassVar[str] = "squared_error"
    baseline: ClassVar[float] = 1.0
    baseline_accuracy: ClassVar[float] = 0.5
    tolerance: ClassVar[float] = 1.0  # the sign is right

    def __post_init__(self) -> None:
        """Check the sizes."""
        _require_at_least("delay", self.delay, 0)
        _require_at_least("length", self.length, self.delay + 1)

    def batch(self, size: int, rng: np.random.Generator) -> Batch:
        """Fresh sequences of equal length."""
        inputs = 2.0 * rng.integers(0, 2, (self.length, size, 1)) - 1.0
        targets = np.zeros_like(inputs)
        targets[self.delay :] = inputs[: self.length - self.delay]
        mask = np.zeros((self.length, size), dtype=bool)
        mask[self.delay :] = True
        return Batch(inputs=close(inputs), targets=close(targets), mask=close(mask))


def _lengths(length: int, size: int, rng: np.random.Generator) -> Int[Array, " batch"]:
    """From T to 1.1 T, with equal chances."""
    return close(rng.integers(length, round(1.1 * length) + 1, size))


def _marked(shape: tuple[int, ...], marks: Int[Array, "marks batch"]) -> Float[Array, "time batch"]:
    markers = np.zeros(shape)
    np.put_along_axis(markers, marks, 1.0, axis=0)
    return markers


def _one_hot(values: Int[Array, "time batch"], size: int) -> Float[Array, "time batch size"]:
    return close(np.eye(size)[values])


def _require_at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise SettingError(f"{name} {value}: expected at least {least}")
