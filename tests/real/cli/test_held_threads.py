"""A thread that a process holds stays held, whatever else that process does with its locks."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from processes import run_python, wakeloop

from wakeloop.cli.failures import CommandError
from wakeloop.cli.store import DatabaseFile, Store, open_to_read, open_to_write

LOOKS = """
import sys
from pathlib import Path
from wakeloop.cli.store import DatabaseFile, open_to_read
with open_to_read(DatabaseFile(Path(sys.argv[1]), named=True)) as store:
    print(*(name for name in sys.argv[2:] if store.is_held(name)))
"""


@pytest.fixture
def database(tmp_path: Path) -> DatabaseFile:
    return DatabaseFile(tmp_path / "threads.sqlite", named=True)


def held_elsewhere(database: DatabaseFile, *names: str) -> list[str]:
    """Return which of the threads another process finds held."""
    seen = run_python("-c", LOOKS, database.path, *names)
    assert seen.returncode == 0, seen.stderr
    return seen.stdout.split()


def another(store: Store) -> None:
    """Hold another thread for a moment."""
    with store.hold("other"), store.hold("third") as hold, hold.mark_running():
        assert held_elsewhere(store.database, "one", "other", "third") == ["one", "other", "third"]


def looked(store: Store) -> None:
    """Look at it, and at a free one, with the store that holds it."""
    assert [store.is_held(name) for name in ("one", "free")] == [False, False]  # nobody else has them


def looked_elsewhere(store: Store) -> None:
    """List the threads, as a chat does while it holds its own."""
    with open_to_read(store.database) as second:
        assert not second.is_held("one")
    assert wakeloop("threads", "--db", str(store.database.path))[0] == 0


def refused(store: Store) -> None:
    """Ask for it again."""
    with pytest.raises(CommandError, match="Another process is using the thread 'one'"), store.hold("one"):
        pass


@pytest.mark.parametrize("act", [another, looked, looked_elsewhere, refused])
def test_a_thread_that_is_held_stays_so(database: DatabaseFile, act: object) -> None:
    with open_to_write(database) as store, store.hold("one"):
        act(store)  # type: ignore[operator]
        assert held_elsewhere(database, "one", "free", "other", "third") == ["one"]
    assert held_elsewhere(database, "one") == []


def test_the_last_one_closes_the_file_of_the_locks(database: DatabaseFile, tmp_path: Path) -> None:
    descriptors = Path("/dev/fd") if sys.platform == "darwin" else Path("/proc/self/fd")

    def opened() -> int:
        return sum(one.resolve() == tmp_path / "threads.sqlite-locks" for one in descriptors.iterdir())

    with open_to_write(database) as store, ExitStack() as held:
        for name in ("a", "b", "c"):
            held.enter_context(store.hold(name))
        assert opened() == 1
        held.close()
        assert opened() == 0
