"""The demo's job: its request, tools and offline model."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException
from pydantic import PrivateAttr

from wakeloop.agent import create_todo_agent
from wakeloop.demo.audit import REPORT, Measures, audit_files, audit_tools, measure_file, render_report
from wakeloop.presets import preset
from wakeloop.testing.jobs import Call, PlainJob, Step
from wakeloop.testing.knobs import Knobs
from wakeloop.testing.weak_model import WeakModel
from wakeloop.text.characters import pluralize
from wakeloop.tools.files import file_tools
from wakeloop.tools.folder import ConfinedFolder, quote_path

PAGE = "wakeloop-report.html"  # the audit's thread, next to its report
REPORT_ITEM = f"Write {REPORT}"
HABITS = Knobs(stop=0.4, forget=0.5)
INTRODUCTION = """\
The model is a script that behaves like a weak model: it says "All done." too early and forgets items.
Each line "Auto-continuing" is a wake: items are open, so the graph asks the model again."""
SEED = 39  # several stops, never so many in a row that the audit would be given up


def request_text(root: Path) -> str:
    """Return the user's message that starts an audit of `root`."""
    name = quote_path(root.resolve().name or "/")
    return f"Audit the Python, Markdown and notebook files of the folder {name} and write a report, {REPORT}."


def demo_tools(root: Path) -> list[BaseTool]:
    """Return the file tools and `measure_file`, confined to `root`; listings leave out what it writes."""
    return [*file_tools(root, hidden=(REPORT, PAGE)), *audit_tools(root)]


def explain_missing_report(messages: Sequence[BaseMessage]) -> str:
    """Return why the report could not be written, "" if it was, or was not tried yet."""
    tried = [m for m in messages if isinstance(m, ToolMessage) and m.name == "write_file"]
    return tried[-1].text if tried and tried[-1].status == "error" else ""


def audit_job(root: Path, limit: int = 7) -> PlainJob:
    """Return the audit's steps: one for each file, and the report."""
    folder = ConfinedFolder(root)
    measured: dict[str, Measures | str] = {}
    steps = []
    for file in audit_files(root, limit):
        path = file.relative_to(folder.root).as_posix()
        try:
            measured[path] = measure_file(folder, path)
        except ToolException as error:
            measured[path] = str(error)
        steps.append(Step(f"Audit {path}", (Call("measure_file", {"path": path}),)))
    write = Call("write_file", {"path": REPORT, "content": render_report(measured)})
    return PlainJob((*steps, Step(REPORT_ITEM, (write,))))


def compare_with_plain_loop(root: Path, session: Mapping[str, Any], requests: int) -> str:
    """Run the same job without the loop, and return a sentence that compares the two.

    A plain loop ends with the first reply without tool calls: so does the graph without its wakes and guard.
    """
    plain = preset("wakeloop").model_copy(update={"auto_continue": False, "guard_retries": 0})
    agent = create_todo_agent(OfflineAuditor(root=root), demo_tools(root), settings=plain)
    ended = agent.invoke({"messages": [("user", request_text(root))]})["todo_session"]
    return (
        f"A plain loop stops at {ended['completed']} of {ended['items'] or session['items']} items. "
        f"Here: {session['completed']} of {session['items']}, with {pluralize(session['wakes'], 'wake')} "
        f"and {pluralize(requests, 'request')}."
    )


class OfflineAuditor(WeakModel):
    """A weak model that audits a folder offline; it is not a language model and can do nothing else.

    Its replies follow from the messages and the bound tools, so a killed run continues where it was. It stops
    early and forgets to close items on purpose. `delay` is how many seconds a reply takes.
    """

    name: str | None = "offline stand-in (not a language model)"
    root: Path
    delay: float = 0

    _audit: PlainJob | None = PrivateAttr(None)

    def __init__(self, root: Path, delay: float = 0, **fields: Any) -> None:
        super().__init__(None, SEED, HABITS, root=root, delay=delay, **fields)

    def _make_job(self, request: list[BaseMessage], functions: dict[str, Any]) -> PlainJob:  # noqa: ARG002
        # Measured once: the report must be the same call whenever it is looked for in the messages.
        if self._audit is None:
            self._audit = audit_job(self.root)
        return self._audit

    def _choose_step(self, request: list[BaseMessage]) -> AIMessage:
        time.sleep(self.delay)
        # What it counts is an estimate. Without a count, the graph estimates by itself and says so.
        return super()._choose_step(request).model_copy(update={"usage_metadata": None})
