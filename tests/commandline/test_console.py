"""The output sink."""

from __future__ import annotations

import json
import math

import pytest

import gradlab as gl
from gradlab_cli.console import Console, aligned, fits


def refuse_constant(token: str) -> None:
    raise AssertionError(f"{token} is not strict JSON")


def test_document_is_strict_json_whatever_the_floats(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"exponents": [-0.1, -math.inf, math.inf, math.nan], "name": "BaNaNa"}
    Console(as_json=True).document(document)
    read = json.loads(capsys.readouterr().out, parse_constant=refuse_constant)
    assert read == {"exponents": [-0.1, "-inf", "inf", None], "name": "BaNaNa"}


def test_document_leaves_the_original_alone() -> None:
    document = {"values": [math.inf]}
    gl.strict_json(document)
    assert document == {"values": [math.inf]}


def test_json_mode_writes_nothing_but_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(as_json=True)
    console.text("for people")
    console.table(["a"], [["1"]])
    assert capsys.readouterr().out == ""


def test_text_mode_writes_no_document(capsys: pytest.CaptureFixture[str]) -> None:
    Console().document({"a": 1})
    assert capsys.readouterr().out == ""


def test_messages_go_to_stderr_and_quiet_drops_them(capsys: pytest.CaptureFixture[str]) -> None:
    Console().note("told")
    Console(quiet=True).note("not told")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "told\n")


def test_table_off_a_terminal_is_plain_and_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    name = "a" * 300
    Console().table(["name", "N"], [[name, "6"], ["b", "12"]])
    out = capsys.readouterr().out
    assert out.splitlines() == aligned([["name", "N"], [name, "6"], ["b", "12"]])
    assert name in out
    assert "\x1b" not in out


def test_progress_off_a_terminal_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with Console().progress("sweeping", 2) as advance:
        advance(1)
        advance(1)
    with Console().working("measuring"):
        pass
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_frame_is_kept_for_terminals_with_room_for_every_cell() -> None:
    columns, rows = ["spectral radius", "N"], [["0.88962661", "4"]]
    assert fits(columns, rows, 17)
    assert not fits(columns, rows, 16)
    assert fits(columns, [], 17)
