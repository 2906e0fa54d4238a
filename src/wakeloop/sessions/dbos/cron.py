"""Cron lines: validation, and the next time."""

from datetime import datetime

from croniter import CroniterBadDateError, croniter

from wakeloop.sessions.host import CRON_FIELDS, cron_line_error

NEVER_DUE = "its months have no such day, so it would never fire."


def next_time(cron: str, after: datetime) -> datetime:
    """Return the next time that a cron line fires after `after`, in UTC.

    Raises `SessionError` unless the line has five valid fields and fires at some time.

    Example:
        >>> from datetime import UTC
        >>> next_time("0 9 * * *", datetime(2030, 1, 1, 12, tzinfo=UTC)).isoformat()
        '2030-01-02T09:00:00+00:00'
    """
    if len(cron.split()) != CRON_FIELDS or not croniter.is_valid(cron):
        raise cron_line_error(cron)
    try:
        return croniter(cron, after).get_next(datetime)
    except CroniterBadDateError:
        raise cron_line_error(cron, NEVER_DUE) from None
