"""A package's names, imported when they are first used."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(
    package: str, modules: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], Any]]:
    """Return a package's `__getattr__` and `__dir__` (PEP 562); `modules` holds the names by their module.

    No module is named like a name in it: importing it would put the module in the name's place.
    """
    where = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(where[name]), name)

    return get, lambda: sorted(where)
