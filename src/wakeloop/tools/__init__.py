"""Tools for files, a shell, questions and waiting.

They are ordinary LangChain tools, for `create_todo_agent` and any other LangGraph agent. Names are imported
when they are first used.
"""

from typing import TYPE_CHECKING

from wakeloop.platform.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from wakeloop.tools.files import FileLimits, file_tools
    from wakeloop.tools.parking import ask_user, wait_for_work
    from wakeloop.tools.shell import shell_tool

__all__ = ["FileLimits", "ask_user", "file_tools", "shell_tool", "wait_for_work"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "wakeloop.tools.files": ("FileLimits", "file_tools"),
        "wakeloop.tools.parking": ("ask_user", "wait_for_work"),
        "wakeloop.tools.shell": ("shell_tool",),
    },
)
