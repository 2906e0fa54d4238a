"""The demo's job: what is asked, and with which tools."""

from collections.abc import Sequence
from pathlib import Path

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import BaseTool

from wakeloop.demo.audit import REPORT, audit_tools
from wakeloop.tools.files import file_tools
from wakeloop.tools.folder import quote_path

PAGE = "wakeloop-report.html"  # the audit's thread, beside its report


def request_text(root: Path) -> str:
    """The user's message that starts an audit of `root`."""
    name = quote_path(root.resolve().name or "/")
    return f"Audit the Python, Markdown and notebook files of the folder {name} and write a report, {REPORT}."


def unwritten(messages: Sequence[BaseMessage]) -> str:
    """Why the report could not be written; "" where it was, or was not tried yet."""
    tried = [m for m in messages if isinstance(m, ToolMessage) and m.name == "write_file"]
    return tried[-1].text if tried and tried[-1].status == "error" else ""


def demo_tools(root: Path) -> list[BaseTool]:
    """The file tools and the audit's measures, confined to `root`; listings leave what it makes out."""
    return [*file_tools(root, hidden=(REPORT, PAGE)), *audit_tools(root)]
