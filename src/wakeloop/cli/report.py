"""Thread reports: HTML pages in files."""

import re
from pathlib import Path

from wakeloop.cli.atomic_write import write_atomically
from wakeloop.cli.failures import CommandError, redact
from wakeloop.cli.offline_graph import build_offline_graph
from wakeloop.cli.run_spec import RunSpec
from wakeloop.cli.store import DatabaseFile, open_to_read
from wakeloop.cli.thread_lookup import require_thread
from wakeloop.demo.job import PAGE
from wakeloop.display.report import thread_report
from wakeloop.display.screen import Line
from wakeloop.display.terminal_text import clean_line
from wakeloop.text.characters import quote_path
from wakeloop.thread.edits import Graph


def write_report(database: DatabaseFile, thread: str | None, out: Path | None, *, force: bool) -> list[str]:
    """Write the report of a thread (default: the latest) and return the lines to print."""
    with open_to_read(database) as store:
        known = require_thread(store, thread)
        text = render_report(build_offline_graph(store.saver), known.id)
    file = out or Path(f"report-{re.sub(r'[^A-Za-z0-9._-]+', '-', known.id)}.html")
    return write_atomically(text, file, force=force)


def render_report(graph: Graph, thread: str) -> str:
    """Render the report of a thread, without the secrets of the environment."""
    return thread_report(graph, {"configurable": {"thread_id": thread}}, hide=redact)


def write_demo_report(run: RunSpec, agent: Graph) -> Line:
    """Write the report of a demo into its folder, and return the line that says where it is."""
    file, here = Path(run.spec.root) / PAGE, Path.cwd()
    file = file.relative_to(here) if file.is_relative_to(here) else file
    try:
        write_atomically(render_report(agent, run.thread), file, force=True)
    except CommandError as error:
        return Line("error", str(error))
    return Line("note", f"Report: {quote_path(clean_line(str(file)))}")
