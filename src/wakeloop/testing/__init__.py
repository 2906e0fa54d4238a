"""The public test kit for agents with a todo list.

Scripted and unreliable chat models, builders of replies, the walk of a run, and validators of captured
requests. It depends on langchain-core and langgraph only, so it serves any LangGraph agent. Names are
imported when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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

# No file is named like a name it holds: importing such a file would put the module in the name's place.
_FILE = {
    "ScriptError": "scripted",
    "ScriptedModel": "scripted",
    "UnreliableModel": "unreliable",
    "awalk": "walking",
    "calls": "replies",
    "malformed": "replies",
    "prompt_faults": "prefix",
    "says": "replies",
    "walk": "walking",
    "wire_faults": "wire",
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
