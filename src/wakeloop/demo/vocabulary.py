"""The todo tools as the offline model speaks them."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from wakeloop.demo.history import Event
from wakeloop.testing import todo_tools as spoken
from wakeloop.testing.todo_tools import AnsweredCall, Item, TodoTools

LINE = re.compile(r"^  \[([^\]\n]+)\] (.*)$", re.MULTILINE)
CLOSED_LINE = re.compile(r" \((?:blocked: .*|done|cancelled)\)$")


class Parley(spoken.ParleyTools):
    """The same calls, with a memory for texts: one that a list cut short is known from its write."""

    def read(self, events: Iterable[AnsweredCall | str], /) -> list[Item]:
        """Writes and updates, and every list that the graph has shown since: it knows of edits by hand.

        A refused update counts as closed, for nothing more can be done; if it is open, the next list says so.
        """
        items: dict[Any, Item] = {}
        for event in events:
            if isinstance(event, str):
                for name, line in LINE.findall(event):
                    key, status = key_of(name), "completed" if CLOSED_LINE.search(line) else "pending"
                    items[key] = replace(items.get(key, Item(key, line)), status=status)
            elif event.name == "todo_write" and event.accepted:
                stored = zip(LINE.findall(event.result), event.args["items"], strict=False)
                items |= {key_of(name): Item(key_of(name), text) for (name, _), text in stored}
                items |= self._sent(event)
            elif event.name == "todo_update":
                opens = event.accepted and event.args.get("status") in ("open", "in_progress")
                status = "pending" if opens else "completed"
                for key in map(key_of, spoken.updated_ids(event.args)):
                    items[key] = replace(items.get(key, Item(key, "")), status=status)
        return list(items.values())


SPOKEN: tuple[TodoTools, ...] = (Parley(), spoken.LokiTools(), spoken.CHECKLIST, spoken.WRITE_TODOS)


def vocabulary_of(tools: Collection[str]) -> TodoTools | None:
    """The dialect whose tools are bound."""
    return spoken.find_todo_tools(tools, SPOKEN)


def happened(told: Sequence[Event]) -> Iterator[AnsweredCall | str]:
    """The graph's texts and the calls that ran, as a vocabulary reads them."""
    for event in told:
        if event.kind == "graph":
            yield event.text
        elif event.answered:
            yield AnsweredCall(event.name, event.args, event.text, event.state == "ok")


def key_of(name: object) -> int | str:
    """An item's id as a call names it."""
    return int(text) if (text := str(name)).isdecimal() else text
