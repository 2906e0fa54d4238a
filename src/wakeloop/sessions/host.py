"""The interface of session hosts, and what they share."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from hashlib import blake2s
from typing import Any, ClassVar, Protocol, cast, runtime_checkable
from uuid import uuid4

from langgraph.types import StateSnapshot

from wakeloop.errors import SessionError
from wakeloop.loop.inbox import WakeEvent, find_event_fault
from wakeloop.loop.silences import SUBAGENTS_WAIT
from wakeloop.platform.database_errors import format_without_sql
from wakeloop.text.characters import find_lone_surrogate, shorten, to_one_line
from wakeloop.text.secrets import redact_text
from wakeloop.thread.inputs import read_waits
from wakeloop.thread.thread_status import read_session

DEFAULT_AGENT = "main"
THREAD_KEY = "wakeloop"  # in the metadata of a server's thread, whose id is not the session's name
CANCELLED_MESSAGE = "the message was cancelled before it was read"
CRON_FIELDS = 5
CRON_HELP = "expected five fields (minute, hour, day, month, weekday)."
LONGEST_ERROR = 500  # characters
LONGEST_NAME = 1000  # bytes: one index row of Postgres holds a thread's id and an event's
RETRY_PAUSES = (0.2, 1.0, 5.0, 20.0, 60.0)  # seconds between attempts while a database or server is away
GRACE = 10.0  # seconds that a worker's locks must be seen free before another worker takes over


class TakenOverError(SessionError):
    """Another worker has taken over the thread of a run and continues it."""

    def __init__(self, thread: str) -> None:
        super().__init__(f"Another worker has taken over thread {thread!r} and continues it.")


@dataclass(frozen=True)
class SessionStatus:
    """The state of one session, as one line of `wakeloop ps`.

    `state` to `on` are what `session_of` reads from the thread's newest checkpoint.

    Attributes:
        thread: The thread's id.
        agent: The name of its agent.
        state: `running`, `idle` (items are open), `dormant` (none are), `waiting`, `failed` (the run raised)
            or `cancelled` (by the server); `damaged` if the thread cannot be read, `unknown` if the host does
            not have its agent (see `error`).
        reason: Why the last run ended; None before the first.
        open: How many items are open.
        wakes: How many wakes the activation has used.
        budget: How many wakes it may use.
        on: What a waiting session waits for: a `WaitKind` of `wakeloop.stream`; else None.
        queued: How many events no run has taken yet, including those given back by a failed run.
        sent: How many entries of a person (`steer`) no run has taken yet.
        error: Why the newest run failed or an answer was refused; else None. The next event of any kind, such
            as a `kick`, retries with everything that is queued.
        waits_for: The threads that a waiting session waits for.
        asks: The ids of the questions that wait for a person, oldest first. An answer names one of them as
            its `correlation_id`.
        items: The number of its items; `completed`, `cancelled` and `blocked` count those of each kind.
        verified: Whether a completed item passed the verifier; None where no verifier is given.
        until: From when it makes sense to try again, in seconds since 1970; None if that is not known.
        question: The question in words with which it waits; else "".
        missing: What `done_when` said last; else "".

    Example:
        >>> from wakeloop.sessions import SessionStatus
        >>> SessionStatus("clerk", "clerk", "dormant", "settled", open=0, wakes=1, budget=25).queued
        0
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
    items: int = 0
    completed: int = 0
    cancelled: int = 0
    blocked: int = 0
    verified: bool | None = None
    until: float | None = None
    question: str = ""
    missing: str = ""
    sent: int = 0

    @classmethod
    def from_snapshot(
        cls, thread: str, agent: str, snapshot: StateSnapshot, queued: int = 0
    ) -> "SessionStatus":
        """Read the status from a thread's newest checkpoint."""
        session: Mapping[str, Any] = read_session(snapshot)
        shared = {one.name: session[one.name] for one in fields(cls) if one.name in session}
        return cls(
            thread=thread,
            agent=agent,
            queued=queued,
            waits_for=awaited_threads(snapshot.values or {}),
            asks=tuple(question.id for question in snapshot.interrupts),
            **shared,
        )

    @classmethod
    def from_error(cls, thread: str, error: Exception, queued: int = 0) -> "SessionStatus":
        """Describe a thread that cannot be read, so that it does not hide the others in a list."""
        agent = thread.partition(":")[0]
        state, words = "damaged", f"Its stored state cannot be read: {describe_error(error)}."
        if isinstance(error, SessionError):  # this host does not have the thread's agent
            state, words = "unknown", str(error)
        return cls(thread, agent, state, None, open=0, wakes=0, budget=0, queued=queued, error=words)


