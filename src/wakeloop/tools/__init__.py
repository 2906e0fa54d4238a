"""Tools for files, a shell, questions and waiting.

They are ordinary LangChain tools, for `create_todo_agent` and any other LangGraph agent.
"""

from wakeloop.tools.files import FileLimits, file_tools
from wakeloop.tools.parking import ask_user, wait_for_work
from wakeloop.tools.shell import shell_tool

__all__ = ["FileLimits", "ask_user", "file_tools", "shell_tool", "wait_for_work"]
