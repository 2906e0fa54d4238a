"""The todo tools of four dialects, as a model uses them."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from wakeloop.testing.captured_requests import calls_of

OPEN_STATUSES = frozenset({"pending", "in_progress"})


@dataclass(frozen=True)
class Item:
    """One item of the list, as the conversation shows it."""

    key: Any
    text: str
    status: str = "pending"

    @property
    def is_open(self) -> bool:
        """Whether it is still to be done."""
        return self.status in OPEN_STATUSES


class PlannedCall(NamedTuple):
    """A tool call to be made."""

    name: str
    args: dict[str, Any]


class AnsweredCall(NamedTuple):
    """A tool call that was answered, the text of its result, and whether that was no refusal."""

    name: str
    args: Mapping[str, Any]
    result: str
    accepted: bool = True


class TodoTools(Protocol):
    """One set of todo tools: how to read the list, write it, and close an item."""

    @property
    def names(self) -> frozenset[str]:
        """The tools of this vocabulary."""

    @property
    def needs(self) -> frozenset[str]:
        """Those of them that write and close."""

    @property
    def writes(self) -> frozenset[str]:
        """Those of them that begin or replace a list."""

    def read(self, events: Iterable[AnsweredCall | str], /) -> list[Item]:
        """Return the list after these calls and texts."""

    def plan(self, texts: Sequence[str], goal: str = "the request", /) -> list[PlannedCall]:
        """Return the calls of one reply that store these texts as open items."""

    def close(self, items: Sequence[Item], item: Item, reason: str = "", /) -> PlannedCall:
        """The call that marks one item as done, or as blocked for a reason where there is a word for it."""

    def edit(
        self, items: Sequence[Item], closed: Sequence[Item], added: Sequence[str], /
    ) -> list[PlannedCall]:
        """Return the calls of one reply that close some items and add others."""


class ParleyTools:
    """`todo_write(items)`, `todo_update(id or ids, status, reason?)`, `todo_list()`."""

    names = frozenset({"todo_write", "todo_update", "todo_list"})
    needs = frozenset({"todo_write", "todo_update"})
    writes = frozenset({"todo_write"})
    _words: Mapping[str, str] = {"open": "pending", "done": "completed"}
    _line = re.compile(
        r"^  \[(\d+)\] (.+?)(?: \((in progress|done|completed|cancelled|blocked)(?:: .*)?\))?$", re.MULTILINE
    )

    _span = re.compile(r"Stored \d+ items, \[(\d+)\] to \[(\d+)\]\.")
    _denied = re.compile(r"\[(\d+)\] was not accepted as done: ")

    def read(self, events: Iterable[AnsweredCall | str], /) -> list[Item]:
        """From list lines in todo results and user messages, and from updates that were accepted."""
        items: dict[int, Item] = {}
        for event in events:
            if isinstance(event, AnsweredCall) and event.name == "todo_update":
                status = str(event.args.get("status"))
                denied = {*map(int, self._denied.findall(event.result))}
                for key in {*map(_parse_number, updated_ids(event.args))} & items.keys() - denied:
                    items[key] = replace(items[key], status=self._words.get(status, status))
            elif isinstance(event, str) or event.name in self.names:
                items |= self._read_lines(event if isinstance(event, str) else event.result)
                items |= self._read_plan(event) if isinstance(event, AnsweredCall) else {}
        return list(items.values())

    def _read_plan(self, event: AnsweredCall) -> dict[int, Item]:
        """A long plan, whose result names the first and the last of its numbers."""
        if (stored := self._span.match(event.result)) is None:
            return {}
        first, last = map(int, stored.groups())
        texts = event.args.get("items")
        texts = json.loads(texts) if isinstance(texts, str) else texts or ()
        return {
            number: Item(number, text) for number, text in zip(range(first, last + 1), texts, strict=True)
        }

    def _read_lines(self, text: str) -> dict[int, Item]:
        items = {}
        for number, content, mark in self._line.findall(text):
            status = mark.replace(" ", "_") or "pending"
            items[int(number)] = Item(int(number), content, self._words.get(status, status))
        return items

    def plan(self, texts: Sequence[str], _goal: str = "", /) -> list[PlannedCall]:
        """One call for all."""
        return [PlannedCall("todo_write", {"items": list(texts)})]

    def close(self, _items: Sequence[Item], item: Item, reason: str = "", /) -> PlannedCall:
        """One update."""
        status = {"status": "blocked", "reason": reason} if reason else {"status": "done"}
        return PlannedCall("todo_update", {"id": item.key, **status})

    def edit(
        self, items: Sequence[Item], closed: Sequence[Item], added: Sequence[str], /
    ) -> list[PlannedCall]:
        """One update an item, one write for what is new."""
        return [*(self.close(items, item) for item in closed), *(self.plan(added) if added else ())]


class LokiTools:
    """`todo__init(goal)`, `todo__add(task)`, `todo__done(id)`, `todo__list()`, `todo__clear()`."""

    names = frozenset({"todo__init", "todo__add", "todo__done", "todo__list", "todo__clear"})
    needs = frozenset({"todo__init", "todo__add", "todo__done"})
    writes = frozenset({"todo__init", "todo__add"})

    def read(self, events: Iterable[AnsweredCall | str], /) -> list[Item]:
        """From accepted calls: numbers count from 1 after `init` and `clear`."""
        items: dict[int, Item] = {}
        for event in events:
            if isinstance(event, str) or not event.accepted:
                continue
            match event.name:
                case "todo__init" | "todo__clear":
                    items = {}
                case "todo__add":
                    key = max(items, default=0) + 1
                    items[key] = Item(key, str(event.args.get("task")))
                case "todo__done" if (key := _parse_number(event.args.get("id"))) in items:
                    items[key] = replace(items[key], status="completed")
        return list(items.values())

    def plan(self, texts: Sequence[str], goal: str = "the request", /) -> list[PlannedCall]:
        """The goal, then one call an item."""
        return [
            PlannedCall("todo__init", {"goal": goal}),
            *(PlannedCall("todo__add", {"task": t}) for t in texts),
        ]

    def close(self, _items: Sequence[Item], item: Item, _reason: str = "", /) -> PlannedCall:
        """One call; done is all there is."""
        return PlannedCall("todo__done", {"id": item.key})

    def edit(
        self, items: Sequence[Item], closed: Sequence[Item], added: Sequence[str], /
    ) -> list[PlannedCall]:
        """One call an item; the goal stays."""
        return [*(self.close(items, item) for item in closed), *self.plan(added)[1:]]


@dataclass(frozen=True)
class WholeListTools:
    """One tool that replaces the list: `write_todos(todos[…])` or `todo(items[…])`."""

    tool: str
    list_name: str
    text: str
    key: str | None = None

    @property
    def names(self) -> frozenset[str]:
        """The one tool."""
        return frozenset({self.tool})

    needs = writes = names

    def read(self, events: Iterable[AnsweredCall | str], /) -> list[Item]:
        """The last list that was accepted."""
        items: list[Item] = []
        for event in events:
            if isinstance(event, AnsweredCall) and event.accepted and event.name == self.tool:
                items = [
                    Item(
                        row.get(self.key or "", place), str(row.get(self.text)), row.get("status", "pending")
                    )
                    for place, row in enumerate(_rows(event.args.get(self.list_name)))
                ]
        return items

    def plan(self, texts: Sequence[str], _goal: str = "", /) -> list[PlannedCall]:
        """All items, the first in progress."""
        return [self._write([Item(str(place), text) for place, text in enumerate(texts, start=1)])]

    def close(self, items: Sequence[Item], item: Item, _reason: str = "", /) -> PlannedCall:
        """All items, this one done, the next open one in progress."""
        return self.edit(items, [item], ())[0]

    def edit(
        self, items: Sequence[Item], closed: Sequence[Item], added: Sequence[str], /
    ) -> list[PlannedCall]:
        """One call: what is closed is completed, what is new stands at the end."""
        new = [Item(str(place), text) for place, text in enumerate(added, start=len(items) + 1)]
        kept = [replace(one, status="completed") if one in closed else one for one in items]
        return [self._write([*kept, *new])]

    def _write(self, items: Sequence[Item]) -> PlannedCall:
        current = next((item for item in items if item.is_open), None)
        rows = []
        for item in items:
            status = item.status
            if item.is_open:
                status = "in_progress" if item is current else "pending"
            row = {self.text: item.text, "status": status}
            rows.append({self.key: item.key, **row} if self.key else row)
        return PlannedCall(self.tool, {self.list_name: rows})


CHECKLIST = WholeListTools("todo", "items", "text", key="id")
WRITE_TODOS = WholeListTools("write_todos", "todos", "content")
ALL_TODO_TOOLS: tuple[TodoTools, ...] = (ParleyTools(), LokiTools(), WRITE_TODOS, CHECKLIST)


def find_todo_tools(tools: Collection[str], spoken: Sequence[TodoTools] = ALL_TODO_TOOLS) -> TodoTools | None:
    """The vocabulary whose writing and closing tools are all bound; None if there is none."""
    return next((one for one in spoken if one.needs <= set(tools)), None)


def _rows(written: object) -> list[dict[str, Any]]:
    """The list as a model wrote it, also as a JSON string; what is no list of objects was not stored."""
    if isinstance(written, str):
        try:
            written = json.loads(written)
        except ValueError:
            return []
    return [row for row in written if isinstance(row, dict)] if isinstance(written, list) else []


def was_refused(result: ToolMessage) -> bool:
    """Return whether the result says that nothing was done."""
    text = str(result.text)
    return result.status == "error" or text.startswith(("Error", '{"error"'))


def read_events(messages: Sequence[BaseMessage]) -> Iterator[AnsweredCall | str]:
    """The user's texts and the accepted calls, in the order of the calls."""
    results = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    for message in messages:
        if isinstance(message, HumanMessage):
            yield str(message.text)
        for call in calls_of(message):
            result = results.get(call["id"] or "")
            if result is not None and not was_refused(result):
                yield AnsweredCall(call["name"], call["args"], str(result.text))


def updated_ids(args: Mapping[str, Any]) -> list[object]:
    """The items that a `todo_update` names, one or several."""
    one, several = args.get("id"), args.get("ids")
    return [*([] if one is None else [one]), *(several if isinstance(several, list) else [])]


def _parse_number(value: object) -> int:
    """A number as a model writes it; -1 for anything else."""
    try:
        return int(str(value))
    except ValueError:
        return -1
