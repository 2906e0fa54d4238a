"""One run of a thread on the server, and what follows it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.types import Command
from langgraph_sdk.errors import ConflictError

from wakeloop.sessions.host import SessionHost, agent_of, derived_id
from wakeloop.sessions.langgraph_server.kept import Kept, uid
from wakeloop.sessions.questions import asked_by
from wakeloop.sessions.runs import RUN, NextInput, answered, deliver, next_input
from wakeloop.thread.standing import LAST
from wakeloop.thread.stopping import as_drained

PATIENCE = 0.2  # seconds between two tries while somebody else's run has the thread


@dataclass(frozen=True)
class OneRun:
    """Runs a thread once with what waits for it, and does what is to be done when it has ended."""

    kept: Kept
    host: SessionHost

    def __call__(self, thread: str) -> bool:
        """Run a thread once and send what it owes; False where nothing is to do."""
        items, client = self.kept.waiting(thread), self.kept.client
        chosen = self.choose(thread, [item for item in items if not item["taken"]])
        left = [item for item in items if item["taken"]]  # in a run that somebody did not see to its end
        if not chosen.run or not items:
            return bool(left) and self.finish(thread, left)
        given: dict[str, Any] = {"input": chosen.input}
        if isinstance(chosen.input, Command):
            given = {"command": {"resume": chosen.input.resume}}
        try:
            run = client.runs.create(
                uid(thread),
                self.kept.agents[agent_of(thread, self.kept.agents)],
                multitask_strategy="reject",
                durability="sync",
                metadata={RUN: chosen.taken[0]["id"] if chosen.taken else derived_id("left", thread)},
                **given,
            )
        except ConflictError:  # another host, a schedule or a person has it now
            time.sleep(PATIENCE)
            return True
        taken = {event["id"] for event in chosen.taken}
        mine = [item for item in items if item["event"]["id"] in taken]
        for item in mine:
            self.kept.put(thread, item["event"]["id"], {**item, "taken": True})
        client.runs.join(uid(thread), run["run_id"])
        status = client.runs.get(uid(thread), run["run_id"])["status"]
        self.close(thread, failed=status in ("error", "timeout"))
        self.kept.let_go(thread, [*left, *mine])
        return True

    def choose(self, thread: str, waiting: Sequence[dict[str, Any]]) -> NextInput:
        """Choose what the next run takes; let go of answers to what is not asked."""
        snapshot, by_id = self.kept.snapshot(thread), {item["event"]["id"]: item for item in waiting}
        before = frozenset(
            (key, question)
            for key, item in by_id.items()
            for question in asked_by(snapshot)
            if question not in item.get("asked", ())
        )
        chosen = next_input(snapshot, [item["event"] for item in waiting], before)
        for event, why in chosen.refused:
            self.kept.put(thread, event["id"], {**by_id[event["id"]], "event": None, "error": why})
        return chosen

    def finish(self, thread: str, left: Sequence[dict[str, Any]]) -> bool:
        """Do what is to be done after a run whose host is gone; wait while the run is under way."""
        status = self.kept.client.threads.get(uid(thread))["status"]
        if status == "busy":
            time.sleep(PATIENCE)
            return True
        self.close(thread, failed=status == "error")
        self.kept.let_go(thread, left)
        return True

    def close(self, thread: str, *, failed: bool) -> None:
        """Send what is outstanding after a run, then take it off the thread."""
        snapshot = self.kept.snapshot(thread)
        failure = None
        if failed:
            failure = next((str(task.error) for task in snapshot.tasks if task.error), "the run failed")
        letters = deliver(snapshot, thread, self.host, failure)
        if failed:
            self.kept.update(thread, None, "__end__")
            self.kept.update(thread, as_drained(snapshot, self.kept.snapshot(thread).values), LAST)
        if letters:
            self.kept.update(thread, {"owed_replies": answered(letters)}, LAST)
