"""What reads stored bytes is made in one place: a saver, an engine, a client of it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import wakeloop

HOUSE = Path(wakeloop.__file__).parent
MAKERS = {
    "DBOS": "sessions/dbos/engine.py",
    "DBOSClient": "sessions/dbos/engine.py",
    "JsonPlusSerializer": "thread/strict_saver.py",  # by a class of its own alone
}
SAVERS = (
    "SqliteSaver",
    "AsyncSqliteSaver",
    "PostgresSaver",
    "AsyncPostgresSaver",
    "InMemorySaver",
    "Numbered",
)

APART = "bench/peer_program.py"  # a peer's agent, in memory and in another environment, without this package


@pytest.mark.parametrize(
    "file", sorted(HOUSE.rglob("*.py")), ids=lambda path: path.relative_to(HOUSE).as_posix()
)
def test_no_other_file_makes_what_reads_stored_bytes(file: Path) -> None:
    tree, here = ast.parse(file.read_text(encoding="utf-8")), file.relative_to(HOUSE).as_posix()
    called = {getattr(node.func, "id", "") for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not [
        name for name in called if (name in SAVERS and here != APART) or MAKERS.get(name, here) != here
    ]
    assert not {"pickle", "shelve", "marshal", "dill"} & {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
