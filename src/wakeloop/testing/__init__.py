"""The public test kit for agents with a todo list.

Scripted and unreliable chat models, builders of replies, the walk of a run, and validators of captured
requests. It depends on langchain-core and langgraph only, so it serves any LangGraph agent. Names are
imported when first used.
"""

from typing import TYPE_CHECKING

from wakeloop.platform.lazy_faces import lazy

if TYPE_CHECKING:
    from wakeloop.testing.prefix import prompt_faults
    from wakeloop.testing.replies import calls, malformed, says
    from wakeloop.testing.scripted import ScriptedModel, ScriptError
    from wakeloop.testing.unreliable import UnreliableModel
    from wakeloop.testing.walking import awalk, walk
    from wakeloop.testing.wire import wire_faults

__all__ = [
    "ScriptError",
    "ScriptedModel",
    "UnreliableModel",
    "awalk",
    "calls",
    "malformed",
    "prompt_faults",
    "says",
    "walk",
    "wire_faults",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "wakeloop.testing.scripted": (
            "ScriptError",
            "ScriptedModel",
        ),
        "wakeloop.testing.unreliable": ("UnreliableModel",),
        "wakeloop.testing.walking": (
            "awalk",
            "walk",
        ),
        "wakeloop.testing.replies": (
            "calls",
            "malformed",
            "says",
        ),
        "wakeloop.testing.prefix": ("prompt_faults",),
        "wakeloop.testing.wire": ("wire_faults",),
    },
)
