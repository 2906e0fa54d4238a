"""Every example in the docstrings of the public objects runs."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from importlib import import_module
from inspect import isfunction
from typing import Any

import pytest

from wakeloop import WakeloopError

MODULES = (
    "wakeloop",
    "wakeloop.testing",
    "wakeloop.tools",
    "wakeloop.middleware",
    "wakeloop.sessions",
    "wakeloop.display",
)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
RETURNED = {"wakeloop.display.Comparison", "wakeloop.display.View"}  # results, shown by `compare` and `show`


def public_objects() -> Iterator[tuple[str, Any]]:
    """Return each public function, class and type once, by the name that users import."""
    seen = set()
    for module_name in MODULES:
        module = import_module(module_name)
        for name in module.__all__:
            public = getattr(module, name)
            if id(public) not in seen and name != "__version__":
                seen.add(id(public))
                yield f"{module_name}.{name}", public


def examples_of(name: str, public: Any) -> list[doctest.DocTest]:
    """Return the examples of an object and of its public methods; the names of its package are imported."""
    package = import_module(name.rpartition(".")[0])
    names = {"__name__": name} | {one: getattr(package, one) for one in package.__all__}
    found = doctest.DocTestFinder(exclude_empty=True).find(public, name, module=False, globs=names)
    return [test for test in found if test.examples]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_example_runs() -> None:
    failures = []
    for name, public in public_objects():
        for test in examples_of(name, public):
            said: list[str] = []
            if doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append).failed:
                failures.append("".join(said))
    assert not failures, "\n".join(failures)


def needs_example(public: Any) -> bool:
    """Return whether users call an object: they only catch exceptions and read type aliases."""
    if isinstance(public, type):
        return public is WakeloopError or not issubclass(public, BaseException)
    return isfunction(public)


def test_every_public_object_has_an_example() -> None:
    missing = {
        name for name, public in public_objects() if needs_example(public) and not examples_of(name, public)
    }
    assert missing <= RETURNED, sorted(missing - RETURNED)
