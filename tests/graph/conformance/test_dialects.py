"""Every dialect against random calls, also malformed ones: no error, no lost item, no bad request."""

import json
from collections import Counter, deque
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, ToolMessage
from levels import examples
from stage import look

from wakeloop import create_todo_agent, preset
from wakeloop.dialects import get_dialect
from wakeloop.dialects.base import InvalidArguments
from wakeloop.testing import ScriptedModel, calls, malformed_call, prompt_faults, wire_faults
from wakeloop.todos.items import STATUSES, OperationRefused

PRESETS = ["wakeloop", "agentparley", "loki", "lesson", "cubepi"]
DIALECTS = ["parley", "loki", "checklist", "write_todos"]

# -- what is sent ----------------------------------------------------------------------------------------

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
    """A seeded author of calls: mostly sound ones, and every way to spoil them."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)

    def often(self, good: Any) -> Any:
        """What is meant; now and then JSON text of it, or anything."""
        chance = self.rng.random()
        return self.rng.choice(JUNK) if chance < 0.06 else json.dumps(good) if chance < 0.12 else good

    def rows(self, text: str, *, key: bool) -> list[Any]:
        """A list: mostly with one item in progress behind the completed ones."""
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
        """What a tool is given."""
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

    def call(self, names: Sequence[str]) -> Any:
        """One call: of a todo tool, of the tool beside them, of none that exists, or of no JSON."""
        chance = self.rng.random()
        if chance < 0.05:
            return malformed_call(self.rng.choice([*names, None]), self.rng.choice(["{no", "[]", "", None]))
        if chance < 0.15:
            return self.rng.choice([("look", {"path": "x"}), ("look", {}), ("no_such_tool", {})])
        name = self.rng.choice(names)
        return name, self.arguments(name)

    def script(self, names: Sequence[str], most: int) -> list[Any]:
        """Rounds, and texts between them; a reply that clears the list is rare."""
        rare = [name for name in names if name not in ("todo__init", "todo__clear")]
        weighted = [*names, *rare * 3]
        return [
            self.rng.choice(TEXTS)
            if self.rng.random() < 0.15
            else calls(*(self.call(weighted) for _ in range(self.rng.choice([1, 1, 1, most]))))
            for _ in range(self.rng.randint(4, 14))
        ]


SEEDS = st.integers(0, 2**32 - 1)


# -- what must hold --------------------------------------------------------------------------------------


def accepted(messages: Sequence[Any]) -> list[tuple[str, dict[str, Any], ToolMessage]]:
    """The todo calls of the last round that were not refused, each with its result."""
    at = max(i for i, m in enumerate(messages) if isinstance(m, AIMessage))
    results = {m.tool_call_id: m for m in messages[at + 1 :] if isinstance(m, ToolMessage)}
    return [
        (call["name"], call["args"], results[call["id"]])
        for call in messages[at].tool_calls
        if call["name"].startswith(("todo", "write_"))
        and call["id"] in results
        and results[call["id"]].status != "error"
    ]


def sent(name: str, args: dict[str, Any]) -> list[Any]:
    """What an accepted write sent: texts, or items of a whole list."""
    if name == "todo__add":
        return [args["task"]]
    value = next((args[key] for key in ("items", "todos") if key in args), [])
    return json.loads(value) if isinstance(value, str) else value


def number(key: Any) -> str:
    """An id as it is stored."""
    text = str(int(key) if isinstance(key, float) else key).strip()
    return str(int(text)) if text.isdecimal() else text


def check_step(before: list[Any], after: list[Any], messages: Sequence[Any]) -> None:
    """Nothing goes, comes or changes without an accepted call that says so."""
    made = accepted(messages)
    ids = [str(todo["id"]) for todo in after]
    assert len(ids) == len(set(ids))
    assert all(todo["status"] in STATUSES and todo["content"].strip() for todo in after)
    if any(name in ("todo", "write_todos") for name, _, _ in made):
        check_replaced(before, after, made)
    elif not any(name in ("todo__init", "todo__clear") for name, _, _ in made):
        check_changed(before, after, made)


def check_replaced(before: list[Any], after: list[Any], made: Sequence[Any]) -> None:
    """One write, and the list is what it sent; open items that it left out are named."""
    ((name, args, result),) = made
    assert [todo["content"] for todo in after] == [
        row["text" if name == "todo" else "content"].strip() for row in sent(name, args)
    ]
    kept = {todo["id"] for todo in after}
    left = [t for t in before if t["status"] in ("pending", "in_progress") and t["id"] not in kept]
    assert ("dropped" in str(result.content)) == bool(left)


def check_changed(before: list[Any], after: list[Any], made: Sequence[Any]) -> None:
    """All that was there is there, in its order; what was called is new or changed, and nothing else."""
    assert [(todo["id"], todo["content"]) for todo in after[: len(before)]] == [
        (todo["id"], todo["content"]) for todo in before
    ]
    stored = deque(todo["content"] for todo in after[len(before) :])
    for name, args, result in made:
        texts = [text.strip() for text in sent(name, args)]
        new = [stored.popleft() for text in texts if stored and stored[0] == text]
        named = "Already open: [" in str(result.content)
        assert named == (len(new) < len(texts))  # `named`: each of them equals an open item
        assert {*texts} <= {todo["content"] for todo in after}
    assert not stored
    changes = [args["id"] for name, args, _ in made if name in ("todo_update", "todo__done")]
    called = {number(key).lstrip("#") for key in changes}
    changed = {str(new["id"]) for old, new in zip(before, after, strict=False) if old != new}
    assert changed <= called


def settings_of(name: str) -> Any:
    return preset(name).model_copy(
        update={"auto_continue": True, "max_wake_cycles": 9, "stop_on_repeat": False}
    )


@pytest.mark.parametrize("name", PRESETS)
@examples(50)
@given(seed=SEEDS)
def test_random_calls_never_raise_and_never_lose_an_item(name: str, seed: int) -> None:
    script = Author(seed).script(sorted(get_dialect(preset(name).dialect).tool_names), 3)
    model = ScriptedModel([*script, *["Enough."] * 40])
    agent = create_todo_agent(model, [look], settings=settings_of(name))
    todos: list[Any] = []
    last = None
    config: Any = {"recursion_limit": 200}
    for state in agent.stream({"messages": [("user", "go")]}, config, stream_mode="values"):
        if isinstance(state["messages"][-1], ToolMessage) and state["messages"][-1].id != last:
            check_step(todos, state["todos"], state["messages"])
            last = state["messages"][-1].id
        else:
            assert todos == state["todos"]
        todos = list(state["todos"])
    assert wire_faults(model.requests) == []
    assert prompt_faults(model.requests) == []


@pytest.mark.parametrize("name", DIALECTS)
def test_the_author_reaches_what_it_should(name: str) -> None:
    """Most of what it writes is sound, and every tool is accepted and refused: else it would prove little."""
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
    """Whether a tool takes arguments that can be wrong."""
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


@pytest.mark.parametrize("name", DIALECTS)
@examples(60)
@given(data=st.data())
def test_every_item_keeps_to_its_line(name: str, data: st.DataObject) -> None:
    """A text with line breaks cannot pass for another item."""
    texts = data.draw(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=5))
    status = st.sampled_from(STATUSES)
    todos: Any = [
        {"id": n, "content": text, "status": data.draw(status), "reason": data.draw(st.text(max_size=9))}
        for n, text in enumerate(texts, 1)
    ]
    dialect = get_dialect(name)
    assert all(len(dialect.render_item(todo).splitlines()) == 1 for todo in todos)
