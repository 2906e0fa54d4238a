"""Pushes that escalate: wakes that no call has answered."""

from collections.abc import Collection

from wakeloop.loop.ledger import Ledger
from wakeloop.settings import LoopSettings

ASKS_PERSON = "ask_user"  # the tool that puts a question to a person


def must_insist(notes: Ledger, settings: LoopSettings, open_count: int) -> bool:
    """Tell whether a wake says it differently and asks for a call: the one before it led to none.

    With nothing open there is no work to call for: a reply is owed, or a subagent has brought something. An
    unmet goal counts as open.
    """
    unanswered = "push" in notes and not notes.get("called")
    return settings.force_call == "second" and bool(open_count) and unanswered


def begin_push(notes: Ledger, *, forced: bool) -> None:
    """Note that a wake or a correction begins a turn, and whether its first request asks for a call."""
    notes.pop("called", None)
    if forced:
        notes["force"] = True
    else:
        notes.pop("force", None)


def note_wake(notes: Ledger, settings: LoopSettings, *, insists: bool) -> None:
    """Note how a wake asks for work."""
    begin_push(notes, forced=insists)
    if settings.force_call != "never":
        notes["push"] = "call" if insists else "words"


def asks_for_call(notes: Ledger) -> bool:
    """Tell whether the next request asks for a call, unless that was refused before."""
    return notes.get("force", False) and not notes.get("unforced", False)


def note_calls(notes: Ledger, names: Collection[str], *, forced: bool) -> None:
    """Note whether a reply made calls of its own accord; those of a `forced` one do not count.

    A bad reply is asked for again in the same way.
    """
    is_free = (names and not forced) or "plan" in notes or ASKS_PERSON in names
    if is_free and "push" in notes:
        notes["called"] = True
    if "bad_replies" not in notes and "again" not in notes:
        notes.pop("force", None)


def note_steps(notes: Ledger, last_step: int) -> None:
    """Note the superstep at which this call of the graph reaches its limit; another one shows a resume.

    So a call that was answered at an interrupt which is not the package's own counts as decided by a person.
    """
    if notes.get("push") != "call":
        return
    if last_step != notes.get("last_step", last_step):
        note_free_call(notes)
    notes["last_step"] = last_step


def note_free_call(notes: Ledger) -> None:
    """Note that the turn of a wake has made a call that nobody forced, or one that a person decides.

    Whoever answered a question, or gave an approval, is not followed by a call that is forced again.
    """
    if "push" in notes:
        notes["called"] = True
