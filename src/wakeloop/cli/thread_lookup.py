"""Finds a thread: by its id, by how that begins, the last."""

import re
import secrets
from collections.abc import Iterable
from contextlib import suppress

from wakeloop.cli.failures import CommandError, usage_error
from wakeloop.cli.store import DatabaseFile, Store, ThreadRecord, open_to_read
from wakeloop.display.terminal_text import clean_line
from wakeloop.text.characters import is_visible

ABBREVIATED_ID = re.compile(r"(t|demo)-[0-9a-f]{1,7}")  # of `new_id`
ELLIPSIS = "…"  # stands for what a list leaves out
MAX_LISTED = 5  # threads in a sentence
THREAD_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,99}")


def find_thread(database: DatabaseFile, thread: str | None) -> ThreadRecord:
    """Find a thread, without making a database where there is none."""
    with open_to_read(database) as store:
        return find_latest_thread(store) if thread is None else require_thread(store, thread)


def find_latest_thread(store: Store) -> ThreadRecord:
    """The thread that changed last; a demo that is over is none that a person goes on with."""
    known = store.threads()
    if found := next((one for one in known if not is_finished_demo(store, one)), None):
        return found
    if not known:
        return require_thread(store, None)
    raise usage_error(
        f"There is no thread in {str(store.database.path)!r} yet but the demo's; wakeloop run begins one."
    )


def is_finished_demo(store: Store, known: ThreadRecord) -> bool:
    """Tell whether a thread is a demo that is over: nothing runs, waits or is open there."""
    if known.spec is None or not known.spec.demo:
        return False
    from wakeloop.cli.stored_state import read_state
    from wakeloop.thread.thread_status import read_session

    with suppress(CommandError):
        session = read_session(read_state(store.saver, known.id))
        return session["state"] not in ("running", "waiting") and not session["open"]
    return True


def require_thread(store: Store, thread: str | None) -> ThreadRecord:
    """Find a thread by its id, by how the id begins, or the last one; refuse one that is not there."""
    where = f"in {str(store.database.path)!r}"
    if thread is None:
        if known := next(iter(store.threads()), None):
            return known
        raise usage_error(f"There is no thread {where} yet; wakeloop run begins one.")
    if known := store.find(thread) or find_by_prefix(store, thread):
        return known
    name = repr(thread) if is_visible(thread) else ascii(thread)
    raise usage_error(f"There is no thread {name} {where}; wakeloop threads lists them.")


def find_by_prefix(store: Store, beginning: str) -> ThreadRecord | None:
    """The one thread whose id begins so; refuse where there are several."""
    known = {one.id: one for one in store.threads()}
    found = match_prefix(beginning, known, "threads")
    return None if found is None else known[found]


def match_prefix(beginning: str, names: Iterable[str], what: str) -> str | None:
    """The one name that begins so, or is shortened so in a list; refuse where there are several."""
    head, _, tail = beginning.partition(ELLIPSIS)
    found = [name for name in names if head and name.startswith(head) and name.endswith(tail)]
    if len(found) > 1:
        ids = ", ".join(map(clean_line, found[:MAX_LISTED]))
        more = f" and {len(found) - MAX_LISTED} more" if len(found) > MAX_LISTED else ""
        raise usage_error(f"{len(found)} {what} begin with {beginning!r}: {ids}{more}; write more of the id.")
    return next(iter(found), None)


def resolve_id(typed: str, names: Iterable[str], what: str) -> str:
    """The id of an old or a new one: only one that was minted, or a list has cut, may be cut short.

    Any other may be a new one's: what is said to `user:1` is not for `user:10`.
    """
    if typed in (names := [*names]):
        return typed
    if may_be_abbreviated(typed) and (found := match_prefix(typed, names, what)):
        return found
    check_thread_id(typed)
    return typed


def may_be_abbreviated(typed: str) -> bool:
    """Whether it looks like an id that was minted, or that a list has cut."""
    return bool(ABBREVIATED_ID.fullmatch(typed)) or ELLIPSIS in typed


def resolve_thread_option(database: DatabaseFile, thread: str | None) -> tuple[str, ThreadRecord | None]:
    """The id of `--thread`, or a new one, and the thread if it is there."""
    if thread is None:
        return new_thread_id(), None
    with open_to_read(database) as store:
        return find_or_new(store, thread)


def find_or_new(store: Store, thread: str) -> tuple[str, ThreadRecord | None]:
    """The thread of an id that may also be a new one's."""
    if known := store.find(thread) or (find_by_prefix(store, thread) if may_be_abbreviated(thread) else None):
        return known.id, known
    check_thread_id(thread)
    return thread, None


def check_thread_id(thread: str) -> None:
    """Refuse an id that would be hard to type or to show."""
    if not THREAD_ID.fullmatch(thread):
        raise usage_error(
            "A thread's id is of letters, digits and . _ : @ -, and begins with a letter or digit."
        )


def new_thread_id(prefix: str = "t") -> str:
    """Mint a thread's id, short enough to type."""
    return f"{prefix}-{secrets.token_hex(4)}"
