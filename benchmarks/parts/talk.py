"""What is sent, received and injected: characters, not time.

The model of this job is forgetful: after every fifth item it stops although items are open, and every tenth
item takes six rounds of work without an update of the list. If a run ends with open items, a person says "Go
on." and is counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_openai_messages
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver

from parts.agents import CLOSED, CREATE_AGENT, DEEPAGENTS, PRESET, Build, config
from parts.job import GO, VOCABULARIES, Calls, Costless, work
from wakeloop import create_todo_agent, preset
from wakeloop.testing import ScriptedModel, prompt_faults

ITEMS = {"full": (10, 30, 100), "quick": (10, 30), "tiny": (10,)}
NUDGED = ((30, 0), (100, 0), (1000, 0), (30, 10_000), (1000, 10_000))  # items, characters added to each
PAUSE = 5
LONG, ROUNDS = 10, 6
PRESETS = ("wakeloop", "agentparley", "loki", "lesson", "cubepi", "cubepi-strict")


def said(vocabulary: str, n: int) -> Iterator[Calls | str]:
    """Return every reply of the forgetful model, in order."""
    write = VOCABULARIES[vocabulary]
    yield write(n, 0)
    for item in range(1, n + 1):
        for again in range(1 if item % LONG else ROUNDS):
            yield [("work", {"item": item + 1000 * again})]
        yield write(n, item)
        if item % PAUSE == 0:
            yield f"Closed {item} of {n}."


class Recording(Costless):
    """Plays a script in order, and records its requests and replies."""

    requests: list[list[BaseMessage]] = []  # noqa: RUF012 - pydantic copies it for each model
    sent: list[str] = []  # noqa: RUF012
    received: int = 0
    tools: int = 0

    def bind_tools(self, tools: Any, **kwargs: Any) -> Recording:
        size = sum(len(json.dumps(convert_to_openai_tool(tool))) for tool in tools)
        self.tools = max(self.tools, size)  # some bind once more, without the list's tools
        return self

    def reply(self, messages: Any) -> AIMessage:
        """Return the next reply."""
        self.requests.append(list(messages))
        made = next(self.script)
        number = len(self.requests)
        if isinstance(made, str):
            answer = AIMessage(made)
        else:
            calls = [
                {"name": name, "args": args, "id": f"{number}.{i}"} for i, (name, args) in enumerate(made)
            ]
            answer = AIMessage("", tool_calls=calls)
        self.received += len(wire(answer))
        return answer


def wire(message: BaseMessage) -> str:
    """Return a message as text, in OpenAI's format."""
    return json.dumps(convert_to_openai_messages(message), ensure_ascii=False)


@dataclass
class Told:
    """The figures of one agent."""

    agent: str
    vocabulary: str
    items: int
    requests: int = 0
    people: int = 0
    system: int = 0
    tools: int = 0
    sent: float = 0.0
    received: float = 0.0
    prefix: float = 0.0
    broken: int = 0
    injected: dict[str, list[int]] = field(default_factory=dict)


def injected(messages: list[BaseMessage]) -> dict[str, list[int]]:
    """Return the lengths of what the graph wrote, by kind: whole messages, or the ends that are ours."""
    found: dict[str, list[int]] = {}
    for message in messages:
        mark = message.additional_kwargs.get("wakeloop")
        if mark:
            found.setdefault(mark["kind"], []).append(mark.get("chars", len(message.text)))
    return found


def common(before: list[str], now: list[str]) -> int:
    """Count the characters of whole messages that a request shares with the beginning of the one before."""
    alike = 0
    for a, b in zip(before, now, strict=False):
        if a != b:
            break
        alike += len(a)
    return alike


def talk(name: str, build: Build, vocabulary: str, n: int) -> Told:
    """Let an agent do the forgetful job, and count."""
    model = Recording(script=said(vocabulary, n))
    graph = build(model, InMemorySaver())
    told = Told(name, vocabulary, n)
    state = graph.invoke({"messages": [HumanMessage(GO)]}, config("1"))
    while sum(todo["status"] in CLOSED for todo in state["todos"]) < n:
        told.people += 1
        state = graph.invoke({"messages": [HumanMessage("Go on.")]}, config("1"))
    lines = [[wire(message) for message in request] for request in model.requests]
    sizes = [sum(map(len, request)) for request in lines]
    shared = [common(a, b) for a, b in pairwise(lines)]
    told.requests, told.tools = len(lines), model.tools
    told.system = sum(len(m.text) for m in model.requests[0] if m.type == "system")
    told.sent, told.received = sum(sizes) / n, model.received / n
    told.prefix = sum(shared) / sum(sizes[1:])
    told.broken = sum(a < b for a, b in zip(shared, sizes, strict=False))
    told.injected = injected(state["messages"])
    if name.startswith("wakeloop"):  # everything but the new tail
        assert told.broken == 0, f"{name}: a request does not begin with the one before"
        assert prompt_faults(model.requests) == [], name
    return told


