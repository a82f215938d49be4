"""The page of a training: what it claims, from logs whose numbers are known."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gradlab as gl
from gradlab_reports import training as words
from gradlab_reports import write_training

NAN = math.nan


def log_of(**columns: Any) -> pd.DataFrame:
    """Three looks; every column constant unless given."""
    known: dict[str, Any] = {
        "step": [0, 10, 20],
        "test_loss": [2.0, 1.0, 0.5],
        "accuracy": 0.25,
        "gamma_w": 0.9,
        "rate": -0.1,
        "horizon_1pct": NAN,
        "regime": "vanishing",
    }
    return pd.DataFrame(known | columns)


def manifest_of(**audit: Any) -> dict[str, Any]:
    quantiles = {"q50": 1.5, "q90": 3.0, "q95": 4.0, "q99": 12.0}
    clipping = {"clipped_share": 0.25, "threshold": 2.0, "nonfinite_steps": 0} | audit
    return {
        "settings": {"task": {"name": "echo"}, "cell": "gru", "nonfinite": "skip"},
        "baseline": {"loss": 1.0},
        "probe_length": 30,
        "clipping": {"quantiles": quantiles, "share_above": {"1": 0.75}} | clipping,
    }


def meaning(log: pd.DataFrame | None = None, **audit: Any) -> str:
    frame = log_of() if log is None else log
    return " | ".join(words.meaning(manifest_of(**audit), frame)).replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (0.5, "below the 1.00 of the best guess without memory: the network uses its memory"),
        (0.97, "no better than the 1.00 of the best guess without memory"),
        (NAN, "from 2.00 to undefined, and the 1.00 of the best guess without memory is not"),
    ],
)
def test_what_was_learned_is_set_against_the_best_guess_without_memory(
    loss: float, said: str
) -> None:
    sentence = words.finding(manifest_of(), log_of(test_loss=[2.0, 1.0, loss]))
    assert sentence.startswith("20 updates take the test loss from 2.00 to ")
    assert said in sentence


def test_the_sentence_ends_with_the_gradient_at_the_end() -> None:
    found = words.finding(manifest_of(), log_of())
    assert found.endswith("by 0.905, and more than 1 % of it is left over the 30 steps measured.")
    found = words.finding(manifest_of(), log_of(horizon_1pct=[NAN, NAN, 7.0]))
    assert found.endswith("by 0.905, and less than 1 % of it is left from lag 7 on.")
    found = words.finding(manifest_of(), log_of(rate=[-0.1, -0.1, NAN]))
    assert found.endswith("At the end the gradient could not be measured.")


def test_the_look_at_which_the_gradient_reached_least_far_is_named() -> None:
    said = meaning(log_of(horizon_1pct=[NAN, 9.0, 15.0]))
    assert "least far at update 10: less than 1 % was left from lag 9 on" in said
    assert "2 of 3 looks" in said
    assert "more than 1 % of the gradient arrived 30 steps back" in meaning()
    assert "steps back" not in meaning(log_of(rate=[-0.1, NAN, -0.1]))


def test_a_norm_above_one_is_no_growth() -> None:
    assert "σ_max of the recurrent weights is 2.00" in meaning(log_of(gamma_w=2.0))
    assert "σ_max" not in meaning(log_of(gamma_w=2.0, rate=0.1))
    assert "σ_max" not in meaning(log_of(gamma_w=NAN))


@pytest.mark.parametrize(
    ("audit", "said"),
    [
        ({"threshold": "inf", "clipped_share": 0.0}, "Nothing was clipped."),
        ({"clipped_share": 0.0}, "The threshold 2.00 was never reached"),
        ({"clipped_share": 0.25}, "clipped 25 % of the updates (measured): it held back the long"),
        ({"clipped_share": 0.75}, "it set the length of most gradients"),
    ],
)
def test_clipping_is_told_by_what_it_did(audit: dict[str, Any], said: str) -> None:
    assert said in meaning(**audit)


def test_thresholds_come_from_the_trainings_own_norms() -> None:
    assert "a threshold of 3.00 would clip 10 % of the updates and one of 12.0 1 %" in meaning()
    assert "would clip" not in meaning(quantiles={})


def test_a_turned_sum_and_gradients_that_were_not_finite_are_named() -> None:
    assert "cosine with the sum of the unclipped ones is 0.500" in meaning(
        cosine_with_unclipped_sum=0.5
    )
    assert "cosine" not in meaning(cosine_with_unclipped_sum=0.995)
    said = meaning(nonfinite_steps=3, first_nonfinite=8)
    assert "3 updates had no finite gradient, the first of them update 8 (policy skip)" in said


def test_a_damaged_manifest_leaves_what_the_log_says() -> None:
    assert words.title({}) == "training"
    assert words.finding({}, log_of()).startswith("20 updates take the test loss from 2.00 to 0.5")
    assert [each.value for each in words.key_numbers({}, log_of())] == ["0.500", "× 0.905"]
    assert [table.title for table in words.all_tables({}, log_of())] == ["Before and after"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cell = gl.CELLS["rnn"].initialize(input_size=1, hidden_size=5, rng=np.random.default_rng(3))
    folder = tmp_path_factory.mktemp("page") / "trained"
    gl.claim_training(folder)
    task = gl.task("echo", length=12)
    gl.save_training(gl.train(task, cell, steps=9, seed=0, every=3, batch_size=3), folder)
    write_training(folder, formats=("html", "md", "json"))
    return folder


def test_the_page_is_one_file_with_figures_tables_and_numbers_at_the_pointer(trained: Path) -> None:
    content = (trained / "training.html").read_text(encoding="utf-8")
    assert content.count("<svg") == 2
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", content)
    assert re.findall(r'download="([^"]+)"', content) == ["training.csv", "clipping.csv"]
    held = content.partition('class="numbers-below">')[2].partition("</script>")[0]
    told = json.loads(held)
    assert (told["word"], told["lag"]) == ("Update", [0, 3, 6, 9])
    left, top, right, bottom = told["box"]
    assert 0.0 < left < right < 1.0
    assert bottom - top > 0.7  # the line crosses all panels
    names = [line["name"] for line in told["lines"]]
    assert names[:3] == ["test loss", "train loss", "rate in nats per step"]
    log = pd.read_csv(trained / "training.csv")
    assert float(told["lines"][0]["text"][-1]) == pytest.approx(log["test_loss"].iloc[-1], rel=5e-3)
    assert told["lines"][1]["text"][0] == "undefined"


def test_every_format_has_the_same_words(trained: Path) -> None:
    told = json.loads((trained / "training.json").read_text(encoding="utf-8"))
    text = (trained / "training.md").read_text(encoding="utf-8")
    assert told["kind"] == "training"
    assert told["sentence"] in text.replace("\\", "")
    assert [figure["file"] for figure in told["figures"]] == [
        "figures/training.png",
        "figures/clipping.png",
    ]
    assert told["meaning"][-1].partition(" ")[0] in text
    with pytest.raises(gl.UnknownNameError, match="format of a page"):
        write_training(trained, formats=("pdf",))
