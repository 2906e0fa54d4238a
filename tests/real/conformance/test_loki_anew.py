"""loki: what holds under this preset in a new process."""

from pathlib import Path

import pytest
from stage import elsewhere

pytestmark = pytest.mark.slow


def test_a_repeat_is_seen_in_a_new_process(tmp_path: Path) -> None:
    db, change = tmp_path / "threads.db", {"auto_continue": True}
    assert elsewhere(db, "loki", [["todo__add", {"task": "a"}]], "Same.", None, change=change) is None
    later = elsewhere(db, "loki", "Same.", given=None, change=change)
    assert (later["session"]["reason"], later["notices"], later["asked"]) == ("repeated_reply", [], 1)
