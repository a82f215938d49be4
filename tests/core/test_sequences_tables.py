"""Sequences from text tables: signs, headers, ragged rows; every refusal names its place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl


def written(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "x.csv"
    path.write_text(text, encoding=encoding, newline="")
    return path


def features(path: Path, **options: object) -> list[list[float]]:
    """The rows of a table's one sequence."""
    sequences = gl.read_sequences(path, **options)  # type: ignore[arg-type]
    assert sequences.lengths.tolist() == [len(sequences.inputs)]
    rows: list[list[float]] = sequences.inputs[:, 0, :].tolist()
    return rows


@pytest.mark.parametrize(
    "text",
    [
        "1,-2.5\n3e2,.5\n",
        "1,-2.5\r\n3e2,.5",
        "1 , -2.5\n 3E+2, 0.5\n\n\n",
        '"1","-2.5"\n"300","0.5"\n',
        "a,b\n1,-2.5\n300,0.5\n",
        "\ufeff1,-2.5\n300,0.5\n",
        "1,-2.5\n300,0.5\n,\n   \n",
    ],
    ids=["plain", "windows", "spaced", "quoted", "header", "mark", "blank end"],
)
def test_one_table_may_be_written_in_many_ways(tmp_path: Path, text: str) -> None:
    assert features(written(tmp_path, text)) == [[1.0, -2.5], [300.0, 0.5]]


@pytest.mark.parametrize(
    ("separator", "text"),
    [(";", "1;2\n3;4"), ("\t", "1\t2\n3\t4"), (r"\t", "1\t2\n3\t4"), (" ", " 1   2\n3 4 \n")],
)
def test_separator_is_an_option(tmp_path: Path, separator: str, text: str) -> None:
    assert features(written(tmp_path, text), separator=separator) == [[1.0, 2.0], [3.0, 4.0]]


def test_decimal_comma_and_time_index(tmp_path: Path) -> None:
    """Case H38."""
    path = written(tmp_path, "t;x\n0;0,5\n1;-1,25")
    assert features(path, separator=";", decimal=",") == [[0.5], [-1.25]]


@pytest.mark.parametrize("name", ["t", "time", "Step", "TIME"])
def test_time_index_is_left_out_and_said_to_be(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, f"x,{name},y\n1,0,2\n3,1,4\n")
    sequences = gl.read_sequences(path)
    np.testing.assert_array_equal(sequences.inputs[:, 0], [[1.0, 2.0], [3.0, 4.0]])
    said = f"column '{name}' is taken for the time index and left out (option columns)"
    assert sequences.assumptions == (said,)
    assert features(path, columns=[name]) == [[0.0], [1.0]]


def test_unnamed_first_column_of_a_header_is_a_row_number(tmp_path: Path) -> None:
    path = written(tmp_path, ",x\n0,5\n1,6\n")
    assert features(path) == [[5.0], [6.0]]


def test_table_of_a_time_index_alone_has_no_features(tmp_path: Path) -> None:
    with pytest.raises(gl.InputFileError, match="no other column"):
        gl.read_sequences(written(tmp_path, "t\n0\n1\n"))


@pytest.mark.parametrize("columns", [["y", "x"], [2, 0], ["2", "0"], ["y", 0]])
def test_columns_are_chosen_by_name_or_index(tmp_path: Path, columns: list[str | int]) -> None:
    path = written(tmp_path, "x,t,y\n1,0,2\n3,1,4\n")
    assert features(path, columns=columns) == [[2.0, 1.0], [4.0, 3.0]]


@pytest.mark.parametrize("column", ["z", 3, -1, "3"])
def test_column_that_does_not_exist_is_refused_with_those_that_do(
    tmp_path: Path, column: str | int
) -> None:
    path = written(tmp_path, "x,t,y\n1,0,2\n")
    with pytest.raises(gl.SettingError, match=r"expected one of x, t, y, or 0 to 2"):
        gl.read_sequences(path, columns=[column])


def test_column_name_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "x,x\n1,2\n")
    with pytest.raises(gl.SettingError, match="named once"):
        gl.read_sequences(path, columns=["x"])
    assert features(path, columns=[1]) == [[2.0]]


def test_quote_that_never_ends_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(gl.InputFileError, match=r"line 3: unexpected end of data"):
        gl.read_sequences(written(tmp_path, '1,2\n3,"4\n5,6\n'))


