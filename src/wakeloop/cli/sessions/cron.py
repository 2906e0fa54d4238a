"""Add, list and remove the schedules that wake sessions."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from wakeloop.cli.failures import usage_error
from wakeloop.cli.final_state import to_json_line
from wakeloop.cli.launch import check_text
from wakeloop.cli.sessions.storage import SessionStorage, session_errors_as_usage
from wakeloop.cli.thread_lookup import check_thread_id, match_prefix
from wakeloop.display.terminal_output import find_width, format_columns
from wakeloop.display.terminal_text import clean_line

CRON_USAGE = 'Usage: cron add THREAD "MIN HOUR DAY MONTH WEEKDAY" TEXT, cron list, or cron remove ID.'
COLUMN_TITLES = ("SCHEDULE", "SESSION", "CRON", "DUE", "TEXT")


def manage_schedules(
    storage: SessionStorage, action: str, words: Sequence[str], *, json: bool
) -> Iterator[str]:
    """Add, list or remove the schedules that wake sessions."""
    match action, words:
        case "add", [thread, line, text]:
            yield _add_schedule(storage, thread, line, text, json=json)
        case "list", []:
            yield from _list_schedules(storage, json=json)
        case "remove", [key]:
            check_text(key, CRON_USAGE)
            with storage.open_client() as client:
                known = [schedule.id for schedule in client.schedules()]
                whole = key if key in known else match_prefix(key, known, "schedules")
                if whole is None or not client.cancel(whole):
                    raise usage_error(f"Unknown schedule {key!r}; list them with wakeloop cron list.")
            yield f"Removed {whole}."
        case _:
            raise usage_error(CRON_USAGE)


def _add_schedule(storage: SessionStorage, thread: str, line: str, text: str, *, json: bool) -> str:
    check_thread_id(thread)
    check_text(text, "The text is empty: write what the session should read.")
    with storage.open_client() as client:
        thread = storage.resolve_session_id(client, thread)
        with session_errors_as_usage():
            key = client.schedule(thread, line, text)
        due = next(schedule.due for schedule in client.schedules(thread) if schedule.id == key)
    return to_json_line({"schedule": key, "due": due}) if json else f"{key}: due {due}"


def _list_schedules(storage: SessionStorage, *, json: bool) -> Iterator[str]:
    with storage.open_client() as client:
        found = client.schedules()
    if json:
        yield to_json_line([asdict(schedule) for schedule in found])
    elif not found:
        yield "No schedules."
    else:
        rows = [(s.id, clean_line(s.thread), s.cron, s.due or "-", clean_line(s.text, 60)) for s in found]
        yield from format_columns([COLUMN_TITLES, *rows], find_width(sys.stdout), cuttable=(4,))