def ours(name: str) -> Build:
    """Build this package's agent with a preset, no limit on the list, and loki's tools."""
    settings = preset(name).model_copy(update={"max_items": None, "auto_continue": True})
    return lambda model, saver: create_todo_agent(model, [work], settings=settings, checkpointer=saver)


def nudged(dialect: str, n: int, more: int = 0) -> dict[str, Any]:
    """Return the lengths of a nudge, a reminder and a correction over n open items, each `more` longer."""
    changed = {"auto_continue": True, "max_items": None, "max_wake_cycles": 1, "guard_retries": 1}
    changed |= {
        "max_idle_wakes": 0,
        "nag_after": 1,
        "nag_every": 0,
        "in_progress": "any",
        "stop_on_repeat": False,
    }
    settings = preset(PRESET[dialect]).model_copy(update=changed)
    calls = AIMessage("", tool_calls=[{"name": "work", "args": {"item": 1}, "id": "1"}])
    model = ScriptedModel(calls, "Stopping.", "Stopping.", "Stopping.")
    agent = create_todo_agent(model, [work], settings=settings)
    todos = [
        {"id": str(i) if dialect == "checklist" else i, "content": text, "status": "pending"}
        for i, text in (
            (i, f"Look at module_{i:04}.py and note what it needs{'!' * more}") for i in range(1, n + 1)
        )
    ]
    state = agent.invoke({"messages": [HumanMessage(GO)], "todos": todos})
    found = injected(state["messages"])
    whole = sum(len(todo["content"]) for todo in todos)
    return {"dialect": dialect, "open": n, "contents": whole} | {
        kind: sizes[0] for kind, sizes in found.items()
    }


def measure(size: str) -> dict[str, list[dict[str, Any]]]:
    """Measure every preset and the peers on the forgetful job, and the nudges over long lists."""
    agents = [(f"wakeloop {name}", ours(name), preset(name).dialect) for name in PRESETS]
    agents += [(a.name, a.build, a.vocabulary) for a in (CREATE_AGENT, DEEPAGENTS) if a.installed]
    told = [vars(talk(name, build, words, n)) for n in ITEMS[size] for name, build, words in agents]
    return {"job": told, "nudges": [nudged(dialect, *size) for dialect in PRESET for size in NUDGED]}


def tables(part: dict[str, list[dict[str, Any]]]) -> str:
    """Return the job for each number of items, then the nudges."""
    sizes = dict.fromkeys(row["items"] for row in part["job"])
    return "\n\n".join(
        [
            *(job_table([r for r in part["job"] if r["items"] == n]) for n in sizes),
            nudge_table(part["nudges"]),
        ]
    )


def job_table(rows: list[dict[str, Any]]) -> str:
    """Return a row for each agent; then the injected messages."""
    heads = ("", "requests", "a person had to ask", "system + tools", "sent a todo", "received a todo")
    heads += ("prefix of the one before", "requests that break it")
    lines = [f"**{rows[0]['items']} items**", "", *head(heads)]
    for r in rows:
        cells = [r["agent"], r["requests"], r["people"], f"{r['system']:,} + {r['tools']:,}"]
        cells += [f"{r['sent']:,.0f}", f"{r['received']:,.0f}", f"{r['prefix']:.1%}", r["broken"]]
        lines.append(line(cells))
    lines += ["", *head(("", "injected a wake", "a reminder", "a correction"))]
    for r in rows:
        if made := r["injected"]:
            lines.append(
                line([r["agent"], *(times(made.get(kind, [])) for kind in ("wake", "nag", "guard"))])
            )
    return "\n".join(lines)


def head(heads: Sequence[str]) -> list[str]:
    """Return the first two lines of a table: names on the left, figures on the right."""
    return [line(heads), f"|---|{'--:|' * (len(heads) - 1)}"]


def line(cells: Iterable[Any]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def times(sizes: list[int]) -> str:
    """Return how often, and how long on average."""
    return f"{len(sizes)} × {sum(sizes) / len(sizes):,.0f}" if sizes else ""


def nudge_table(rows: list[dict[str, Any]]) -> str:
    """Return the lengths over long lists."""
    lines = head(("dialect", "open items", "their contents", "nudge", "reminder", "correction"))
    for r in rows:
        figures = (f"{r[key]:,}" for key in ("open", "contents", "wake", "nag", "guard"))
        lines.append(line([f"`{r['dialect']}`", *figures]))
    return "\n".join(lines)
