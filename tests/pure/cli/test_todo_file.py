"""Files that contain a list: what they may hold, and how an invalid one is refused."""

from pathlib import Path
from typing import Any

import pytest

from wakeloop.cli.failures import CommandError
from wakeloop.cli.launch import read_todo_file

A, B = {"content": "a"}, {"content": "b: c"}
DONE = {"content": "a", "status": "completed"}


@pytest.mark.parametrize(
    ("name", "text", "items"),
    [
        ("list.txt", "a\n\n  b: c  \r\n", [A, B]),
        ("list", "\ufeffa", [A]),
        ("list.md", '["a"]', [{"content": '["a"]'}]),
        ("list.json", '["a", {"content": "a", "status": "completed"}]', [A, DONE]),
        ("list.yaml", "- a\n- content: a\n  status: completed\n", [A, DONE]),
        ("list.YML", "[a, 'b: c']", [A, B]),
    ],
)
def test_what_a_file_holds(name: str, text: str, items: Any, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text.encode())
    assert read_todo_file(tmp_path / name) == items


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("list.txt", "\n \n", "contains no items"),
        ("list.txt", b"\xff", "is not UTF-8"),
        ("list.json", "[", "cannot be parsed"),
        ("list.json", "[]", "contains no items"),
        ("list.json", '{"a": 1}', "a list of strings or items"),
        ("list.json", "[5]", "is not a valid list"),
        ("list.json", '[" "]', "is not a valid list"),
        ("list.json", '[{"content": "a", "status": "sideways"}]', "is not a valid list: .*sideways"),
        ("list.yaml", "a: [", "cannot be parsed"),
        ("none.txt", None, "No such file"),
    ],
)
def test_an_invalid_file_is_refused_in_one_sentence(name: str, text: Any, why: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CommandError, match=why) as refusal:
        read_todo_file(tmp_path / name)
    assert "--todos" in str(refusal.value)
    assert "\n" not in str(refusal.value)
