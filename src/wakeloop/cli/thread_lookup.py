"""Find a thread by its id, by its start, or the latest one."""

import re
import secrets
from collections.abc import Collection, Iterable

from wakeloop.cli.failures import usage_error
from wakeloop.cli.store import DatabaseFile, Store, ThreadRecord, open_to_read
from wakeloop.display.terminal_output import clean_line
from wakeloop.text.characters import is_visible

ABBREVIATED_ID = re.compile(r"(t|demo)-[0-9a-f]{1,7}")  # the start of an id from `new_thread_id`
MAX_LISTED = 5  # threads in a sentence
THREAD_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]*")
LONGEST_ID = 100  # characters


def find_thread(database: DatabaseFile, thread: str | None, hint: str = "") -> ThreadRecord:
    """Find a thread, or the latest one, without creating a database."""
    with open_to_read(database) as store:
        return require_thread(store, thread, hint)


def require_thread(store: Store, thread: str | None, hint: str = "") -> ThreadRecord:
    """Find a thread by its id or the start of its id; None means the latest one.

    Raises `CommandError` if no thread matches; the `hint` ends its sentence.
    """
    where = f"in {str(store.database.path)!r}"
    if thread is None:
        if threads := store.threads():
            return threads[0]
        raise usage_error(f"No threads {where} yet; start one with wakeloop run.")
    if known := store.find(thread) or find_by_prefix(store, thread):
        return known
    name = repr(thread) if is_visible(thread) else ascii(thread)
    if " " in thread:
        hint = " A message comes after the thread's id."
    raise usage_error(f"Unknown thread {name} {where}; list them with wakeloop threads.{hint}")


def find_by_prefix(store: Store, prefix: str) -> ThreadRecord | None:
    """Return the only thread whose id starts like this. Raises `CommandError` if there are several."""
    known = {record.id: record for record in store.threads()}
    found = match_prefix(prefix, known, "threads")
    return None if found is None else known[found]


def match_prefix(prefix: str, names: Iterable[str], what: str) -> str | None:
    """Return the only name that starts like this. Raises `CommandError` if several names match."""
    found = [name for name in names if prefix and name.startswith(prefix)]
    if len(found) > 1:
        ids = ", ".join(map(clean_line, found[:MAX_LISTED]))
        if len(found) > MAX_LISTED:
            ids += f" and {len(found) - MAX_LISTED} more"
        raise usage_error(f"{len(found)} {what} start with {prefix!r}: {ids}. Type more of the id.")
    return found[0] if found else None


def resolve_id(typed: str, names: Collection[str], what: str) -> str:
    """Return the id of an existing or new thread or session.

    Only ids that wakeloop made may be abbreviated. Any other may be the id of a new one: a message to
    `user:1` must not reach `user:10`.
    """
    if typed in names:
        return typed
    if may_be_abbreviated(typed) and (found := match_prefix(typed, names, what)):
        return found
    check_thread_id(typed)
    return typed


def may_be_abbreviated(typed: str) -> bool:
    """Whether it looks like the start of an id that wakeloop made."""
    return ABBREVIATED_ID.fullmatch(typed) is not None


def resolve_thread_option(database: DatabaseFile, thread: str | None) -> tuple[str, ThreadRecord | None]:
    """Return the id given by `--thread`, or a new one, and the thread if it exists."""
    if thread is None:
        return new_thread_id(), None
    with open_to_read(database) as store:
        return find_or_new(store, thread)


def find_or_new(store: Store, thread: str) -> tuple[str, ThreadRecord | None]:
    """Return the full id and the thread, or None if the id is a new one."""
    known = store.find(thread)
    if known is None and may_be_abbreviated(thread):
        known = find_by_prefix(store, thread)
    if known is not None:
        return known.id, known
    check_thread_id(thread)
    return thread, None


def check_thread_id(thread: str) -> None:
    """Refuse an id that would be hard to type or to display."""
    if len(thread) > LONGEST_ID:
        raise usage_error(f"A thread id has at most {LONGEST_ID} characters, got {len(thread)}.")
    if not THREAD_ID.fullmatch(thread):
        raise usage_error(
            "A thread id may contain letters, digits and . _ : @ -, and must start with a letter or digit, "
            f"got {ascii(thread)[:60]}."
        )


def new_thread_id(prefix: str = "t") -> str:
    """Make a new thread id that is short enough to type."""
    return f"{prefix}-{secrets.token_hex(4)}"
