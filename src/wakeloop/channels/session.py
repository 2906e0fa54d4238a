"""The channel of the session."""

from collections.abc import Mapping, Sequence
from typing import Any

from wakeloop.platform.cheap_copies import NewestChannel
from wakeloop.text.characters import shorten


class SessionUpdate(dict[str, Any]):
    """A session that was written in this run. `before` is the one before it, `fault` says what is wrong."""

    before: Mapping[str, Any]
    fault: str | None = None


class SessionChannel(NewestChannel):
    """The newest session. Of several in one superstep: the last one, with the newest list number."""

    __slots__ = ()

    def merge_values(self, old: Any, values: Sequence[Any]) -> Any:
        """Return the session to keep of those written in one superstep."""
        sessions: list[Mapping[str, Any]] = []
        misfits: list[object] = []
        for value in values:
            if isinstance(value, Mapping):
                sessions.append(value)
            elif value is not None:
                misfits.append(value)
        newest = sessions[-1] if sessions else old
        session = SessionUpdate(newest or {})
        session.before = getattr(old, "before", old or {})
        if misfits:
            session.fault = f"todo_session must be a mapping, got {shorten(repr(misfits[0]))}"
        if len(sessions) > 1:
            numbers = [one["list"] for one in sessions if is_list_number(one.get("list"))]
            if numbers:
                session["list"] = max(numbers)
        return session


def is_list_number(value: object) -> bool:
    """Return whether a value can be the number of a list."""
    return type(value) is int and 0 <= value < 2**53


def read_list_number(session: Any, written: int) -> tuple[int | None, str | None]:
    """Return the number of the list that an input is based on, or None, and what is wrong with it, or None.

    `written` is the thread's own number. A session from the middle of a run has no number. It is older than
    all that the thread has written, so its number is 0.
    """
    if not isinstance(session, SessionUpdate) or session.fault:
        return None, getattr(session, "fault", None)
    number = session.get("list")
    if number is None:
        if session.get("state") == "running" and written:
            return 0, None
        return None, None
    if not is_list_number(number):
        return None, f"the list number of todo_session must be a whole number, got {shorten(repr(number))}"
    return number, None
