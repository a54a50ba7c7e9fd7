"""Tables for people and machines: same numbers, nothing from a file can act up."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import polars as pl
import pytest

from ragworth.core.errors import FormatError, format_cell
from ragworth.report.render import format_p_value, look_for_path, printable, render, save_bytes

NASTY = pl.DataFrame({"system": ["a|b", "\x1b[31mred", "<b>&_%$#{}~^\\"], "mean": [0.123456, None, float("inf")]})


def test_text_escapes_control_characters_and_aligns() -> None:
    lines = render(NASTY, "text").decode().splitlines()
    assert "\x1b" not in "\n".join(lines)
    assert r"\x1b[31mred" in lines[3]
    assert lines[2].endswith("0.1235")
    assert lines[3].endswith("–")
    assert len({len(line) for line in lines}) == 1


def test_markdown_keeps_its_columns() -> None:
    rows = render(NASTY, "markdown").decode().splitlines()
    assert rows[:3] == ["| system | mean |", "| --- | ---: |", "| a\\|b | 0.1235 |"]
    assert "<b>" not in rows[4]
    assert r"\_" in rows[4]


def test_latex_escapes_its_signs() -> None:
    text = render(NASTY, "latex").decode()
    assert r"\textless{}b\textgreater{}\&\_\%\$\#\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}" in text
    assert text.startswith("\\begin{tabular}{lr}")


def test_latex_of_signs_and_brackets() -> None:
    text = render(pl.DataFrame({"system": ["[2cm] b − a"], "ρ": [1.0]}), "latex").decode()
    assert "{[}2cm] b $-$ a" in text
    assert r"$\rho$" in text


def test_east_asian_signs_take_two_columns() -> None:
    lines = render(pl.DataFrame({"system": ["東京", "abcd"], "n": [1, 2]}), "text").decode().splitlines()
    assert lines[2:] == ["東京    1", "abcd    2"]


def test_words_for_the_terminal_keep_their_lines() -> None:
    assert printable("a\x1b[31m\nb") == "a\\x1b[31m\nb"


def test_json_has_full_precision_and_no_infinity() -> None:
    rows = json.loads(render(NASTY, "json"))
    assert rows[0]["mean"] == 0.123456
    assert rows[2]["mean"] is None


def test_parquet_and_csv_read_back() -> None:
    assert pl.read_parquet(io.BytesIO(render(NASTY, "parquet"))).equals(NASTY)
    assert pl.read_csv(io.BytesIO(render(NASTY, "csv")))["system"].to_list() == NASTY["system"].to_list()


def test_p_values_are_never_printed_as_0() -> None:
    assert format_p_value(1e-300) == "< 0.0001"
    assert format_p_value(0.0312) == "0.0312"
    assert format_p_value(None) == "–"
    assert format_cell(3) == "3"


def test_the_ending_decides_the_look(tmp_path: Path) -> None:
    assert look_for_path("x.md") == "markdown"
    with pytest.raises(FormatError, match=r"unknown file extension \.docx"):
        look_for_path("x.docx")
    save_bytes(b"x", tmp_path / "x.tex")
    assert (tmp_path / "x.tex").read_bytes() == b"x"
    with pytest.raises(FormatError, match="cannot be written"):
        save_bytes(b"x", tmp_path / "no" / "x.tex")


def test_a_file_is_replaced_whole_and_a_pipe_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"old")
    reader = path.open("rb")
    save_bytes(b"new", path)
    with reader:
        assert reader.read() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["x.csv"]
    if os.name == "posix":
        read, write = os.pipe()
        with os.fdopen(read, "rb") as end:
            save_bytes(b"piped", f"/dev/fd/{write}")
            os.close(write)
            assert end.read() == b"piped"


def test_long_names_are_short_and_distinct_in_text_only() -> None:
    names = ["x" * 300, "x" * 299 + "y", "x" * 150 + "y" + "x" * 149, "x" * 150 + "yy" + "x" * 148, "bm25"]
    frame = pl.DataFrame({"system": [*names, f"{names[0]} − bm25"], "note": ["n" * 90] * 6, names[0]: [1] * 6})
    head, _, *rows = render(frame, "text").decode().splitlines()
    shown = [row.partition("  ")[0] for row in rows]
    assert len(set(shown)) == 6 and max(map(len, shown)) <= 60 + len(" − bm25")
    assert shown[4] == "bm25" and shown[5] == f"{shown[0]} − bm25" and "…" in shown[0]
    assert len(head.split()[-1]) == 60 and "n" * 90 in rows[0]
    assert names[0] in render(frame, "markdown").decode()
