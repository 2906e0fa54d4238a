"""Hosts sessions on a LangGraph server, whose queue works."""

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
    check_name,
    check_text,
    complete_event,
    cron_line_error,
    describe_error,
    find_agent,
    unknown_session_error,
)
from wakeloop.sessions.langgraph_server.background_runner import OUTAGE_ERRORS, BackgroundRunner
from wakeloop.sessions.langgraph_server.server_runner import POLL_EVERY, ServerRunner
from wakeloop.sessions.langgraph_server.server_store import ServerStore, iterate_pages, server_thread_id
from wakeloop.sessions.questions import answer_fault, open_questions
from wakeloop.text.secrets import redact_text

Method = TypeVar("Method", bound=Callable[..., Any])


def explain_server_errors(method: Method) -> Method:
    """Tell of a server that cannot be reached, or is not the right one, in a sentence."""

    @wraps(method)
    def call(host: "ServerHost", *given: Any, **more: Any) -> Any:
        try:
            return method(host, *given, **more)
        except OUTAGE_ERRORS as error:
            raise server_error(host, "cannot be reached", "whether it is up", error) from error
        except NotFoundError as error:
            raise server_error(
                host, "does not have what is asked for", "the agents' graphs", error
            ) from error

    return cast("Method", call)


def server_error(host: "ServerHost", what: str, look: str, error: Exception) -> SessionError:
    """Tell what is wrong with a server, and where to look."""
    where = redact_text(host.url)
    return SessionError(
        f"The server at {where} {what} ({describe_error(error)}): look at its address, and {look}."
    )


