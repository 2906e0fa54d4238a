"""The place of the middleware in an agent's list.

Hooks after the model run in the reverse order of the list, and one that jumps to the model skips those that
would run after it. `create_agent` does not show its list to a middleware, but it asks each for its tools
before it reads any hook. At that moment the list is in its frame, and a middleware can still be moved.
"""

import inspect
from collections.abc import Sequence
from types import FrameType
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, TodoListMiddleware

from wakeloop.errors import SettingsError, ToolNameError


def take_place(middleware: AgentMiddleware[Any, Any, Any]) -> None:
    """Move a middleware, while an agent is built, before all others that have a hook after the model.

    Raises `SettingsError` if the list cannot be changed, `ToolNameError` for a second list of todos.
    """
    listed = _find_list(inspect.currentframe())
    own = next((place for place, one in enumerate(listed) if one is middleware), None)
    if own is None:  # somebody else asks for the tools
        return
    if any(isinstance(one, TodoListMiddleware) for one in listed):
        raise ToolNameError("Remove TodoListMiddleware: WakeLoopMiddleware has the same tool and list.")
    first = next(place for place, one in enumerate(listed) if _has_hook_after_model(one))
    if own == first:
        return
    if not isinstance(listed, list):
        raise SettingsError(
            f"Pass middleware as a list, or put {middleware.name} before {listed[first].name}, whose hook "
            "after the model would be skipped."
        )
    listed.insert(first, listed.pop(own))


def _find_list(frame: FrameType | None) -> Sequence[Any]:
    """Return the list of middleware of the agent that is being built, or an empty one."""
    while frame is not None:
        if frame.f_code is create_agent.__code__:
            return frame.f_locals.get("middleware", ())  # type: ignore[no-any-return]
        frame = frame.f_back
    return ()


def _has_hook_after_model(middleware: Any) -> bool:
    kind, plain = type(middleware), AgentMiddleware
    return (kind.after_model, kind.aafter_model) != (plain.after_model, plain.aafter_model)
