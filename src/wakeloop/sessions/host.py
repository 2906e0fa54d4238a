"""What hosts sessions: one small interface, its promises."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2s
from typing import Any, Protocol, cast, runtime_checkable
from uuid import uuid4

from langgraph.types import StateSnapshot

from wakeloop.errors import SessionError
from wakeloop.loop.inbox import WakeEvent, find_event_fault
from wakeloop.text.characters import find_lone_surrogate, shorten, to_one_line
from wakeloop.text.secrets import redact_text
from wakeloop.thread.thread_status import read_session

DEFAULT_AGENT = "main"
THREAD_KEY = "wakeloop"  # in the metadata of a thread whose id is another than the session's name
CANCELLED_MESSAGE = "the message was cancelled before it was read"
CRON_FIELDS = 5
LONGEST_ERROR = 500  # characters
LONGEST_NAME = 1000  # bytes: a thread's and an event's are one row of an index of Postgres
RETRY_PAUSES = (0.2, 1.0, 5.0, 20.0, 60.0)  # seconds between two tries while a database or a server is away
GRACE = 10.0  # seconds that a worker's locks must have been seen free before another takes them over
CRON_HELP = "write five fields, minute, hour, day, month and weekday."


class TakenOverError(SessionError):
    """A run's thread was taken over by another worker; whoever has it goes on with it."""

    def __init__(self, thread: str) -> None:
        super().__init__(f"The thread {thread!r} was taken over by another worker, which goes on with it.")


@dataclass(frozen=True)
class SessionStatus:
    """How one session stands: `wakeloop ps` shows a line of it.

    From `state` to `on` it is what `session_of` reads from the thread's newest checkpoint.

    Attributes:
        thread: The thread's id.
        agent: The name of its agent.
        state: `running`, `idle` (with open items), `dormant` (with none) or `waiting`; `damaged` where the
            thread cannot be read, `unknown` where its agent is none of the host's: `error` tells more.
        reason: Why the last run ended; None before the first.
        open: How many items are open.
        wakes: How many wakes the activation has spent.
        budget: How many it may spend.
        on: What a waiting session waits for: `human`, `approval`, `peer` or `subagent`; else None.
        queued: How many events no run has taken yet; those of a run that was given up before its thread had
            read them are among them.
        error: Why the newest run was given up, or an answer was refused; None where nothing was. The next
            event of any kind, such as a `kick`, tries again, with what is queued.
        waits_for: The threads that a waiting session waits for.
        asks: The ids of the questions that wait for a person, the first one first: an answer names one as its
            `correlation_id`.
    """

    thread: str
    agent: str
    state: str
    reason: str | None
    open: int
    wakes: int
    budget: int
    on: str | None = None
    queued: int = 0
    error: str | None = None
    waits_for: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()

    @classmethod
    def from_snapshot(
        cls, thread: str, agent: str, snapshot: StateSnapshot, queued: int = 0
    ) -> "SessionStatus":
        """Read it from a thread's newest checkpoint."""
        session = read_session(snapshot)
        return cls(
            thread=thread,
            agent=agent,
            state=session["state"],
            reason=session["reason"],
            open=session["open"],
            wakes=session["wakes"],
            budget=session["budget"],
            on=session.get("on"),
            queued=queued,
            waits_for=awaited_threads(snapshot.values or {}),
            asks=tuple(question.id for question in snapshot.interrupts),
        )

    @classmethod
    def from_error(cls, thread: str, error: Exception, queued: int = 0) -> "SessionStatus":
        """Tell of a thread that cannot be read, and hide no other by it."""
        agent, strange = thread.partition(":")[0], isinstance(error, SessionError)
        told = str(error) if strange else f"What is stored of it cannot be read: {describe_error(error)}."
        state = "unknown" if strange else "damaged"
        return cls(thread, agent, state, None, open=0, wakes=0, budget=0, queued=queued, error=told)


@dataclass(frozen=True)
class Schedule:
    """A cron line that sends a `cron` event to a thread.

    Attributes:
        id: What `cancel` takes.
        thread: The thread's id.
        cron: The five fields: minute, hour, day, month, weekday; in UTC.
        text: What the session reads.
        due: Its next time in ISO 8601, with offset; None where the host does not tell.
    """

    id: str
    thread: str
    cron: str
    text: str
    due: str | None = None


