"""Published networks: what their weights promise, and what their gradient does on real input.

Fetches the packages with pip, unpacks them without installing or importing anything, and prints a
table; with --write it also replaces that of docs/gallery/real-models.md. Run in gradlab's own
environment with the extras keras and onnx; it takes about a minute:

    python examples/real_models/real_models.py
"""

from __future__ import annotations

import argparse
import io
import json
import math
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import gradlab as gl

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/gallery/real-models.md"
FIXTURES = ROOT / "tests/fixtures/models/real"
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
HEAD = (
    "| network | layer | σ_max of the stack | its power at the longest lag | bound Π‖J‖ a step "
    "| measured a step | ‖∂s_T/∂s_k‖ at the longest lag | verdict | certified |"
)
SENTENCE = "All human beings are born free and equal in dignity and rights"
WORD = "antidisestablishmentarianism"

Inputs = Callable[["Fetched"], gl.Sequences]


@dataclass(frozen=True)
class Fetched:
    """A package's archive, and a place to put its files."""

    archive: Path
    folder: Path

    def file(self, member: str) -> Path:
        """One file of the package."""
        path = self.folder / Path(member).name
        path.write_bytes(self._content(member))
        return path

    def _content(self, member: str) -> bytes:
        if self.archive.suffix == ".whl":
            with zipfile.ZipFile(self.archive) as wheel:
                return wheel.read(member)
        with tarfile.open(self.archive) as source:
            [entry] = [info for info in source if info.name.partition("/")[2] == member]
            return (source.extractfile(entry) or io.BytesIO()).read()


@dataclass(frozen=True)
class Published:
    """A network in a package, and real input for it, if there is any at hand."""

    name: str
    package: str
    member: str
    inputs: Inputs | None = None
    only: Sequence[str] | None = None


def silero_speech(_: Fetched) -> gl.Sequences:
    """What the package's own encoder makes of synthesized speech."""
    with np.load(FIXTURES / "silero_vad_16k_lstm.oracle.npz") as stored:
        x = stored["x"][:, None].astype(np.float64)
    return gl.Sequences(inputs=x, lengths=np.array([len(x)]), description="encoded speech")


def chinese_sentence(_: Fetched) -> gl.Sequences:
    """Embedding of a sentence of 19 characters."""
    with np.load(FIXTURES / "g2pm_bilstm.oracle.npz") as stored:
        x = stored["x"][:, None].astype(np.float64)
    return gl.Sequences(inputs=x, lengths=np.array([len(x)]), description="a sentence")


def english_word(package: Fetched) -> gl.Sequences:
    """Letters of a word through the network's own embedding: pad, unknown, end, a to z."""
    ids = [3 + ord(letter) - ord("a") for letter in WORD] + [2]
    return embedded(package, ids, "g2p_en/checkpoint20.npz", "enc_emb")


def english_sentence(package: Fetched) -> gl.Sequences:
    """Characters of a sentence through the network's own embedding."""
    vocabulary = json.loads(package.file("textgenrnn/textgenrnn_vocab.json").read_text("utf-8"))
    ids = [vocabulary[letter] for letter in SENTENCE]
    member = "textgenrnn/textgenrnn_weights.hdf5"
    return embedded(package, ids, member, "embedding/embedding/embeddings:0")


def embedded(package: Fetched, ids: Sequence[int], member: str, embedding: str) -> gl.Sequences:
    """Token ids through an embedding of the model file."""
    path = package.folder / "ids.npy"
    np.save(path, ids)
    return gl.read_tokens(path, package.file(member), embedding=embedding)


VAD = "silero_vad/data/silero_vad"
MODELS = (
    Published("silero-vad, 16 kHz", "silero-vad==6.2.3", f"{VAD}_16k_op15.onnx", silero_speech),
    Published("silero-vad, 8 kHz", "silero-vad==6.2.3", f"{VAD}.jit", None, ["_model_8k"]),
    Published("g2p-en, encoder", "g2p-en==2.1.0", "g2p_en/checkpoint20.npz", english_word, ["enc"]),
    Published("g2p-en, decoder", "g2p-en==2.1.0", "g2p_en/checkpoint20.npz", None, ["dec"]),
    Published("g2pM", "g2pM==0.1.2.5", "g2pM/np_ckpt.pkl", chinese_sentence),
    Published("textgenrnn", "textgenrnn==2.0.0", "textgenrnn/textgenrnn_weights.hdf5",
              english_sentence),
    Published("Resemblyzer", "Resemblyzer==0.1.4", "resemblyzer/pretrained.pt"),
)  # fmt: skip


def fetched(package: str, folder: Path) -> Fetched:
    """Archive of a package, without what it depends on."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "-qqq",
               "--disable-pip-version-check", "--dest", str(folder), package]  # fmt: skip
    subprocess.run(command, check=True)
    [archive] = folder.glob(f"{package.partition('==')[0].replace('-', '[-_]')}-*")
    return Fetched(archive, folder)


def rows(model: Published, folder: Path) -> list[str]:
    """One row a recurrence."""
    package = fetched(model.package, folder)
    network = chosen(gl.load(package.file(model.member)), model.only)
    if model.inputs is None:
        return [row(model.name, entry, None) for entry in network.recurrences]
    sequences = model.inputs(package)
    dynamics = gl.analyze(network, sequences.inputs, lengths=sequences.lengths, anchors="all")
    measured = dynamics.recurrences
    return [row(model.name, entry, measured[entry.name]) for entry in network.recurrences]


def chosen(network: gl.Network, only: Sequence[str] | None) -> gl.Network:
    """The recurrences whose names begin so."""
    if only is None:
        return network
    kept = [entry for entry in network.recurrences if entry.name.startswith(tuple(only))]
    return gl.Network(kept, network.assumptions, network.source)


def row(name: str, entry: gl.Recurrence, measured: gl.RecurrenceDynamics | None) -> str:
    """What the weights say, and what was measured."""
    stack = gl.spectral_summary(entry.cell).gates["stack"].sigma_max
    cells = [name, f"`{entry.name}`", f"{stack:.4g}", *measurement(stack, measured)]
    return f"| {' | '.join([*cells, certified(entry)])} |"


def measurement(stack: float, measured: gl.RecurrenceDynamics | None) -> list[str]:
    """Rates and norms at the longest lag, from the last step back."""
    if measured is None:
        return ["no input at hand", "-", "-", "-", "-"]
    profile, ladder = measured.jacobians, measured.ladder
    lag = int(profile.lag[-1])
    bound = float(ladder.rungs["onestep"][ladder.lag == lag][0]) / lag
    return [
        f"10^{lag * math.log10(stack):.0f} at lag {lag}",
        f"× {math.exp(bound):.3g}",
        f"× {math.exp(measured.regime.rate):.3f}",
        f"{math.exp(float(profile.log_norm[-1])):.3g}",
        measured.regime.name,
    ]


def certified(entry: gl.Recurrence) -> str:
    """Whether it is proven to vanish for all inputs that a cell of bounded inputs may read."""
    rates = [
        certificate.rate
        for certificate in gl.certificates(entry.cell).values()
        if certificate.rate is not None
    ]
    return f"r = {min(rates):.3g}" if rates and min(rates) < 1.0 else "no"


def main() -> None:
    """Print the table, and write it if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"replace the table of {PAGE.name}")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        table = [HEAD, "|" + " --- |" * (HEAD.count("|") - 1)]
        for model in MODELS:
            table += rows(model, Path(place))
    print("\n".join(table))
    if arguments.write:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        inner = "\n".join(["", "", *table, "", ""])
        PAGE.write_text(f"{before}{BEGIN}{inner}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
