"""The session: the newest one, and what an input says of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from wakeloop.platform.cheap_copies import NewestChannel
from wakeloop.text.characters import shorten


class SessionUpdate(dict[str, Any]):
    """A session that was written in this run, what the run found before it, and what is wrong with it."""

    before: Mapping[str, Any]
    fault: str | None = None


class SessionChannel(NewestChannel):
    """The newest session; of several agents in one superstep the last one's, over the newest list."""

    __slots__ = ()

    def merge_values(self, old: Any, values: Sequence[Any]) -> Any:
        """Return what is kept of the values of one superstep."""
        told = [value for value in values if isinstance(value, Mapping)]
        session = SessionUpdate(told[-1] if told else old or {})
        session.before = getattr(old, "before", old or {})
        if len(told) > 1 and (lists := [one["list"] for one in told if is_list_number(one.get("list"))]):
            session["list"] = max(lists)
        if odd := [value for value in values if value is not None and not isinstance(value, Mapping)]:
            session.fault = f"todo_session must be a mapping, got {shorten(repr(odd[0]))}"
        return session


def is_list_number(value: object) -> bool:
    """Tell whether a value may be the number of a list."""
    return type(value) is int and 0 <= value < 2**53


def read_list_number(session: Any, written: int) -> tuple[int | None, str | None]:
    """Read which list an input goes out from: its number, None where it says none; and what is wrong.

    `written` is the thread's own number. A session of mid-run carries none: it is older than anything that
    the thread has written.
    """
    if not isinstance(session, SessionUpdate) or session.fault:
        return None, getattr(session, "fault", None)
    number = session.get("list")
    if number is None:
        return (0 if session.get("state") == "running" and written else None), None
    if not is_list_number(number):
        return None, f"the list number of todo_session must be a whole number, got {shorten(repr(number))}"
    return number, None