class ServerHost:
    """Runs sessions on a LangGraph server: its queue, its workers and its database do the work.

    Events wait in the server's store; a run takes all that wait for a thread, in their order, and answers
    that are owed are sent when it has ended. That is done by this object, in the background: another one, or
    the next, does what this one did not come to (`catch_up`, at the begin of a `with` block). Implements
    `SessionHost`. A server that cannot be reached is a `SessionError`, after the seven seconds for which the
    SDK tries, and so is one without these graphs; what else the server refuses raises what the SDK raises.

    Args:
        url: The server's address, such as `http://127.0.0.1:2024`.
        agents: Agent name to the id of a graph or an assistant of the server.
        api_key: The server's key; without it that of the environment, as the SDK finds it.
    """

    def __init__(self, url: str, agents: Mapping[str, str], *, api_key: str | None = None) -> None:
        self.agents, self.url = agents, url
        self.client = get_sync_client(url=url, api_key=api_key)
        self.store, self.last = ServerStore(self.client, agents), 0
        self.runner = ServerRunner(self.store, DirectHost(self))
        self.background = BackgroundRunner(self.runner.run_once, self.runner.give_up)

    def __enter__(self) -> Self:
        self.catch_up()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @explain_server_errors
    def catch_up(self) -> None:
        """See to every thread for which something waits."""
        for thread in self.store.list_threads():
            try:
                waits = bool(self.store.list_waiting(thread))
            except OUTAGE_ERRORS:
                raise
            except Exception:  # noqa: BLE001 - it is damaged: the run that comes to it will tell
                waits = True
            if waits:
                self.background.request_run(thread)

    def close(self) -> None:
        """Stop, and close the connections; runs under way are waited for, for ten seconds at most."""
        self.drain(timeout=10)
        self.background.pool.shutdown(wait=False)
        self.client.close()

    # -- what a host promises ------------------------------------------------------------------------------

    @explain_server_errors
    def send(self, thread_id: str, event: WakeEvent) -> str:
        """Store an event for a thread and return its id; a repeat is dropped."""
        event = complete_event(event)
        self.store.ensure_thread(thread_id)
        if self.store.find_event(thread_id, event["id"]) is None:
            asked = self.find_questions_seen(thread_id, event)
            self.last = max(self.last + 1, time.time_ns())  # a clock that is put back changes no order
            kept = {"event": dict(event), "order": self.last, "taken": False}
            self.store.put_event(thread_id, {**kept, "asked": asked} if asked else kept)
        self.background.request_run(thread_id)
        return event["id"]

    def find_questions_seen(self, thread: str, event: WakeEvent) -> Sequence[str]:
        """Return the questions at which a person found the thread; raise for an answer to another one.

        The server's store has no numbers that would tell an order, so this is noted with the event.
        """
        if event["kind"] != "human":
            return ()
        try:
            questions = open_questions(self.store.read_state(thread))
        except OUTAGE_ERRORS:
            raise
        except Exception:  # noqa: BLE001 - the thread is damaged: the run that comes to it will tell
            return ()
        if (why := answer_fault(event, questions)) is not None:
            raise SessionError(why)
        return questions

    @explain_server_errors
    def schedule(self, thread_id: str, cron: str, text: str) -> str:
        """Let the server run the thread with a `cron` event whenever the line is due; return an id.

        The server's own clock does it, also while no host is up. At an interrupt its run takes the place of
        the answer: give a schedule to threads that ask nobody.
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
        """Return what is scheduled, of one thread or of all, by id."""
        only = (
            {"thread_id": server_thread_id(check_name("thread's id", thread_id))}
            if thread_id is not None
            else {}
        )
        search: Any = self.client.crons.search
        found = iterate_pages(lambda **page: search(**page, **only))
        ours = [(c, c["metadata"]) for c in found if (c.get("metadata") or {}).get(THREAD_KEY)]
        made = [
            Schedule(
                c["cron_id"],
                m[THREAD_KEY],
                c["schedule"],
                m.get("text", ""),
                _format_time(c["next_run_date"]),
            )
            for c, m in ours
        ]
        return sorted(made, key=lambda schedule: schedule.id)

    @explain_server_errors
    def status(self, thread_id: str) -> SessionStatus:
        """Return how a thread stands."""
        if (found := self.find_status(thread_id)) is None:
            raise unknown_session_error(thread_id)
        return found

    def find_status(self, thread_id: str) -> SessionStatus | None:
        """Return how a thread stands; None for one that the server does not have."""
        agent, queued = find_agent(thread_id, self.agents), 0
        try:
            queued = sum(not item["taken"] for item in self.store.list_waiting(thread_id))
            snapshot = self.store.read_state(thread_id)
            error = self.background.errors.get(thread_id) or self.store.read_error(thread_id)
            return replace(SessionStatus.from_snapshot(thread_id, agent, snapshot, queued), error=error)
        except NotFoundError:
            return None
        except OUTAGE_ERRORS:
            raise
        except Exception as fault:  # noqa: BLE001 - whatever it is, it hides no other session
            return SessionStatus.from_error(thread_id, fault, queued)

    @explain_server_errors
    def snapshot(self, thread_id: str) -> StateSnapshot:
        """Read a thread as `graph.get_state` would."""
        try:
            return self.store.read_state(thread_id)
        except NotFoundError:
            raise unknown_session_error(thread_id) from None

    @explain_server_errors
    def list(self) -> Sequence[SessionStatus]:
        """Return every session of this host's agents, by thread id."""
        return [row for thread in self.store.list_threads() if (row := self.find_status(thread)) is not None]

    @explain_server_errors
    def cancel(self, key: str) -> bool:
        """Remove a schedule, or take back an event that no run has taken."""
        check_name("id", key)
        if any(schedule.id == key for schedule in self.schedules()):
            self.client.crons.delete(key)
            return True
        found = False
        for thread in self.store.list_threads():  # an id is one of its thread alone
            item = self.store.find_event(thread, key)
            if item is not None and item["event"] and not item["taken"]:
                tell = partial(self.runner.send_refusal, thread, item["event"], CANCELLED_MESSAGE)
                found |= self.store.withdraw(thread, item, lambda: time.sleep(POLL_EVERY), tell)
        return found

    def drain(self, timeout: float | None = None) -> bool:
        """Begin no run any more and wait for those that this object has begun.

        Args:
            timeout: Seconds to wait at most; None for as long as it takes.

        Returns:
            Whether all have ended.
        """
        return self.background.drain(timeout)


class DirectHost:
    """The host as its own runs see it: a server that is away is told as it is, and tried again."""

    def __init__(self, host: ServerHost) -> None:
        self.host, self.agents = host, host.agents

    def __getattr__(self, name: str) -> Any:
        method = getattr(type(self.host), name)
        return partial(getattr(method, "__wrapped__", method), self.host)


def _format_time(when: Any) -> str | None:
    return when.isoformat() if isinstance(when, datetime) else when
