"""The public test kit for agents with a todo list.

Scripted and weak chat models, builders of replies, the walk of a run, and checks of captured requests. It
needs langchain-core and langgraph only, so it serves any LangGraph agent. Names are imported on first use.
"""

from typing import TYPE_CHECKING

from wakeloop.platform.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from wakeloop.testing.knobs import Knobs
    from wakeloop.testing.replies import calls, malformed_call, says
    from wakeloop.testing.scripted_model import ScriptedModel, ScriptError
    from wakeloop.testing.walks import awalk, walk
    from wakeloop.testing.weak_model import WeakModel
    from wakeloop.testing.wire_check import prompt_faults, wire_faults

__all__ = [
    "Knobs",
    "ScriptError",
    "ScriptedModel",
    "WeakModel",
    "awalk",
    "calls",
    "malformed_call",
    "prompt_faults",
    "says",
    "walk",
    "wire_faults",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "wakeloop.testing.knobs": ("Knobs",),
        "wakeloop.testing.replies": ("calls", "malformed_call", "says"),
        "wakeloop.testing.scripted_model": ("ScriptedModel", "ScriptError"),
        "wakeloop.testing.walks": ("awalk", "walk"),
        "wakeloop.testing.weak_model": ("WeakModel",),
        "wakeloop.testing.wire_check": ("prompt_faults", "wire_faults"),
    },
)
