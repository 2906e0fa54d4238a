"""Hosts sessions on a LangGraph server, through its SDK."""

import contextlib
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import datetime
from itertools import count
from threading import Event, Lock
from typing import Any, Self, cast
from uuid import NAMESPACE_URL, uuid5

import httpx
from langchain_core.messages import convert_to_messages
from langgraph.types import Command, Interrupt, PregelTask, StateSnapshot
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import (
    APIConnectionError,
    ConflictError,
    InternalServerError,
    NotFoundError,
    UnprocessableEntityError,
)

from wakeloop.sessions.host import (
    CANCELLED,
    CRON_FIELDS,
    PAUSES,
    Schedule,
    SessionStatus,
    accepted,
    agent_of,
    derived_id,
    no_cron_line,
    no_session,
)
from wakeloop.sessions.runs import answered, deliver, next_input, refusal_of
from wakeloop.state import WakeEvent
from wakeloop.thread.standing import LAST
from wakeloop.thread.stopping import as_drained

SHELF = "wakeloop-events"  # the namespace in the server's store where events wait
MOST = 1000  # events of a thread, and threads, that are read at once
AWAY = (httpx.TransportError, APIConnectionError, InternalServerError)
PATIENCE = 0.2  # seconds between two tries while somebody else's run has the thread


