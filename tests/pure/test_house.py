"""How the package is built: captions, and what imports what."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import wakeloop

HOUSE = Path(wakeloop.__file__).parent
FILES = sorted(path.relative_to(HOUSE).as_posix() for path in HOUSE.rglob("*.py"))
UNFRAMED = {"langgraph", "langchain_core", "pydantic"}
DOMAIN = ("todos.py", "operations.py", "rounds.py")


def imports_of(file: str) -> list[str]:
    """Every module that a file names in an import, wherever the import stands."""
    tree = ast.walk(ast.parse((HOUSE / file).read_text(encoding="utf-8")))
    return [
        name
        for node in tree
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    ]


@pytest.mark.parametrize("file", FILES)
def test_a_file_opens_with_a_caption(file: str) -> None:
    told = ast.get_docstring(ast.parse((HOUSE / file).read_text(encoding="utf-8"))) or ""
    assert 0 < len(told.partition("\n")[0]) <= 60


@pytest.mark.parametrize("file", FILES)
def test_nothing_private_of_others_is_imported(file: str) -> None:
    assert not [name for name in imports_of(file) if "._" in name]


@pytest.mark.parametrize("file", [file for file in FILES if file.startswith("nodes/")])
def test_nodes_never_import_each_other(file: str) -> None:
    assert not [name for name in imports_of(file) if name.startswith("wakeloop.nodes")]


@pytest.mark.parametrize("file", DOMAIN)
def test_the_list_knows_no_framework(file: str) -> None:
    assert not [name for name in imports_of(file) if name.partition(".")[0] in UNFRAMED]


@pytest.mark.parametrize("file", [file for file in FILES if not file.startswith(("cli/", "chat/", "demo/"))])
def test_the_library_does_not_import_the_command_line(file: str) -> None:
    above = ("wakeloop.cli", "wakeloop.cli.chat", "wakeloop.demo")
    assert not [name for name in imports_of(file) if name.startswith(above)]


def test_every_file_of_the_tests_has_a_name_of_its_own() -> None:
    """Folders of tests are no packages: of two files of one name, the one imported first stands for both."""
    names = [file.name for file in Path(__file__).parents[1].rglob("*.py") if file.name != "conftest.py"]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
