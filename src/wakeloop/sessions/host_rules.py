"""What every host does before and after a run."""

from asyncio import to_thread
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot

from wakeloop.errors import SessionError
from wakeloop.loop.inbox import WakeEvent, build_owed_reply, find_owed_replies
from wakeloop.loop.ledger import read_notes
from wakeloop.loop.silences import QUESTION_WAIT
from wakeloop.loop.waits import build_clock_event
from wakeloop.prompts import fill_prompt
from wakeloop.sessions.host import SessionHost, awaited_threads, derive_id
from wakeloop.sessions.questions import EarlyEvents, answer_fault, find_answered_question, open_questions
from wakeloop.stream import Session
from wakeloop.text.characters import shorten, storable_text
from wakeloop.thread.inputs import read_waits
from wakeloop.thread.outside import aend_run, build_dropped_question, end_run, find_hold
from wakeloop.thread.thread_status import LAST_NODE, answer_of, is_unfinished, read_session
from wakeloop.todos.items import MAX_REFUSAL_LENGTH

Graph = CompiledStateGraph[Any, Any, Any, Any]
RUN_KEY = "wakeloop_run"  # in a checkpoint's metadata: the run that wrote it


@dataclass(frozen=True)
class OutgoingEvent:
    """An event for another thread.

    Attributes:
        thread: The thread's id.
        event: The event. Its id is the same whenever the event is made again.

    Example:
        >>> from wakeloop.sessions import OutgoingEvent
        >>> OutgoingEvent("bob", {"kind": "kick", "id": "k1"}).thread
        'bob'
    """

    thread: str
    event: WakeEvent


@dataclass(frozen=True)
class NextInput:
    """The input of a thread's next run.

    Attributes:
        run: Whether to run the thread at all.
        input: The input to invoke the graph with.
        taken: The events that the input takes.
        held: The events that keep waiting.
        refused: Events that answer a question that is not being asked, each with a sentence that says so.
            Settle them, and tell the person.
        question: The id of the question that the input answers; None if it is not an answer.

    Example:
        >>> from wakeloop.sessions import NextInput
        >>> NextInput(run=False).taken
        ()
    """

    run: bool
    input: Any = None
    taken: tuple[WakeEvent, ...] = ()
    held: tuple[WakeEvent, ...] = ()
    refused: tuple[tuple[WakeEvent, str], ...] = ()
    question: str | None = None


def choose_next_input(
    snapshot: StateSnapshot, events: Sequence[WakeEvent], early: EarlyEvents | None = None, now: float = 0.0
) -> NextInput:
    """Decide what to run a thread with next, given the events that wait for it in order of arrival.

    At an interrupt, a human's event answers the question that its correlation id names, or without an id the
    first question that it came after. The other events are held: any other input would drop the question.
    An event that names a question that is not being asked is refused. A run that broke off or was drained
    continues before anything new is taken. A thread on hold takes only a human's events. Otherwise all events
    form one batch. A thread for which none waits runs when the time of one of its waits is over (rule 29).

    Args:
        snapshot: The thread's newest checkpoint, as `graph.get_state` returns it.
        events: The events that wait for the thread; may be empty.
        early: Which event came before which question (`find_early_events`); None if the host does not know
            the order, so that an answer has to name its question.
        now: The time, in seconds since 1970; 0 if no clock runs.

    Example:
        >>> from langgraph.types import StateSnapshot
        >>> from wakeloop.sessions import choose_next_input
        >>> at_rest = StateSnapshot({}, (), {}, None, None, None, (), ())
        >>> choose_next_input(at_rest, [{"kind": "kick", "id": "k1"}]).input
        {'todo_inbox': [{'kind': 'kick', 'id': 'k1'}]}
    """
    questions, running = open_questions(snapshot), is_unfinished(snapshot)
    if (snapshot.values.get("todo_ledger") or {}).get("refused"):
        running = False  # the run stopped at an input that was refused: it does not continue by itself
    if running and not questions:
        return NextInput(run=True, held=tuple(events))
    refused: list[tuple[WakeEvent, str]] = []
    waiting: list[WakeEvent] = []
    for event in events:
        if (fault := answer_fault(event, questions)) is not None:
            refused.append((event, fault))
        else:
            waiting.append(event)
    if not questions:
        held: tuple[WakeEvent, ...] = ()
        clock: WakeEvent | None = None
        if find_hold(snapshot.values) is not None:  # only a person moves it
            held = tuple(event for event in waiting if event["kind"] != "human")
            waiting = [event for event in waiting if event["kind"] == "human"]
        elif not waiting:
            clock = build_clock_event(snapshot.values.get("waiting_on") or (), now)
        inbox = waiting if clock is None else [clock]
        batch = {"todo_inbox": inbox} if inbox else None
        return NextInput(bool(inbox), batch, tuple(waiting), held, tuple(refused))
    for answer in waiting:
        question = find_answered_question(answer, questions, early)
        if question is not None:
            resume: Command[Any] = Command(resume={question: answer["text"]})
            held = tuple(event for event in waiting if event is not answer)
            said = tuple(refused)
            return NextInput(
                run=True, input=resume, taken=(answer,), held=held, refused=said, question=question
            )
    return NextInput(run=False, held=tuple(waiting), refused=tuple(refused))


