"""The list of threads."""

from collections.abc import Iterator

from wakeloop.cli.store import DatabaseFile, open_to_read
from wakeloop.text.characters import pluralize, quote_path

LISTED_THREADS = 20  # without --all


def list_threads(database: DatabaseFile, *, everything: bool, json: bool) -> Iterator[str]:
    """List the threads, the latest first."""
    with open_to_read(database) as store:
        known = store.threads()
        if not known:  # said before the imports that reading a thread takes
            yield "[]" if json else f"No threads yet in {quote_path(database.path)}."
            return
        from wakeloop.cli.final_state import to_json_line
        from wakeloop.cli.thread_rows import format_table, thread_row
        from wakeloop.display.formatting import format_waiting

        shown = known if everything else known[:LISTED_THREADS]
        rows = [thread_row(store, one, database) for one in shown]
    if json:
        yield to_json_line(rows)
        return
    yield from format_table(rows)
    for row in rows:
        if row["raise"]:
            yield f"{row['thread']}: {row['raise']}"
        yield from format_waiting(row)
    if len(known) > len(shown):
        yield f"… and {pluralize(len(known) - len(shown), 'older one')}: --all"
