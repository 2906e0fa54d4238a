"""Threads and waiting events in a LangGraph server's store."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

from langchain_core.messages import convert_to_messages
from langgraph.types import Interrupt, PregelTask, StateSnapshot
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import NotFoundError

from wakeloop.loop.inbox import name_thread
from wakeloop.loop.ledger import read_notes
from wakeloop.sessions.host import DEFAULT_AGENT, THREAD_KEY, find_agent
from wakeloop.sessions.host_rules import RUN_KEY
from wakeloop.thread.thread_status import read_thread

# namespaces of the server's store
EVENTS = "wakeloop-events"  # waiting events, by thread
SETTLED_IDS = "wakeloop-seen"  # ids of settled and cancelled events, by thread
ERRORS = "wakeloop-errors"  # why a thread's newest run failed; of all threads
PAGE_SIZE = 1000  # entries per request
SETTLED: Mapping[str, Any] = {"event": None, "taken": True}
WITHDRAW_CHECKS = 25  # of an event that somebody is about to run


def make_snapshot(state: Mapping[str, Any]) -> StateSnapshot:
    """Convert a thread's JSON to what `graph.get_state` returns."""
    values = dict(state["values"]) if isinstance(state["values"], Mapping) else {}
    if "messages" in values:
        values["messages"] = convert_to_messages(values["messages"])
    tasks: list[PregelTask] = []
    interrupts: list[Interrupt] = []
    for task in state["tasks"]:
        asked = tuple(Interrupt(one.get("value"), id=str(one["id"])) for one in task.get("interrupts") or ())
        interrupts += asked
        more = (task.get("error"), asked, task.get("state"), task.get("result"))
        tasks.append(PregelTask(task["id"], task["name"], (), *more))
    about = (state.get("metadata"), state.get("created_at"))
    return StateSnapshot(values, tuple(state["next"]), {}, *about, None, tuple(tasks), tuple(interrupts))