def must_resume(session: Session) -> bool:
    """Tell whether to wake a thread when the host starts, because a drain ended its run.

    Send it a `kick`. A thread whose run failed gets another chance, too. One that is `running`
    continues with the input None instead (`choose_next_input`).

    Example:
        >>> from wakeloop.sessions import must_resume
        >>> must_resume({"state": "idle", "reason": "drained"})
        True
    """
    return session.get("reason") in ("drained", "failed")


def list_outstanding(
    thread_id: str,
    values: Mapping[str, Any],
    session: Session,
    failure: str | None = None,
    circle: Collection[str] = (),
) -> list[OutgoingEvent]:
    """Return what a thread must send after a run: whoever asked and has no answer yet gets the last text.

    A session that runs, waits or was drained sends nothing, because it continues. There are two exceptions.
    One that waits with a question in words sends the question. And sessions that asked each other at the same
    moment would wait in a circle forever, so a waiting session answers those that it waits for, directly or
    through others (`circle`). A subagent does not send its result while
    it has running subagents of its own. The ids derive from the questions, so each question is answered once,
    however often this is called.

    Args:
        thread_id: The thread's id, which is the sender of the events.
        values: The thread's values after the run.
        session: The thread's session after the run, as `session_of` reads it.
        failure: The words of the exception with which the run failed; None if it did not.
        circle: The threads that it waits for through others (`find_waiting_chain`).

    Example:
        >>> from wakeloop.sessions import list_outstanding
        >>> values = {"owed_replies": [{"id": "q1", "sender": "bob", "chain": ["bob"]}]}
        >>> session = {"state": "dormant", "reason": "settled", "open": 0}
        >>> [event.thread for event in list_outstanding("ada", values, session)]
        ['bob']
    """
    owed = [o for o in values.get("owed_replies") or () if isinstance(o, Mapping) and o.get("sender")]
    if failure is None:
        if session["reason"] == "waiting" and not gives_word_back(values):
            awaited = {*awaited_threads(values), *circle}
            owed = [o for o in owed if awaited.intersection(o.get("chain") or [o["sender"]])]
        elif (
            session["state"] == "running"
            or must_resume(session)
            or (session["state"] == "waiting" and session["reason"] != "waiting")
        ):
            return []
        if values.get("todo_subagents"):
            owed = find_owed_replies({"owed_replies": owed})
    return [make_answer(o, thread_id, _format_answer(o, values, session, failure)) for o in owed]


def gives_word_back(values: Mapping[str, Any]) -> bool:
    """Tell whether a thread waits with a question that its model asked in words.

    Example:
        >>> from wakeloop.sessions.host_rules import gives_word_back
        >>> gives_word_back({"waiting_on": [{"id": "question", "on": "peer", "from": "bob"}]})
        True
    """
    return any(wait.get("id") == QUESTION_WAIT for wait in read_waits(values))


def make_answer(owed: Mapping[str, Any], thread_id: str, text: str) -> OutgoingEvent:
    """Return the answer to an entry of `owed_replies`: a peer's reply, or a subagent's result.

    Example:
        >>> from wakeloop.sessions import make_answer
        >>> answer = make_answer({"sender": "bob", "id": "q1"}, "ada", "Yes.")
        >>> answer.thread, answer.event["kind"], answer.event["correlation_id"]
        ('bob', 'peer_reply', 'q1')
    """
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
    """Return the answer to an event that no run will take, or None if nobody waits for one.

    Example:
        >>> from wakeloop.sessions import make_refusal
        >>> make_refusal({"kind": "kick", "id": "e1"}, "ada", "cancelled") is None
        True
    """
    owed = build_owed_reply(event)
    return make_answer(owed, thread_id, format_failure(problem)) if owed else None


def derive_answer_id(asker: str, correlation_id: str) -> str:
    """Derive the id of the answer to a question, so that one question has one answer."""
    return derive_id("answer", asker, correlation_id)


def name_config(thread_id: str) -> RunnableConfig:
    """Return the config that names a thread."""
    return {"configurable": {"thread_id": thread_id}}


def format_failure(problem: str) -> str:
    """Return the sentence in which a peer reads about a failure."""
    return fill_prompt("failed", "", {}, problem=shorten(storable_text(problem), MAX_REFUSAL_LENGTH))


def close_run(
    graph: Graph, thread_id: str, host: SessionHost, failure: str | None = None
) -> list[OutgoingEvent]:
    """Send what is outstanding after a run, then remove it from the thread. A failed run is ended first.

    It is safe to repeat: the same events have the same ids.

    Args:
        graph: The agent, with its checkpointer.
        thread_id: The thread's id.
        host: The host that sends.
        failure: The words of the exception with which the run failed; None if it did not.

    Returns:
        The events that were sent.

    Example:
        >>> from wakeloop.sessions import close_run
        >>> close_run(graph, "ada", host)  # doctest: +SKIP
        [OutgoingEvent(thread='bob', event={'kind': 'peer_reply', ...})]
    """
    return close_run_after(graph, graph.get_state(name_config(thread_id)), thread_id, host, failure)


