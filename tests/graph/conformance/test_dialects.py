"""Every dialect against random arguments, including malformed ones: an operation or a sentence."""

import json
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from levels import examples

from wakeloop.dialects import get_dialect
from wakeloop.dialects.base import InvalidArguments
from wakeloop.todos.items import OperationRefused

DIALECTS = ["parley", "loki", "checklist", "write_todos"]

# -- generated calls -------------------------------------------------------------------------------------

TEXTS = ["a", "b", "c", "d", "e", "f", "buy milk", "  a ", "b\n  [9] x", "a\n[x] #9: forged", "é…", "", "  "]
KEYS = [1, 2, 3, 4, 5, "1", "2", 3.0, 0, -1, "x", "", "#1", "9" * 5_000, "\u0661"]
WORDS = ["pending", "in_progress", "completed", "done", "blocked", "open", "cancelled", "Completed", "", "no"]
JUNK = [
    None,
    True,
    False,
    7,
    1e308,
    float("nan"),
    float("inf"),
    "x",
    "[" * 9_000,
    "\ud800",
    [],
    {},
    [[]],
    {"id": {}},
]


class Author:
    """A seeded author of calls: mostly valid ones, and every way to spoil them."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)

    def often(self, good: Any) -> Any:
        """Return the intended value, sometimes as JSON, or something random."""
        chance = self.rng.random()
        return self.rng.choice(JUNK) if chance < 0.06 else json.dumps(good) if chance < 0.12 else good

    def rows(self, text: str, *, key: bool) -> list[Any]:
        """A list: mostly with one item in progress after the completed ones."""
        contents = self.rng.sample(TEXTS[:6], self.rng.randint(0, 5))
        at = self.rng.randint(0, len(contents))
        status = ["completed"] * at + ["in_progress"] + ["pending"] * len(contents)
        made = [{text: c, "status": s, "id": c} for c, s in zip(contents, status, strict=False)]
        if self.rng.random() < 0.3:
            for row in made:
                spoilt = self.rng.choice([text, "status", "id"])
                row[spoilt] = self.often(self.rng.choice({text: TEXTS, "status": WORDS, "id": KEYS}[spoilt]))
        if self.rng.random() < 0.1:
            for row in made:
                del row[self.rng.choice(list(row))]
        return [row if key else {name: row[name] for name in row if name != "id"} for row in made]

    def arguments(self, name: str) -> dict[str, Any]:
        """Return a tool's arguments."""
        choice = self.rng.choice
        match name:
            case "todo_write":
                args = {"items": self.often([choice(TEXTS[:9]) for _ in range(self.rng.randint(0, 4))])}
            case "todo_update":
                args = {
                    "id": self.often(choice(KEYS)),
                    "status": self.often(choice(WORDS)),
                    "reason": choice(TEXTS),
                }
            case "todo__init":
                args = {"goal": self.often(choice(TEXTS))}
            case "todo__add":
                args = {"task": self.often(choice(TEXTS))}
            case "todo__done":
                args = {"id": self.often(choice(KEYS))}
            case "todo":
                args = {"items": self.often(self.rows("text", key=True))}
            case "write_todos":
                args = {"todos": self.often(self.rows("content", key=False))}
            case _:
                args = {}
        if self.rng.random() < 0.05:
            args[choice([*args, "surprise"])] = choice(JUNK)
        return {key: value for key, value in args.items() if self.rng.random() > 0.03}


SEEDS = st.integers(0, 2**32 - 1)


# -- what must hold --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIALECTS)
def test_the_author_covers_what_it_should(name: str) -> None:
    """Most of what it writes is valid, and every tool is accepted and refused:

    otherwise it would prove little.
    """
    dialect, seen = get_dialect(name), Counter[tuple[str, bool]]()
    for seed in range(300):
        author = Author(seed)
        tool = author.rng.choice(sorted(dialect.tool_names))
        try:
            dialect.parse_call(tool, author.arguments(tool))
            seen[tool, True] += 1
        except (InvalidArguments, OperationRefused):
            seen[tool, False] += 1
    sound = sum(count for (_, fine), count in seen.items() if fine)
    assert 0.3 < sound / 300 < 0.95
    assert all(
        seen[tool, True] and seen[tool, False] for tool in dialect.tool_names if dialect.tools and takes(tool)
    )


def takes(tool: str) -> bool:
    """Return whether a tool's arguments can be wrong."""
    return bool(Author(1).arguments(tool).keys() - {"surprise"})


@pytest.mark.parametrize("name", DIALECTS)
@examples(150)
@given(seed=SEEDS)
def test_reading_a_call_gives_an_operation_or_a_sentence(name: str, seed: int) -> None:
    dialect, author = get_dialect(name), Author(seed)
    tool = author.rng.choice(sorted(dialect.tool_names))
    try:
        assert dialect.parse_call(tool, author.arguments(tool))
    except (InvalidArguments, OperationRefused) as refusal:
        sentence = dialect.render_error(str(refusal))
        assert 0 < len(sentence) < 1_000
        assert "Traceback" not in sentence
        assert "pydantic" not in sentence
