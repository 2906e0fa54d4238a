"""A LangGraph agent whose own todo list keeps it awake."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeloop.agent import build_todo_graph as build_todo_graph
    from wakeloop.agent import create_todo_agent as create_todo_agent
    from wakeloop.channels.conversation import merge_messages as merge_messages
    from wakeloop.channels.parallel_agents import join_goal as join_goal
    from wakeloop.channels.parallel_agents import join_session as join_session
    from wakeloop.channels.parallel_agents import join_todos as join_todos
    from wakeloop.channels.todo_list import merge_todos as merge_todos
    from wakeloop.dialects import register_dialect as register_dialect
    from wakeloop.dialects.base import Dialect as Dialect
    from wakeloop.errors import ArgumentError as ArgumentError
    from wakeloop.errors import ConcurrentRunError as ConcurrentRunError
    from wakeloop.errors import DamagedError as DamagedError
    from wakeloop.errors import DialectError as DialectError
    from wakeloop.errors import EditError as EditError
    from wakeloop.errors import GoalError as GoalError
    from wakeloop.errors import HookError as HookError
    from wakeloop.errors import InputError as InputError
    from wakeloop.errors import ModelSetupError as ModelSetupError
    from wakeloop.errors import ReplyError as ReplyError
    from wakeloop.errors import SessionError as SessionError
    from wakeloop.errors import SettingsError as SettingsError
    from wakeloop.errors import ToolError as ToolError
    from wakeloop.errors import ToolNameError as ToolNameError
    from wakeloop.errors import UserCodeError as UserCodeError
    from wakeloop.errors import VerifyError as VerifyError
    from wakeloop.errors import WakeloopError as WakeloopError
    from wakeloop.loop.goal import impossible as impossible
    from wakeloop.loop.goal import wait as wait
    from wakeloop.loop.inbox import WakeEvent as WakeEvent
    from wakeloop.presets import preset as preset
    from wakeloop.settings import LoopSettings as LoopSettings
    from wakeloop.state import TodoState as TodoState
    from wakeloop.stream import Event as Event
    from wakeloop.stream import Session as Session
    from wakeloop.thread.edits import aupdate_todos as aupdate_todos
    from wakeloop.thread.edits import update_todos as update_todos
    from wakeloop.thread.outside import hold_thread as hold_thread
    from wakeloop.thread.outside import release_thread as release_thread
    from wakeloop.thread.steering import asteer as asteer
    from wakeloop.thread.steering import steer as steer
    from wakeloop.thread.thread_status import answer_of as answer_of
    from wakeloop.thread.thread_status import session_of as session_of
    from wakeloop.todos.items import Todo as Todo

_FROM = {
    "wakeloop.agent": ("build_todo_graph", "create_todo_agent"),
    "wakeloop.dialects": ("register_dialect",),
    "wakeloop.dialects.base": ("Dialect",),
    "wakeloop.errors": (
        "ArgumentError",
        "ConcurrentRunError",
        "DamagedError",
        "DialectError",
        "EditError",
        "GoalError",
        "HookError",
        "InputError",
        "ModelSetupError",
        "ReplyError",
        "SessionError",
        "SettingsError",
        "ToolError",
        "ToolNameError",
        "UserCodeError",
        "VerifyError",
        "WakeloopError",
    ),
    "wakeloop.stream": ("Event", "Session"),
    "wakeloop.thread.edits": ("aupdate_todos", "update_todos"),
    "wakeloop.thread.outside": ("hold_thread", "release_thread"),
    "wakeloop.thread.steering": ("asteer", "steer"),
    "wakeloop.presets": ("preset",),
    "wakeloop.thread.thread_status": ("answer_of", "session_of"),
    "wakeloop.settings": ("LoopSettings",),
    "wakeloop.state": ("TodoState",),
    "wakeloop.loop.goal": ("impossible", "wait"),
    "wakeloop.loop.inbox": ("WakeEvent",),
    "wakeloop.channels.conversation": ("merge_messages",),
    "wakeloop.channels.todo_list": ("merge_todos",),
    "wakeloop.channels.parallel_agents": ("join_goal", "join_session", "join_todos"),
    "wakeloop.todos.items": ("Todo",),
}
_ELSEWHERE = {
    "wakeloop.middleware": ("ChangesState", "WakeLoopMiddleware"),
    "wakeloop.tools": ("ask_user", "file_tools", "shell_tool"),
    "wakeloop.testing": ("ScriptedModel", "calls", "says"),
    "wakeloop.display": ("TodoPanel", "compare", "show"),
    "wakeloop.sessions": ("session_tools",),
    "wakeloop.sessions.dbos": ("DbosHost", "SessionClient"),
}
_WHERE = {name: module for module, names in _FROM.items() for name in names}

__all__ = [  # noqa: PLE0604 - the names above, once
    *_WHERE
]


def __getattr__(name: str) -> Any:
    for module, names in _ELSEWHERE.items():
        if name in names:  # an AttributeError would lose its words in `from wakeloop import …`
            raise ImportError(f"{name} is not in {__name__}. Import it from {module}.", name=__name__)
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
