"""One thread as a page of HTML, in a file."""

import re
from pathlib import Path

from wakeloop.cli.failures import CommandError, redact
from wakeloop.cli.put import put
from wakeloop.cli.reader import reader
from wakeloop.cli.run import Graph
from wakeloop.cli.run_spec import RunSpec
from wakeloop.cli.store import Place, reading
from wakeloop.cli.thread_lookup import require_thread
from wakeloop.demo.job import PAGE
from wakeloop.display.clean import one_line
from wakeloop.display.report import thread_report
from wakeloop.display.screen import Line
from wakeloop.text.characters import quote_path


def written(place: Place, thread: str | None, out: Path | None, *, force: bool) -> list[str]:
    """Write a thread's page, the last one's where none is named; returns what is said of it."""
    with reading(place) as store:
        known = require_thread(store, thread)
        text = page_of(reader(store.saver), known.id)
    file = out or Path(f"report-{re.sub(r'[^A-Za-z0-9._-]+', '-', known.id)}.html")
    return put(text, file, force=force)


def page_of(graph: Graph, thread: str) -> str:
    """A thread's page, without what the environment holds of secrets."""
    return thread_report(graph, {"configurable": {"thread_id": thread}}, hide=redact)


def of_the_demo(job: RunSpec, agent: Graph) -> Line:
    """Write the page of the demo's thread into its folder, and say where it is."""
    file, here = Path(job.recipe.root) / PAGE, Path.cwd()
    file = file.relative_to(here) if file.is_relative_to(here) else file
    try:
        put(page_of(agent, job.thread), file, force=True)
    except CommandError as error:
        return Line("error", str(error))
    return Line("note", f"The thread as a page: {quote_path(one_line(str(file)))}")
