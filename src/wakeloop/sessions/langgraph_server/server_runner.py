"""One run of a thread on the server, and what follows it."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from threading import Event, Lock, Timer
from typing import Any

import httpx
from langgraph.types import StateSnapshot
from langgraph_sdk.errors import APIConnectionError, ConflictError, InternalServerError

from wakeloop.loop.inbox import WakeEvent
from wakeloop.loop.waits import CLOCK_MARGIN, find_next_wait
from wakeloop.sessions.host import (
    CANCELLED_MESSAGE,
    RETRY_PAUSES,
    SessionHost,
    derive_id,
    describe_error,
    find_agent,
)
from wakeloop.sessions.host_rules import (
    RUN_KEY,
    NextInput,
    choose_next_input,
    find_unread_events,
    make_refusal,
    name_run,
    send_answer,
    send_outstanding,
)
from wakeloop.sessions.langgraph_server.server_store import ServerStore, server_thread_id
from wakeloop.sessions.questions import open_questions
from wakeloop.thread.outside import build_ended_update
from wakeloop.thread.steering import may_begin
from wakeloop.thread.thread_status import LAST_NODE, describe_failure, is_unfinished

OUTAGE_ERRORS = (httpx.TransportError, APIConnectionError)
POLL_EVERY = 0.2  # seconds between two checks while somebody else's run has the thread
RECENT_RUNS = 20  # runs to search for the run of another host that claimed the same events at the same moment
BEGIN_CHECKS = 25  # checks for the run of a host that claimed events, before it is started in its place
FAILED_STATUSES = ("error", "timeout")  # statuses of the server
Items = Sequence[dict[str, Any]]


class BackgroundRunner:
    """Calls `run` for each requested thread until it returns False, and repeats it while the server is away.

    After any other error, or if the server fails again and again, it calls `give_up`. If even that fails, the
    error's words are in `errors`.
    """

    def __init__(self, run: Callable[[str], bool], give_up: Callable[[str, Exception], None]) -> None:
        self.run, self.give_up = run, give_up
        self.errors: dict[str, str] = {}
        self.pool = ThreadPoolExecutor(8, thread_name_prefix="wakeloop-runs")
        self.at_work: dict[str, Future[None]] = {}
        self.timers: dict[str, Timer] = {}
        self.requested: set[str] = set()  # threads at work that were requested again
        self.guard, self.draining = Lock(), Event()

    def request_run(self, thread: str) -> None:
        """Run a thread in the background; if it is already running, once more afterwards."""
        with self.guard:
            if self.draining.is_set():
                return
            if thread in self.at_work:
                self.requested.add(thread)
            else:
                self.at_work[thread] = self.pool.submit(self._process, thread)

    def run_later(self, thread: str, seconds: float) -> None:
        """Run a thread after so many seconds; an earlier time that was set for it is forgotten."""
        timer = Timer(seconds + CLOCK_MARGIN, self.request_run, (thread,))
        timer.daemon = True
        with self.guard:
            before, self.timers[thread] = self.timers.get(thread), timer
        if before is not None:
            before.cancel()
        timer.start()

    def drain(self, timeout: float | None) -> bool:
        """Start nothing more and wait for the current runs. Return False after `timeout` seconds."""
        self.draining.set()
        with self.guard:
            for timer in self.timers.values():
                timer.cancel()
            left = list(self.at_work.values())
        return not wait(left, timeout).not_done

    def _process(self, thread: str) -> None:
        try:
            while not self.draining.is_set() and self._run_with_retries(thread):
                pass
        finally:
            with self.guard:
                del self.at_work[thread]
                again = thread in self.requested and not self.draining.is_set()
                self.requested.discard(thread)
                if again:
                    self.at_work[thread] = self.pool.submit(self._process, thread)

    def _run_with_retries(self, thread: str) -> bool:
        for tries in count():
            try:
                again = self.run(thread)
            except Exception as error:  # noqa: BLE001 - the session's status shows it
                self.errors[thread] = describe_error(error)
                failing = isinstance(error, InternalServerError) and tries < len(RETRY_PAUSES)
                if not (isinstance(error, OUTAGE_ERRORS) or failing):
                    with suppress(Exception):  # then `errors` keeps the words
                        self.give_up(thread, error)
                        del self.errors[thread]
                    return False
                if self.draining.wait(RETRY_PAUSES[min(tries, len(RETRY_PAUSES) - 1)]):
                    return False
            else:
                self.errors.pop(thread, None)
                return again
        return False


@dataclass(frozen=True)
class ServerRunner:
    """Runs a thread with its waiting events, and settles them when the run has ended.

    A run claims its events, with its name, before it is started, and the server keeps the name with the run.
    Whoever comes after a kill can therefore see whether the run was started. It then starts the run with the
    same events, or waits for its end, so no event is taken twice.
    """

    store: ServerStore
    host: SessionHost
    run_later: Callable[[str, float], None]  # a thread, and the seconds until the time of a wait is over

    def run_once(self, thread: str) -> bool:
        """Run a thread once and send what it owes. Return False if there is nothing to do."""
        items = self.store.list_waiting(thread)
        if claimed := [item for item in items if item["taken"]]:
            return self.resume_claimed(thread, claimed)
        snapshot = self.store.read_state(thread)
        if all(item.get("error") for item in items):  # events of failed runs wait for the next event
            items = []
            if is_unfinished(snapshot):
                return False
        chosen = self.choose_input(thread, snapshot, items)
        if not chosen.run:
            if may_begin(snapshot) and self.start_steered(thread, snapshot.values):
                return True
            self.set_clock(thread, snapshot)
            return False
        taken = {event["id"] for event in chosen.taken}
        mine = [item for item in items if item["event"]["id"] in taken]
        if not mine:  # somebody else left a run unfinished, or the time of a wait is over
            name = derive_id("left", thread, *(task.id for task in snapshot.tasks))
            return self.start(thread, name, [], {"input": chosen.input})
        run = name_run(mine[0]["event"]["id"], snapshot, failed=bool(mine[0].get("error")))
        claim = {"taken": True, "run": run, "question": chosen.question, "error": None}
        claimed = [self.store.put_event(thread, item, **claim) for item in mine]
        return self.begin_claimed(thread, claimed, newest=RECENT_RUNS)

    def start_steered(self, thread: str, values: Mapping[str, Any]) -> bool:
        """Start a run with what a person has said and no request took, unless it was started before."""
        steered = self.store.list_entries(thread, values)
        name = derive_id("steered", *steered)
        if not steered or self.store.find_run(thread, name, RECENT_RUNS) is not None:
            return False
        return self.start(thread, name, [], {"input": {"messages": []}})

    def set_clock(self, thread: str, snapshot: StateSnapshot) -> None:
        """Ask for a run when the first wait of a thread is over."""
        first = find_next_wait(snapshot.values.get("waiting_on") or ())
        if first is not None and not open_questions(snapshot):
            self.run_later(thread, max(first["until"] - time.time(), 0))

    def choose_input(self, thread: str, snapshot: StateSnapshot, items: Items) -> NextInput:
        """Choose what the next run takes, and settle answers to questions that are not being asked."""
        questions = open_questions(snapshot)
        early: set[tuple[str, str]] = set()
        for item in items:
            seen = item.get("asked") or ()  # the questions that were open when the event was sent
            for question in questions:
                if question not in seen:
                    early.add((item["event"]["id"], question))
        events = [item["event"] for item in items]
        chosen = choose_next_input(snapshot, events, frozenset(early), now=time.time())
        for event, why in chosen.refused:
            self.store.note_error(thread, why)
            self.store.settle_events(thread, [event["id"]])
        return chosen

    def resume_claimed(self, thread: str, claimed: Items) -> bool:
        """Continue with events that a run has claimed, whether its host is this one, another, or gone."""
        name = claimed[0]["run"]
        for _ in range(BEGIN_CHECKS):
            if self.store.find_run(thread, name) is not None or not self.store.list_waiting(thread):
                break
            time.sleep(POLL_EVERY)
        return self.begin_claimed(thread, claimed)

    def begin_claimed(self, thread: str, claimed: Items, newest: int | None = None) -> bool:
        """Start the run that claimed these events, unless it is among the `newest`, and wait for its end."""
        name, question = claimed[0]["run"], claimed[0].get("question")
        mine = [item for item in claimed if item.get("run") == name]
        if (run := self.store.find_run(thread, name, newest)) is not None:
            return self.join(thread, run["run_id"], mine, question)
        settled = {item["event"]["id"]: self.store.find_settled(thread, item["event"]["id"]) for item in mine}
        if gone := [key for key, entry in settled.items() if entry]:  # cancelled, or settled by another host
            for item in mine:
                if (settled[item["event"]["id"]] or {}).get("cancelled"):
                    self.send_refusal(thread, item["event"], CANCELLED_MESSAGE)
            self.store.settle_events(thread, gone)
            return self.release(thread, [item for item in mine if item["event"]["id"] not in gone])
        given: dict[str, Any] = {"input": {"todo_inbox": [item["event"] for item in mine]}}
        if question is not None:
            if question not in open_questions(self.store.read_state(thread)):
                return self.release(thread, mine)
            given = {"command": {"resume": {question: mine[0]["event"]["text"]}}}
        return self.start(thread, name, mine, given, question)

    def start(
        self, thread: str, name: str, mine: Items, given: Mapping[str, Any], question: str | None = None
    ) -> bool:
        """Start a run and wait for its end. Release its events if somebody else's run has the thread."""
        try:
            run = self.store.client.runs.create(
                server_thread_id(thread),
                self.store.agents[find_agent(thread, self.store.agents)],
                multitask_strategy="reject",
                durability="sync",
                metadata={RUN_KEY: name},
                **given,
            )
        except ConflictError:  # another host, a schedule or a person is running it
            time.sleep(POLL_EVERY)
            return self.release(thread, mine)
        return self.join(thread, run["run_id"], mine, question)

    def release(self, thread: str, items: Items) -> bool:
        """Release the claim on events that no run has taken."""
        for item in items:
            self.store.put_event(thread, item, taken=False, run=None)
        return True

    def join(self, thread: str, run: str, mine: Items, question: str | None) -> bool:
        """Wait for the end of a run, then settle it."""
        result: Any = self.store.client.runs.join(server_thread_id(thread), run)
        status = self.store.client.runs.get(server_thread_id(thread), run)["status"]
        failure = None
        if status in FAILED_STATUSES:
            error = result.get("__error__") if isinstance(result, Mapping) else None
            failure = describe_failure(error or f"The run ended with status {status!r} on the server.")
        return self.settle_run(thread, mine, failure, question)

    def settle_run(self, thread: str, mine: Items, failure: str | None, question: str | None) -> bool:
        """Send what is outstanding, settle the events that the thread has read, and requeue the others."""
        snapshot = self.store.read_state(thread)
        unread: list[str] = []
        if failure is not None:
            unread = find_unread_events(snapshot, [item["event"] for item in mine], question)
        self.store.note_error(thread, failure)
        read: list[str] = []
        for item in mine:
            event = dict(item["event"])
            if event["id"] not in unread:
                read.append(event["id"])
            else:  # before `close_thread` ends the thread, which no longer shows it then
                if question is not None:
                    event.pop("correlation_id", None)  # the question ended with the run
                self.store.put_event(thread, item, event=event, taken=False, run=None, error=failure)
        self.close_thread(thread, snapshot, failure)
        self.store.settle_events(thread, read)
        return True

    def close_thread(self, thread: str, snapshot: StateSnapshot, failure: str | None) -> None:
        """Send what is outstanding after a run, then remove it from the thread."""
        sent, update = send_outstanding(snapshot, thread, self.host, failure)
        if failure is not None:
            self.store.update_state(thread, None, "__end__")
            self.store.update_state(
                thread, build_ended_update(snapshot, self.store.read_state(thread).values, failure), LAST_NODE
            )
        if sent:
            self.store.update_state(thread, update, LAST_NODE)

    def give_up(self, thread: str, error: Exception) -> None:
        """Note an error that was raised around a run. Waiting events are tried again with the next event."""
        words = describe_error(error)
        self.store.note_error(thread, words)
        for item in self.store.list_waiting(thread):
            if item.get("error"):
                continue
            self.send_refusal(thread, item["event"], words)
            started = item["taken"] and self.store.find_run(thread, str(item.get("run"))) is not None
            if not started:
                self.store.put_event(thread, item, taken=False, run=None, error=words)

    def send_refusal(self, thread: str, event: WakeEvent, problem: str) -> None:
        """Tell whoever waits for an answer to an event that no run will take it."""
        send_answer(self.host, make_refusal(event, thread, problem))
