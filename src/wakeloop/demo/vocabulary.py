"""The todo tools as the offline model speaks them, by dialect."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from wakeloop.demo.history import Event

Call = tuple[str, dict[str, Any]]
LINE = re.compile(r"^  \[([^\]\n]+)\] (.*)$", re.MULTILINE)
CLOSED_LINE = re.compile(r" \((?:blocked: .*|done|cancelled)\)$")


@dataclass(frozen=True)
class Item:
    """An item as the messages tell of it: where it is known from a list alone, `text` is that line's."""

    id: str
    text: str
    open: bool = True


class Vocabulary(Protocol):
    """How to plan, how to close an item, and how to read the list from what happened."""

    @property
    def needs(self) -> frozenset[str]:
        """The tools that must be there."""

    def plan(self, texts: Sequence[str]) -> list[Call]:
        """The calls of one reply that write the list."""

    def close(self, items: Sequence[Item], item: Item, reason: str) -> Call:
        """The call that closes an item; a reason says that it could not be done."""

    def items(self, told: Sequence[Event]) -> list[Item]:
        """The list as far as the events tell."""


@dataclass(frozen=True)
class Parley:
    """todo_write(items), todo_update(id, status, reason)."""

    needs: frozenset[str] = frozenset({"todo_write", "todo_update"})

    def plan(self, texts: Sequence[str]) -> list[Call]:
        """One write that appends all."""
        return [("todo_write", {"items": list(texts)})]

    def close(self, items: Sequence[Item], item: Item, reason: str) -> Call:  # noqa: ARG002 - not needed here
        """One update."""
        why = {"status": "blocked", "reason": reason} if reason else {"status": "done"}
        return "todo_update", {"id": int(item.id) if item.id.isdecimal() else item.id, **why}

    def items(self, told: Sequence[Event]) -> list[Item]:
        """Writes and updates, and every list that the graph has shown since: it knows of edits by hand.

        A refused update counts as closed, for nothing more can be done; if it is open, the next list says so.
        """
        items: dict[str, Item] = {}
        for event in told:
            if event.name == "todo_write" and event.state == "ok":
                stored = LINE.findall(event.text)
                items |= {
                    key: Item(key, text) for (key, _), text in zip(stored, event.args["items"], strict=False)
                }
            elif event.name == "todo_update" and event.answered:
                key = str(event.args.get("id"))
                opens = event.state == "ok" and event.args.get("status") in ("open", "in_progress")
                items[key] = replace(items.get(key, Item(key, "")), open=opens)
            elif event.kind == "graph":
                for key, line in LINE.findall(event.text):
                    open_now = not CLOSED_LINE.search(line)
                    items[key] = replace(items.get(key, Item(key, line)), open=open_now)
        return list(items.values())


@dataclass(frozen=True)
class Loki:
    """todo__init(goal), todo__add(task), todo__done(id): numbered from 1 after init."""

    needs: frozenset[str] = frozenset({"todo__init", "todo__add", "todo__done"})

    def plan(self, texts: Sequence[str]) -> list[Call]:
        """An empty list, then one call an item."""
        return [
            ("todo__init", {"goal": "Audit the folder"}),
            *(("todo__add", {"task": text}) for text in texts),
        ]

    def close(self, items: Sequence[Item], item: Item, reason: str) -> Call:  # noqa: ARG002 - not needed here
        """Done is all there is."""
        return "todo__done", {"id": int(item.id)}

    def items(self, told: Sequence[Event]) -> list[Item]:
        """The calls, counted."""
        items: list[Item] = []
        for event in told:
            if not event.answered or event.state != "ok":
                continue
            if event.name in ("todo__init", "todo__clear"):
                items = []
            elif event.name == "todo__add":
                items.append(Item(str(len(items) + 1), event.args["task"]))
            elif event.name == "todo__done":
                key = str(event.args["id"])
                items = [replace(item, open=item.open and item.id != key) for item in items]
        return items


@dataclass(frozen=True)
class WholeList:
    """One tool that replaces the whole list; one open item is in progress."""

    tool: str
    field: str
    text: str
    with_ids: bool

    @property
    def needs(self) -> frozenset[str]:
        """The one tool."""
        return frozenset({self.tool})

    def plan(self, texts: Sequence[str]) -> list[Call]:
        """The list, nothing done yet."""
        return [self.write([Item(str(number), text) for number, text in enumerate(texts, 1)])]

    def close(self, items: Sequence[Item], item: Item, reason: str) -> Call:  # noqa: ARG002 - no word for it
        """The list again, with the item completed."""
        return self.write([replace(other, open=other.open and other.id != item.id) for other in items])

    def write(self, items: Sequence[Item]) -> Call:
        """The call that stores these items, the first open one in progress."""
        first = next((item.id for item in items if item.open), None)
        rows = []
        for item in items:
            status = "completed" if not item.open else "in_progress" if item.id == first else "pending"
            rows.append(
                {**({"id": item.id} if self.with_ids else {}), self.text: item.text, "status": status}
            )
        return self.tool, {self.field: rows}

    def items(self, told: Sequence[Event]) -> list[Item]:
        """What the last accepted write says."""
        written = [event for event in told if event.name == self.tool and event.state == "ok"]
        rows = written[-1].args[self.field] if written else []
        return [
            Item(str(number), row[self.text], open=row["status"] != "completed")
            for number, row in enumerate(rows, 1)
        ]


VOCABULARIES: tuple[Vocabulary, ...] = (
    Parley(),
    Loki(),
    WholeList("todo", "items", "text", with_ids=True),
    WholeList("write_todos", "todos", "content", with_ids=False),
)


def vocabulary_of(tools: Collection[str]) -> Vocabulary | None:
    """The dialect whose tools are bound."""
    return next((one for one in VOCABULARIES if one.needs <= set(tools)), None)
