"""A LangGraph agent whose own todo list keeps it awake."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeloop.agent import build_todo_graph, create_todo_agent
    from wakeloop.channels.conversation import merge_messages
    from wakeloop.channels.parallel_parents import join_goal, join_session, join_todos
    from wakeloop.channels.todo_list import merge_todos
    from wakeloop.dialects import register_dialect
    from wakeloop.dialects.base import Dialect
    from wakeloop.errors import (
        ArgumentError,
        ConcurrentRunError,
        DamagedError,
        EditError,
        InputError,
        ModelError,
        ReplyError,
        SessionError,
        SettingsError,
        ToolError,
        ToolNameError,
        VerifyError,
        WakeloopError,
    )
    from wakeloop.inbox import WakeEvent
    from wakeloop.presets import preset
    from wakeloop.settings import LoopSettings
    from wakeloop.state import TodoState
    from wakeloop.stream import Event, Session
    from wakeloop.thread.editing import aupdate_todos, update_todos
    from wakeloop.thread.standing import answer_of, session_of
    from wakeloop.todos.items import Todo

_FROM = {
    "wakeloop.agent": ("build_todo_graph", "create_todo_agent"),
    "wakeloop.dialects": ("register_dialect",),
    "wakeloop.dialects.base": ("Dialect",),
    "wakeloop.errors": (
        "ArgumentError",
        "ConcurrentRunError",
        "DamagedError",
        "EditError",
        "InputError",
        "ModelError",
        "ReplyError",
        "SessionError",
        "SettingsError",
        "ToolError",
        "ToolNameError",
        "VerifyError",
        "WakeloopError",
    ),
    "wakeloop.stream": ("Event", "Session"),
    "wakeloop.thread.editing": ("aupdate_todos", "update_todos"),
    "wakeloop.presets": ("preset",),
    "wakeloop.thread.standing": ("answer_of", "session_of"),
    "wakeloop.settings": ("LoopSettings",),
    "wakeloop.state": ("TodoState",),
    "wakeloop.inbox": ("WakeEvent",),
    "wakeloop.channels.conversation": ("merge_messages",),
    "wakeloop.channels.todo_list": ("merge_todos",),
    "wakeloop.channels.parallel_parents": ("join_goal", "join_session", "join_todos"),
    "wakeloop.todos.items": ("Todo",),
}
_WHERE = {name: module for module, names in _FROM.items() for name in names}

__all__ = [  # noqa: PLE0604 - the names above, once
    *_WHERE
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