@runtime_checkable
class SessionHost(Protocol):
    """Runs sessions: what is sent to a thread wakes it.

    The methods are synchronous, may be called from any thread, also from a tool in the middle of a run and
    from a server's worker thread, and return without waiting for anybody's run. (A tool of an asynchronous
    graph that is a plain function is run in a thread of its own, so one kind of method serves both.)

    A host promises:

    - **One run of a thread at a time**, whatever the number of processes.
    - **In order.** Events of one thread are taken in the order in which `send` accepted them, one by one or
      several as one batch (the list `todo_inbox` of one input, in that order).
    - **Once.** An event whose id was accepted before for the same thread is dropped, and `send` returns that
      id all the same: a run that is made again sends the same ids. Events and schedules survive the process.
    - **Nothing is left in silence.** After each run, and when a run is given up for an exception, it sends
      what `wakeloop.sessions.list_outstanding` says, then takes the answered entries off the thread.
    - **Interrupts.** A thread that waits at an interrupt is given nothing but a human's event that names the
      question, or names none and came after it; what else came in keeps its order and is taken afterwards
      (`wakeloop.sessions.choose_next_input`). An answer to another question is refused.
    - **Nothing is stored about the host** in a thread.
    """

    @property
    def agents(self) -> Mapping[str, object]:
        """The agents by name; `find_agent` finds a thread's by its id."""

    def send(self, thread_id: str, event: WakeEvent) -> str:
        """Accept an event for a thread, which need not exist yet, and return the event's id.

        Accepted means stored: the event outlives the process. A draining host still accepts.

        Args:
            thread_id: `AGENT`, `AGENT:NAME`, or any other name for the agent `main`.
            event: The event; without an id it gets a new one, without a time the present.

        Raises:
            SessionError: The thread belongs to no agent of the host, the event has a fault
                (`wakeloop.sessions.event_fault`), it names a question that is not asked, or a text cannot be
                stored.
        """

    def schedule(self, thread_id: str, cron: str, text: str) -> str:
        """Send a `cron` event with this text whenever the cron line (five fields) is due; return an id.

        The same thread, line and text again is the same schedule. A time that passed while the host was down
        fires once at its start.

        Args:
            thread_id: As for `send`.
            cron: Minute, hour, day, month, weekday; in UTC.
            text: What the session reads.

        Raises:
            SessionError: The line is no cron line, or the thread belongs to no agent of the host.
        """

    def schedules(self, thread_id: str | None = None) -> Sequence[Schedule]:
        """Return what is scheduled, of one thread or of all, by id."""

    def status(self, thread_id: str) -> SessionStatus:
        """Return how a thread stands.

        Raises:
            SessionError: Nothing was ever sent to it.
        """

    def cancel(self, key: str) -> bool:
        """Remove a schedule, or an event that no run has taken yet, by the id that made it.

        Events of several threads may have the same id: all of them are removed. Who waits for an answer to a
        cancelled event is told (`make_answer`).

        Returns:
            False where there is none.
        """

    def drain(self, timeout: float | None = None) -> bool:
        """Begin no run any more, ask those under way to stop at their next superstep, and wait for them.

        What is queued stays queued; a run that was stopped goes on at the host's next start.

        Args:
            timeout: Seconds to wait at most; None for as long as it takes.

        Returns:
            Whether all have stopped.
        """

    def list(self) -> Sequence[SessionStatus]:
        """Return every session that the host knows, by thread id."""


def find_agent(thread_id: str, agents: Mapping[str, object]) -> str:
    """Return the name of the agent that a thread belongs to.

    A thread id is `AGENT` or `AGENT:NAME`; any other belongs to the agent `main`, where there is one.

    Raises:
        SessionError: There is none, or the id cannot be stored.
    """
    name = check_name("thread's id", thread_id).partition(":")[0]
    if name in agents:
        return name
    if thread_id.strip() and DEFAULT_AGENT in agents:
        return DEFAULT_AGENT
    known = ", ".join(sorted(agents)) or "none"
    raise SessionError(f"There is no agent for the thread {thread_id!r}; the agents are: {known}.")


def awaited_threads(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the threads that a session waits for, read off its values."""
    waits = [w for w in values.get("waiting_on") or () if isinstance(w, Mapping)]
    threads = (w.get("id") if w.get("on") == "subagent" else w.get("from") for w in waits)
    return tuple(str(thread) for thread in threads if thread)


def describe_error(error: BaseException) -> str:
    """Tell an error in a line, without secrets."""
    return shorten(to_one_line(redact_text(f"{type(error).__name__}: {error}")), LONGEST_ERROR)


def complete_event(event: WakeEvent) -> WakeEvent:
    """Return an event as it is stored, with an id and a time; one that cannot be is refused."""
    beside = {"id": event.get("id") or uuid4().hex, "time": event.get("time") or utc_now().isoformat()}
    whole = cast("WakeEvent", {**event, **beside})
    if fault := find_event_fault(whole):
        raise SessionError(f"The event is refused: {fault}.")
    for key, value in whole.items():
        for text in value if isinstance(value, list) else (value,):
            (check_name if key in ("id", "sender") else check_text)(f"event's {key}", str(text))
    return whole


def check_text(what: str, text: str) -> str:
    """Return a text that can be stored; one with half a pair of characters in it is refused."""
    if half := find_lone_surrogate(text):
        raise SessionError(
            f"The {what} is refused: half a pair of characters ({half}) is in it, which UTF-8 cannot hold."
        )
    return text


def check_name(what: str, name: str) -> str:
    """Return a name that can be looked up by an index; any other is refused."""
    if "\0" in check_text(what, name):
        raise SessionError(f"The {what} is refused: a NUL is in it, which Postgres cannot hold.")
    if len(name.encode()) > LONGEST_NAME:
        raise SessionError(f"The {what} is refused: it is longer than {LONGEST_NAME:,} bytes.")
    return name


def unknown_session_error(thread_id: str) -> SessionError:
    """Return the error for a thread that a host has never heard of."""
    return SessionError(f"There is no session {thread_id!r}: nothing was ever sent to it.")


def cron_line_error(cron: str, why: object = CRON_HELP) -> SessionError:
    """Return the error for a bad cron line."""
    return SessionError(f"{cron!r} is no cron line: {why}")


def utc_now() -> datetime:
    """Return the present, in UTC."""
    return datetime.now(UTC)


def derive_id(*parts: str) -> str:
    """Derive an id: the same parts give the same one, in any process.

    A tool derives an event's id from its thread, the message with its call and the call's id, so that a run
    that is made again sends the same event and the host drops it.
    """
    return blake2s("\0".join(parts).encode("utf-8", "replace"), digest_size=12).hexdigest()
