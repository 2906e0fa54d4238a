"""Turns without a call: doubts, waits, pushes (rules 26, 30)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from wakeloop.dialects import find_read_names
from wakeloop.loop.ledger import Ledger
from wakeloop.settings import LoopSettings
from wakeloop.text.asked_questions import asks_question
from wakeloop.text.marks import is_model_reply, kind_of
from wakeloop.text.thoughts import answer_text

Doubt = Literal["question", "topic"]
"""Why a wake does not just say to continue: the turn asked, or a person may have meant something else."""
QUESTION_WAIT = "question"  # the id of the entry in `waiting_on` of a thread that gave the word back
SUBAGENTS_WAIT = "subagents"  # that of one which waits for the first result of any subagent

HOLD_WAIT = "hold"  # that of one which is held from outside


def find_doubt(notes: Ledger, messages: Sequence[BaseMessage], settings: LoopSettings) -> Doubt | None:
    """Return why the wake after this turn may not just say to continue; None if it may.

    Where the run does not wait for an answer, a question stays in doubt until a call is made. The described
    systems doubt nothing.
    """
    if not (settings.announces or settings.on_question != "wake"):
        return None
    if ends_by_asking(messages) or (settings.on_question == "wake" and notes.get("woken") == "question"):
        return "question"
    return "topic" if notes.get("uncalled") else None


def doubts_topics(settings: LoopSettings) -> bool:
    """Tell whether a person's message over old items may mean something else than to continue with them."""
    return settings.on_question != "wake" or settings.on_new_topic == "say"


def find_awaited(
    notes: Ledger, messages: Sequence[BaseMessage], settings: LoopSettings, *, subagents: bool
) -> Literal["human", "subagent"] | None:
    """Return for whom the run waits after this turn, by gate 6; None if for nobody.

    `woken` is there only as long as the wake's turn made no call but to read the list: silence after a doubt
    means that the model does not want to continue alone. `subagents` says that one is at work.
    """
    woken = notes.get("woken")
    if settings.on_question == "park" and ends_by_asking(messages):
        return "human"
    if woken == "topic" or (woken == "question" and settings.on_question != "wake"):
        return "human"
    return "subagent" if woken and subagents else None


def note_doubt(notes: Ledger, doubt: Doubt | None, *, subagents: bool) -> None:
    """Note what a wake is about, where the silence of its turn would mean something."""
    if doubt or subagents:
        notes["woken"] = doubt or "plain"


def restart_counts(notes: Ledger, settings: LoopSettings, *, some_open: int) -> None:
    """Begin the counts of silence and idleness anew, because a person has steered words in (rule 26).

    The words may tell the model to stop, as a message over the items of an earlier activation may.
    """
    for key in ("idle_rounds", "woken", "uncalled", "called_by", "push", "called", "force"):
        notes.pop(key, None)  # type: ignore[misc]
    notes["idle_wakes"] = 0
    notes["todo_finalization_correction"] = None
    if some_open and doubts_topics(settings):
        notes["uncalled"] = "unsaid"


def ends_by_asking(messages: Sequence[BaseMessage]) -> bool:
    """Tell whether the last message is a reply that ends a turn with a question."""
    last = messages[-1] if messages else None
    if not isinstance(last, AIMessage) or last.tool_calls or not is_model_reply(last):
        return False
    return asks_question(answer_text(last))


def find_question(messages: Sequence[BaseMessage]) -> str:
    """Return the text with which a silent turn after a doubt gave the word back; "" if there was none.

    It is the text of the turn before the wake: what came after it is only "I am waiting." or the like. If
    that turn did not ask and the silent one does, it is the text of the latter.
    """
    silent, reads = list[str](), find_read_names()
    before = False
    for message in reversed(messages):
        if _reads_list(message, reads):
            continue
        if before and is_model_reply(message):
            first = answer_text(message)
            asked_late = silent and asks_question(silent[0]) and not asks_question(first)
            return silent[0] if asked_late or not first else first
        if is_model_reply(message):
            if getattr(message, "tool_calls", None):
                return ""
            silent.append(answer_text(message))
        elif kind_of(message) in ("wake", "activate"):
            mark: Mapping[str, Any] = message.additional_kwargs["wakeloop"]
            if before or not silent or mark.get("doubt") not in ("question", "topic"):
                return ""
            before = True
        elif message.type != "ai" and not before and kind_of(message) != "retry":
            return ""
    return ""


def _reads_list(message: BaseMessage, reads: Collection[str]) -> bool:
    """Tell whether a message only reads the list, or is what was read: that is still silence."""
    if isinstance(message, ToolMessage):
        return message.name in reads
    names = [call["name"] for call in getattr(message, "tool_calls", ())]
    return bool(names) and all(name in reads for name in names)


def build_wait(awaited: str, messages: Sequence[BaseMessage], owed: Sequence[Any] = ()) -> dict[str, Any]:
    """Return the entry of `waiting_on` for a run that waits by gate 6.

    Where a reply is `owed`, the question goes to whoever waits for that reply: a peer, or the parent.
    """
    if awaited == "subagent":
        return {"id": SUBAGENTS_WAIT, "on": "subagent"}
    question = find_question(messages) or answer_text(messages[-1])
    entry: dict[str, Any] = {"id": QUESTION_WAIT, "on": "human", "question": question}
    senders = [one["sender"] for one in owed if isinstance(one, Mapping) and one.get("sender")]
    if senders:
        entry |= {"on": "peer", "from": senders[0]}
    return entry


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
    notes.pop("force", None)
    if forced:
        notes["force"] = True


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
