"""What the server keeps: threads, and the events for them."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

from langgraph.types import StateSnapshot
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import NotFoundError

from wakeloop.sessions.host import THREAD_KEY, find_agent
from wakeloop.sessions.host_rules import RUN_KEY
from wakeloop.sessions.langgraph_server.snapshot import make_snapshot

# namespaces of the server's store, one of each for a thread
EVENTS = "wakeloop-events"  # where events wait
SETTLED_IDS = "wakeloop-seen"  # the ids of events that were settled or cancelled
ERRORS = "wakeloop-errors"  # why a thread's newest run was given up; of all threads
PAGE_SIZE = 1000  # of what is read at once; the next page follows


class ServerStore:
    """A server's threads by our names, and the events that wait for them in its store."""

    def __init__(self, client: SyncLangGraphClient, agents: Mapping[str, str]) -> None:
        self.client, self.agents = client, agents

    # -- threads -------------------------------------------------------------------------------------------

    def ensure_thread(self, thread: str) -> str:
        """Make a thread, unless it is there; return its agent."""
        agent = find_agent(thread, self.agents)
        named = {THREAD_KEY: thread, "wakeloop_agent": agent}
        self.client.threads.create(thread_id=server_thread_id(thread), if_exists="do_nothing", metadata=named)
        return agent

    def list_threads(self) -> Sequence[str]:
        """Return the threads of these agents."""
        search: Any = self.client.threads.search
        found = iterate_pages(lambda **page: search(**page, select=["thread_id", "metadata"]))
        known = [(t.get("metadata") or {}).get(THREAD_KEY) for t in found]
        names = {str(name) for name in known if name}
        return sorted(
            name for name in names if name.partition(":")[0] in self.agents or "main" in self.agents
        )

    def read_state(self, thread: str) -> StateSnapshot:
        """Read a thread as a graph of this process would."""
        return make_snapshot(cast("Any", self.client.threads.get_state(server_thread_id(thread))))

    def update_state(self, thread: str, values: Any, node: str) -> None:
        """Write to a thread as if a node had."""
        self.client.threads.update_state(server_thread_id(thread), values, as_node=node)

    def find_run(self, thread: str, name: str, newest: int | None = None) -> Mapping[str, Any] | None:
        """Return the run of this name, of all or of the newest; None where none was begun."""
        listed: Any = self.client.runs.list
        runs = iterate_pages(lambda **page: listed(server_thread_id(thread), **page))
        return next(
            (run for run in islice(runs, newest) if (run["metadata"] or {}).get(RUN_KEY) == name), None
        )

    def read_error(self, thread: str) -> str | None:
        """Return why a thread's newest run was given up."""
        return (self._get_item((ERRORS,), server_thread_id(thread)) or {}).get("error")

    def note_error(self, thread: str, words: str | None) -> None:
        """Note why a thread's newest run was given up; None where it was not."""
        if words is None:
            self._delete_item((ERRORS,), server_thread_id(thread))
        else:
            self.client.store.put_item(
                (ERRORS,), key=server_thread_id(thread), value={"error": words}, index=False
            )

    # -- events --------------------------------------------------------------------------------------------

    def list_waiting(self, thread: str) -> Sequence[dict[str, Any]]:
        """Return the events whose run has not ended, in the order in which they came."""
        search: Any = self.client.store.search_items
        found = iterate_pages(lambda **page: search((EVENTS, server_thread_id(thread)), **page)["items"])
        items = {item["key"]: dict(item["value"]) for item in found if item["value"]["event"]}
        return sorted(items.values(), key=lambda item: item["order"])

    def find_event(self, thread: str, key: str) -> dict[str, Any] | None:
        """Return what is stored of an event, None where nothing is."""
        return self._get_item((EVENTS, server_thread_id(thread)), key) or self.find_settled(thread, key)

    def find_settled(self, thread: str, key: str) -> dict[str, Any] | None:
        """Return what is stored of an event that was settled or cancelled, None where it was not."""
        return self._get_item((SETTLED_IDS, server_thread_id(thread)), key)

    def put_event(self, thread: str, item: Mapping[str, Any], **change: Any) -> dict[str, Any]:
        """Store an event: it, its place in the order, and what became of it so far. Return what is stored."""
        whole = {**item, **change}
        self.client.store.put_item(
            (EVENTS, server_thread_id(thread)), key=whole["event"]["id"], value=whole, index=False
        )
        return whole

    def settle_events(self, thread: str, items: Sequence[dict[str, Any]]) -> None:
        """Let go of events whose run has ended: their ids stay, so that a repeat is known."""
        for item in items:
            key = item["event"]["id"]
            self.client.store.put_item(
                (SETTLED_IDS, server_thread_id(thread)), key=key, value=SETTLED, index=False
            )
            self._delete_item((EVENTS, server_thread_id(thread)), key)

    def withdraw(
        self, thread: str, item: Mapping[str, Any], look: Callable[[], object], tell: Callable[[], object]
    ) -> bool:
        """Take back an event, unless a run has it: False. `tell` tells whoever waits for it, before it goes.

        Whoever takes an event notes that and then looks whether it was withdrawn; here it is the other way
        about. So one of the two sees the other's note; `look` waits where the other has not decided yet.
        """
        key, shelf, seen = (
            str(item["event"]["id"]),
            (EVENTS, server_thread_id(thread)),
            (SETTLED_IDS, server_thread_id(thread)),
        )
        self.client.store.put_item(seen, key=key, value={**SETTLED, "cancelled": True}, index=False)
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
        return True  # the host that took it is gone, and the next one will see that it is withdrawn

    def _get_item(self, namespace: Sequence[str], key: str) -> dict[str, Any] | None:
        with contextlib.suppress(NotFoundError):
            found: Any = self.client.store.get_item(namespace, key=key)
            return dict(found["value"]) if found else None  # one server says None, another 404
        return None

    def _delete_item(self, namespace: Sequence[str], key: str) -> None:
        with contextlib.suppress(NotFoundError):
            self.client.store.delete_item(namespace, key=key)


SETTLED: Mapping[str, Any] = {"event": None, "taken": True}
WITHDRAW_CHECKS = 25  # at an event that somebody is about to run


def iterate_pages(search: Callable[..., Sequence[Any]]) -> Iterator[Any]:
    """Yield all that is found, page by page."""
    offset, most = 0, PAGE_SIZE
    while page := search(limit=most, offset=offset):
        yield from page
        if len(page) < most:
            return
        offset += len(page)


def server_thread_id(thread: str) -> str:
    """Return the server's id of a thread: it takes nothing but UUIDs."""
    return str(uuid5(NAMESPACE_URL, f"wakeloop:{thread}"))
