"""The scripted job, in the words of each tool vocabulary.

Plan N items, then for each a tool call and an update of the list: 2N + 2 model steps. The model costs nothing
and keeps nothing: it reads the next step from the id of the last answered call, so one model serves any
number of threads at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult

GO = "Do the work."
Calls = list[tuple[str, dict[str, Any]]]
Script = Callable[[int], Calls | None]


def work(item: int) -> str:
    """Do one piece of the work."""
    return f"result {item}"


def steps(n: int) -> int:
    """Return the number of model steps of the job."""
    return 2 * n + 2


def content(item: int) -> str:
    """Return the content of an item."""
    return f"item {item}"


def whole(n: int, closed: int, *, start: bool) -> list[tuple[int, str, str]]:
    """Return the list with its first items closed and, if the vocabulary wants it, the next one started."""
    at = closed + 1 if start else 0
    return [
        (i, content(i), "completed" if i <= closed else "in_progress" if i == at else "pending")
        for i in range(1, n + 1)
    ]


# -- vocabularies: how a list is planned, and how an item is closed ---------------------------------------


def parley(n: int, closed: int) -> Calls:
    """Append the items once, then close one by its id."""
    if not closed:
        return [("todo_write", {"items": [content(i) for i in range(1, n + 1)]})]
    return [("todo_update", {"id": closed, "status": "done"})]


def loki(n: int, closed: int) -> Calls:
    """Add the items one by one, all in the first reply; then close one by its id."""
    if not closed:
        added: Calls = [("todo__add", {"task": content(i)}) for i in range(1, n + 1)]
        return [("todo__init", {"goal": "the work"}), *added]
    return [("todo__done", {"id": closed})]


def checklist(n: int, closed: int) -> Calls:
    """Send the whole list each time, with ids."""
    rows = whole(n, closed, start=True)
    return [("todo", {"items": [{"id": str(i), "text": text, "status": status} for i, text, status in rows]})]


def write_todos(n: int, closed: int) -> Calls:
    """Send the whole list each time; LangChain's `TodoListMiddleware` has the same tool."""
    rows = whole(n, closed, start=True)
    return [("write_todos", {"todos": [{"content": text, "status": status} for _, text, status in rows]})]


VOCABULARIES = {"parley": parley, "loki": loki, "checklist": checklist, "write_todos": write_todos}


# -- scripts: the calls of a step, or None for the closing words ------------------------------------------


def one_by_one(vocabulary: Callable[[int, int], Calls], n: int, step: int) -> Calls | None:
    """Plan; then a tool call and an update for each item."""
    if step == 0:
        return vocabulary(n, 0)
    item, update = divmod(step + 1, 2)
    if item > n:
        return None
    return vocabulary(n, item) if update else [("work", {"item": item})]


def in_rounds(width: int, rounds: int, step: int) -> Calls | None:
    """Rounds of many calls of the tool, each a new one, and no list."""
    return [("work", {"item": step * width + i}) for i in range(width)] if step < rounds else None


class Costless(BaseChatModel):
    """Plays a script."""

    script: Any

    @property
    def _llm_type(self) -> str:
        return "costless"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Costless:
        return self

    def reply(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """Return the reply to a request, of which only the last message is read."""
        answered = getattr(messages[-1], "tool_call_id", None)
        step = 0 if answered is None else int(answered.partition(".")[0]) + 1
        made = self.script(step)
        if made is None:
            return AIMessage("All done.")
        calls = [{"name": name, "args": args, "id": f"{step}.{i}"} for i, (name, args) in enumerate(made)]
        return AIMessage("", tool_calls=calls)

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.reply(messages))])

    async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.reply(messages))])


def model_of(n: int, vocabulary: str = "parley") -> Costless:
    """Return the model that does the job of n items in a vocabulary."""
    return Costless(script=partial(one_by_one, VOCABULARIES[vocabulary], n))


def asked() -> dict[str, Any]:
    """Return the input that begins the job: a new message each time."""
    return {"messages": [HumanMessage(GO)]}
