"""Frees the locks of cached properties in forked processes.

Up to Python 3.11 `functools.cached_property` has one lock for all objects of a class, and LangGraph and
LangChain have such properties. A process that is forked while a thread computes one inherits a lock whose
holder does not exist there, and waits forever. Python 3.12 has no such lock.
"""

import os
import sys
from functools import cache, cached_property
from threading import RLock


@cache
def free_locks_in_children() -> None:
    """Renew these locks in every process forked from now on; this process is not affected."""
    if sys.version_info < (3, 12) and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_renew_locks)


def _renew_locks() -> None:
    """Give each cached property of every class a new lock; a process that was just forked has one thread.

    Visiting classes rather than all objects avoids copying the memory that the two processes share.
    """
    seen: set[type] = {object}
    left: list[type] = [object]
    while left:
        kind = left.pop()
        for attribute in vars(kind).values():
            if issubclass(type(attribute), cached_property):
                attribute.lock = RLock()
        below: set[type] = set(type.__subclasses__(kind)) - seen
        seen |= below
        left += below
