"""Thread report: a thread as one HTML page."""

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from langchain_core.runnables import RunnableConfig

from wakeloop.display.checkpoint_history import read_history
from wakeloop.display.report_page import Hide, ReportPage
from wakeloop.display.timeline import Timeline
from wakeloop.thread.edits import Graph
from wakeloop.thread.thread_status import read_session

TEMPLATES = Path(__file__).parent
DAMAGED_SESSION = {"state": "damaged", "reason": "damaged", "open": "some"}


def thread_report(graph: Graph, config: RunnableConfig, *, hide: Hide = str) -> str:
    """Return an HTML page about a thread: its list on a time axis, and the conversation.

    The page is made from the stored checkpoints; nothing is run. It is one file without links that loads
    nothing, so it can be mailed, opened from disk and printed.

    Args:
        graph: The compiled graph, with the checkpointer that has the thread.
        config: Names the thread, and optionally the checkpoint to stop at.
        hide: A function that every text passes through before it is shown, in addition to the redaction of
            secrets.

    Raises:
        ArgumentError: The thread does not exist.
        DamagedError: None of its rows can be read.

    Example:
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from wakeloop import create_todo_agent
        >>> from wakeloop.testing import ScriptedModel, says
        >>> agent = create_todo_agent(ScriptedModel(says("Hello!")), checkpointer=InMemorySaver())
        >>> config = {"configurable": {"thread_id": "1"}}
        >>> _ = agent.invoke({"messages": [("user", "Hi")]}, config)
        >>> "Hello!" in thread_report(agent, config)
        True
    """
    past = read_history(graph, config)
    return render_page(ReportPage(Timeline(past), _read_session(graph, config), hide).values())


async def athread_report(graph: Graph, config: RunnableConfig, *, hide: Hide = str) -> str:
    """Build the page of `thread_report` in a worker thread, so that it works with any saver.

    Example:
        >>> import asyncio
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from wakeloop import create_todo_agent
        >>> from wakeloop.testing import ScriptedModel
        >>> agent = create_todo_agent(ScriptedModel("Hello!"), checkpointer=InMemorySaver())
        >>> config = {"configurable": {"thread_id": "1"}}
        >>> result = agent.invoke({"messages": [("user", "Hi")]}, config)
        >>> "Hello!" in asyncio.run(athread_report(agent, config))
        True
    """
    return await asyncio.to_thread(thread_report, graph, config, hide=hide)


def render_page(values: Mapping[str, Any]) -> str:
    """Fill the template. Its content policy allows only its own style and script, by their hashes."""
    style = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    jinja = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    own = {
        "style": style,
        "script": script,
        "style_hash": _hash_source(style),
        "script_hash": _hash_source(script),
    }
    return jinja.get_template("report.html").render(**values, **own)


def _hash_source(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _read_session(graph: Graph, config: RunnableConfig) -> Mapping[str, Any]:
    """Return the thread's session, or `DAMAGED_SESSION` if the newest state cannot be read."""
    try:
        return read_session(graph.get_state(config))
    except Exception:  # noqa: BLE001 - a damaged row may raise anything; the rest is shown
        return DAMAGED_SESSION
