"""A job of 60 items with results of 2,000 tokens: what clearing costs, next to LangChain's own middleware.

A weak model that works only from the visible request does it in `create_agent`: it has never seen what was
cleared, and calls again unless its item is closed. The figures are completed items, requests, and the tokens
that a provider's prefix cache would not have had. It prints the table of docs/long-threads.md, or with
`--close-by` and `--result` one row: whether a model that closes several items in one call repeats finished
work (then it takes more requests than items plus two).
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware, SummarizationMiddleware
from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool, tool

from wakeloop import preset
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import Knobs, ScriptedModel, WeakModel
from wakeloop.testing.captured_requests import CHARACTERS_PER_TOKEN, render_message
from wakeloop.testing.jobs import Call, PlainJob, Step

WINDOW, LARGE = 15_000, 1_000_000
RESULT = 8_000  # characters
CLEARED, NAMELESS = "cleared", "Some files were looked at."
Row = tuple[str, int, int, int, int, str]


class SmallModel(WeakModel):
    """A weak model whose server refuses a request above its window."""

    window: int = WINDOW

    def _choose_step(self, request: list[BaseMessage]) -> Any:
        tokens = sum(len(render_message(message)) for message in request) // CHARACTERS_PER_TOKEN
        if tokens > self.window:
            raise ValueError(f"prompt is too long: {tokens} tokens > {self.window} maximum")
        return super()._choose_step(request)


def make_look(size: int) -> BaseTool:
    """Make the tool, whose result has this many characters."""

    @tool
    def look(path: str) -> str:
        """Look at a file."""
        return f"{path}: {'word ' * size}"[:size]

    return look


def count_tokens(messages: Any) -> int:
    """Count tokens as the model's server does."""
    return math.ceil(sum(len(render_message(message)) for message in messages) / CHARACTERS_PER_TOKEN)


def edit(keep: int) -> list[Any]:
    """Return LangChain's clearing of tool results, at the same share of the window."""
    tools = ("todo_write", "todo_update", "todo_list")
    clear = ClearToolUsesEdit(trigger=int(0.8 * WINDOW), keep=keep, exclude_tools=tools, placeholder=CLEARED)
    return [ContextEditingMiddleware(edits=[clear])]


def summarize_perfectly(request: list[BaseMessage]) -> str:
    """Return a summary that forgets no finished item, and says so as a list does."""
    text = str(request[-1].text)
    done: set[int] = set()
    for words in (r"\[(\d+)\] done", r"\[(\d+)\] item \d+ \(completed\)"):
        done |= {int(number) for number in re.findall(words, text)}
    return "\n".join(f"  [{number}] item {number} (completed)" for number in sorted(done))


def summarize(write: Any = summarize_perfectly, trim: int | None = None) -> list[Any]:
    """Return LangChain's summaries, at the same share of the window, each of at most this many tokens."""
    words = ScriptedModel(*[write] * 1_000)
    trigger, keep = ("tokens", int(0.8 * WINDOW)), ("messages", 6)
    return [
        SummarizationMiddleware(
            words, trigger=trigger, keep=keep, token_counter=count_tokens, trim_tokens_to_summarize=trim
        )
    ]


VARIANTS: tuple[tuple[str, int, int, Callable[[], list[Any]]], ...] = (
    ("no clearing, a window of 1,000,000 tokens", LARGE, 0, list),
    ("`max_context`, a window of 15,000 tokens", WINDOW, WINDOW, list),
    ("`ContextEditingMiddleware`, the last 2 results kept, 15,000", WINDOW, 0, partial(edit, 2)),
    ("`ContextEditingMiddleware`, the last 8 results kept, 15,000", WINDOW, 0, partial(edit, 8)),
    ("`SummarizationMiddleware`, 15,000", WINDOW, 0, summarize),
    (
        "`SummarizationMiddleware`, which reads 4,000 tokens, 15,000",
        WINDOW,
        0,
        partial(summarize, trim=4_000),
    ),
    ("`SummarizationMiddleware`, which names no items, 15,000", WINDOW, 0, partial(summarize, NAMELESS)),
    ("`max_context` next to `ContextEditingMiddleware` (2), 15,000", WINDOW, WINDOW, partial(edit, 2)),
    ("`max_context` next to `SummarizationMiddleware`, 15,000", WINDOW, WINDOW, summarize),
)


def measure(
    name: str,
    window: int,
    clears_at: int,
    more: Callable[[], list[Any]],
    items: int,
    *,
    close_by: int = 1,
    size: int = RESULT,
) -> Row:
    """Do the job once, and count."""
    steps = [Step(f"item {n}", (Call("look", {"path": f"f{n}.md"}),)) for n in range(1, items + 1)]
    knobs = Knobs(forgets_cleared=CLEARED, close_by=close_by)
    model = SmallModel(PlainJob(steps), seed=1, knobs=knobs, window=window)
    settings = preset("wakeloop").model_copy(update={"max_context": clears_at, "max_requests": 6 * items})
    middleware = [WakeLoopMiddleware(settings=settings), *more()]
    agent = create_agent(model, [make_look(size)], middleware=middleware)
    spent: dict[str, Any] = {"requests": 0, "input": 0, "cached": 0}
    todos: list[Any] = []
    end = ""
    try:
        for mode, part in agent.stream(
            {"messages": [("user", "Look at all files.")]},
            {"recursion_limit": 100_000},
            stream_mode=["custom", "values"],
        ):
            if mode == "values":
                todos, end = part.get("todos") or todos, str((part.get("todo_session") or {}).get("reason"))
            elif part["type"] == "spent":
                spent = part["spent"]
    except ValueError as error:
        end = f"raised: {str(error).partition(':')[0]}"
    done = len({todo["content"] for todo in todos if todo["status"] == "completed"})
    fresh = spent["input"] - spent["cached"]
    return name, done, spent["requests"], spent["input"], fresh, end


def table(rows: Iterable[Row]) -> str:
    """Return the table as the documentation shows it."""
    lines = [
        "| | items done | requests | tokens sent | of them uncached | ended as |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for row in rows:
        lines.append(f"| {row[0]} | {row[1]} | {row[2]} | {row[3]:,} | {row[4]:,} | `{row[5]}` |")
    return "\n".join(lines)


def main() -> None:
    """Print the table for a number of items."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("items", nargs="?", type=int, default=60, help="number of items (60)")
    parser.add_argument("--close-by", type=int, help="finished items that the model closes in one call (1)")
    parser.add_argument("--result", type=int, help=f"tokens of a result ({RESULT // CHARACTERS_PER_TOKEN})")
    given = parser.parse_args()
    if given.close_by is None and given.result is None:
        print(table(measure(*variant, given.items) for variant in VARIANTS))
        return
    tokens = given.result or RESULT // CHARACTERS_PER_TOKEN
    name = f"{given.close_by or 1} closed in one call, results of {tokens:,} tokens, a window of {WINDOW:,}"
    size = tokens * CHARACTERS_PER_TOKEN
    row = measure(name, WINDOW, WINDOW, list, given.items, close_by=given.close_by or 1, size=size)
    print(table([row]))


if __name__ == "__main__":
    main()
