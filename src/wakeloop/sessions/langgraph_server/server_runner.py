"""One run of a thread on the server, and what follows it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.types import StateSnapshot
from langgraph_sdk.errors import ConflictError

from wakeloop.loop.inbox import WakeEvent
from wakeloop.sessions.host import CANCELLED_MESSAGE, SessionHost, derive_id, describe_error, find_agent
from wakeloop.sessions.host_rules import (
    RUN_KEY,
    NextInput,
    choose_next_input,
    find_unread_events,
    make_refusal,
    remove_answered,
    send_answer,
    send_outstanding,
)
from wakeloop.sessions.langgraph_server.server_store import ServerStore, server_thread_id
from wakeloop.sessions.questions import open_questions
from wakeloop.text.secrets import redact_text
from wakeloop.thread.end_run import build_drained_update
from wakeloop.thread.thread_status import LAST_NODE

POLL_EVERY = 0.2  # seconds between two tries while somebody else's run has the thread
RECENT_RUNS = 20  # runs among which that of another host is, which noted the same at the same moment
BEGIN_CHECKS = 25  # looks for a run that somebody noted, before it is begun in his place
FAILED_STATUSES = ("error", "timeout")  # the server's words

Items = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class ServerRunner:
    """Runs a thread once with what waits for it, and does what is to be done when it has ended.

    What a run takes is noted with the run's name before it is begun, and the server keeps the name with the
    run. So whoever comes after a kill sees whether it was begun, and begins it with the same, or sees it to
    its end: nothing is taken twice.
    """

    store: ServerStore
    host: SessionHost

    def run_once(self, thread: str) -> bool:
        """Run a thread once and send what it owes; False where nothing is to do."""
        items = self.store.list_waiting(thread)
        if noted := [item for item in items if item["taken"]]:
            return self.resume_claimed(thread, noted)
        if all(item.get("error") for item in items):
            return False  # what was given up waits for the next event
        snapshot = self.store.read_state(thread)
        chosen = self.choose_input(thread, snapshot, items)
        if not chosen.run:
            return False
        taken = {event["id"] for event in chosen.taken}
        mine = [item for item in items if item["event"]["id"] in taken]
        if not mine:  # a run that somebody left
            name = derive_id("left", thread, *(task.id for task in snapshot.tasks))
            return self.start(thread, name, [], {"input": None})
        note = {"taken": True, "run": mine[0]["event"]["id"], "question": chosen.question, "error": None}
        return self.begin_claimed(
            thread, [self.store.put_event(thread, item, **note) for item in mine], newest=RECENT_RUNS
        )

    def choose_input(self, thread: str, snapshot: StateSnapshot, items: Items) -> NextInput:
        """Choose what the next run takes; let go of answers to what is not asked."""
        by_id, questions = {item["event"]["id"]: item for item in items}, open_questions(snapshot)
        early = frozenset(
            (k, q) for k, item in by_id.items() for q in questions if q not in questions_seen(item)
        )
        chosen = choose_next_input(snapshot, [item["event"] for item in items], early)
        for event, why in chosen.refused:
            self.store.note_error(thread, why)
            self.store.settle_events(thread, [by_id[event["id"]]])
        return chosen

    def resume_claimed(self, thread: str, noted: Items) -> bool:
        """See to what was noted by a run: of this host, of another one, or of one that is gone."""
        name = noted[0]["run"]
        for _ in range(BEGIN_CHECKS):
            if self.store.find_run(thread, name) is not None or not self.store.list_waiting(thread):
                break
            time.sleep(POLL_EVERY)
        return self.begin_claimed(thread, noted)

    def begin_claimed(self, thread: str, noted: Items, newest: int | None = None) -> bool:
        """Begin the run that was noted, unless it is among the `newest` already; see it to its end."""
        name, question = noted[0]["run"], noted[0].get("question")
        mine = [item for item in noted if item.get("run") == name]
        if (run := self.store.find_run(thread, name, newest)) is not None:
            return self.join(thread, run["run_id"], mine, question)
        seen = [(item, self.store.find_settled(thread, item["event"]["id"])) for item in mine]
        if gone := [item for item, found in seen if found]:  # withdrawn, or settled by another host
            for item, found in seen:
                if found and found.get("cancelled"):
                    self.send_refusal(thread, item["event"], CANCELLED_MESSAGE)
            self.store.settle_events(thread, gone)
            return self.leave(thread, [item for item in mine if item not in gone])
        given: dict[str, Any] = {"input": {"todo_inbox": [item["event"] for item in mine]}}
        if question is not None:
            asked = [one.id for one in self.store.read_state(thread).interrupts]
            if question not in asked:
                return self.leave(thread, mine)
            given = {"command": {"resume": {question: mine[0]["event"]["text"]}}}
        return self.start(thread, name, mine, given, question)

    def start(
        self, thread: str, name: str, mine: Items, given: Mapping[str, Any], question: str | None = None
    ) -> bool:
        """Begin a run, and see it to its end; leave its events where somebody else's has the thread."""
        try:
            run = self.store.client.runs.create(
                server_thread_id(thread),
                self.store.agents[find_agent(thread, self.store.agents)],
                multitask_strategy="reject",
                durability="sync",
                metadata={RUN_KEY: name},
                **given,
            )
        except ConflictError:  # another host, a schedule or a person has it now
            time.sleep(POLL_EVERY)
            return self.leave(thread, mine)
        return self.join(thread, run["run_id"], mine, question)

    def leave(self, thread: str, items: Items) -> bool:
        """Put events back that no run has taken."""
        for item in items:
            self.store.put_event(thread, item, taken=False, run=None)
        return True

    def join(self, thread: str, run: str, mine: Items, question: str | None) -> bool:
        """Wait for a run, and do what is to be done when it has ended."""
        told: Any = self.store.client.runs.join(server_thread_id(thread), run)
        status = self.store.client.runs.get(server_thread_id(thread), run)["status"]
        failure = describe_failure(told, status) if status in FAILED_STATUSES else None
        return self.settle_run(thread, mine, failure, question)

    def finish(self, thread: str, left: Items) -> bool:
        """Do what is to be done after a run whose host is gone; wait while the run is under way."""
        found: Any = self.store.client.threads.get(server_thread_id(thread))
        if found["status"] == "busy":
            time.sleep(POLL_EVERY)
            return True
        failed = found["status"] == "error"
        return self.settle_run(
            thread, left, describe_failure({"__error__": found.get("error")}, "error") if failed else None
        )

    def settle_run(self, thread: str, mine: Items, failure: str | None, question: str | None = None) -> bool:
        """Send what is outstanding, let go of what the thread has read, and keep the rest for another try."""
        snapshot = self.store.read_state(thread)
        events = [item["event"] for item in mine]
        back = find_unread_events(snapshot, events, question) if failure is not None else []
        self.store.note_error(thread, failure)
        for item in mine:
            if item["event"]["id"] in back:  # noted before the thread is ended, which no longer shows it then
                event = {k: v for k, v in item["event"].items() if question is None or k != "correlation_id"}
                self.store.put_event(thread, item, event=event, taken=False, run=None, error=failure)
        self.close_thread(thread, snapshot, failure)
        self.store.settle_events(thread, [item for item in mine if item["event"]["id"] not in back])
        return True

    def close_thread(self, thread: str, snapshot: StateSnapshot, failure: str | None) -> None:
        """Send what is outstanding after a run, then take it off the thread."""
        letters = send_outstanding(snapshot, thread, self.host, failure)
        if failure is not None:
            self.store.update_state(thread, None, "__end__")
            self.store.update_state(
                thread, build_drained_update(snapshot, self.store.read_state(thread).values), LAST_NODE
            )
        if letters:
            self.store.update_state(thread, {"owed_replies": remove_answered(letters)}, LAST_NODE)

    def give_up(self, thread: str, error: Exception) -> None:
        """Note what was raised around a run; what waits is kept, and tried again with the next event."""
        words = describe_error(error)
        self.store.note_error(thread, words)
        for item in self.store.list_waiting(thread):
            if item.get("error"):
                continue
            self.send_refusal(thread, item["event"], words)
            if not (item["taken"] and self.store.find_run(thread, str(item.get("run"))) is not None):
                self.store.put_event(thread, item, taken=False, run=None, error=words)

    def send_refusal(self, thread: str, event: WakeEvent, problem: str) -> None:
        """Tell whoever waits for an answer to an event that no run will take it."""
        send_answer(self.host, make_refusal(event, thread, problem))


def describe_failure(result: Any, status: str) -> str:
    """Return the words of a run that failed."""
    error = result.get("__error__") if isinstance(result, Mapping) else None
    if isinstance(error, Mapping):
        return redact_text(f"{error.get('error', 'Error')}: {error.get('message', '')}")
    return redact_text(str(error)) if error else f"The run ended as {status!r} on the server."


def questions_seen(item: Mapping[str, Any]) -> Sequence[str]:
    """Return the questions that stood when an event was sent."""
    return item.get("asked") or ()
