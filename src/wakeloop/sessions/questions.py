"""Which answer is for which question: ids, and order."""

from collections.abc import Iterable, Mapping, Sequence

from langgraph.types import StateSnapshot

from wakeloop.loop.inbox import WakeEvent
from wakeloop.text.characters import shorten

EarlyEvents = frozenset[tuple[str, str]]
"""Pairs of an event's id and a question's: the event came before the question, so it is no answer to it."""
ANY_QUESTION = ""  # in a session's notes: any question that has no note of its own
SHOWN = 3  # ids of questions that a refusal names


def open_questions(snapshot: StateSnapshot) -> list[str]:
    """Return the ids of the questions at which a thread stands, the first one first."""
    return [question.id for question in snapshot.interrupts]


def update_question_notes(before: Mapping[str, int], questions: Iterable[str], newest: int) -> dict[str, int]:
    """Return what is noted of the questions that stand: the newest event's number when each was first seen.

    Args:
        before: What was noted until now.
        questions: The ids of those that stand; notes of others are dropped.
        newest: The number of the newest event that the store has accepted.
    """
    return {key: before.get(key, before.get(ANY_QUESTION, newest)) for key in questions}


def find_early_events(notes: Mapping[str, int], numbered: Iterable[tuple[int, WakeEvent]]) -> EarlyEvents:
    """Return which events came before which of the questions that are noted.

    Args:
        notes: What `noted` has given for the thread.
        numbered: The events that wait for the thread, each with its number in the store's order.
    """
    return frozenset(
        (event.get("id", ""), question)
        for number, event in numbered
        for question, newest in notes.items()
        if number <= newest
    )


def find_answered_question(
    event: WakeEvent, questions: Sequence[str], early: EarlyEvents | None
) -> str | None:
    """Return the question that an event answers: the one that it names, or the first that it came after.

    Args:
        event: What came in.
        questions: The ids of the questions that stand.
        early: What came before what; None where the order is not known, so that only a name counts.
    """
    if event.get("kind") != "human" or not event.get("text", "").strip():
        return None
    if named := event.get("correlation_id"):
        return named if named in questions else None
    if early is None:
        return None
    return next((q for q in questions if (event.get("id", ""), q) not in early), None)


def answer_fault(event: WakeEvent, questions: Sequence[str]) -> str | None:
    """Say why a person's event names a question in vain, or return None."""
    named = event.get("correlation_id")
    if event.get("kind") != "human" or not named or named in questions:
        return None
    asked = ", ".join(questions[:SHOWN]) + (", …" if len(questions) > SHOWN else "")
    return (
        f"The answer is refused: it is for the question {shorten(repr(named))}, and the session "
        + (f"asks {asked}: name that one" if questions else "asks nothing now: leave the id out to say it")
        + "."
    )
