"""Adds, lists and removes what wakes sessions by the clock."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from wakeloop.cli.failures import usage_error
from wakeloop.cli.final_state import to_json_line
from wakeloop.cli.launch import check_text
from wakeloop.cli.sessions.storage import SessionStorage, session_errors_as_usage
from wakeloop.cli.thread_lookup import ELLIPSIS, check_thread_id, match_prefix
from wakeloop.display.terminal_output import find_width, format_columns
from wakeloop.display.terminal_text import clean_line

CRON_USAGE = 'Write: cron add THREAD "MIN HOUR DAY MONTH WEEKDAY" TEXT, cron list, or cron remove ID.'
COLUMN_TITLES = ("SCHEDULE", "SESSION", "CRON", "DUE", "TEXT")


def manage_schedules(
    where: SessionStorage, action: str, words: Sequence[str], *, json: bool
) -> Iterator[str]:
    """Add, list or remove what wakes sessions by the clock."""
    match action, words:
        case "add", [thread, line, text]:
            check_thread_id(thread.replace(ELLIPSIS, ""))
            check_text(text, "The text is empty: say what the session is to read.")
            with where.open_post() as post:
                thread = where.resolve_session_id(post, thread)
                with session_errors_as_usage():
                    key = post.schedule(thread, line, text)
                due = next(one.due for one in post.schedules(thread) if one.id == key)
            yield to_json_line({"schedule": key, "due": due}) if json else f"{key}: due {due}"
        case "list", []:
            with where.open_post() as post:
                found = post.schedules()
            if json:
                yield to_json_line([asdict(one) for one in found])
            elif not found:
                yield "Nothing is scheduled."
            else:
                rows = [
                    (s.id, clean_line(s.thread), s.cron, s.due or "-", clean_line(s.text, 60)) for s in found
                ]
                yield from format_columns([COLUMN_TITLES, *rows], find_width(sys.stdout), texts=(4,))
        case "remove", [key]:
            check_text(key, CRON_USAGE)
            with where.open_post() as post:
                known = [one.id for one in post.schedules()]
                whole = key if key in known else match_prefix(key, known, "schedules")
                if whole is None or not post.cancel(whole):
                    raise usage_error(f"There is no schedule {key!r}; wakeloop cron list shows them.")
            yield f"Removed {whole}."
        case _:
            raise usage_error(CRON_USAGE)
