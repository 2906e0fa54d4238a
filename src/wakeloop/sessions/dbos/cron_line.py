"""A cron line: whether it is one, and when it is due."""

from datetime import datetime

from croniter import croniter

from wakeloop.sessions.host import CRON_FIELDS


def is_cron_line(cron: str) -> bool:
    """Tell whether a line has the five fields and values that can be."""
    return len(cron.split()) == CRON_FIELDS and croniter.is_valid(cron)


def following(cron: str, after: datetime) -> datetime:
    """Return a cron line's first time after another one, in UTC."""
    return croniter(cron, after).get_next(datetime)
