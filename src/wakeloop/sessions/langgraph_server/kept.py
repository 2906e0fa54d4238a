"""What the server keeps: threads, and the events for them."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

from langgraph.types import StateSnapshot
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import NotFoundError

from wakeloop.sessions.host import agent_of
from wakeloop.sessions.langgraph_server.snapshot import snapshot_of

SHELF = "wakeloop-events"  # the namespace in the server's store where events wait
MOST = 1000  # events of a thread, and threads, that are read at once


class Kept:
    """A server's threads by our names, and the events that wait for them in its store."""

    def __init__(self, client: SyncLangGraphClient, agents: Mapping[str, str]) -> None:
        self.client, self.agents = client, agents

    def make(self, thread: str) -> str:
        """Make a thread, unless it is there; return its agent."""
        agent = agent_of(thread, self.agents)
        named = {"wakeloop": thread, "wakeloop_agent": agent}
        self.client.threads.create(thread_id=uid(thread), if_exists="do_nothing", metadata=named)
        return agent

    def threads(self) -> Sequence[str]:
        """Return the threads of these agents."""
        found = self.client.threads.search(limit=MOST, select=["thread_id", "metadata"])
        known = [(t.get("metadata") or {}).get("wakeloop") for t in found]
        names = {str(name) for name in known if name}
        return sorted(
            name for name in names if name.partition(":")[0] in self.agents or "main" in self.agents
        )

    def snapshot(self, thread: str) -> StateSnapshot:
        """Read a thread as a graph of this process would."""
        return snapshot_of(cast("Any", self.client.threads.get_state(uid(thread))))

    def update(self, thread: str, values: Any, node: str) -> None:
        """Write to a thread as if a node had."""
        self.client.threads.update_state(uid(thread), values, as_node=node)

    def waiting(self, thread: str) -> Sequence[dict[str, Any]]:
        """Return the events whose run has not ended, in the order in which they came."""
        found = self.client.store.search_items((SHELF, uid(thread)), limit=MOST)["items"]
        items = [dict(item["value"]) for item in found if item["value"]["event"]]
        return sorted(items, key=lambda item: item["order"])

    def item(self, thread: str, key: str) -> dict[str, Any] | None:
        """Return what is stored of an event, None where nothing is."""
        with contextlib.suppress(NotFoundError):
            found: Any = self.client.store.get_item((SHELF, uid(thread)), key=key)
            return dict(found["value"]) if found else None  # one server says None, another 404
        return None

    def put(self, thread: str, key: str, value: Mapping[str, Any]) -> None:
        """Store an event: it, its place in the order, whether a run has taken it."""
        self.client.store.put_item((SHELF, uid(thread)), key=key, value=value, index=False)

    def let_go(self, thread: str, items: Sequence[dict[str, Any]]) -> None:
        """Let go of events whose run has ended: their ids stay, so that a repeat is known."""
        for item in items:
            self.put(thread, item["event"]["id"], {**item, "event": None, "taken": True})


def uid(thread: str) -> str:
    """Return the server's id of a thread: it takes nothing but UUIDs."""
    return str(uuid5(NAMESPACE_URL, f"wakeloop:{thread}"))
