"""A thread as one page of HTML that needs nothing else."""

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from langchain_core.runnables import RunnableConfig

from wakeloop.display.checkpoint_history import Graph, read_history
from wakeloop.display.report_page import ReportPage
from wakeloop.display.report_text import Hide
from wakeloop.display.timeline_builder import build_timeline
from wakeloop.thread.thread_status import read_session

TEMPLATES = Path(__file__).parent
DAMAGED_SESSION = {"state": "damaged", "reason": "damaged", "open": "some"}


def thread_report(graph: Graph, config: RunnableConfig, *, hide: Hide = str) -> str:
    """Return a page about a thread: its list on an axis of time, and the conversation beside it.

    Only what is stored is read, through the graph's checkpointer; nothing is run. The page loads nothing and
    leads nowhere: it can be sent by mail, opened from a file and printed.

    Args:
        graph: The compiled graph, with the checkpointer that has the thread.
        config: Names the thread, and may name the checkpoint to stop at.
        hide: What every text goes through before it is shown, beside the hiding of what looks like a secret.

    Raises:
        ArgumentError: There is no such thread.
        DamagedError: Nothing of it can be read.
    """
    past = read_history(graph, config)
    return render_page(ReportPage(build_timeline(past), _read_session(graph, config), hide).values())


async def athread_report(graph: Graph, config: RunnableConfig, *, hide: Hide = str) -> str:
    """Return the page of `thread_report`; the saver is read beside the loop, asynchronous ones too."""
    return await asyncio.to_thread(thread_report, graph, config, hide=hide)


def render_page(values: Mapping[str, Any]) -> str:
    """Fill the template: its one style and its one script are named by their hashes, nothing else may run."""
    style, script = ((TEMPLATES / f"report.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
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
    """How the thread stands; one whose newest state cannot be read is damaged."""
    try:
        return read_session(graph.get_state(config))
    except Exception:  # noqa: BLE001 - whatever a damaged row raises, the rest is shown
        return DAMAGED_SESSION