def close_run_after(
    graph: Graph, after: StateSnapshot, thread_id: str, host: SessionHost, failure: str | None
) -> list[OutgoingEvent]:
    """Close a run whose thread was just read: `close_run`."""
    config = name_config(thread_id)
    sent, update = send_outstanding(after, thread_id, host, failure)
    if failure is not None:
        end_run(graph, config, failure)
    if sent:
        graph.update_state(config, update, as_node=LAST_NODE)
    return sent


async def aclose_run(
    graph: Graph, thread_id: str, host: SessionHost, failure: str | None = None
) -> list[OutgoingEvent]:
    """Send what is outstanding after a run: `close_run` for asynchronous savers.

    Example:
        >>> from wakeloop.sessions import aclose_run
        >>> await aclose_run(graph, "ada", host)  # doctest: +SKIP
        []
    """
    config = name_config(thread_id)
    before = await graph.aget_state(config)
    # it may read other threads
    sent, update = await to_thread(send_outstanding, before, thread_id, host, failure)
    if failure is not None:
        await aend_run(graph, config, failure)
    if sent:
        await graph.aupdate_state(config, update, as_node=LAST_NODE)
    return sent


def send_outstanding(
    snapshot: StateSnapshot, thread_id: str, host: SessionHost, failure: str | None = None
) -> tuple[list[OutgoingEvent], dict[str, Any]]:
    """Send what is outstanding after a run. Return it, and the update that removes it from the thread."""
    values, session = snapshot.values or {}, read_session(snapshot)
    circle: Collection[str] = ()
    if failure is None and session["reason"] == "waiting" and values.get("owed_replies"):
        circle = find_waiting_chain(thread_id, values, host)
    outgoing = list_outstanding(thread_id, values, session, failure, circle)
    update: dict[str, Any] = {"owed_replies": remove_answered(outgoing)}
    parents = [one.thread for one in outgoing if one.event["kind"] == "subagent_done"]
    if parents and gives_word_back(values) and all(has_ended(host, parent) for parent in parents):
        update |= build_dropped_question(session, "stalled")
    for one in outgoing:
        send_answer(host, one)
    return outgoing, update


def has_ended(host: SessionHost, thread_id: str) -> bool:
    """Tell whether a thread is at rest, waits for nothing and has nothing to read, or is gone."""
    try:
        status = host.status(thread_id)
    except SessionError:
        return True
    return status.state not in ("running", "waiting") and not (status.queued or status.sent)


def send_answer(host: SessionHost, outgoing: OutgoingEvent | None) -> None:
    """Send an answer, if there is one."""
    if outgoing is not None:
        with suppress(SessionError):  # the asker's agent is gone: there is nobody to tell
            host.send(outgoing.thread, outgoing.event)


def find_waiting_chain(thread_id: str, values: Mapping[str, Any], host: SessionHost) -> set[str]:
    """Return the threads that a thread waits for, and those that they wait for, as long as all of them rest.

    If a circle closes in one moment, the last of its threads to come to rest sees the whole circle.
    """
    found: set[str] = set()
    ahead = [*awaited_threads(values)]
    while ahead:
        thread = ahead.pop()
        if thread in found or thread == thread_id:
            continue
        found.add(thread)
        with suppress(SessionError):  # the host knows no such session
            status = host.status(thread)
            if status.reason == "waiting" and not status.queued:
                ahead += status.waits_for
    return found


def name_run(first: str, snapshot: StateSnapshot, *, failed: bool) -> str:
    """Name a run after the id of its first event, or anew if one of that event failed: it keeps the name."""
    return derive_id("again", first, str(snapshot.created_at)) if failed else first


def find_unread_events(
    snapshot: StateSnapshot, taken: Sequence[WakeEvent], question: str | None
) -> list[str]:
    """Return the ids of a run's events that its thread has not read. Call it before a failed run is ended.

    Args:
        snapshot: The thread as the run left it.
        taken: The events that the run took.
        question: The id of the question that the event answers; None if the events are an input.
    """
    ids = [event["id"] for event in taken]
    if question is None:
        seen = read_notes(snapshot.values or {}).get("events", ())
        return [] if any(key in seen for key in ids) else ids
    for task in snapshot.tasks:
        asked = [interrupt.id for interrupt in task.interrupts]
        if question in asked and task.result is None:  # the task did not get past the answer
            return ids
    return []


def remove_answered(sent: Sequence[OutgoingEvent]) -> dict[str, list[dict[str, str]]]:
    """Return the update of the channel `owed_replies` that removes the entries these events answer.

    Example:
        >>> from wakeloop.sessions import make_answer, remove_answered
        >>> remove_answered([make_answer({"sender": "bob", "id": "q1"}, "ada", "Yes.")])
        {'drop': [{'id': 'q1', 'sender': 'bob'}]}
    """
    return {"drop": [{"id": one.event["correlation_id"], "sender": one.thread} for one in sent]}


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
