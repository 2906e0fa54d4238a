"""The session host on a LangGraph server, which does the work."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial, wraps
from typing import Any, Self, TypeVar, cast

from langgraph.types import StateSnapshot
from langgraph_sdk import get_sync_client
from langgraph_sdk.errors import BadRequestError, NotFoundError, UnprocessableEntityError

from wakeloop.errors import SessionError
from wakeloop.loop.inbox import WakeEvent
from wakeloop.sessions.host import (
    CANCELLED_MESSAGE,
    CRON_FIELDS,
    THREAD_KEY,
    Schedule,
    SessionStatus,
    WaitsForEvents,
    check_name,
    check_text,
    complete_event,
    cron_line_error,
    describe_error,
    find_agent,
    unknown_session_error,
)
from wakeloop.sessions.host_rules import find_unread_events
from wakeloop.sessions.langgraph_server.server_runner import (
    OUTAGE_ERRORS,
    POLL_EVERY,
    BackgroundRunner,
    ServerRunner,
)
from wakeloop.sessions.langgraph_server.server_store import ServerStore, iterate_pages, server_thread_id
from wakeloop.sessions.questions import answer_fault, open_questions
from wakeloop.text.secrets import redact_text
from wakeloop.thread.steering import build_value, make_key

Method = TypeVar("Method", bound=Callable[..., Any])


def explain_server_errors(method: Method) -> Method:
    """Turn the errors of a server that cannot be reached, or is the wrong one, into a sentence."""

    @wraps(method)
    def call(host: "ServerHost", *given: Any, **more: Any) -> Any:
        try:
            return method(host, *given, **more)
        except OUTAGE_ERRORS as error:
            raise server_error(host, "cannot be reached", "that the server is up", error) from error
        except NotFoundError as error:
            what = "does not know the requested item"
            raise server_error(host, what, "the agents' graphs", error) from error

    return cast("Method", call)


def server_error(host: "ServerHost", what: str, look: str, error: Exception) -> SessionError:
    """Return the error for a server, with what to check."""
    where = redact_text(host.url)
    return SessionError(
        f"The server at {where} {what} ({describe_error(error)}). Check the address, and {look}."
    )


class ServerHost(WaitsForEvents):
    """Runs sessions on a LangGraph server, with its queue, workers and database.

    Events wait in the server's store. A run takes all events that wait for a thread, in order, and owed
    answers are sent when it has ended. This object does that in the background; what it leaves undone,
    another one or the next one does (`catch_up`, at the start of a `with` block). It implements
    `SessionHost`. If the server cannot be reached (the SDK tries for seven seconds) or lacks these graphs, a
    `SessionError` is raised. Other refusals of the server raise what the SDK raises.

    Args:
        url: The server's address, such as `http://127.0.0.1:2024`.
        agents: The agents by name, each with the id of a graph or assistant on the server.
        api_key: The server's key. Default: the key that the SDK finds in the environment.

    Example:
        >>> with ServerHost("http://127.0.0.1:2024", {"main": "agent"}) as host:  # doctest: +SKIP
        ...     host.send("main", {"kind": "human", "text": "Tidy up the notes."})
    """

    check_every = POLL_EVERY

    def __init__(self, url: str, agents: Mapping[str, str], *, api_key: str | None = None) -> None:
        self.agents, self.url = agents, url
        self.client = get_sync_client(url=url, api_key=api_key)
        self.store, self.last = ServerStore(self.client, agents), 0
        self.runner = ServerRunner(self.store, DirectHost(self), self.run_later)
        self.background = BackgroundRunner(self.runner.run_once, self.runner.give_up)

    def __enter__(self) -> Self:
        self.catch_up()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @explain_server_errors
    def catch_up(self) -> None:
        """Run every thread for which events wait, and set the clocks of those that wait for a time."""
        for thread in self.store.list_threads():
            try:
                waits = bool(self.store.list_waiting(thread) or self.store.list_entries(thread))
                if not waits:
                    self.runner.set_clock(thread, self.store.read_state(thread))
            except OUTAGE_ERRORS:
                raise
            except Exception:  # noqa: BLE001 - damaged: the run that comes to it will report it
                waits = True
            if waits:
                self.background.request_run(thread)

    def run_later(self, thread: str, seconds: float) -> None:
        """Run a thread when the time of a wait is over."""
        self.background.run_later(thread, seconds)

    def close(self) -> None:
        """Wait for running runs, ten seconds at most, then stop and close the connections."""
        self.drain(timeout=10)
        self.background.pool.shutdown(wait=False)
        self.client.close()

    # -- the methods of `SessionHost` ----------------------------------------------------------------------

    @explain_server_errors
    def send(self, thread_id: str, event: WakeEvent) -> str:
        """Store an event for a thread and return its id. A repeated id is dropped."""
        event = complete_event(event)
        self.store.ensure_thread(thread_id)
        if self.store.find_event(thread_id, event["id"]) is None:
            asked = self.find_questions_seen(thread_id, event)
            self.last = max(self.last + 1, time.time_ns())  # keep the order even if the clock is set back
            entry: dict[str, Any] = {"event": dict(event), "order": self.last, "taken": False}
            if asked:
                entry["asked"] = asked
            self.store.put_event(thread_id, entry)
        self.background.request_run(thread_id)
        return event["id"]

    def find_questions_seen(self, thread: str, event: WakeEvent) -> Sequence[str]:
        """Return the questions that are open when a person sends an event.

        Raises `SessionError` if the event answers another one. They are stored with the event, because the
        server's store does not number its entries.
        """
        if event["kind"] != "human":
            return ()
        try:
            questions = open_questions(self.store.read_state(thread))
        except OUTAGE_ERRORS:
            raise
        except Exception:  # noqa: BLE001 - damaged: the run that comes to it will report it
            return ()
        if (why := answer_fault(event, questions)) is not None:
            raise SessionError(why)
        return questions

    @explain_server_errors
    def steer(
        self, thread_id: str, message: str | None = None, edits: Mapping[str, Any] | None = None
    ) -> str:
        """Send a person's words, or edits of the list, to the run under way, and return their id.

        Without a run they start one, unless the thread waits for an answer or is on hold.
        """
        value, key = build_value(message, edits), make_key()
        self.store.ensure_thread(thread_id)
        self.store.put_entry(thread_id, key, value)
        self.background.request_run(thread_id)
        return key

    @explain_server_errors
    def schedule(self, thread_id: str, cron: str, text: str) -> str:
        """Let the server run the thread with a `cron` event at each time of the line, and return an id.

        The server does this on its own, even while no host is up. At an interrupt its run takes the place of
        an answer, so only schedule threads that ask nobody.
        """
        agent = self.store.ensure_thread(thread_id)
        check_text("text", text)
        check_text("cron line", cron)
        for known in self.schedules(thread_id):
            if (known.cron, known.text) == (cron, text):
                return known.id
        event: Any = {"kind": "cron", "text": text}
        if len(cron.split()) != CRON_FIELDS:
            raise cron_line_error(cron)
        try:
            made = self.client.crons.create_for_thread(
                server_thread_id(thread_id),
                self.agents[agent],
                schedule=cron,
                input={"todo_inbox": [event]},
                multitask_strategy="enqueue",
                metadata={THREAD_KEY: thread_id, "text": text},
            )
        except (UnprocessableEntityError, BadRequestError) as error:
            raise cron_line_error(cron, error) from error
        return str(cast("Any", made)["cron_id"])

    @explain_server_errors
    def schedules(self, thread_id: str | None = None) -> Sequence[Schedule]:
        """Return the schedules of one thread or of all, ordered by id."""
        only = {}
        if thread_id is not None:
            only["thread_id"] = server_thread_id(check_name("thread's id", thread_id))
        search: Any = self.client.crons.search
        made: list[Schedule] = []
        for cron in iterate_pages(lambda **page: search(**page, **only)):
            own = cron.get("metadata") or {}
            if own.get(THREAD_KEY):  # not somebody else's cron
                due = cron["next_run_date"]
                due = due.isoformat() if isinstance(due, datetime) else due
                text = own.get("text", "")
                made.append(Schedule(cron["cron_id"], own[THREAD_KEY], cron["schedule"], text, due))
        return sorted(made, key=lambda schedule: schedule.id)

    @explain_server_errors
    def status(self, thread_id: str) -> SessionStatus:
        """Return the status of a session."""
        if (found := self.find_status(thread_id)) is None:
            raise unknown_session_error(thread_id)
        return found

    def find_status(self, thread_id: str) -> SessionStatus | None:
        """Return the status of a session; None if the server does not have the thread."""
        agent, queued = find_agent(thread_id, self.agents), 0
        try:
            items = self.store.list_waiting(thread_id)
            queued = sum(not item["taken"] for item in items)
            snapshot = self.store.read_state(thread_id)
            error = self.background.errors.get(thread_id) or self.store.read_error(thread_id)
            found = SessionStatus.from_snapshot(thread_id, agent, snapshot, queued)
            found = replace(found, sent=len(self.store.list_entries(thread_id, snapshot.values)))
            if found.state == "running" and self.store.is_cancelled(thread_id):
                found = replace(found, state="cancelled", reason="cancelled")
            if _is_about_to_run(snapshot, items):
                found = replace(found, state="running", reason=None, on=None)
            return replace(found, error=error) if error else found
        except NotFoundError:
            return None
        except OUTAGE_ERRORS:
            raise
        except Exception as fault:  # noqa: BLE001 - one unreadable session must not hide the others
            return SessionStatus.from_error(thread_id, fault, queued)

    @explain_server_errors
    def has_unsettled(self, thread_id: str | None) -> bool:
        """Tell whether an event waits, or is in a run, for a thread or for any (None)."""
        threads = self.store.list_threads() if thread_id is None else [thread_id]
        return any(not item.get("error") for thread in threads for item in self.store.list_waiting(thread))

    @explain_server_errors
    def snapshot(self, thread_id: str) -> StateSnapshot:
        """Return a thread's newest checkpoint, as `graph.get_state` does."""
        try:
            return self.store.read_state(thread_id)
        except NotFoundError:
            raise unknown_session_error(thread_id) from None

    @explain_server_errors
    def list(self) -> Sequence[SessionStatus]:
        """Return the status of every session of this host's agents, ordered by thread id."""
        found = [self.find_status(thread) for thread in self.store.list_threads()]
        return [status for status in found if status is not None]

    @explain_server_errors
    def cancel(self, key: str) -> bool:
        """Remove a schedule, or an event that no run has taken."""
        check_name("id", key)
        if any(schedule.id == key for schedule in self.schedules()):
            self.client.crons.delete(key)
            return True
        found = False
        for thread in self.store.list_threads():  # several threads may have an event with this id
            item = self.store.find_event(thread, key)
            if item is not None and item["event"] and not item["taken"]:
                tell = partial(self.runner.send_refusal, thread, item["event"], CANCELLED_MESSAGE)
                found |= self.store.withdraw(thread, item, lambda: time.sleep(POLL_EVERY), tell)
        return found

    def drain(self, timeout: float | None = None) -> bool:
        """Start no more runs and wait for those that this object has started.

        Args:
            timeout: The longest time to wait, in seconds; None for no limit.

        Returns:
            Whether all have ended.
        """
        return self.background.drain(timeout)


class DirectHost:
    """The host as its own runs see it: the SDK's errors stay as they are, so that outages are retried."""

    def __init__(self, host: ServerHost) -> None:
        self.host, self.agents = host, host.agents

    def __getattr__(self, name: str) -> Any:
        method = getattr(type(self.host), name)
        return partial(getattr(method, "__wrapped__", method), self.host)


def _is_about_to_run(snapshot: StateSnapshot, items: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether a run has taken events that its thread has not read: the server has not begun it yet."""
    taken = [item for item in items if item["taken"]]
    if not taken:
        return False
    return bool(find_unread_events(snapshot, [item["event"] for item in taken], taken[0].get("question")))
