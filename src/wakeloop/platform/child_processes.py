"""A forked process finds the locks of attributes free.

Up to Python 3.11 `functools.cached_property` has one lock for all objects of a class, and LangGraph and
LangChain have such attributes: a process that is forked while any thread computes one inherits the lock
held, by a thread that is not there, and waits for ever. (Python 3.12 has no such lock.)
"""

import os
import sys
from functools import cache, cached_property
from threading import RLock


@cache
def free_locks_in_children() -> None:
    """Renew such locks in each process that is forked from now on; here it costs nothing."""
    if sys.version_info < (3, 12) and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_renew_locks)


def _renew_locks() -> None:
    """Give each attribute of every class a new lock: a process that has just been forked has one thread.

    It goes through the classes, not through all objects as the garbage collector would: that would copy the
    memory that the two processes share.
    """
    seen: set[type] = {object}
    left: list[type] = [object]
    while left:
        kind = left.pop()
        for held in vars(kind).values():
            if issubclass(type(held), cached_property):
                held.lock = RLock()
        below: set[type] = set(type.__subclasses__(kind)) - seen
        seen |= below
        left += below