@pytest.mark.parametrize(
    ("text", "line", "column", "cell"),
    [
        ("1,2\n3,x\n", 2, 2, "x"),
        ("a,b\n1,2\n\u00bd,4\n", 3, 1, "\u00bd"),
        ("1,2\n3,\n", 2, 2, ""),
        ("1,2\n1_000,2\n", 2, 1, "1_000"),
        ("1,2\n0x10,2\n", 2, 1, "0x10"),
        ("1,a\n3,4\n", 1, 2, "a"),
        ("1,2\n\u0663,2\n", 2, 1, "\u0663"),
    ],
)
def test_cell_that_is_no_number_is_named_by_line_and_column(
    tmp_path: Path, text: str, line: int, column: int, cell: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(gl.InputFileError) as refusal:
        gl.read_sequences(path)
    assert f"{path}, line {line}, column {column}: {cell!r} is not a number" in str(refusal.value)


@pytest.mark.parametrize("cell", ["nan", "-inf", "NaN", "1e999"])
def test_cell_that_is_not_finite_is_named_by_line_and_column(tmp_path: Path, cell: str) -> None:
    path = written(tmp_path, f"1,2\n3,{cell}\n")
    with pytest.raises(gl.NonFiniteError, match="line 2, column 2"):
        gl.read_sequences(path)


@pytest.mark.parametrize("cell", ["1.5", "1.234,5", "1,2,3"])
def test_mixed_decimal_signs_are_refused_not_guessed(tmp_path: Path, cell: str) -> None:
    path = written(tmp_path, f"0,5;1\n{cell};2\n")
    with pytest.raises(gl.InputFileError, match="line 2, column 1"):
        gl.read_sequences(path, separator=";", decimal=",")


def test_short_row_of_a_table_is_refused_with_its_line(tmp_path: Path) -> None:
    """Case H39."""
    path = written(tmp_path, "1,2,3\n4,5\n6,7,8\n")
    with pytest.raises(gl.InputFileError, match=r"line 2: 2 cells, and line 1 has 3.*ragged"):
        gl.read_sequences(path)


def test_blank_line_inside_a_table_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(gl.InputFileError, match="line 2 is empty"):
        gl.read_sequences(written(tmp_path, "1,2\n\n3,4\n"))


def test_lines_are_counted_as_an_editor_counts_them(tmp_path: Path) -> None:
    """A quoted cell with a line break inside takes two lines."""
    path = written(tmp_path, '"a\nb",c\n1,2\n3,x\n')
    with pytest.raises(gl.InputFileError, match="line 4, column 2"):
        gl.read_sequences(path)


@pytest.mark.parametrize(
    "text", ["1,2,3\n4,5\n6,7,8\n", "1,2,3\n4,5,\n6,7,8\n\n", "1,2,3\n4,5,,\n6,7,8"]
)
def test_rows_are_sequences_on_request_with_their_lengths(tmp_path: Path, text: str) -> None:
    """Case H39; spreadsheets fill short rows up with empty cells."""
    sequences = gl.read_sequences(written(tmp_path, text), ragged=True)
    assert sequences.lengths.tolist() == [3, 2, 3]
    np.testing.assert_array_equal(sequences.inputs[:, :, 0].T, [[1, 2, 3], [4, 5, 0], [6, 7, 8]])
    assert sequences.description == "x.csv, one row a sequence"


@pytest.mark.parametrize("empty", ["", ",,", "  "])
def test_empty_row_inside_is_refused_as_a_sequence(tmp_path: Path, empty: str) -> None:
    """Case H27."""
    with pytest.raises(gl.InputFileError, match="line 2: sequence 2 is empty"):
        gl.read_sequences(written(tmp_path, f"1,2,3\n{empty}\n6,7\n"), ragged=True)


def test_gap_inside_a_row_is_refused(tmp_path: Path) -> None:
    with pytest.raises(gl.InputFileError, match="line 1, column 2: ''"):
        gl.read_sequences(written(tmp_path, "1,,3\n4,5\n"), ragged=True)


def test_columns_of_a_ragged_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(gl.SettingError, match="one feature"):
        gl.read_sequences(written(tmp_path, "1,2\n3\n"), ragged=True, columns=[0])


@pytest.mark.parametrize(
    ("separator", "decimal"),
    [(",", ","), (".", "."), ("", "."), (",,", "."), (";", "'"), ("1", ".")],
)
def test_signs_that_cannot_be_told_apart_are_refused(
    tmp_path: Path, separator: str, decimal: str
) -> None:
    with pytest.raises(gl.SettingError, match="expected"):
        gl.read_sequences(written(tmp_path, "1,2\n"), separator=separator, decimal=decimal)


@pytest.mark.parametrize("text", ["\n\n", "a,b\n", " \n"])
def test_table_without_rows_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(gl.InputFileError, match="no rows"):
        gl.read_sequences(written(tmp_path, text))


def test_text_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(gl.InputFileError, match="not UTF-8 text"):
        gl.read_sequences(written(tmp_path, "\u00e4,b\n1,2\n", encoding="latin-1"))
    with pytest.raises(gl.InputFileError, match="neither a NumPy file nor text"):
        gl.read_sequences(written(tmp_path, "1,2\n", encoding="utf-16"))


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.lists(NUMBERS, min_size=1, max_size=6), min_size=1, max_size=6))
def test_values_and_lengths_of_any_ragged_file_come_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[float]]
) -> None:
    text = "\n".join(";".join(repr(x).replace(".", ",") for x in row) for row in rows)
    path = written(tmp_path_factory.mktemp("ragged"), text)
    sequences = gl.read_sequences(path, ragged=True, separator=";", decimal=",")
    read = [sequences.inputs[:n, i, 0].tolist() for i, n in enumerate(sequences.lengths)]
    assert read == rows


@settings(max_examples=200, deadline=None)
@given(
    text=st.text(st.sampled_from("12.,;e-\n\r\t \"ax'\0\u0663"), max_size=40), ragged=st.booleans()
)
def test_any_text_gives_numbers_or_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, text: str, ragged: bool
) -> None:
    path = written(tmp_path_factory.mktemp("any"), text)
    try:
        inputs = gl.read_sequences(path, ragged=ragged).inputs
    except gl.GradlabError as error:
        message = str(error)
    else:
        message = str(path)
        assert np.isfinite(inputs).all()
    assert str(path) in message
    assert message.isprintable()
