"""What a reply means: a round, the end of a turn, or a retry."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from wakeloop.loop.case import Costs, choose_costs
from wakeloop.loop.goal import is_unmet
from wakeloop.loop.ledger import ROUND_KEYS, Ledger, drop_keys
from wakeloop.loop.plan import may_need_approval
from wakeloop.settings import LoopSettings
from wakeloop.stream import EndReason

BAD_REPLIES: frozenset[EndReason | None] = frozenset(("truncated", "empty_reply", "malformed_calls"))

RETRY_PROMPTS: Mapping[str, str] = MappingProxyType(
    {  # by why a reply is asked again in words; after `empty` and `unread` the same request is sent
        "silent": "again_empty",
        "promised": "again_promised",
        "printed": "again_printed",
        "faked": "again_faked",
        "copied": "again_faked",
        "cut": "cut_reply",
    }
)
NOT_STORED = frozenset(("empty", "silent", "unread"))
OVER_WITH_REPLY = ROUND_KEYS | {"again", "ruling"}  # notes of the round before a reply, and of a retry
NO_ANSWERS = frozenset(("promised", "printed", "faked", "copied"))


ReplyKind = Literal["answer", "empty", "promised", "printed", "faked", "copied"]
"""What a reply without calls is.

- `promised`: the stop sign says that a call follows
- `printed`: it ends with a call as plain text
- `faked`: it is a tool's result in a wrapper; `copied`: it is an earlier result of a todo tool
- `empty`: nothing, thoughts only, or one of the package's own fillers
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyFacts:
    """What a reply alone shows.

    `text` is without thoughts, and "" if it is one of the package's fillers; `kind` says what a reply that
    makes no call is (rule 22). `calls` is the number of its calls, faulty ones included; `todo_calls` are the
    ids of those to todo tools, and `wrote` says whether one of them writes, valid or not. `faults` are the
    error results of calls that will not run, by call id. A `refused` reply ends the run, and keeps only its
    text; in an `unfit` one the provider could not parse a call.
    """

    text: str = ""
    cut: bool = False
    refused: bool = False
    unfit: bool = False
    kind: ReplyKind = "answer"
    wrote: bool = False
    calls: int = 0
    todo_calls: tuple[str, ...] = ()
    faults: Mapping[str, str] = field(default_factory=dict)


def note_reply(
    notes: Ledger,
    reply: ReplyFacts,
    settings: LoopSettings,
    *,
    open_count: int,
    steps_left: int,
    costs: Costs | None = None,
) -> Ledger:
    """Return the notes after an ordinary reply: the end of a turn, a round, or a reply to request again.

    With `again` in `NOT_STORED` nothing of the reply is stored.
    """
    new, bad = drop_keys(notes, OVER_WITH_REPLY), notes.get("bad_replies", 0) + 1
    if reply.refused:
        return note_refusal(new)
    if reply.unfit and not reply.text and not reply.calls:
        return note_unreadable_reply(new, settings)
    if not (reply.calls or reply.cut):
        unfinished = open_count > 0 or is_unmet(new)
        return _note_turn_end(new, reply, settings, unfinished=unfinished)
    if not reply.cut and not is_malformed(reply):
        new.pop("bad_replies", None)
    elif reply.calls:
        new["bad_replies"] = bad
    if reply.calls:
        new = _note_round(new, reply, settings, open_count)
        if new.get("bad_replies", 0) > settings.reply_retries:
            new["end"] = "truncated" if reply.cut else "malformed_calls"
        else:
            note_step_limit(new, steps_left, costs or choose_costs(settings))
        return new
    return note_retry(new, "cut", "truncated", settings)


def _note_turn_end(notes: Ledger, reply: ReplyFacts, settings: LoopSettings, *, unfinished: bool) -> Ledger:
    """Return the notes after a reply without calls: an answer, or what only looks like one (rule 22)."""
    if reply.kind == "empty":
        return _note_empty_reply(notes, settings, unfinished=unfinished)
    if reply.kind in NO_ANSWERS:
        return note_retry(notes, reply.kind, "malformed_calls", settings)
    notes.pop("bad_replies", None)
    notes["spoke"] = True
    return notes


def _note_empty_reply(notes: Ledger, settings: LoopSettings, *, unfinished: bool) -> Ledger:
    """Return the notes after a reply that says nothing.

    The first one of a turn is asked for again with the same request, which is cheap and often helps. The
    next one ends the turn if something is left to do (`unfinished`), since the wake after it has other words.
    In the described systems, whose retries do not fall, the first one does.
    """
    first = not notes.get("emptied")
    if unfinished and first and settings.retries_fall and settings.reply_retries:
        return {**notes, "emptied": True, "again": "empty"}  # not one of the retries that may end the run
    if unfinished or has_said_something(notes):
        notes.pop("bad_replies", None)
        return notes
    notes["emptied"] = True
    return note_retry(notes, "empty" if first else "silent", "empty_reply", settings)


def has_said_something(notes: Ledger) -> bool:
    """Tell whether words ended a turn of this activation, or a todo write was accepted (no mere attempt)."""
    return notes.get("spoke", False) or notes.get("wrote", False)


def find_external_calls(notes: Ledger, calls: Sequence[Any]) -> list[Any]:
    """Return a round's calls outside the todo tools, each with what is to be done with it.

    That is the `fault` for which it does not run, or the `review` that it waits for.
    """
    todo = set(notes.get("todo_calls", ()))
    faults, reviews = notes.get("faults", {}), notes.get("reviews", {})
    outside = [{**call} for call in calls if call["id"] not in todo]
    for call in outside:
        if call["id"] in reviews:
            call["review"] = reviews[call["id"]]
        if call["id"] in faults:
            call["fault"] = faults[call["id"]]
    return outside


