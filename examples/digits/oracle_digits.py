"""Compute the derivatives of the digits network by PyTorch's autograd, as an oracle for the tests.

Run by hand after train_digits.py, in the same environment; gradlab takes no part in it. The stored
float32 weights and images are cast to float64 first. Writes tests/fixtures/digits/digits.oracle.npz
with these arrays (T = 64 steps, N = 64 units, the first B = 3 of the held-out images):

- ``s`` (T+1, B, N): states, ``s[0]`` = 0; ``logits`` (B, 10): readout of the last state.
- ``norm2_dsT_dsk``, ``fro_dsT_dsk`` (T+1, B): spectral and Frobenius norm of d s[T] / d s[k].
- ``dsT_ds`` (3, N, N): the whole matrix for image 0 at the k in ``dsT_ds_k``; rows = s[T].
- ``norm2_J`` (T, B): spectral norm of d s[t+1] / d s[t].
- ``sigma_max``, ``spectral_radius``: of ``rnn.weight_hh_l0``.
- ``predictions`` (64,): the digit read from each held-out image in the repository.
- ``correct``, ``total``, ``accuracy``: over all 360 test images.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor
from train_digits import HIDDEN_SIZE, INPUTS, WEIGHTS, DigitsRNN, count_correct, load_split

ORACLE = Path(__file__).resolve().parents[2] / "tests/fixtures/digits/digits.oracle.npz"
IMAGES = 3
FULL_AT = (0, 24, 44)
LAGS = (1, 10, 20, 40, 64)


def unroll(model: DigitsRNN, inputs: Tensor) -> list[Tensor]:
    """States s[0] to s[T] of one sequence (time, 1), each a node of one autograd graph."""
    rnn = model.rnn
    states = [torch.zeros(HIDDEN_SIZE, dtype=torch.float64, requires_grad=True)]
    for x in inputs:
        drive = rnn.weight_ih_l0 @ x + rnn.bias_ih_l0 + rnn.bias_hh_l0
        states.append(torch.tanh(rnn.weight_hh_l0 @ states[-1] + drive))
    return states


def derivatives(output: Tensor, states: list[Tensor]) -> Tensor:
    """Total derivative of ``output`` by each state through the graph: (len(states), N, N)."""
    rows = torch.eye(HIDDEN_SIZE, dtype=torch.float64)
    return torch.stack(
        torch.autograd.grad(output, states, rows, retain_graph=True, is_grads_batched=True)
    )


def one_step_norms(states: list[Tensor]) -> np.ndarray:
    """Spectral norm of d s[t+1] / d s[t] for t = 0 .. T-1."""
    pairs = zip(states[1:], states[:-1], strict=True)
    steps = torch.cat([derivatives(new, [old]) for new, old in pairs])
    return np.linalg.norm(steps.numpy(), ord=2, axis=(1, 2))


def measure(model: DigitsRNN, inputs: Tensor) -> dict[str, np.ndarray]:
    """Oracle arrays of one sequence, checked against PyTorch's own layer."""
    states = unroll(model, inputs)
    jacobians = derivatives(states[-1], states).numpy()
    layer_states, _ = model.rnn(inputs)
    torch.testing.assert_close(torch.stack(states[1:]), layer_states, rtol=0, atol=1e-13)
    return {
        "s": torch.stack(states).detach().numpy(),
        "logits": model.readout(states[-1]).detach().numpy(),
        "norm2_dsT_dsk": np.linalg.norm(jacobians, ord=2, axis=(1, 2)),
        "fro_dsT_dsk": np.linalg.norm(jacobians, axis=(1, 2)),
        "norm2_J": one_step_norms(states),
        "dsT_ds": jacobians[list(FULL_AT)],
    }


def facts(model: DigitsRNN, inputs: Tensor) -> dict[str, np.ndarray]:
    """Numbers of the whole network: spectrum of W_hh, digits read, accuracy."""
    W_hh = model.rnn.weight_hh_l0.detach().numpy()
    _, test_data = load_split()
    correct = count_correct(model, test_data._replace(inputs=test_data.inputs.double()))
    total = len(test_data.targets)
    return {
        "sigma_max": np.linalg.norm(W_hh, ord=2),
        "spectral_radius": np.abs(np.linalg.eigvals(W_hh)).max(),
        "predictions": model(inputs).argmax(dim=1).numpy(),
        "correct": np.array(correct),
        "total": np.array(total),
        "accuracy": np.array(correct / total),
    }


def oracle(model: DigitsRNN, inputs: Tensor) -> dict[str, np.ndarray]:
    """All arrays of the oracle file; images are axis 1, but axis 0 of the logits."""
    images = [measure(model, inputs[:, b]) for b in range(IMAGES)]
    arrays = {
        name: np.stack([image[name] for image in images], axis=1)
        for name in ("s", "norm2_dsT_dsk", "fro_dsT_dsk", "norm2_J")
    }
    arrays["logits"] = np.stack([image["logits"] for image in images])
    arrays["dsT_ds"], arrays["dsT_ds_k"] = images[0]["dsT_ds"], np.array(FULL_AT)
    return arrays | facts(model, inputs)


def main() -> None:
    """Write the oracle and print the numbers that README.md quotes."""
    torch.set_num_threads(1)
    model = DigitsRNN().double()
    model.load_state_dict(load_file(WEIGHTS))
    inputs = torch.from_numpy(np.load(INPUTS)).double()
    arrays = oracle(model, inputs)
    np.savez_compressed(ORACLE, allow_pickle=False, **arrays)
    for name in ("sigma_max", "spectral_radius", "correct", "total"):
        print(f"{name} = {arrays[name]:.10g}")
    for lag in LAGS:
        print(f"lag {lag:2d}: ", *(f"{norm:.4g}" for norm in arrays["norm2_dsT_dsk"][-1 - lag]))


if __name__ == "__main__":
    main()