@dataclass(frozen=True)
class Schedule:
    """A cron line that sends a `cron` event to a thread.

    Attributes:
        id: The id that `cancel` takes.
        thread: The thread's id.
        cron: Five fields in UTC: minute, hour, day, month, weekday.
        text: The text that the session reads.
        due: The next time, in ISO 8601 with an offset; None if the host does not know it.

    Example:
        >>> from wakeloop.sessions import Schedule
        >>> Schedule("s1", "clerk", "0 9 * * 1-5", "Good morning.").due is None
        True
    """

    id: str
    thread: str
    cron: str
    text: str
    due: str | None = None


@runtime_checkable
class SessionHost(Protocol):
    """Runs sessions: an event that is sent to a thread wakes it.

    The methods are synchronous. They may be called from any thread, including a tool in the middle of a run
    and a server's worker thread, and they return without waiting for a run. (An asynchronous graph calls a
    tool that is a plain function in a thread of its own, so one kind of method serves both.)

    A host promises:

    - **One run per thread at a time**, with any number of processes.
    - **In order.** Events of a thread are taken in the order in which `send` accepted them, one at a time or
      several in one batch (the list `todo_inbox` of one input, in that order).
    - **Once.** An event whose id was already accepted for the thread is dropped, and `send` still returns the
      id: a repeated run sends the same ids. Events and schedules survive the process.
    - **Every question gets an answer.** After each run, including one that fails, the host sends what
      `wakeloop.sessions.list_outstanding` returns, then removes the answered entries from the thread.
    - **Interrupts.** A thread that waits at an interrupt is only given a human's event that names the
      question, or that names none and came after it. Everything else keeps its order and is taken afterwards
      (`wakeloop.sessions.choose_next_input`). An answer to another question is refused.
    - **Nothing about the host is stored** in a thread.

    Example:
        >>> from wakeloop.sessions import SessionHost
        >>> def tick(host: SessionHost) -> str:
        ...     return host.send("clerk", {"kind": "kick"})
    """

    @property
    def agents(self) -> Mapping[str, object]:
        """The agents by name; `find_agent` maps a thread id to one of them."""

    def send(self, thread_id: str, event: WakeEvent) -> str:
        """Accept an event for a thread, which need not exist yet, and return the event's id.

        An accepted event is stored and outlives the process. A draining host still accepts events.

        Args:
            thread_id: `AGENT`, `AGENT:NAME`, or any other name for the agent `main`.
            event: The event. A missing id or time is filled in.

        Raises:
            SessionError: The thread belongs to none of the host's agents, the event is invalid
                (`wakeloop.sessions.find_event_fault`), it names a question that is not being asked, or it
                contains text that cannot be stored.
        """

    def schedule(self, thread_id: str, cron: str, text: str) -> str:
        """Send a `cron` event with this text at each time of the cron line, and return the schedule's id.

        The same thread, line and text give the same schedule. A time that passed while the host was down
        fires once at its start.

        Args:
            thread_id: As for `send`.
            cron: Five fields in UTC: minute, hour, day, month, weekday.
            text: The text that the session reads.

        Raises:
            SessionError: The cron line is invalid, or the thread belongs to none of the host's agents.
        """

    def schedules(self, thread_id: str | None = None) -> Sequence[Schedule]:
        """Return the schedules of one thread or of all, ordered by id."""

    def status(self, thread_id: str) -> SessionStatus:
        """Return the status of a session.

        Raises:
            SessionError: Nothing was ever sent to the thread.
        """

    def cancel(self, key: str) -> bool:
        """Remove a schedule, or an event that no run has taken yet, by its id.

        Events of several threads may share an id; all of them are removed. Whoever waits for an answer to a
        cancelled event gets a refusal (`make_refusal`).

        Returns:
            False if there is nothing with this id.
        """

    def drain(self, timeout: float | None = None) -> bool:
        """Start no more runs, ask the current ones to stop at their next superstep, and wait for them.

        Queued events stay queued; a stopped run continues at the host's next start.

        Args:
            timeout: The longest time to wait, in seconds; None for no limit.

        Returns:
            Whether all runs have stopped.
        """

    def list(self) -> Sequence[SessionStatus]:
        """Return the status of every session that the host knows, ordered by thread id."""


