"""Lines within a width, tables, commands to copy; numbers with their units."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeloop.display.terminal_output import (
    count_columns,
    cut_text,
    format_columns,
    wrap_text,
    write_text,
)

WORDS = st.lists(st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=30), min_size=1)


@given(WORDS, st.integers(0, 12), st.integers(10, 120))
def test_every_word_is_kept_and_only_a_single_long_word_exceeds_the_width(
    words: list[str], lead: int, width: int
) -> None:
    text = " " * lead + " ".join(words)
    rows = [*wrap_text(text, width)]
    assert " ".join(rows).split() == text.split()
    assert [row for row in rows if count_columns(row) > width and len(row.split()) > 1] == []
    assert [row for row in rows if count_columns(row) > width and count_columns(row.strip()) <= width] == []


@given(st.lists(st.text(max_size=20), max_size=8), st.integers(20, 120))
def test_a_wrapped_command_is_one_command_to_a_shell(words: list[str], width: int) -> None:
    command = shlex.join(["wakeloop", "resume", *(" ".join(word.split()) for word in words)])
    first, *more = wrap_text(f"To continue: {command}", width)
    typed = first.removeprefix("To continue: ") if not more else "\n".join(more)
    assert shlex.split(typed.replace("\\\n", "")) == shlex.split(command)


def test_a_usage_line_is_not_a_command_to_copy() -> None:
    assert [*wrap_text("Usage: wakeloop todo [THREAD] [ACTION]", 30)] == [
        "Usage: wakeloop todo [THREAD]",
        "    [ACTION]",
    ]


def test_a_time_span_stays_with_its_unit() -> None:
    assert [*wrap_text("✔ write_file(path='a.md')  1.0 s", 30)] == ["✔ write_file(path='a.md')", "    1.0 s"]
    assert [*wrap_text("it took as much as (0.0 s)", 25)] == ["it took as much as", "    (0.0 s)"]


def test_words_that_look_like_another_command_stay_in_theirs() -> None:
    words = ["resume", "one: x, then wakeloop rm one", "it's, then wakeloop rm two"]
    for told in ("To continue", "To raise the budget: change max_tokens in the agent's file, then"):
        command = shlex.join(["wakeloop", *words])
        rows = [*wrap_text(f"{told}: {command}".replace("then:", "then"), 40)]
        first = rows.index("wakeloop resume \\")
        assert shlex.split("\n".join(rows[first:]).replace("\\\n", "")) == ["wakeloop", *words]


@pytest.mark.parametrize("took", ["0.0 s", "(3 min", "100 %,", "250 ms)"])
def test_a_number_and_its_unit_share_a_row(took: str) -> None:
    text = f"✔ read_file one.txt  {took}"
    for lack in range(1, len(took) + 1):
        assert took in [*wrap_text(text, len(text) - lack)][1]
    assert [*wrap_text("of 12 sheets", 8)] == ["of 12", "  sheets"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("end", ["", "x"])
def test_endless_blanks_take_no_time(end: str) -> None:
    assert [row.split() for row in wrap_text("a" + " " * 300_000 + end, 40)] == [
        ["a"],
        *([[end]] if end else []),
    ]


HEAD = ("THREAD", "STATE", "REQUEST", "LAST MESSAGE")
ROW = ("t-12345678", "idle", "Say what is in this folder", "Two files and a half, and 東京 as well")


@pytest.mark.parametrize(
    ("width", "row"),
    [
        (None, "t-12345678  idle   Say what is in this folder  Two files and a half, and 東京 as well"),
        (85, "t-12345678  idle   Say what is in this folder  Two files and a half, and 東京 as well"),
        (84, "t-12345678  idle   Say what is in this folder  Two files and a half, and 東京 as…"),
        (60, "t-12345678  idle   Say what is in…      Two files and a…"),
        (40, "t-12345678  idle   Say what…  Two files…"),
    ],
)
def test_a_table_cuts_its_cells(width: int | None, row: str) -> None:
    told = [*format_columns([HEAD, ROW], width, cuttable=(2, 3))]
    assert told[1] == row
    assert width is None or max(map(count_columns, told)) <= width


@pytest.mark.parametrize(
    ("width", "row"),
    [
        (None, ROW),
        (85, ROW),
        (45, (ROW[0], ROW[1], "Say what is…", "Two files…")),
        (44, (ROW[0], "Say what is in…", "Two files and…")),
        (37, ("Say what is in…", "Two files and a…")),
    ],
)
def test_spare_columns_are_dropped_before_a_cell_is_too_short(width: int | None, row: Sequence[str]) -> None:
    told = [*format_columns([HEAD, ROW], width, cuttable=(2, 3), spare=(1, 0))]
    assert [re.split(" {2,}", line) for line in told[1:]] == [[*row]]


@pytest.mark.parametrize(
    ("text", "wide", "shown"),
    [
        ("one two three", 13, "one two three"),
        ("one two three", 12, "one two…"),
        ("one two three", 8, "one two…"),
        ("one two three", 7, "one…"),
        ("a incomprehensibilities", 12, "a incompreh…"),
        ("東京の資料をまとめて", 11, "東京の資料…"),
        ("東京の資料をまとめて", 10, "東京の資…"),
    ],
)
def test_a_string_is_cut_between_words_if_that_leaves_half_of_it(text: str, wide: int, shown: str) -> None:
    assert cut_text(text, wide) == shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("out", "whole", "shown"),
    [
        (io.StringIO(), False, "error: one two three four\n"),
        (Terminal(), True, "error: one two three four\n"),
        (Terminal(), False, "error: one two\n    three four\n"),
    ],
    ids=["piped", "for a program", "a terminal"],
)
def test_only_a_person_at_a_terminal_gets_wrapped_rows(
    out: io.StringIO, whole: bool, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "16")
    write_text("error:\x1b[31m one two three four", out, whole=whole)
    assert out.getvalue() == shown
