"""What a host does around a run: pure decisions."""

from asyncio import to_thread
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot

from wakeloop.errors import SessionError
from wakeloop.loop.inbox import WakeEvent, build_owed_reply, find_owed_replies
from wakeloop.loop.ledger import read_notes
from wakeloop.prompts import fill_prompt
from wakeloop.sessions.host import SessionHost, awaited_threads, derive_id
from wakeloop.sessions.questions import EarlyEvents, answer_fault, find_answered_question, open_questions
from wakeloop.stream import Session
from wakeloop.text.characters import shorten, storable_text
from wakeloop.thread.end_run import aend_run, end_run
from wakeloop.thread.thread_status import LAST_NODE, answer_of, is_unfinished, read_session
from wakeloop.todos.items import MAX_REFUSAL_LENGTH

RUN_KEY = "turn_id"  # in a checkpoint's metadata: the run that wrote it; a stored name


@dataclass(frozen=True)
class OutgoingEvent:
    """An event for another thread.

    Attributes:
        thread: Its id.
        event: The event, with an id that is the same whenever it is made again.
    """

    thread: str
    event: WakeEvent


@dataclass(frozen=True)
class NextInput:
    """What to run a thread with.

    Attributes:
        run: Whether to run it at all.
        input: What to invoke the graph with.
        taken: The events that this input takes.
        held: Those that go on waiting.
        refused: Those that answer a question that is not asked (any more), each with a sentence on it: let go
            of them, and tell the person.
        question: The id of the question that the input answers; None where it is no answer.
    """

    run: bool
    input: Any = None
    taken: tuple[WakeEvent, ...] = ()
    held: tuple[WakeEvent, ...] = ()
    refused: tuple[tuple[WakeEvent, str], ...] = ()
    question: str | None = None


def choose_next_input(
    snapshot: StateSnapshot, events: Sequence[WakeEvent], early: EarlyEvents | None = None
) -> NextInput:
    """Decide what a thread is run with next, of the events that wait for it in the order of their arrival.

    At an interrupt a human's event is the answer to the question that its correlation id names, or without an
    id to the first question that it came after; the others are held, since any other input would drop the
    question: what came before it becomes input afterwards. A name that no question has is refused. A run that
    broke off or was drained goes on before anything new is taken. Otherwise all events are one batch.

    Args:
        snapshot: The thread's newest checkpoint, as `graph.get_state` returns it.
        events: What waits for the thread; it may be empty.
        early: Which event came before which question (`find_early_events`); None where the host does not know
            the order, so that an answer has to name its question.
    """
    questions, at_work = open_questions(snapshot), is_unfinished(snapshot)
    at_work = at_work and not (snapshot.values.get("todo_ledger") or {}).get("refused")
    if at_work and not questions:
        return NextInput(run=True, held=tuple(events))
    refused = tuple((e, why) for e in events if (why := answer_fault(e, questions)))
    waiting = tuple(e for e in events if not answer_fault(e, questions))
    if questions:
        for answer in waiting:
            if (question := find_answered_question(answer, questions, early)) is not None:
                reply: Command[Any] = Command(resume={question: answer["text"]})
                held = tuple(e for e in waiting if e is not answer)
                given = NextInput(run=True, input=reply, taken=(answer,), question=question)
                return replace(given, held=held, refused=refused)
        return NextInput(run=False, held=waiting, refused=refused)
    if not waiting:
        return NextInput(run=False, refused=refused)
    return NextInput(run=True, input={"todo_inbox": [*waiting]}, taken=waiting, refused=refused)


def must_resume(session: Session) -> bool:
    """Tell whether a thread is to be woken at the host's start, since a drain ended its run.

    A `kick` does it; a thread whose run was given up says the same, and gets another chance. One that says
    `running` goes on with the input None (`choose_next_input`).
    """
    return session.get("reason") == "drained"


def list_outstanding(
    thread_id: str,
    values: Mapping[str, Any],
    session: Session,
    failure: str | None = None,
    circle: Collection[str] = (),
) -> list[OutgoingEvent]:
    """Return what a thread must send after a run: who asked, and has no answer yet, gets the last text.

    Nothing while the session waits, runs, or was drained: it goes on. But sessions that have asked each other
    at the same moment, in a circle, would wait for ever, so those for whom it waits itself, and those for
    whom they wait in turn (`circle`), are answered. A subagent's result
    is not sent while it has subagents of its own at work. The ids derive from the question, so that an answer
    is sent once, however often this is asked.

    Args:
        thread_id: The thread's id, the sender of what is returned.
        values: The thread's values after the run.
        session: How it stands after the run, as `session_of` reads it.
        failure: The words of an exception for which the run is given up; None where it is not.
        circle: The threads for which it waits over others (`reached`).
    """
    owed = [o for o in values.get("owed_replies") or () if isinstance(o, Mapping) and o.get("sender")]
    if failure is None and session["reason"] == "waiting":
        asked = {*awaited_threads(values), *circle}
        owed = [o for o in owed if asked.intersection(o.get("chain") or [o["sender"]])]
    elif failure is None and (session["state"] in ("waiting", "running") or must_resume(session)):
        return []
    if failure is None and values.get("todo_subagents"):
        owed = find_owed_replies({"owed_replies": owed})
    return [make_answer(o, thread_id, _format_answer(o, values, session, failure)) for o in owed]