def is_put_together(call: Mapping[str, Any]) -> bool:
    """Tell whether a person is asked about a call together with the others of its reply."""
    return "review" in call and not call["review"].get("alone")


def has_undecided_calls(notes: Ledger, calls: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether a person has still to decide calls of the round; `calls` are those with a decision."""
    if "reviews" not in notes:
        return False
    decided = {call["id"] for call in calls}
    together = [key for key, review in notes["reviews"].items() if not review.get("alone")]
    return not decided.issuperset(together)


def add_base(calls: Sequence[Any], notes: Ledger, todos: Sequence[Any] | None = None) -> Sequence[Any]:
    """Give calls that waited for a person the list before the reply's other calls, which may write it, too.

    The lists that they write are merged with those calls. `todos` is the list before the superstep of a
    review, in which the others ran unless a plan was put first.
    """
    base = notes.get("base", todos)
    return calls if base is None else [{**call, "base": list(base)} for call in calls]


def note_refusal(notes: Ledger) -> Ledger:
    """Return the notes of a run whose model refused: nothing more is requested."""
    return {**notes, "end": "refused"}


def note_format_reply(
    notes: Ledger, problem: str | None, settings: LoopSettings, *, cut: bool, refused: bool
) -> Ledger:
    """Return the notes after a reply in the caller's format: sound, refused, or with a problem to retry."""
    new = drop_keys(notes, OVER_WITH_REPLY)
    if refused:
        return note_refusal(new)
    if problem is None:
        return new
    return note_retry(new, f"format: {problem}", "truncated" if cut else "malformed_calls", settings)


def note_unreadable_reply(notes: Ledger, settings: LoopSettings) -> Ledger:
    """Return the notes for a reply whose calls were lost before they could be read: a malformed one."""
    return note_retry(notes, "unread", "malformed_calls", settings)


def take_bad_reply_end(notes: Ledger, settings: LoopSettings, open_count: int) -> EndReason | None:
    """Remove the end by the last bad reply from the notes if it ends only its turn, and return it."""
    falls = settings.retries_fall and (open_count or is_unmet(notes)) and not notes.get("asking")
    if not falls or notes.get("end") not in BAD_REPLIES:
        return None
    notes.pop("again", None)
    return notes.pop("end")


def is_malformed(reply: ReplyFacts) -> bool:
    """Tell whether every call of a reply is malformed."""
    return bool(reply.calls) and len(reply.faults) == reply.calls


def note_retry(notes: Ledger, why: str, kind: EndReason, settings: LoopSettings) -> Ledger:
    """Return the notes for a reply to request again, or for one bad reply too many in a row."""
    bad = notes.get("bad_replies", 0) + 1
    new: Ledger = {**notes, "bad_replies": bad, "again": why}
    if bad > settings.reply_retries:
        new["end"] = kind
    return new


def _note_round(notes: Ledger, reply: ReplyFacts, settings: LoopSettings, open_count: int) -> Ledger:
    """Note what the routers of a round need: its todo calls, its faults, and whether a reminder follows."""
    sound = reply.calls - len({*reply.todo_calls, *reply.faults})
    if sound or reply.wrote or reply.faults:  # only to read the list is still silence
        notes.pop("uncalled", None)
        notes.pop("woken", None)
    if reply.todo_calls:
        notes["todo_calls"] = list(reply.todo_calls)
    if reply.faults:
        notes["faults"] = dict(reply.faults)
    if reply.wrote:
        notes["writes"] = notes.get("writes", 0) + 1
        if may_need_approval(notes, settings):
            notes |= {"plan": "due", "plan_when": "first" if settings.approve_plan == "first" else "changes"}
    if sound and not reply.cut:
        # calls outside the todo tools run: a verdict before them may no longer be true
        if "fresh" in notes.get("looks", {}).values():
            notes["looks"] = {key: "due" if how == "fresh" else how for key, how in notes["looks"].items()}
        if settings.on_no_list == "ask":
            notes.setdefault("unlisted", "ran")
    before = notes.get("todo_stale_iterations", 0)
    stale = count_stale_rounds(before, wrote=reply.wrote, open_count=open_count, settings=settings)
    due = stale != before and is_nag_due(stale, settings)
    notes["todo_stale_iterations"] = stale
    notes["nag"] = due and not notes.get("todo_guard_suppressed", False)
    return notes


def note_step_limit(notes: Ledger, steps_left: int, costs: Costs) -> None:
    """Note the end of the run after this round, if too few supersteps would be left."""
    if steps_left < costs.round:
        notes["end"] = "step_limit"


def count_stale_rounds(stale: int, *, wrote: bool, open_count: int, settings: LoopSettings) -> int:
    """Count rounds without a todo write while items are open; a write resets them, even a refused one."""
    if wrote:
        return 0
    return stale + 1 if open_count or settings.nag_when == "always" else stale


def is_nag_due(stale: int, settings: LoopSettings) -> bool:
    """Tell whether to send a reminder at this count: at `nag_after`, then at every `nag_every` more."""
    over = stale - settings.nag_after
    if not settings.nag_after or over < 0:
        return False
    return over == 0 or bool(settings.nag_every and over % settings.nag_every == 0)
