"""Matches answers to questions, by id and by order."""

from collections.abc import Iterable, Mapping, Sequence

from langgraph.types import StateSnapshot

from wakeloop.loop.inbox import WakeEvent
from wakeloop.text.characters import shorten

EarlyEvents = frozenset[tuple[str, str]]
"""Pairs of an event's id and a question's id: the event came before the question, so it cannot answer it."""
ANY_QUESTION = ""  # key in a session's notes: applies to every question without a note of its own
SHOWN = 3  # question ids that a refusal names


def open_questions(snapshot: StateSnapshot) -> list[str]:
    """Return the ids of the questions that a thread is waiting on, oldest first."""
    return [question.id for question in snapshot.interrupts]


def update_question_notes(before: Mapping[str, int], questions: Iterable[str], newest: int) -> dict[str, int]:
    """Note for each open question which event was the newest when the question was first seen.

    Args:
        before: The notes so far.
        questions: The ids of the open questions; notes of others are dropped.
        newest: The number of the newest event that the store has accepted.

    Example:
        >>> from wakeloop.sessions import update_question_notes
        >>> notes = update_question_notes({}, ["q1"], 7)
        >>> update_question_notes(notes, ["q1", "q2"], 9)
        {'q1': 7, 'q2': 9}
    """
    notes: dict[str, int] = {}
    for question in questions:
        default = before.get(ANY_QUESTION, newest)
        notes[question] = before.get(question, default)
    return notes


def find_early_events(notes: Mapping[str, int], numbered: Iterable[tuple[int, WakeEvent]]) -> EarlyEvents:
    """Return which events came before which of the noted questions.

    Args:
        notes: What `update_question_notes` returned for the thread.
        numbered: The events that wait for the thread, each with its number in the store's order.

    Example:
        >>> from wakeloop.sessions import find_early_events
        >>> hello, yes = {"kind": "human", "id": "hello"}, {"kind": "human", "id": "yes"}
        >>> find_early_events({"q1": 7}, [(6, hello), (8, yes)]) == {("hello", "q1")}
        True
    """
    early: set[tuple[str, str]] = set()
    for number, event in numbered:
        for question, newest in notes.items():
            if number <= newest:
                early.add((event.get("id", ""), question))
    return frozenset(early)


def find_answered_question(
    event: WakeEvent, questions: Sequence[str], early: EarlyEvents | None
) -> str | None:
    """Return the question that an event answers: the one it names, or the first one it came after.

    Args:
        event: The event.
        questions: The ids of the open questions.
        early: Which event came before which question; None if the order is unknown, so that an answer has to
            name its question.
    """
    if event.get("kind") != "human" or not event.get("text", "").strip():
        return None
    if named := event.get("correlation_id"):
        return named if named in questions else None
    if early is None:
        return None
    for question in questions:
        if (event.get("id", ""), question) not in early:
            return question
    return None


def answer_fault(event: WakeEvent, questions: Sequence[str]) -> str | None:
    """Return a sentence if a human's event names a question that is not being asked, else None."""
    named = event.get("correlation_id")
    if event.get("kind") != "human" or not named or named in questions:
        return None
    more = ", …" if len(questions) > SHOWN else ""
    asked = "asks nothing now. Leave the id out to send a message."
    if questions:
        asked = f"asks {', '.join(questions[:SHOWN])}{more}. Name one of those."
    return f"The answer names question {shorten(repr(named))}, but the session {asked}"
