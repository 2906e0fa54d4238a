"""How the package is built: captions, floors, imports."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import wakeloop

HOUSE = Path(wakeloop.__file__).parent
FILES = sorted(path.relative_to(HOUSE).as_posix() for path in HOUSE.rglob("*.py"))
FLOORS = (  # from the ground up: a place imports only from the floors below it
    ("errors", "text"),
    ("prompts", "todos", "platform"),
    ("settings", "stream"),
    ("presets", "channels", "dialects"),
    ("checks",),
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
DOORS = {"__init__", "__main__"}  # ways into the house, not places in it
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
    """Return the folder of a file, or its stem at the root."""
    folder, _, name = file.rpartition("/")
    return folder or name.removesuffix(".py")


@cache
def imports_of(file: str) -> list[str]:
    """Return every module that a file imports, anywhere in it; a submodule by its own name."""
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
    """Return the other places that a file imports from."""
    found = set()
    for module in imports_of(file):
        if module.partition(".")[0] == "wakeloop":
            path = module.removeprefix("wakeloop").strip(".").replace(".", "/")
            found.add(path if (HOUSE / path).is_dir() else place_of(f"{path}.py"))
    return found - {place_of(file)}


def files_of(file: str) -> set[str]:
    """Return the files that a file imports; a folder stands for its `__init__`."""
    ours = (name.replace(".", "/") for name in imports_of(file) if name.partition(".")[0] == "wakeloop")
    paths = {f"{name}/__init__.py" if (HOUSE.parent / name).is_dir() else f"{name}.py" for name in ours}
    return {path.removeprefix("wakeloop/") for path in paths}


def test_every_place_has_its_floor() -> None:
    assert {place_of(file) for file in FILES} - DOORS == set(HEIGHT)
    assert len(HEIGHT) + 1 <= 35
    assert len([file for file in FILES if "/" not in file]) <= 15


def test_imports_point_down() -> None:
    """Only to lower floors, so neither up nor in a circle of folders."""
    upward = []
    for file in FILES:
        if file.removesuffix(".py") not in DOORS:
            here = HEIGHT[place_of(file)]
            upward += [(file, place) for place in places_of(file) if HEIGHT.get(place, 99) >= here]
    assert upward == []


def test_no_files_import_each_other_in_a_circle() -> None:
    """`prepare` raises with the files of a circle."""
    TopologicalSorter({file: files_of(file) for file in FILES}).prepare()


def test_the_page_of_the_architecture_draws_the_same_floors() -> None:
    page = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", page, re.MULTILINE)
    drawn = {name: -depth for depth, row in enumerate(rows) for name in re.findall(r"\w+", row)}
    assert drawn.keys() == {place.partition("/")[0] for place in HEIGHT}
    climbs = []
    for file in FILES:
        if file.removesuffix(".py") not in DOORS:
            here = drawn[place_of(file).partition("/")[0]]
            places = {place.partition("/")[0] for place in places_of(file)}
            climbs += [(file, place) for place in places if drawn[place] > here]
    assert climbs == []


def test_no_stem_means_two_things_in_one_floor() -> None:
    doubled = []
    for floor in FLOORS:
        stems = [Path(file).stem for file in FILES if place_of(file) in floor]
        times = Counter(stem for stem in stems if stem != "__init__")
        doubled += [(floor, stem) for stem in times if times[stem] > 1]
    assert doubled == []


def test_a_file_opens_with_a_caption() -> None:
    captions = {file: (ast.get_docstring(parsed(file)) or "").partition("\n")[0] for file in FILES}
    assert [file for file, caption in captions.items() if not 0 < len(caption) <= 60] == []


def test_a_function_can_be_seen_whole() -> None:
    """Its body, without signature and docstring; ruff limits statements, branches and complexity."""
    long = []
    for file in FILES:
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
                long += [(file, node.name, lines)] if lines > 50 else []
    assert long == []


def test_the_wake_loop_is_read_in_three_files() -> None:
    loop = ("graph.py", "routes.py", "loop/ruling.py")
    assert sum(len((HOUSE / file).read_text(encoding="utf-8").splitlines()) for file in loop) <= 260


def imported_by(prefix: str, *, but: str = "-") -> list[tuple[str, str]]:
    """Return every file under a prefix with each module that it imports."""
    files = [file for file in FILES if file.startswith(prefix) and not file.startswith(but)]
    return [(file, name) for file in files for name in imports_of(file)]


def test_nothing_private_of_others_is_imported() -> None:
    assert [(file, name) for file, name in imported_by("") if "._" in name] == []


def test_tricks_on_langgraph_and_langchain_stay_in_one_folder() -> None:
    outside = imported_by("", but="platform/")
    assert [(file, name) for file, name in outside if name.startswith(TRICKS)] == []
    subclasses = []
    for file in FILES:
        for node in ast.walk(parsed(file)) if not file.startswith("platform/") else ():
            for base in node.bases if isinstance(node, ast.ClassDef) else ():
                name = getattr(base.value if isinstance(base, ast.Subscript) else base, "id", "")
                subclasses += [(file, name)] if name in THEIRS else []
    assert subclasses == []


def test_no_attribute_is_computed_under_a_lock_that_a_fork_inherits() -> None:
    """Python 3.11's `functools.cached_property` has one lock per class; see `platform/computed_once.py`."""
    users = []
    for file in FILES:
        names = set()
        for node in ast.walk(parsed(file)):
            names.add(getattr(node, "attr", getattr(node, "id", "")))
            if isinstance(node, ast.ImportFrom):
                names |= {alias.name for alias in node.names}
        users += [file] if "cached_property" in names else []
    assert users == ["platform/child_processes.py"]


def test_nodes_never_import_each_other() -> None:
    assert [found for found in imported_by("nodes/") if found[1].startswith("wakeloop.nodes")] == []


def test_the_list_knows_no_framework() -> None:
    assert [found for found in imported_by("todos/") if found[1].partition(".")[0] in UNFRAMED] == []


def test_langchain_is_imported_only_where_it_is_needed() -> None:
    """An extra: only the bench imports the middleware, and LangChain's own package only where it is used."""
    of_langchain = [file for file in FILES if "langchain" in {n.partition(".")[0] for n in imports_of(file)}]
    rest = [file for file in of_langchain if not file.startswith("middleware/")]
    assert rest == ["bench/agents.py", "model/chat_models.py"]
    assert [file for file in FILES if "middleware" in places_of(file)] == ["bench/agents.py"]


def test_every_test_file_has_a_unique_name() -> None:
    """Test folders are not packages: of two files with one name, only the first is imported."""
    names = [file.name for file in Path(__file__).parents[1].rglob("*.py") if file.name != "conftest.py"]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
