"""A saver that checks its thread's owner, and waits."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from wakeloop.sessions.thread_runner import Graph
from wakeloop.thread.patient_saver import PatientSaver


@dataclass(frozen=True)
class Fence:
    """The checks before a run reads or writes.

    Attributes:
        confirm: Raises `TakenOverError` if another worker owns the thread by now.
        draining: Set when the host drains; outages are not waited out then.
    """

    confirm: Callable[[], None]
    draining: Event


def fence_graph(graph: Graph, fence: Fence, store: BaseStore | None = None) -> Graph:
    """Return a copy of a graph with the store, and with a fenced saver if it has a saver of its own.

    The saver waits for its database as long as the host runs: giving up would run finished calls again.
    """
    saver = graph.checkpointer
    if not isinstance(saver, BaseCheckpointSaver):
        return graph.copy({"store": store})
    patient = PatientSaver(saver, fence.draining, bounded=False, confirm=fence.confirm)
    return graph.copy({"checkpointer": patient, "store": store})
