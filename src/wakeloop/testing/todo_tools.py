"""The todo tools of four dialects, as a model uses them."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from wakeloop.testing.captured_requests import calls_of
from wakeloop.testing.jobs import Call
from wakeloop.text.marks import added_length, split_result_text

DEFAULT_STATUS = "done"  # of a `todo_update` that names none
COMPLETED = "completed"  # the argument of `write_todos` for items alone
OPEN_STATUSES = frozenset({"pending", "in_progress"})


@dataclass(frozen=True)
class Item:
    """One item of the list, as the conversation shows it."""

    key: Any
    text: str
    status: str = "pending"

    @property
    def is_open(self) -> bool:
        """Whether the item still has to be done."""
        return self.status in OPEN_STATUSES


class AnsweredCall(NamedTuple):
    """An accepted tool call with the text of its result."""

    name: str
    args: Mapping[str, Any]
    result: str


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
    _verified = re.compile(r"^\[(\d+)\] done: verified$", re.MULTILINE)
    _denied = re.compile(r"\[(\d+)\] was not accepted as done: ")

    def read(self, events: Iterable[AnsweredCall | str], /) -> list[Item]:
        """Read list lines in todo results and user messages, accepted updates, and what code has verified."""
        items: dict[int, Item] = {}
        for event in events:
            if isinstance(event, str):
                items |= self._read_lines(event)
            elif event.name == "todo_update":
                items |= self._read_update(event, items)
            elif event.name in self.names:
                items |= self._read_lines(event.result)
                items |= self._read_plan(event)
            for key in map(int, self._verified.findall("" if isinstance(event, str) else event.result)):
                if key in items:
                    items[key] = replace(items[key], status="completed")
        return list(items.values())

    def _read_update(self, event: AnsweredCall, items: Mapping[int, Item]) -> dict[int, Item]:
        """Return the items that an update changed; the result lists those it denied."""
        status = str(event.args.get("status", DEFAULT_STATUS))
        denied = {*map(int, self._denied.findall(event.result))}
        changed = {}
        for key in map(_parse_number, updated_ids(event.args)):
            if key in items and key not in denied:
                changed[key] = replace(items[key], status=self._words.get(status, status))
        return changed

    def _read_plan(self, event: AnsweredCall) -> dict[int, Item]:
        """Return the items of a long plan, whose result gives only the first and the last number."""
        stored = self._span.match(event.result)
        if stored is None:
            return {}
        first, last = map(int, stored.groups())
        texts = event.args.get("items") or ()
        if isinstance(texts, str):
            texts = json.loads(texts)
        items = {}
        for number, text in zip(range(first, last + 1), texts, strict=True):
            items[number] = Item(number, text)
        return items

    def _read_lines(self, text: str) -> dict[int, Item]:
        items = {}
        for number, content, mark in self._line.findall(text):
            status = mark.replace(" ", "_") or "pending"
            items[int(number)] = Item(int(number), content, self._words.get(status, status))
        return items

    def plan(self, texts: Sequence[str], /) -> list[Call]:
        """Return one call with all items."""
        return [Call("todo_write", {"items": list(texts)})]

    def block(self, _items: Sequence[Item], item: Item, reason: str, /) -> Call:
        """Return one update."""
        return Call("todo_update", {"id": item.key, "status": "blocked", "reason": reason})

    def edit(self, _items: Sequence[Item], closed: Sequence[Item], added: Sequence[str], /) -> list[Call]:
        """Return an update for each closed item, and one write for the new ones."""
        moves = [Call("todo_update", {"id": item.key, "status": "done"}) for item in closed]
        if added:
            moves += self.plan(added)
        return moves


class LokiTools:
    """`todo__init(goal)`, `todo__add(task)`, `todo__done(id)`, `todo__list()`, `todo__clear()`."""

    names = frozenset({"todo__init", "todo__add", "todo__done", "todo__list", "todo__clear"})
    needs = frozenset({"todo__init", "todo__add", "todo__done"})
    writes = frozenset({"todo__init", "todo__add"})

    def read(self, events: Iterable[AnsweredCall | str], /) -> list[Item]:
        """Read accepted calls; numbers start at 1 again after `init` and `clear`."""
        items: dict[int, Item] = {}
        for event in events:
            if isinstance(event, str):
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

    def plan(self, texts: Sequence[str], /) -> list[Call]:
        """Return a call for the goal, then one for each item."""
        moves = [Call("todo__init", {"goal": "the request"})]
        for text in texts:
            moves.append(Call("todo__add", {"task": text}))
        return moves

    def block(self, _items: Sequence[Item], item: Item, _reason: str, /) -> Call:
        """Return one call; this dialect has no status but done."""
        return Call("todo__done", {"id": item.key})

    def edit(self, items: Sequence[Item], closed: Sequence[Item], added: Sequence[str], /) -> list[Call]:
        """Return one call for each item; the goal stays."""
        moves = [self.block(items, item, "") for item in closed]
        return moves + self.plan(added)[1:]


@dataclass(frozen=True)
class WholeListTools:
    """One tool that replaces the list: `write_todos(todos[…])` or `todo(items[…])`."""

    tool: str
    list_name: str
    text: str
    key: str | None = None
    completes: bool = False  # whether the texts of completed items can be sent alone

    @property
    def names(self) -> frozenset[str]:
        """The name of the only tool."""
        return frozenset({self.tool})

    needs = writes = names

    def read(self, events: Iterable[AnsweredCall | str], /) -> list[Item]:
        """Return the last list that was accepted."""
        items: list[Item] = []
        for event in events:
            if isinstance(event, str) or event.name != self.tool:
                continue
            for text in event.args.get(COMPLETED) or ():
                items = [replace(item, status="completed") if item.text == text else item for item in items]
            if self.list_name in event.args:
                items = []
                for place, row in enumerate(_rows(event.args.get(self.list_name))):
                    key, text = row.get(self.key or "", place), str(row.get(self.text))
                    items.append(Item(key, text, row.get("status", "pending")))
        return items

    def plan(self, texts: Sequence[str], /) -> list[Call]:
        """Return one call with all items, the first in progress."""
        return self.edit((), (), texts)

    def block(self, items: Sequence[Item], item: Item, _reason: str, /) -> Call:
        """Return one call with all items: this one done, the next open one in progress."""
        return self.edit(items, [item], ())[0]

    def edit(self, items: Sequence[Item], closed: Sequence[Item], added: Sequence[str], /) -> list[Call]:
        """Return one call with all items: closed ones completed, new ones at the end."""
        if self.completes and closed and not added:
            return [Call(self.tool, {COMPLETED: [item.text for item in closed]})]
        changed = list(items)
        for place, item in enumerate(items):
            if item in closed:
                changed[place] = replace(item, status="completed")
        for number, text in enumerate(added, start=len(items) + 1):
            changed.append(Item(str(number), text))
        return [self._write(changed)]

    def _write(self, items: Sequence[Item]) -> Call:
        rows = []
        has_current = False
        for item in items:
            row = {self.text: item.text, "status": item.status}
            if self.completes and item.is_open:
                del row["status"]
            elif item.is_open:
                row["status"] = "pending" if has_current else "in_progress"
                has_current = True
            if self.key:
                row = {self.key: item.key, **row}
            rows.append(row)
        return Call(self.tool, {self.list_name: rows})


TodoTools: TypeAlias = ParleyTools | LokiTools | WholeListTools
CHECKLIST = WholeListTools("todo", "items", "text", key="id")
WRITE_TODOS = WholeListTools("write_todos", "todos", "content")
COMPLETING = replace(WRITE_TODOS, completes=True)
ALL_TODO_TOOLS: tuple[TodoTools, ...] = (ParleyTools(), LokiTools(), WRITE_TODOS, CHECKLIST)


def find_todo_tools(tools: Collection[str]) -> TodoTools | None:
    """Return the first todo tools whose writing and closing tools are all bound, or None."""
    found = next((one for one in ALL_TODO_TOOLS if one.needs <= set(tools)), None)
    if found is WRITE_TODOS and isinstance(tools, Mapping):
        takes = tools["write_todos"].get("parameters", {}).get("properties", {})
        return COMPLETING if COMPLETED in takes else found
    return found


def _rows(written: object) -> list[dict[str, Any]]:
    """Return the rows of a list as a model wrote it, also as a JSON string; only objects count."""
    if isinstance(written, str):
        try:
            written = json.loads(written)
        except ValueError:
            return []
    if not isinstance(written, list):
        return []
    return [row for row in written if isinstance(row, dict)]


def was_refused(result: ToolMessage) -> bool:
    """Return whether the result says that the call was refused."""
    text = str(result.text)
    return result.status == "error" or text.startswith(("Error", '{"error"'))


def read_events(messages: Sequence[BaseMessage]) -> Iterator[AnsweredCall | str]:
    """Yield the user's texts, the accepted calls, and what the graph added to their results, in order."""
    results = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    for message in messages:
        if isinstance(message, HumanMessage):
            yield str(message.text)
        for call in calls_of(message):
            result = results.get(call["id"] or "")
            if result is not None and not was_refused(result):
                yield AnsweredCall(call["name"], call["args"], str(result.text))
            if result is not None and added_length(result):
                yield split_result_text(result)[1]


def updated_ids(args: Mapping[str, Any]) -> list[object]:
    """Return the ids of a `todo_update`, one or several."""
    found: list[object] = []
    if args.get("id") is not None:
        found.append(args["id"])
    if isinstance(args.get("ids"), list):
        found += args["ids"]
    return found


def _parse_number(value: object) -> int:
    """Return a number as a model writes it, -1 for anything else."""
    try:
        return int(str(value))
    except ValueError:
        return -1