class ServerHost:
    """Runs sessions on a LangGraph server: its queue, its workers and its database do the work.

    Events wait in the server's store; a run takes all that wait for a thread, in their order, and answers
    that are owed are sent when it has ended. That is done by this object, in the background: another one, or
    the next, does what this one did not come to (`catch_up`, at `start`).

    Args:
        url: The server's address, such as `http://127.0.0.1:2024`.
        agents: Agent name to the id of a graph or an assistant of the server.
        api_key: The server's key; without it that of the environment.
    """

    def __init__(self, url: str, agents: Mapping[str, str], *, api_key: str | None = None) -> None:
        self.agents = agents
        self.client: SyncLangGraphClient = get_sync_client(url=url, api_key=api_key)
        self.pool = ThreadPoolExecutor(8, thread_name_prefix="wakeloop-turns")
        self.at_work: dict[str, Future[None]] = {}
        self.rung: set[str] = set()  # at work, and rung for meanwhile
        self.guard, self.draining = Lock(), Event()

    def __enter__(self) -> Self:
        self.catch_up()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop, and close the connections."""
        self.drain(timeout=10)
        self.pool.shutdown(wait=False)
        self.client.close()

    # -- what a host promises ------------------------------------------------------------------------------

    def send(self, thread_id: str, event: WakeEvent) -> str:
        """Store an event for a thread and return its id; a repeat is dropped."""
        self._made(thread_id)
        event = accepted(event)
        if self._item(thread_id, event["id"]) is None:
            self._put(thread_id, event["id"], {"event": dict(event), "order": time.time_ns(), "taken": False})
        self.ring(thread_id)
        return event["id"]

    def schedule(self, thread_id: str, cron: str, text: str) -> str:
        """Let the server run the thread with a `cron` event whenever the line is due; return an id.

        The server's own clock does it, also while no host is up. At an interrupt its run takes the place of
        the answer: give a schedule to threads that ask nobody.
        """
        agent = self._made(thread_id)
        for known in self.schedules(thread_id):
            if (known.cron, known.text) == (cron, text):
                return known.id
        event: Any = {"kind": "cron", "text": text}
        if len(cron.split()) != CRON_FIELDS:
            raise no_cron_line(cron)
        try:
            made = self.client.crons.create_for_thread(
                uid(thread_id),
                self.agents[agent],
                schedule=cron,
                input={"todo_inbox": [event]},
                multitask_strategy="enqueue",
                metadata={"wakeloop": thread_id, "text": text},
            )
        except UnprocessableEntityError as error:
            raise no_cron_line(cron, error) from error
        return str(cast("Any", made)["cron_id"])

    def schedules(self, thread_id: str | None = None) -> Sequence[Schedule]:
        """Return what is scheduled, of one thread or of all, by id."""
        only = {"thread_id": uid(thread_id)} if thread_id is not None else {}
        found = self.client.crons.search(limit=MOST, **only)  # type: ignore[arg-type]
        ours = [(c, c["metadata"]) for c in found if (c.get("metadata") or {}).get("wakeloop")]
        return sorted(
            (
                Schedule(
                    c["cron_id"], m["wakeloop"], c["schedule"], m.get("text", ""), _moment(c["next_run_date"])
                )
                for c, m in ours
            ),
            key=lambda schedule: schedule.id,
        )

    def status(self, thread_id: str) -> SessionStatus:
        """Return how a thread stands."""
        agent = agent_of(thread_id, self.agents)
        try:
            snapshot = self.snapshot(thread_id)
        except NotFoundError:
            raise no_session(thread_id) from None
        queued = sum(not item["taken"] for item in self._waiting(thread_id))
        return SessionStatus.of(thread_id, agent, snapshot, queued)

    def list(self) -> Sequence[SessionStatus]:
        """Return every session of this host's agents, by thread id."""
        return [self.status(thread) for thread in self._threads()]

    def cancel(self, key: str) -> bool:
        """Remove a schedule, or take back an event that no run has taken."""
        if any(schedule.id == key for schedule in self.schedules()):
            self.client.crons.delete(key)
            return True
        for thread in self._threads():
            item = self._item(thread, key)
            if item is not None and item["event"] and not item["taken"]:
                self._put(thread, key, {**item, "event": None})
                if (letter := refusal_of(item["event"], thread, CANCELLED)) is not None:
                    self.send(letter.thread, letter.event)
                return True
        return False

    def drain(self, timeout: float | None = None) -> bool:
        """Begin no run any more and wait for those that this object has begun."""
        self.draining.set()
        with self.guard:
            left = list(self.at_work.values())
        return not wait(left, timeout).not_done

    # -- turns ---------------------------------------------------------------------------------------------

    def ring(self, thread: str) -> None:
        """See to a thread; where that is being done, once more afterwards."""
        with self.guard:
            if self.draining.is_set():
                return
            if thread in self.at_work:
                self.rung.add(thread)
            else:
                self.at_work[thread] = self.pool.submit(self._see_to, thread)

    def catch_up(self) -> None:
        """See to every thread for which something waits."""
        for thread in self._threads():
            if self._waiting(thread):
                self.ring(thread)

    def _see_to(self, thread: str) -> None:
        try:
            while not self.draining.is_set() and (self._tried(thread) or self._rung_again(thread)):
                pass
        finally:
            with self.guard:
                del self.at_work[thread]
                again = thread in self.rung
                self.rung.discard(thread)
            if again:  # since the last look, or the turn raised
                self.ring(thread)

    def _tried(self, thread: str) -> bool:
        """Run a turn; where the server is away, again and again."""
        for tries in count():
            try:
                return self.turn(thread)
            except AWAY:
                if self.draining.wait(PAUSES[min(tries, len(PAUSES) - 1)]):
                    break
        return False

    def _rung_again(self, thread: str) -> bool:
        with self.guard:
            again = thread in self.rung
            self.rung.discard(thread)
            return again

    def turn(self, thread: str) -> bool:
        """Run a thread once with what waits for it and send what it owes; False where nothing is to do."""
        items = self._waiting(thread)
        chosen = next_input(self.snapshot(thread), [item["event"] for item in items if not item["taken"]])
        left = [item for item in items if item["taken"]]  # in a run that somebody did not see to its end
        if not chosen.run or not items:
            return bool(left) and self.finish(thread, left)
        given: dict[str, Any] = {"input": chosen.input}
        if isinstance(chosen.input, Command):
            given = {"command": {"resume": chosen.input.resume}}
        try:
            run = self.client.runs.create(
                uid(thread),
                self.agents[agent_of(thread, self.agents)],
                multitask_strategy="reject",
                durability="sync",
                metadata={"turn_id": chosen.taken[0]["id"] if chosen.taken else derived_id("left", thread)},
                **given,
            )
        except ConflictError:  # another host, a schedule or a person has it now
            time.sleep(PATIENCE)
            return True
        taken = {event["id"] for event in chosen.taken}
        mine = [item for item in items if item["event"]["id"] in taken]
        for item in mine:
            self._put(thread, item["event"]["id"], {**item, "taken": True})
        self.client.runs.join(uid(thread), run["run_id"])
        status = self.client.runs.get(uid(thread), run["run_id"])["status"]
        self.close_turn(thread, failed=status in ("error", "timeout"))
        self.let_go(thread, [*left, *mine])
        return True

    def finish(self, thread: str, left: Sequence[dict[str, Any]]) -> bool:
        """Do what is to be done after a run whose host is gone; wait while the run is under way."""
        status = self.client.threads.get(uid(thread))["status"]
        if status == "busy":
            time.sleep(PATIENCE)
            return True
        self.close_turn(thread, failed=status == "error")
        self.let_go(thread, left)
        return True

    def let_go(self, thread: str, items: Sequence[dict[str, Any]]) -> None:
        """Let go of events whose run has ended: their ids stay, so that a repeat is known."""
        for item in items:
            self._put(thread, item["event"]["id"], {**item, "event": None, "taken": True})

    def close_turn(self, thread: str, *, failed: bool) -> None:
        """Send what is outstanding after a run, then take it off the thread."""
        snapshot = self.snapshot(thread)
        failure = None
        if failed:
            failure = next((str(task.error) for task in snapshot.tasks if task.error), "the run failed")
        letters = deliver(snapshot, thread, self, failure)
        if failed:
            self.client.threads.update_state(uid(thread), None, as_node="__end__")
            update = as_drained(snapshot, self.snapshot(thread).values)
            self.client.threads.update_state(uid(thread), update, as_node=LAST)
        if letters:
            self.client.threads.update_state(uid(thread), {"owed_replies": answered(letters)}, as_node=LAST)

    # -- what the server keeps -----------------------------------------------------------------------------

    def snapshot(self, thread: str) -> StateSnapshot:
        """Read a thread as a graph of this process would."""
        return snapshot_of(cast("Any", self.client.threads.get_state(uid(thread))))

    def _made(self, thread: str) -> str:
        agent = agent_of(thread, self.agents)
        self.client.threads.create(
            thread_id=uid(thread),
            if_exists="do_nothing",
            metadata={"wakeloop": thread, "wakeloop_agent": agent},
        )
        return agent

    def _threads(self) -> Sequence[str]:
        found = self.client.threads.search(limit=MOST, select=["thread_id", "metadata"])
        known = [(t.get("metadata") or {}).get("wakeloop") for t in found]
        names = {str(name) for name in known if name}
        return sorted(
            name for name in names if name.partition(":")[0] in self.agents or "main" in self.agents
        )

    def _waiting(self, thread: str) -> Sequence[dict[str, Any]]:
        found = self.client.store.search_items((SHELF, uid(thread)), limit=MOST)["items"]
        items = [dict(item["value"]) for item in found if item["value"]["event"]]
        return sorted(items, key=lambda item: item["order"])

    def _item(self, thread: str, key: str) -> dict[str, Any] | None:
        with contextlib.suppress(NotFoundError):
            found: Any = self.client.store.get_item((SHELF, uid(thread)), key=key)
            return dict(found["value"]) if found else None  # one server says None, another 404
        return None

    def _put(self, thread: str, key: str, value: Mapping[str, Any]) -> None:
        self.client.store.put_item((SHELF, uid(thread)), key=key, value=value, index=False)


def uid(thread: str) -> str:
    """Return the server's id of a thread: it takes nothing but UUIDs."""
    return str(uuid5(NAMESPACE_URL, f"wakeloop:{thread}"))


def snapshot_of(state: Mapping[str, Any]) -> StateSnapshot:
    """Make of a thread's JSON what `graph.get_state` returns."""
    values = dict(state["values"] or {}) if isinstance(state["values"], Mapping) else {}
    if "messages" in values:
        values["messages"] = convert_to_messages(values["messages"])
    asked = [
        Interrupt(value=i.get("value"), id=str(i.get("id") or i.get("interrupt_id")))
        for task in state["tasks"]
        for i in task.get("interrupts") or ()
    ]
    tasks = tuple(
        PregelTask(task["id"], task["name"], (), task.get("error"), tuple(asked)) for task in state["tasks"]
    )
    return StateSnapshot(
        values,
        tuple(state["next"]),
        {},
        state.get("metadata"),
        state.get("created_at"),
        None,
        tasks,
        tuple(asked),
    )


def _moment(when: Any) -> str | None:
    return when.isoformat() if isinstance(when, datetime) else when