def make_answer(owed: Mapping[str, Any], thread_id: str, text: str) -> OutgoingEvent:
    """Return the one answer to an entry of `owed_replies`: a peer's reply, or a subagent's result."""
    asker, key = str(owed["sender"]), str(owed["id"])
    event: WakeEvent = {
        "kind": owed.get("wants") or "peer_reply",
        "id": derive_answer_id(asker, key),
        "text": text,
        "sender": thread_id,
        "correlation_id": key,
    }
    return OutgoingEvent(asker, event)


def make_refusal(event: WakeEvent, thread_id: str, problem: str) -> OutgoingEvent | None:
    """Return the answer to an event that no run will take (cancelled, given up); None if nobody waits."""
    owed = build_owed_reply(event)
    return make_answer(owed, thread_id, format_failure(problem)) if owed else None


def derive_answer_id(asker: str, correlation_id: str) -> str:
    """Return the id of the answer to a question: one question has one answer."""
    return derive_id("answer", asker, correlation_id)


def format_failure(problem: str) -> str:
    """Return the text that tells a peer of a failure."""
    return fill_prompt("failed", "", {}, problem=shorten(storable_text(problem), MAX_REFUSAL_LENGTH))


def close_run(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    thread_id: str,
    host: SessionHost,
    failure: str | None = None,
) -> list[OutgoingEvent]:
    """Send what is outstanding after a run, then take it off the thread; a run given up is ended first.

    Safe to repeat: what was sent before has the same ids.

    Args:
        graph: The agent, with its checkpointer.
        thread_id: The thread's id.
        host: What sends.
        failure: The words of an exception for which the run is given up; None where it is not.

    Returns:
        What was sent.
    """
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    letters = send_outstanding(graph.get_state(config), thread_id, host, failure)
    if failure is not None:
        end_run(graph, config)
    if letters:
        graph.update_state(config, {"owed_replies": remove_answered(letters)}, as_node=LAST_NODE)
    return letters


async def aclose_run(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    thread_id: str,
    host: SessionHost,
    failure: str | None = None,
) -> list[OutgoingEvent]:
    """Send what is outstanding after a run: `close_run` for asynchronous savers."""
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    before = await graph.aget_state(config)
    letters = await to_thread(send_outstanding, before, thread_id, host, failure)  # it may read other threads
    if failure is not None:
        await aend_run(graph, config)
    if letters:
        await graph.aupdate_state(config, {"owed_replies": remove_answered(letters)}, as_node=LAST_NODE)
    return letters


def send_outstanding(
    snapshot: StateSnapshot, thread_id: str, host: SessionHost, failure: str | None = None
) -> list[OutgoingEvent]:
    """Send what is outstanding after a run, and return it."""
    values, session = snapshot.values or {}, read_session(snapshot)
    rests = failure is None and session["reason"] == "waiting" and values.get("owed_replies")
    circle = find_waiting_chain(thread_id, values, host) if rests else ()
    letters = list_outstanding(thread_id, values, session, failure, circle)
    for letter in letters:
        send_answer(host, letter)
    return letters


def send_answer(host: SessionHost, letter: OutgoingEvent | None) -> None:
    """Send an answer, where somebody waits for one."""
    if letter is not None:
        with suppress(SessionError):  # the asker's agent is gone: there is nobody to tell
            host.send(letter.thread, letter.event)


def find_waiting_chain(thread_id: str, values: Mapping[str, Any], host: SessionHost) -> set[str]:
    """Return the threads for which one waits, and those for which they wait, as far as all of them rest.

    Of a circle that closed at one moment the last to come to rest sees it whole.
    """
    found: set[str] = set()
    ahead = [*awaited_threads(values)]
    while ahead:
        if (thread := ahead.pop()) in found or thread == thread_id:
            continue
        found.add(thread)
        with suppress(SessionError):  # the host knows of no such session
            status = host.status(thread)
            if status.reason == "waiting" and not status.queued:
                ahead += status.waits_for
    return found


def find_unread_events(
    snapshot: StateSnapshot, taken: Sequence[WakeEvent], question: str | None
) -> list[str]:
    """Return the ids of a run's events that its thread has not read, before what it left is ended.

    Args:
        snapshot: The thread as the run has left it.
        taken: What the run took.
        question: The id of the question that the event answers; None where they are an input.
    """
    if question is None:
        seen = read_notes(snapshot.values or {}).get("events", ())
        return [] if any(event["id"] in seen for event in taken) else [event["id"] for event in taken]
    asks = (t for t in snapshot.tasks if question in [i.id for i in t.interrupts])
    return [event["id"] for event in taken] if any(task.result is None for task in asks) else []


def remove_answered(letters: Sequence[OutgoingEvent]) -> dict[str, list[dict[str, str]]]:
    """Return the update of `owed_replies` that takes off what these events answer."""
    return {"drop": [{"id": one.event["correlation_id"], "sender": one.thread} for one in letters]}


def _format_answer(
    owed: Mapping[str, Any], values: Mapping[str, Any], session: Session, failure: str | None
) -> str:
    if failure is not None:
        return format_failure(failure)
    text = answer_of(values) or fill_prompt("no_text", "", {})
    if owed.get("wants") == "subagent_done" and session["open"]:
        return fill_prompt(
            "subagent_early", "", {}, text=text, open=session["open"], reason=session["reason"]
        )
    return text
