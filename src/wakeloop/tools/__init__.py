"""Real tools: the files below a folder, and a shell.

They are ordinary LangChain tools: for `create_todo_agent` and any LangGraph agent, in a script, a notebook or
the command line. Names are imported when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wakeloop.tools.files import Limits, file_tools
    from wakeloop.tools.shell import shell_tool

__all__ = ["Limits", "file_tools", "shell_tool"]

_FILE = {"Limits": "files", "file_tools": "files", "shell_tool": "shell"}


def __getattr__(name: str) -> object:
    """Import a public name from its file, once."""
    if name not in _FILE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_FILE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
