"""A cron line: whether it is one, and when it is due."""

from datetime import datetime

from croniter import CroniterBadDateError, croniter

from wakeloop.sessions.host import CRON_FIELDS, cron_line_error

NEVER_DUE = "there is no such day, so it is never due; write a day that its month has."


def next_time(cron: str, after: datetime) -> datetime:
    """Return a cron line's first time after another one, in UTC.

    Raises `SessionError` for a line without five fields and values that can be, and for one never due.
    """
    if len(cron.split()) != CRON_FIELDS or not croniter.is_valid(cron):
        raise cron_line_error(cron)
    try:
        return croniter(cron, after).get_next(datetime)
    except CroniterBadDateError:
        raise cron_line_error(cron, NEVER_DUE) from None
