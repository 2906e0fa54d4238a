"""langchain: what holds under this preset in a new process."""

from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver
from stage import elsewhere
from theirs import DONE, ROWS, begin, plain


def test_a_thread_started_there_is_continued_in_another_process(tmp_path: Path) -> None:
    db = tmp_path / "threads.db"
    with SqliteSaver.from_conn_string(str(db)) as saver:
        begin(saver, ROWS)
    later = elsewhere(db, "cubepi", [["write_todos", {"todos": DONE}]], "Done.", given="keep going")
    assert plain(later["found"]["todos"]) == ROWS
    assert plain(later["todos"]) == DONE
    assert later["session"]["reason"] == "settled"
    assert later["faults"] == []