class ServerStore:
    """A server's threads by session name, and the events that wait for them in its store."""

    def __init__(self, client: SyncLangGraphClient, agents: Mapping[str, str]) -> None:
        self.client, self.agents = client, agents

    # -- threads -------------------------------------------------------------------------------------------

    def ensure_thread(self, thread: str) -> str:
        """Create a thread unless it exists, and return the name of its agent."""
        agent = find_agent(thread, self.agents)
        named = {THREAD_KEY: thread, "wakeloop_agent": agent}
        self.client.threads.create(thread_id=server_thread_id(thread), if_exists="do_nothing", metadata=named)
        return agent

    def list_threads(self) -> Sequence[str]:
        """Return the threads of this host's agents, in order."""
        search: Any = self.client.threads.search
        names: set[str] = set()
        for thread in iterate_pages(lambda **page: search(**page, select=["thread_id", "metadata"])):
            name = str((thread.get("metadata") or {}).get(THREAD_KEY) or "")
            if name and (name.partition(":")[0] in self.agents or DEFAULT_AGENT in self.agents):
                names.add(name)
        return sorted(names)

    def read_state(self, thread: str) -> StateSnapshot:
        """Return a thread's newest checkpoint, as a local graph's `get_state` does."""
        return make_snapshot(cast("Any", self.client.threads.get_state(server_thread_id(thread))))

    def is_cancelled(self, thread: str) -> bool:
        """Tell whether a thread's newest run was cancelled: only the server's own status says so."""
        return read_thread(self.client.threads.get(server_thread_id(thread))).cancelled

    def update_state(self, thread: str, values: Any, node: str) -> None:
        """Write to a thread as if a node had done it."""
        self.client.threads.update_state(server_thread_id(thread), values, as_node=node)

    def find_run(self, thread: str, name: str, newest: int | None = None) -> Mapping[str, Any] | None:
        """Return the run with this name, out of all runs or the `newest` ones; None if no run has it."""
        listed: Any = self.client.runs.list
        runs = iterate_pages(lambda **page: listed(server_thread_id(thread), **page))
        for run in islice(runs, newest):
            if (run["metadata"] or {}).get(RUN_KEY) == name:
                return cast("Mapping[str, Any]", run)
        return None

    def read_error(self, thread: str) -> str | None:
        """Return why a thread's newest run failed; None if it did not."""
        return (self._get_item((ERRORS,), server_thread_id(thread)) or {}).get("error")

    def note_error(self, thread: str, words: str | None) -> None:
        """Note why a thread's newest run failed, or delete the note (None)."""
        if words is None:
            self._delete_item((ERRORS,), server_thread_id(thread))
        else:
            self._put_item((ERRORS,), server_thread_id(thread), {"error": words})

    # -- steering ------------------------------------------------------------------------------------------

    def put_entry(self, thread: str, key: str, value: Mapping[str, Any]) -> None:
        """Store what a person steers in; the server gives the graph this store."""
        self._put_item(name_thread(server_thread_id(thread)), key, value)

    def list_entries(self, thread: str, values: Mapping[str, Any] | None = None) -> list[str]:
        """Return the ids of the entries that no run has taken, without those that the `values` have."""
        taken = read_notes(values or {}).get("steered", ())
        found = self._list_items(name_thread(server_thread_id(thread)))
        return sorted(item["key"] for item in found if item["key"] not in taken)

    # -- events --------------------------------------------------------------------------------------------

    def list_waiting(self, thread: str) -> Sequence[dict[str, Any]]:
        """Return the events that no run has settled yet, in order of arrival."""
        found = self._list_items((EVENTS, server_thread_id(thread)))
        items = {item["key"]: dict(item["value"]) for item in found if item["value"]["event"]}
        return sorted(items.values(), key=lambda item: item["order"])

    def find_event(self, thread: str, key: str) -> dict[str, Any] | None:
        """Return the entry of an event, waiting or settled; None for an unknown event."""
        return self._get_item((EVENTS, server_thread_id(thread)), key) or self.find_settled(thread, key)

    def find_settled(self, thread: str, key: str) -> dict[str, Any] | None:
        """Return the entry of an event that was settled or cancelled; None if it was not."""
        return self._get_item((SETTLED_IDS, server_thread_id(thread)), key)

    def put_event(self, thread: str, item: Mapping[str, Any], **change: Any) -> dict[str, Any]:
        """Store the entry of an event, with changes, and return it."""
        whole = {**item, **change}
        self._put_item((EVENTS, server_thread_id(thread)), whole["event"]["id"], whole)
        return whole

    def settle_events(self, thread: str, keys: Sequence[str]) -> None:
        """Delete events whose run has ended, but keep their ids, so that a repeat is recognized."""
        for key in keys:
            self._put_item((SETTLED_IDS, server_thread_id(thread)), key, SETTLED)
            self._delete_item((EVENTS, server_thread_id(thread)), key)

    def withdraw(
        self, thread: str, item: Mapping[str, Any], look: Callable[[], object], tell: Callable[[], object]
    ) -> bool:
        """Delete an event and return True, unless a run has it.

        `tell` is called before the deletion, to tell whoever waits for the event. A run that takes an event
        first notes that and then checks whether the event was withdrawn; a withdrawal does it the other way
        round. So at least one of them sees the other's note. `look` waits while the run has not decided yet.
        """
        key = str(item["event"]["id"])
        shelf, seen = (EVENTS, server_thread_id(thread)), (SETTLED_IDS, server_thread_id(thread))
        self._put_item(seen, key, {**SETTLED, "cancelled": True})
        for _ in range(WITHDRAW_CHECKS):
            now = self._get_item(shelf, key)
            if now is None:
                return True
            if not now["taken"]:
                tell()
                self._delete_item(shelf, key)
                return True
            if self.find_run(thread, str(now.get("run"))) is not None:
                self._delete_item(seen, key)
                return False
            look()
        return True  # the host that took it is gone, and the next one will see that the event is withdrawn

    def _list_items(self, namespace: Sequence[str]) -> Iterator[Any]:
        search: Any = self.client.store.search_items
        return iterate_pages(lambda **page: search(namespace, **page)["items"])

    def _put_item(self, namespace: Sequence[str], key: str, value: Mapping[str, Any]) -> None:
        self.client.store.put_item(namespace, key=key, value=value, index=False)

    def _get_item(self, namespace: Sequence[str], key: str) -> dict[str, Any] | None:
        with contextlib.suppress(NotFoundError):
            found: Any = self.client.store.get_item(namespace, key=key)
            return dict(found["value"]) if found else None  # depending on the server, None or a 404
        return None

    def _delete_item(self, namespace: Sequence[str], key: str) -> None:
        with contextlib.suppress(NotFoundError):
            self.client.store.delete_item(namespace, key=key)


def iterate_pages(search: Callable[..., Sequence[Any]]) -> Iterator[Any]:
    """Yield the results of all pages."""
    offset, most = 0, PAGE_SIZE
    while page := search(limit=most, offset=offset):
        yield from page
        if len(page) < most:
            return
        offset += len(page)


def server_thread_id(thread: str) -> str:
    """Return the server's id of a thread: the server only accepts UUIDs."""
    return str(uuid5(NAMESPACE_URL, f"wakeloop:{thread}"))
