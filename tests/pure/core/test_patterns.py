"""Reading the words of a model or a person takes no more than linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from signal import ITIMER_VIRTUAL, SIGVTALRM, setitimer, signal
from typing import Any

import pytest

import wakeloop
from wakeloop.dialects.parley import Parley

HOUSE = Path(wakeloop.__file__).parent
READERS = ("dialects", "display", "model", "text", "todos", "tools", "testing", "bench", "cli")
FILES = [
    path for place in READERS for path in sorted((HOUSE / place).rglob("*.py")) if path.stem != "__main__"
]
WRITTEN = [path.relative_to(HOUSE.parent) for path in FILES if "re.compile(" in path.read_text("utf-8")]
LONGEST = 20_000
KINDS = [
    "1 ",
    "1  ",
    "1, ",
    "[1] ",
    "#1 ",
    "1_000",
    "a ",
    "a=",
    "a: ",
    "a.",
    "_",
    "-",
    " ",
    "\n",
    "  \n",
    "'",
    '"',
]
KINDS += [
    "'a' ",
    "/",
    "http://a@",
    "\\",
    "[",
    "(",
    "<a ",
    "$",
    "{",
    "`",
    "|",
    "=",
    "sk-",
    "key",
    "\x1b[",
    "\u200b",
    "é",
]
CPU = 2  # seconds for all kinds; quadratic time takes more


def of(path: Path) -> dict[str, re.Pattern[str]]:
    module = import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
    return {name: value for name, value in vars(module).items() if isinstance(value, re.Pattern)}


@contextmanager
def bounded() -> Iterator[None]:
    """Fail if the CPU is busy for longer, even in the middle of a search."""

    def late(*_: Any) -> None:
        pytest.fail(f"busy for {CPU} seconds")  # not an `Exception`, because validators catch those

    before = signal(SIGVTALRM, late)
    setitimer(ITIMER_VIRTUAL, CPU)
    try:
        yield
    finally:
        setitimer(ITIMER_VIRTUAL, 0)
        signal(SIGVTALRM, before)


def texts() -> Iterator[str]:
    for kind in KINDS:
        text = (kind * LONGEST)[:LONGEST]
        yield from (f"{text}\0!", f"1{text}", f"a{' ' * LONGEST}{kind}")


@pytest.mark.parametrize("path", WRITTEN, ids=str)
def test_a_pattern_matches_or_not_in_linear_time(path: Path) -> None:
    for pattern in of(path).values():
        with bounded():
            for text in texts():
                pattern.fullmatch(text)


@pytest.mark.parametrize("key", ["id", "ids"])
def test_numbers_in_a_row_are_read_in_linear_time(key: str) -> None:
    for text in texts():
        with bounded(), pytest.raises(Exception, match="todo_update"):
            Parley().parse_call("todo_update", {key: f"{text}x", "status": "sideways"})
