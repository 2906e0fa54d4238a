"""The job that is killed: every node, a wake, a correction, parallel calls."""

import asyncio
import os
import time
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from points import Points

from wakeloop import create_todo_agent, preset
from wakeloop.testing import ScriptedModel, calls, says

SETTINGS = preset("wakeloop").model_copy(update={"max_idle_wakes": 1, "nag_after": 1, "nag_every": 1})
Step = str | list[tuple[str, dict[str, Any]]]
STEPS: list[Step] = [
    [("todo_write", {"items": ["a", "b", "c"]})],
    [("edit", {"what": "x"}), ("edit", {"what": "y"}), ("todo_update", {"id": 1, "status": "done"})],
    "That is all for now.",  # a wake
    "That is all for today.",  # a correction
    [("todo_update", {"id": 2, "status": "done"})],
    [("edit", {"what": "z"})],  # a nag
    [("todo_update", {"id": 3, "status": "done"})],
]
LAST = "Everything is done."


def next_reply(request: Sequence[BaseMessage]) -> Any:
    """The first step that the conversation does not show as done; a call's id tells its attempt."""
    attempt = sum(isinstance(message, AIMessage) for message in request)
    said = {str(m.content) for m in request if isinstance(m, AIMessage)}
    worked = {
        m.tool_call_id.rpartition("-")[0]
        for m in request
        if isinstance(m, ToolMessage) and "may or may not" not in str(m.content) and m.status != "error"
    }
    for step in STEPS:
        if isinstance(step, str):
            if step not in said:
                return says(step)
            continue
        due = [(name, args, known) for name, args in step if (known := slug(name, args)) not in worked]
        if due:
            return calls(
                *(
                    (name, {**args, "attempt": attempt} if name == "edit" else args, f"{known}-{attempt}")
                    for name, args, known in due
                )
            )
    return says(LAST)


def slug(name: str, args: dict[str, Any]) -> str:
    return f"{name}-{args.get('what') or args.get('id') or 'all'}"


def asked(request: Sequence[BaseMessage]) -> str:
    """The point of a request."""
    return f"model {sum(isinstance(message, AIMessage) for message in request) + 1}"


def change(effects: Path, what: str, attempt: int) -> None:
    """The effect of a tool, for good."""
    file = os.open(effects, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, f"edit-{what}-{attempt}\n".encode())
    os.fsync(file)
    os.close(file)


def agent_of(
    points: Points, effects: Path, saver: Any, think: float, *, looped: bool
) -> tuple[Any, ScriptedModel]:
    """The agent and its model, which thinks for so many seconds; both tell where they are."""

    def reply(request: list[BaseMessage]) -> Any:
        points.at(asked(request))
        time.sleep(think)
        return next_reply(request)

    async def areply(request: list[BaseMessage]) -> Any:
        await points.aat(asked(request))
        await asyncio.sleep(think)
        return next_reply(request)

    @tool("edit")
    def edit(what: str, attempt: int) -> str:
        """Change something outside, for good."""
        points.at(f"tool {what}, before")
        change(effects, what, attempt)
        points.at(f"tool {what}, after")
        return f"{what} is changed"

    @tool("edit")
    async def aedit(what: str, attempt: int) -> str:
        """Change something outside, for good."""
        await points.aat(f"tool {what}, before")
        change(effects, what, attempt)
        await points.aat(f"tool {what}, after")
        return f"{what} is changed"

    model = ScriptedModel(repeat(areply if looped else reply))
    return create_todo_agent(model, [aedit if looped else edit], settings=SETTINGS, checkpointer=saver), model


def told(message: BaseMessage) -> list[Any]:
    """What has to be the same of a message, whoever wrote it: all but its id."""
    calls_of = [[c["name"], c["args"], c["id"]] for c in getattr(message, "tool_calls", [])]
    kind = message.additional_kwargs.get("wakeloop", {}).get("kind")
    return [message.type, message.content, kind, calls_of, getattr(message, "tool_call_id", None)]


def users(messages: Sequence[BaseMessage]) -> list[str]:
    """The user's own words, in order."""
    return [
        str(m.content)
        for m in messages
        if isinstance(m, HumanMessage) and "wakeloop" not in m.additional_kwargs
    ]
