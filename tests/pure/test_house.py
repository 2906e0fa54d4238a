"""How the package is built: captions, floors, and what imports what."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import wakeloop

HOUSE = Path(wakeloop.__file__).parent
FILES = sorted(path.relative_to(HOUSE).as_posix() for path in HOUSE.rglob("*.py"))
FLOORS = (  # from the ground up: a place imports from the floors below it alone
    ("errors", "text"),
    ("prompts", "todos", "platform"),
    ("settings", "stream"),
    ("presets", "channels", "dialects"),
    ("guesses",),
    ("loop",),
    ("state", "model"),
    ("thread", "routes"),
    ("graph", "nodes"),
    ("agent", "middleware"),
    ("server", "testing", "display", "tools"),
    ("config",),
    ("demo", "sessions"),
    ("sessions/dbos", "sessions/langgraph_server"),
    ("bench",),
    ("cli",),
    ("cli/chat", "cli/sessions"),
    ("cli/commands",),
)
HEIGHT = {place: height for height, floor in enumerate(FLOORS) for place in floor}
DOORS = {"__init__", "__main__"}  # into the house, and no places in it
UNFRAMED = {"langgraph", "langchain_core", "pydantic"}
TRICKS = ("langgraph.channels", "langchain_core.tools.base")
THEIRS = {
    "StateGraph",
    "Runnable",
    "RunnableLambda",
    "DeltaChannel",
    "BinaryOperatorAggregate",
    "LastValue",
    "ToolNode",
}


@cache
def parsed(file: str) -> ast.Module:
    return ast.parse((HOUSE / file).read_text(encoding="utf-8"))


def place_of(file: str) -> str:
    """The folder of a file, or its stem at the root."""
    folder, _, name = file.rpartition("/")
    return folder or name.removesuffix(".py")


@cache
def imports_of(file: str) -> list[str]:
    """Every module that a file names in an import, wherever it stands; a submodule by its own name."""
    names = []
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            deeper = (f"{module}.{alias.name}" for alias in node.names)
            names += {name if is_ours(name) else module for name in deeper}
    return names


def is_ours(module: str) -> bool:
    path = HOUSE.parent / module.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def places_of(file: str) -> set[str]:
    """The other places that a file imports from."""
    found = set()
    for module in imports_of(file):
        if module.partition(".")[0] == "wakeloop":
            path = module.removeprefix("wakeloop").strip(".").replace(".", "/")
            found.add(path if (HOUSE / path).is_dir() else place_of(f"{path}.py"))
    return found - {place_of(file)}


def files_of(file: str) -> set[str]:
    """The files that a file imports, a folder by its face."""
    ours = (name.replace(".", "/") for name in imports_of(file) if name.partition(".")[0] == "wakeloop")
    paths = {f"{name}/__init__.py" if (HOUSE.parent / name).is_dir() else f"{name}.py" for name in ours}
    return {path.removeprefix("wakeloop/") for path in paths}


def test_every_place_has_its_floor() -> None:
    assert {place_of(file) for file in FILES} - DOORS == set(HEIGHT)
    assert len(HEIGHT) + 1 <= 35
    assert len([file for file in FILES if "/" not in file]) <= 15


@pytest.mark.parametrize("file", [file for file in FILES if file.removesuffix(".py") not in DOORS])
def test_no_import_runs_up_and_no_folders_circle(file: str) -> None:
    here = HEIGHT[place_of(file)]
    assert {place for place in places_of(file) if HEIGHT.get(place, 99) >= here} == set()


def test_no_files_circle() -> None:
    """Neither across folders nor within one; `prepare` raises with the files of a circle."""
    TopologicalSorter({file: files_of(file) for file in FILES}).prepare()


def test_the_page_of_the_architecture_draws_the_same_floors() -> None:
    page = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", page, re.MULTILINE)
    drawn = {name: -depth for depth, row in enumerate(rows) for name in re.findall(r"\w+", row)}
    assert drawn.keys() == {place.partition("/")[0] for place in HEIGHT}
    climbs = [
        (file, place)
        for file in FILES
        for place in (
            {found.partition("/")[0] for found in places_of(file)}
            if file.removesuffix(".py") not in DOORS
            else ()
        )
        if drawn[place] > drawn[place_of(file).partition("/")[0]]
    ]
    assert climbs == []


@pytest.mark.parametrize("floor", FLOORS, ids=lambda floor: floor[0])
def test_no_stem_means_two_things_in_one_floor(floor: tuple[str, ...]) -> None:
    stems = [
        Path(file).stem for file in FILES if place_of(file) in floor and not file.endswith("__init__.py")
    ]
    assert [stem for stem, times in Counter(stems).items() if times > 1] == []


@pytest.mark.parametrize("file", FILES)
def test_a_file_opens_with_a_caption(file: str) -> None:
    told = ast.get_docstring(parsed(file)) or ""
    assert 0 < len(told.partition("\n")[0]) <= 60


def test_the_wake_loop_is_read_in_three_files() -> None:
    loop = ("graph.py", "routes.py", "loop/ruling.py")
    assert sum(len((HOUSE / file).read_text(encoding="utf-8").splitlines()) for file in loop) <= 200


@pytest.mark.parametrize("file", FILES)
def test_nothing_private_of_others_is_imported(file: str) -> None:
    assert not [name for name in imports_of(file) if "._" in name]


@pytest.mark.parametrize("file", [file for file in FILES if not file.startswith("platform/")])
def test_tricks_on_langgraph_and_langchain_stay_in_one_room(file: str) -> None:
    assert not [name for name in imports_of(file) if name.startswith(TRICKS)]
    bases = {
        getattr(base.value if isinstance(base, ast.Subscript) else base, "id", "")
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.ClassDef)
        for base in node.bases
    }
    assert not bases & THEIRS


@pytest.mark.parametrize("file", [file for file in FILES if file != "platform/child_processes.py"])
def test_no_attribute_is_computed_under_a_lock_that_a_fork_inherits(file: str) -> None:
    """Python 3.11's `functools.cached_property` has one a class: `platform/computed_once.py` tells."""
    nodes = [*ast.walk(parsed(file))]
    names = {getattr(node, "attr", getattr(node, "id", "")) for node in nodes}
    names |= {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert "cached_property" not in names


@pytest.mark.parametrize("file", [file for file in FILES if file.startswith("nodes/")])
def test_nodes_never_import_each_other(file: str) -> None:
    assert not [name for name in imports_of(file) if name.startswith("wakeloop.nodes")]


@pytest.mark.parametrize("file", [file for file in FILES if file.startswith("todos/")])
def test_the_list_knows_no_framework(file: str) -> None:
    assert not [name for name in imports_of(file) if name.partition(".")[0] in UNFRAMED]


def test_langchain_is_needed_where_it_is_asked_for() -> None:
    """An extra: nothing else imports the middleware, and LangChain's own package only where it is used."""
    of_langchain = [file for file in FILES if "langchain" in {n.partition(".")[0] for n in imports_of(file)}]
    rest = [file for file in of_langchain if not file.startswith("middleware/")]
    assert rest == ["bench/peer_program.py", "model/named.py"]
    assert [file for file in FILES if "middleware" in places_of(file)] == []


def test_every_file_of_the_tests_has_a_name_of_its_own() -> None:
    """Folders of tests are no packages: of two files of one name, the one imported first stands for both."""
    names = [file.name for file in Path(__file__).parents[1].rglob("*.py") if file.name != "conftest.py"]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
