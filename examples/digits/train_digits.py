"""Train a small tanh RNN to read handwritten digits pixel by pixel.

Run by hand, in an environment of its own: PyTorch, scikit-learn and safetensors are not
dependencies of gradlab (README.md names the versions and the commands). Writes the weights and
64 held-out images with their labels beside this file, and prints the accuracy.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

FOLDER = Path(__file__).resolve().parent
WEIGHTS = FOLDER / "digits_rnn.safetensors"
INPUTS = FOLDER / "digits_test_inputs.npy"
TARGETS = FOLDER / "digits_test_targets.npy"

SEED = 1
TEST_SIZE = 360
KEPT = 64
HIDDEN_SIZE = 64
CLASSES = 10
BRIGHTEST = 16.0
EPOCHS = 100
BATCH_SIZE = 32
LEARNING_RATE = 1e-3
MAX_GRADIENT_NORM = 1.0


class Digits(NamedTuple):
    """Sequences of shape (time, batch, 1), float32 in [0, 1], and labels of shape (batch,)."""

    inputs: Tensor
    targets: Tensor


class DigitsRNN(nn.Module):
    """One tanh layer over the pixels; a linear readout of the last state names the digit."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(input_size=1, hidden_size=HIDDEN_SIZE, nonlinearity="tanh")
        self.readout = nn.Linear(HIDDEN_SIZE, CLASSES)
        # A norm-preserving start: the gradient of the first pixel has 64 steps to survive.
        nn.init.orthogonal_(self.rnn.weight_hh_l0)
        nn.init.zeros_(self.rnn.bias_ih_l0)
        nn.init.zeros_(self.rnn.bias_hh_l0)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits of shape (batch, 10) for inputs of shape (time, batch, 1)."""
        states, _ = self.rnn(inputs)
        return self.readout(states[-1])


def pixel_sequences(images: np.ndarray) -> Tensor:
    """Images (batch, 64), row by row with values 0..16, as time-major sequences in [0, 1]."""
    scaled = (images / BRIGHTEST).astype(np.float32)
    return torch.from_numpy(np.ascontiguousarray(scaled.T[:, :, None]))


def load_split() -> tuple[Digits, Digits]:
    """Give 1437 training and 360 test images, stratified by digit, always the same ones."""
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=TEST_SIZE, random_state=SEED, stratify=labels
    )
    return (
        Digits(pixel_sequences(train_x), torch.from_numpy(train_y)),
        Digits(pixel_sequences(test_x), torch.from_numpy(test_y)),
    )


def train_epoch(model: DigitsRNN, optimizer: torch.optim.Optimizer, data: Digits) -> float:
    """Take one pass over the data in random batches; the mean of the batch losses in nats."""
    losses = []
    for chosen in torch.randperm(len(data.targets)).split(BATCH_SIZE):
        optimizer.zero_grad()
        logits = model(data.inputs[:, chosen])
        loss = nn.functional.cross_entropy(logits, data.targets[chosen])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_GRADIENT_NORM)
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def train(data: Digits) -> DigitsRNN:
    """Train for a fixed number of epochs: nothing is stopped or chosen by the test images."""
    model = DigitsRNN()
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for epoch in range(1, EPOCHS + 1):
        loss = train_epoch(model, optimizer, data)
        schedule.step()
        if epoch % 10 == 0:
            print(f"epoch {epoch:3d}  mean loss {loss:.4f}", flush=True)
    return model


@torch.no_grad()
def count_correct(model: DigitsRNN, data: Digits) -> int:
    """Count the sequences whose largest logit is the right digit."""
    return int((model(data.inputs).argmax(dim=1) == data.targets).sum())


def save(model: DigitsRNN, kept: Digits) -> None:
    """Write the weights, the kept images and their labels beside this file."""
    save_file(model.state_dict(), WEIGHTS)
    np.save(INPUTS, kept.inputs.numpy())
    np.save(TARGETS, kept.targets.numpy())


def main() -> None:
    """Train, report the counts, write the three files."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)
    train_data, test_data = load_split()
    model = train(train_data)
    kept = Digits(test_data.inputs[:, :KEPT].contiguous(), test_data.targets[:KEPT].clone())
    for name, data in (("training", train_data), ("test", test_data), ("kept", kept)):
        print(f"{name}: {count_correct(model, data)}/{len(data.targets)} correct")
    save(model, kept)


if __name__ == "__main__":
    main()
