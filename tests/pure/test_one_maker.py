"""Readers of stored bytes (a saver, an engine and its client) are each created in one place."""

from __future__ import annotations

import ast
from pathlib import Path

import wakeloop

HOUSE = Path(wakeloop.__file__).parent
MAKERS = {
    "DBOS": "sessions/dbos/engine.py",
    "DBOSClient": "sessions/dbos/engine.py",
    "JsonPlusSerializer": "thread/strict_saver.py",  # only by a class of its own
}
SAVERS = (
    "SqliteSaver",
    "AsyncSqliteSaver",
    "PostgresSaver",
    "AsyncPostgresSaver",
    "InMemorySaver",
    "Numbered",
)

# another package's agent, which is measured in memory
APART = "bench/agents.py"


def find_offences(file: Path) -> set[str]:
    """Return the forbidden calls and imports of this file."""
    tree, here = ast.parse(file.read_text(encoding="utf-8")), file.relative_to(HOUSE).as_posix()
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", "")
            if (name in SAVERS and here != APART) or MAKERS.get(name, here) != here:
                found.add(name)
        elif isinstance(node, ast.Import):
            found |= {"pickle", "shelve", "marshal", "dill"} & {alias.name for alias in node.names}
    return found


def test_no_other_file_creates_readers_of_stored_bytes() -> None:
    offences = {str(file): find_offences(file) for file in HOUSE.rglob("*.py")}
    assert {file: found for file, found in offences.items() if found} == {}
