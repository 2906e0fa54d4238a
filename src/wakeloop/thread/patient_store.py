"""A LangGraph store that waits for its database."""

from collections.abc import Iterable
from threading import Event

from langgraph.store.base import BaseStore, Op, Result

from wakeloop.platform.outages import Patience, await_out, wait_out


class PatientStore(BaseStore):
    """Wraps a store, as `PatientSaver` wraps a saver.

    Args:
        store: The store.
        stopped: Ends the waiting when it is set. Default: never.

    Example:
        >>> from langgraph.store.memory import InMemoryStore
        >>> from wakeloop.thread.patient_store import PatientStore
        >>> store = PatientStore(InMemoryStore())
    """

    def __init__(self, store: BaseStore, stopped: Event | None = None) -> None:
        self.store, self.patience = store, Patience(stopped or Event())

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations; repeat them while the database is away."""
        given = [*ops]
        return wait_out(lambda: self.store.batch(given), self.patience)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations; repeat them while the database is away."""
        given = [*ops]
        return await await_out(lambda: self.store.abatch(given), self.patience)
