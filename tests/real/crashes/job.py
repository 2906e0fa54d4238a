"""The job that is killed: it visits every node, with a wake, a correction and parallel calls."""

import asyncio
import os
import time
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from points import Points

from wakeloop import create_todo_agent, preset
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, says

# nobody is there to ask, so a silent model is woken as always
SHORT = {"max_idle_wakes": 1, "nag_after": 1, "nag_every": 1, "on_question": "wake", "on_new_topic": "ignore"}
Step = str | list[tuple[str, dict[str, Any]]]
STEPS: list[Step] = [
    [("todo_write", {"items": ["a", "b", "c"]})],
    [("edit", {"what": "x"}), ("edit", {"what": "y"}), ("todo_update", {"id": 1, "status": "done"})],
    "That is all for now.",  # causes a wake
    "That is all for today.",  # causes a correction
    [("todo_update", {"id": 2, "status": "done"})],
    [("edit", {"what": "z"})],  # gets a nag
    [("todo_update", {"id": 3, "status": "done"})],
]
LAST = "Everything is done."


def closed(name: str, text: str, ids: bool, *statuses: str) -> Step:
    """Return a call that writes the whole list, with the items a, b and c."""
    items = [
        {**({"id": key} if ids else {}), text: key, "status": status}
        for key, status in zip("abc", statuses, strict=True)
    ]
    return [(name, {"items" if ids else "todos": items})]


def rewritten(name: str, text: str, *texts: Step, ids: bool = False) -> list[Step]:
    """Return the same job for dialects that write the whole list."""
    p, i, c = "pending", "in_progress", "completed"
    return [
        closed(name, text, ids, i, p, p),
        [("edit", {"what": "x"}), ("edit", {"what": "y"}), *closed(name, text, ids, c, i, p)],
        *texts,
        closed(name, text, ids, c, c, i),
        [("edit", {"what": "z"})],
        closed(name, text, ids, c, c, c),
    ]


JOBS: dict[str, list[Step]] = {  # each preset's model replies; if it stops, it is woken
    "wakeloop": STEPS,
    "agentparley": STEPS,
    "loki": [
        [("todo__init", {"goal": "g"}), *(("todo__add", {"task": key}) for key in "abc")],
        [("edit", {"what": "x"}), ("edit", {"what": "y"}), ("todo__done", {"id": 1})],
        *STEPS[2:4],
        [("todo__done", {"id": 2})],
        [("edit", {"what": "z"})],
        [("todo__done", {"id": 3})],
    ],
    "lesson": rewritten("todo", "text", ids=True),
    "cubepi": rewritten("write_todos", "content", STEPS[2]),
    "langchain": rewritten("write_todos", "content", *STEPS[2:4]),
}


def settings_of(name: str) -> Any:
    """Return a preset with short limits."""
    more = SHORT if name in ("wakeloop", "langchain") else {"auto_continue": True}
    return preset(name).model_copy(update=more)


def next_reply(request: Sequence[BaseMessage], steps: Sequence[Step] = STEPS) -> Any:
    """Return the first step that the conversation does not show as done. A call's id contains its attempt."""
    attempt = sum(isinstance(message, AIMessage) for message in request)
    said = {str(m.content) for m in request if isinstance(m, AIMessage)}
    worked = {
        m.tool_call_id.rpartition("-")[0]
        for m in request
        if isinstance(m, ToolMessage) and "may or may not" not in str(m.content) and m.status != "error"
    }
    for step in steps:
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
    listed = "".join(
        item["status"][0] for key in ("items", "todos") for item in args.get(key, ()) if "status" in item
    )
    return f"{name}-{args.get('what') or args.get('id') or args.get('task') or listed or 'all'}"


def asked(request: Sequence[BaseMessage]) -> str:
    """Return the point of a request."""
    return f"model {sum(isinstance(message, AIMessage) for message in request) + 1}"


def change(effects: Path, what: str, attempt: int) -> None:
    """Record a tool's effect durably."""
    file = os.open(effects, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, f"edit-{what}-{attempt}\n".encode())
    os.fsync(file)
    os.close(file)


def agent_of(
    points: Points, effects: Path, saver: Any, think: float, *, looped: bool, form: str, name: str
) -> tuple[Any, ScriptedModel]:
    """Return the agent and its model, which takes this many seconds; both report their points."""

    def reply(request: list[BaseMessage]) -> Any:
        points.at(asked(request))
        time.sleep(think)
        return next_reply(request, JOBS[name])

    async def areply(request: list[BaseMessage]) -> Any:
        await points.aat(asked(request))
        await asyncio.sleep(think)
        return next_reply(request, JOBS[name])

    @tool("edit")
    def edit(what: str, attempt: int) -> str:
        """Change something outside."""
        points.at(f"tool {what}, before")
        change(effects, what, attempt)
        points.at(f"tool {what}, after")
        return f"{what} is changed"

    @tool("edit")
    async def aedit(what: str, attempt: int) -> str:
        """Change something outside."""
        await points.aat(f"tool {what}, before")
        change(effects, what, attempt)
        await points.aat(f"tool {what}, after")
        return f"{what} is changed"

    model = ScriptedModel(repeat(areply if looped else reply))
    tools, settings = [aedit if looped else edit], settings_of(name)
    if form == "layer":
        layer = WakeLoopMiddleware(settings=settings)
        return create_agent(model, tools, middleware=[layer], checkpointer=saver), model
    return create_todo_agent(model, tools, settings=settings, checkpointer=saver), model


def told(message: BaseMessage) -> list[Any]:
    """Return what must be the same in a message: everything but its id."""
    calls_of = [[c["name"], c["args"], c["id"]] for c in getattr(message, "tool_calls", [])]
    kind = message.additional_kwargs.get("wakeloop", {}).get("kind")
    return [message.type, message.content, kind, calls_of, getattr(message, "tool_call_id", None)]


def users(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the user's messages, in order."""
    return [
        str(m.content)
        for m in messages
        if isinstance(m, HumanMessage) and "wakeloop" not in m.additional_kwargs
    ]
