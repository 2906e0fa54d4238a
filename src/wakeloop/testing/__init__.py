"""The public test kit for agents with a todo list.

Scripted and weak chat models, builders of replies, the walk of a run, and checks of captured requests. It
needs langchain-core and langgraph only, so it serves any LangGraph agent. Names are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wakeloop.testing.knobs import Knobs
    from wakeloop.testing.prompt_check import prompt_faults
    from wakeloop.testing.replies import calls, malformed_call, says
    from wakeloop.testing.scripted_model import ScriptedModel, ScriptError
    from wakeloop.testing.walks import awalk, walk
    from wakeloop.testing.weak_model import WeakModel
    from wakeloop.testing.wire_check import wire_faults

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

# No file is named like a name it holds: importing such a file would put the module in the name's place.
_FILE = {
    "Knobs": "knobs",
    "ScriptError": "scripted_model",
    "ScriptedModel": "scripted_model",
    "WeakModel": "weak_model",
    "awalk": "walks",
    "calls": "replies",
    "malformed_call": "replies",
    "prompt_faults": "prompt_check",
    "says": "replies",
    "walk": "walks",
    "wire_faults": "wire_check",
}


def __getattr__(name: str) -> object:
    """Import a public name from its file, once."""
    if name not in _FILE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_FILE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