class WaitsForEvents:
    """What a host and a client of its storage share: they can wait until events are settled."""

    check_every: ClassVar[float]  # seconds between two looks

    def has_unsettled(self, thread_id: str | None) -> bool:
        """Tell whether an event waits, or is in a run, for a thread or for any (None)."""
        raise NotImplementedError

    def wait(self, thread_id: str | None = None, timeout: float | None = None) -> bool:
        """Wait until no event waits for a thread, or for any thread.

        Events that follow a question wait until a person answers, so give a timeout if an agent may ask.
        Events of failed runs do not count.

        Args:
            thread_id: The thread; None for all threads.
            timeout: The longest time to wait, in seconds; None for no limit.

        Returns:
            False if the time ran out first.
        """
        if thread_id is not None:
            check_name("thread's id", thread_id)
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.has_unsettled(thread_id):
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(self.check_every)
        return True


def find_agent(thread_id: str, agents: Mapping[str, object]) -> str:
    """Return the name of the agent that a thread belongs to.

    A thread id is `AGENT` or `AGENT:NAME`; any other id belongs to the agent `main`, if there is one.

    Raises:
        SessionError: No agent matches, or the id cannot be stored.

    Example:
        >>> from wakeloop.sessions import find_agent
        >>> agents = {"main": None, "clerk": None}
        >>> find_agent("clerk:invoices", agents), find_agent("tuesday", agents)
        ('clerk', 'main')
    """
    name = check_name("thread's id", thread_id).partition(":")[0]
    if name in agents:
        return name
    if thread_id.strip() and DEFAULT_AGENT in agents:
        return DEFAULT_AGENT
    known = ", ".join(sorted(agents)) or "none"
    raise SessionError(f"Thread {thread_id!r} belongs to no agent. Available agents: {known}.")


def awaited_threads(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the threads that a session waits for, according to its values."""
    threads: list[str] = []
    for wait in read_waits(values):
        if wait.get("id") == SUBAGENTS_WAIT:  # for the first of all that work
            threads += [str(one["id"]) for one in values.get("todo_subagents") or ()]
        elif thread := wait.get("id" if wait.get("on") == "subagent" else "from"):
            threads.append(str(thread))
    return tuple(threads)


def describe_error(error: BaseException) -> str:
    """Describe an error in one line, without secrets and SQL."""
    return shorten(to_one_line(redact_text(format_without_sql(error))), LONGEST_ERROR)


def complete_event(event: WakeEvent) -> WakeEvent:
    """Return an event ready to be stored, with an id and a time. Raises `SessionError` if it is invalid."""
    added = {"id": event.get("id") or uuid4().hex, "time": event.get("time") or utc_now().isoformat()}
    complete = cast("WakeEvent", {**event, **added})
    if fault := find_event_fault(complete):
        raise SessionError(f"Invalid event: {fault}.")
    for key, value in complete.items():
        check = check_name if key in ("id", "sender") else check_text
        for text in value if isinstance(value, list) else (value,):
            check(f"event's {key}", str(text))
    return complete


def check_text(what: str, text: str) -> str:
    """Return `text`, which can be stored. Raises `SessionError` if it contains a lone surrogate."""
    if surrogate := find_lone_surrogate(text):
        raise SessionError(f"The {what} contains a lone surrogate ({surrogate}), which UTF-8 cannot encode.")
    return text


def check_name(what: str, name: str) -> str:
    """Return a name that an index of the database can hold. Raises `SessionError` for any other."""
    if "\0" in check_text(what, name):
        raise SessionError(f"The {what} contains a NUL, which Postgres cannot store.")
    if len(name.encode()) > LONGEST_NAME:
        raise SessionError(f"The {what} is longer than {LONGEST_NAME:,} bytes.")
    return name


def unknown_session_error(thread_id: str) -> SessionError:
    """Return the error for a thread that nothing was ever sent to."""
    return SessionError(f"Unknown session {thread_id!r}: nothing was ever sent to it.")


def cron_line_error(cron: str, why: object = CRON_HELP) -> SessionError:
    """Return the error for an invalid cron line."""
    return SessionError(f"Invalid cron line {cron!r}: {why}")


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def derive_id(*parts: str) -> str:
    """Derive an id from strings; the same strings give the same id in any process.

    A tool derives an event's id from its thread, the message with the call and the call's id. A repeated run
    therefore sends the same event again, and the host drops it.

    Example:
        >>> from wakeloop.sessions import derive_id
        >>> derive_id("clerk", "message-1", "call-1") == derive_id("clerk", "message-1", "call-1")
        True
    """
    return blake2s("\0".join(parts).encode("utf-8", "replace"), digest_size=12).hexdigest()
