r"""Long short-term memory, with the variants that frameworks offer.

.. math::
   i, f, o = \sigma(W x + U h + b), \quad g = \varphi(W x + U h + b), \quad
   c' = f \odot c + i \odot g, \quad h' = o \odot \psi(c')

Source: Hochreiter and Schmidhuber (1997), "Long short-term memory", Neural Computation 9, with the
forget gate of Gers, Schmidhuber and Cummins (2000), "Learning to forget", Neural Computation 12.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells.activations import clipped
from gradlab.cells.base import Nonlinearity
from gradlab.cells.gates import (
    NO_GAMMA,
    blocks,
    chrono_bias,
    driven,
    freeze,
    hidden_size_of,
    random_weights,
    require_choice,
    require_finite_number,
    require_shapes,
    row_blocks,
)
from gradlab.cells.layer import GatedLayer
from gradlab.cells.linear_steps import LinearSteps
from gradlab.cells.lstm_backward import lstm_backward
from gradlab.cells.lstm_factors import LSTMFunctions
from gradlab.cells.lstm_forward import lstm_unroll
from gradlab.cells.lstm_majorants import lstm_rungs, unbounded_part
from gradlab.cells.lstm_steps import LSTMStep, LSTMWeights
from gradlab.records.backward import BackwardPass
from gradlab.records.trajectory import Trajectory

GATES = ("i", "f", "g", "o")
COUPLINGS = (None, "forget", "input")


@dataclass(frozen=True, kw_only=True, eq=False)
class LSTMCell(GatedLayer):
    """Long short-term memory layer; its state is (h, c), h first.

    Parameters
    ----------
    W_x
        Input weights, (4N, D): blocks of rows for the gates i, f, g, o.
    W_h
        Recurrent weights, (4N, P), where P is N or the size of the projected output.
    b_x, b_h
        The two biases of a framework, (4N,); they add up. Zeros if None.
    W_hr
        Projection (P, N) of the output, h' = W_hr (o ψ(c')); none if None.
    peepholes
        Weights (3, N) of the cell state in the gates i, f, o, elementwise; o sees the new state.
    activation
        Of the candidate g.
    recurrent_activation
        Of the gates i, f and o.
    output_activation
        Of the cell state on its way out, ψ; that of the candidate if None.
    coupled
        ``"forget"``: f = 1 - i (Greff et al. 2017; ONNX ``input_forget``). ``"input"``: i = 1 - f.
        The rows of the gate that is not computed have no effect.
    clip
        Limit of the argument of every activation, that of ψ included, as the text of ONNX has it.
    forget_bias
        Added to the forget gate's pre-activation, inside the activation, beside the stored biases.
    dtype
        Type the states are computed in, float64 or float32. Jacobians are always float64.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other.
    NonFiniteError
        If a weight is NaN or infinite.
    UnknownNameError
        If there is no such activation, coupling or type.
    SettingError
        If the clip is not positive or the forget bias not finite.
    """

    W_x: Float[Array, "rows features"]
    W_h: Float[Array, "rows hidden"]
    b_x: Float[Array, " rows"] | None = None
    b_h: Float[Array, " rows"] | None = None
    W_hr: Float[Array, "hidden n"] | None = None
    peepholes: Float[Array, "3 n"] | None = None
    activation: str = "tanh"
    recurrent_activation: str = "sigmoid"
    output_activation: str | None = None
    coupled: str | None = None
    clip: float | int | None = None
    forget_bias: float | int = 0.0
    dtype: str = "float64"
    kind: str = field(default="lstm", init=False)

    def __post_init__(self) -> None:
        """Check names, shapes and entries; make the arrays read-only."""
        require_choice("coupling", self.coupled, COUPLINGS)
        require_finite_number("forget_bias", self.forget_bias)
        for name in (self.activation, self.recurrent_activation, self._output_activation):
            clipped(name, self.clip)
        columns = None if self.W_hr is None else int(np.shape(self.W_hr)[0])
        n = hidden_size_of(self.W_h, 4, columns)
        zeros = np.zeros(4 * n)
        optional = {"W_hr": self.W_hr, "peepholes": self.peepholes}
        biases = {
            "b_x": zeros if self.b_x is None else self.b_x,
            "b_h": zeros if self.b_h is None else self.b_h,
        }
        freeze(self, self.dtype, {"W_x": self.W_x, "W_h": self.W_h, **biases, **optional})
        shapes = {"W_x": (4 * n, -1), "b_x": (4 * n,), "b_h": (4 * n,)}
        shapes |= {} if self.W_hr is None else {"W_hr": (self.W_h.shape[1], n)}
        shapes |= {} if self.peepholes is None else {"peepholes": (3, n)}
        require_shapes(self, shapes, f"N = {n} from W_h of shape {self.W_h.shape}")

    @classmethod
    def initialize(
        cls,
        *,
        input_size: int,
        hidden_size: int,
        rng: np.random.Generator,
        recurrent: str = "orthogonal",
        gain: float | int = 1.0,
        forget_bias: float | int = 0.0,
        chrono: int | None = None,
        activation: str = "tanh",
        dtype: str = "float64",
    ) -> LSTMCell:
        """Random layer.

        Parameters
        ----------
        input_size, hidden_size
            D and N.
        rng
            Source of all randomness.
        recurrent, gain
            Kind and factor of every gate's recurrent block, see `random_weights`.
        forget_bias
            Stored in b_x; the other biases are 0.
        chrono
            Longest lag that matters: forget biases ln u with u uniform in (1, chrono - 1), input
            biases their opposite, in place of ``forget_bias``.
        activation
            Of candidate and output.
        dtype
            Type the states are computed in.

        Returns
        -------
        cell
            Without peepholes and projection.

        Raises
        ------
        SettingError
            If ``chrono`` is below 3.
        """
        W_x, W_h = random_weights(
            4,
            input_size=input_size,
            hidden_size=hidden_size,
            rng=rng,
            recurrent=recurrent,
            gain=gain,
        )
        b_x = np.zeros((4, hidden_size))
        b_x[1] = forget_bias
        if chrono is not None:
            b_x[1] = chrono_bias(hidden_size, chrono, rng)
            b_x[0] = -b_x[1]
        return cls(W_x=W_x, W_h=W_h, b_x=b_x.ravel(), activation=activation, dtype=dtype)

    @property
    def _output_activation(self) -> str:
        return self.activation if self.output_activation is None else self.output_activation

    @property
    def cell_size(self) -> int:
        """N: units of c and of every gate."""
        return int(self.W_h.shape[0]) // 4

    @property
    def state_size(self) -> int:
        """Length of (h, c)."""
        return self.hidden_size + self.cell_size

    @property
    def parameters(self) -> Mapping[str, Array]:
        """Weights by attribute name."""
        names = ("W_x", "W_h", "b_x", "b_h", "W_hr", "peepholes")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def functions(self) -> LSTMFunctions:
        """The elementwise part: activations, coupling, peepholes."""
        return LSTMFunctions(
            gate=clipped(self.recurrent_activation, self.clip),
            candidate=clipped(self.activation, self.clip),
            squash=clipped(self._output_activation, self.clip),
            coupled=self.coupled,
            peepholes=self.peepholes,
        )

    def drive(self, inputs: Float[Array, "*steps features"]) -> Float[Array, "*steps rows"]:
        """W_x x_t and all biases, for all steps in one product."""
        bias = np.asarray(self.b_x) + self.b_h
        bias[self.cell_size : 2 * self.cell_size] += self.forget_bias
        return driven(inputs, self.W_x, bias)

    def advance(
        self, drive: Float[Array, "batch rows"], state: Float[Array, "batch state"]
    ) -> tuple[Float[Array, "batch rows"], Float[Array, "batch state"]]:
        """Pre-activations of the gates, peepholes included, and next state."""
        own = self.functions
        h, c = self._split(state)
        a = drive + h @ self.W_h.T
        a_i, a_f, a_g, a_o = blocks(a, 4)
        if own.peepholes is not None:
            a_i += own.peepholes[0] * c
            a_f += own.peepholes[1] * c
        i, f = own.input_and_forget(a_i, a_f)
        c_next = f * c + i * own.candidate.function(a_g)
        if own.peepholes is not None:
            a_o += own.peepholes[2] * c_next
        m = own.gate.function(a_o) * own.squash.function(c_next)
        h_next = m if self.W_hr is None else m @ self.W_hr.T
        return a, np.concatenate([h_next, c_next], axis=1).astype(self.dtype, copy=False)

    def unroll(
        self, drive: Float[Array, "time batch rows"], start: Float[Array, "batch state"]
    ) -> tuple[Float[Array, "time batch rows"], Float[Array, "times batch state"]]:
        """Pre-activations of all steps, in place of the drive, and states for t = 0..T."""
        return lstm_unroll(self.W_h, self.W_hr, self.functions, drive, start)

    def linearize(self, trajectory: Trajectory) -> LinearSteps:
        """Jacobians of (h, c) along a trajectory, 2N by 2N without a projection."""
        h, c = self._split(trajectory.states.astype(np.float64))
        W_hr = None if self.W_hr is None else self.W_hr.astype(np.float64)
        weights = LSTMWeights(
            W_x=self.W_x.astype(np.float64), W_h=self.W_h.astype(np.float64), W_hr=W_hr
        )
        functions = self.functions
        factors = functions.factors(trajectory.z.astype(np.float64), c[:-1], c[1:])
        unbounded = unbounded_part(functions)

        def at(j: int) -> LSTMStep:
            return LSTMStep(
                weights=weights,
                alpha=factors.alpha[:, j].swapaxes(0, 1),
                F=factors.F[j],
                S=factors.S[j],
                before=h[j],
            )

        return LinearSteps(
            trajectory.steps,
            at,
            majorants=lstm_rungs(
                weights=weights,
                functions=functions,
                factors=factors,
                steps=lambda: map(at, range(trajectory.steps)),
                cell=c[:-1],
            ),
            absent_bounds={"gamma": NO_GAMMA} | ({"lstm_weights": unbounded} if unbounded else {}),
        )

    def whole_backward(
        self, trajectory: Trajectory, upstream: Float[Array, "time batch state"]
    ) -> BackwardPass:
        """Gradients through the whole past."""
        return lstm_backward(self.parameters, self.functions, trajectory, upstream)

    def nonlinearities(self, trajectory: Trajectory) -> Mapping[str, Nonlinearity]:
        """Gates that are computed, by name."""
        own = self.functions
        gates = {
            name: (own.candidate if name == "g" else own.gate, z)
            for name, z in zip(GATES, blocks(trajectory.z, 4), strict=True)
            if name != self._derived
        }
        return {
            name: Nonlinearity(activation=phi, z=z, value=phi.function(z))
            for name, (phi, z) in gates.items()
        }

    def carry(self, trajectory: Trajectory) -> Mapping[str, Float[Array, "time batch n"]]:
        """The forget gate."""
        a_i, a_f, _, _ = blocks(trajectory.z, 4)
        return {"f": self.functions.input_and_forget(a_i, a_f)[1]}

    def recurrent_matrices(self) -> Mapping[str, Float[Array, "_ _"]]:
        """Blocks of W_h of the gates that are computed, and the whole as ``stack``."""
        gates = row_blocks(self.W_h, GATES)
        own = {name: W for name, W in gates.items() if name != self._derived}
        return own | {"stack": np.concatenate(list(own.values()))}

    @property
    def _derived(self) -> str | None:
        """Gate that follows from its partner."""
        return {"forget": "f", "input": "i"}.get(self.coupled or "")

    def _split(self, states: Float[Array, "*steps state"]) -> tuple[Array, Array]:
        return states[..., : self.hidden_size], states[..., self.hidden_size :]
