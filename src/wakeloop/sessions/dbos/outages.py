"""Retries through outages of a database."""

from collections.abc import Callable, Mapping
from itertools import count
from threading import Event

from wakeloop.platform.database_errors import classify_outage
from wakeloop.sessions.host import RETRY_PAUSES
from wakeloop.sessions.thread_runner import Graph
from wakeloop.thread.patient_saver import discard_cut_connections


class WorkflowStopped(BaseException):
    """Ends a workflow without a result, so that it stays pending and the next worker runs it again."""


def retry_through_outages(
    attempt: Callable[[bool], None], draining: Event, agents: Callable[[], Mapping[str, Graph]]
) -> None:
    """Call `attempt`, and repeat it while a database is away.

    Its argument is True as long as it should raise an outage, to be repeated after a pause. It is False from
    the sixth attempt on; the attempt should then report the outage itself.
    """
    for tries in count(1):
        try:
            attempt(tries <= len(RETRY_PAUSES))
        except Exception as error:
            if classify_outage(error) is None:
                raise
            if draining.wait(RETRY_PAUSES[min(tries, len(RETRY_PAUSES)) - 1]):
                raise WorkflowStopped from None
            for graph in agents().values():
                discard_cut_connections(graph.checkpointer)
        else:
            return
