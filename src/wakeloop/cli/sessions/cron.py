"""Adds, lists and removes what wakes sessions by the clock."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from wakeloop.cli.failures import usage
from wakeloop.cli.lookup import CUT, refuse_odd, the_one
from wakeloop.cli.outcome import as_json
from wakeloop.cli.sessions.where import Where, typed
from wakeloop.cli.start import check_text
from wakeloop.display.clean import one_line
from wakeloop.display.width import columns, room

CRON_USAGE = 'Write: cron add THREAD "MIN HOUR DAY MONTH WEEKDAY" TEXT, cron list, or cron remove ID.'
HEAD = ("SCHEDULE", "SESSION", "CRON", "DUE", "TEXT")


def cron(where: Where, action: str, words: Sequence[str], *, json: bool) -> Iterator[str]:
    """Add, list or remove what wakes sessions by the clock."""
    match action, words:
        case "add", [thread, line, text]:
            refuse_odd(thread.replace(CUT, ""))
            check_text(text, "The text is empty: say what the session is to read.")
            with where.post() as post:
                thread = where.session(post, thread)
                with typed():
                    key = post.schedule(thread, line, text)
                due = next(one.due for one in post.schedules(thread) if one.id == key)
            yield as_json({"schedule": key, "due": due}) if json else f"{key}: due {due}"
        case "list", []:
            with where.post() as post:
                found = post.schedules()
            if json:
                yield as_json([asdict(one) for one in found])
            elif not found:
                yield "Nothing is scheduled."
            else:
                rows = [(s.id, one_line(s.thread), s.cron, s.due or "-", one_line(s.text, 60)) for s in found]
                yield from columns([HEAD, *rows], room(sys.stdout), texts=(4,))
        case "remove", [key]:
            check_text(key, CRON_USAGE)
            with where.post() as post:
                known = [one.id for one in post.schedules()]
                whole = key if key in known else the_one(key, known, "schedules")
                if whole is None or not post.cancel(whole):
                    raise usage(f"There is no schedule {key!r}; wakeloop cron list shows them.")
            yield f"Removed {whole}."
        case _:
            raise usage(CRON_USAGE)
